//! Streams: the time to the first byte, what each chunk waits on its way, and the memory of many.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::load::{Call, Connection, find};
use super::servers::{Backend, Server};
use super::{ROUNDS, median};
use crate::table::aim;

/// Streams of a round, one after the other, and chunks of each.
const STREAMS: usize = 12;
const CHUNKS: u32 = 50;
/// How many streams are open for the figure of memory.
pub(super) const OPEN: usize = 1_000;

/// Microseconds by way: direct, nginx, Standpipe; one figure per round.
pub(super) struct Streams {
    first: Vec<[f64; 3]>,
    chunk: Vec<[f64; 3]>,
}

pub(super) fn measure(ways: &[Server]) -> Result<Streams, String> {
    let mut found = Streams { first: Vec::new(), chunk: Vec::new() };
    let chunks = CHUNKS.to_string();
    let calls: Vec<Call> =
        ways.iter().map(|way| Call::new(way, 1_000, &[("x-chunks", &chunks)])).collect();
    for round in 0..ROUNDS {
        let (mut first, mut chunk) = ([0.0; 3], [0.0; 3]);
        for at in 0..3 {
            let at = (at + round) % 3;
            let (mut firsts, mut delays) = (Vec::new(), Vec::new());
            let mut connection = calls[at].connect()?;
            for _ in 0..STREAMS {
                firsts.push(stream(&mut connection, &calls[at], &mut delays)?);
            }
            (first[at], chunk[at]) = (median(&firsts), median(&delays));
        }
        found.first.push(first);
        found.chunk.push(chunk);
    }
    for (name, of) in [("first byte", &found.first), ("a chunk", &found.chunk)] {
        for (at, way) in ways.iter().enumerate() {
            let each: Vec<f64> = of.iter().map(|round| round[at]).collect();
            println!("| stream, {name} | {} | {:.0} | – | – |", way.name, median(&each));
        }
    }
    Ok(found)
}

/// Reads one stream. Returns the time to its first byte; `delays` gets that of each chunk.
fn stream(connection: &mut Connection, call: &Call, delays: &mut Vec<f64>) -> Result<f64, String> {
    let began = Instant::now();
    connection.send(call)?;
    connection.more()?;
    let first = began.elapsed().as_secs_f64() * 1e6;
    let mut read = connection.head()?;
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        while let Some((sent, end)) = sent_at(&connection.unread[read..]) {
            delays.push(now.as_nanos().saturating_sub(sent) as f64 / 1e3);
            read += end;
        }
        if connection.unread.ends_with(b"0\r\n\r\n") {
            return Ok(first);
        }
        connection.more()?;
    }
}

/// When the next chunk was sent, in nanoseconds since 1970, and where that ends.
fn sent_at(bytes: &[u8]) -> Option<(u128, usize)> {
    let begin = find(bytes, b"@")? + 1;
    let length = find(&bytes[begin..], b"@")?;
    let text = std::str::from_utf8(&bytes[begin..begin + length]).ok()?;
    Some((text.parse().ok()?, begin + length + 1))
}

/// Resident megabytes of a daemon that did nothing yet, and with many open streams.
pub(super) fn memory(backend: &Backend) -> Result<[f64; 2], String> {
    let server = Server::standpipe(backend)?;
    let idle = server.memory()?;
    let call = Call::new(&server, 1_000, &[("x-chunks", "1"), ("x-hang", "1")]);
    let mut open = Vec::new();
    for _ in 0..OPEN {
        let mut connection = call.connect()?;
        connection.send(&call)?;
        open.push(connection);
    }
    for connection in &mut open {
        connection.head()?;
        while find(&connection.unread, b"@").is_none() {
            connection.more()?;
        }
    }
    Ok([idle, server.memory()?])
}

impl Streams {
    pub(super) fn print(&self) {
        for (text, rounds) in [
            ("time to first byte: added at most 2 times nginx (median of pairs)", &self.first),
            ("per streamed chunk: added at most 2 times nginx (median of pairs)", &self.chunk),
        ] {
            let ratio =
                |[direct, nginx, ours]: &[f64; 3]| (ours - direct) / (nginx - direct).max(1.0);
            let times = median(&rounds.iter().map(ratio).collect::<Vec<_>>());
            aim(text, Some(format!("{times:.2} ×")), Some(times <= 2.0));
        }
    }
}

//! Callers on connections that are kept: as many as can be, or each at its instant.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::servers::Server;

/// A request for one way to the backend.
pub(super) struct Call {
    address: SocketAddr,
    bytes: Vec<u8>,
}

impl Call {
    /// A request of this size, with these headers.
    pub(super) fn new(way: &Server, size: usize, headers: &[(&str, &str)]) -> Self {
        let is_stream = headers.iter().any(|(name, _)| *name == "x-chunks");
        let begin = format!(
            "{{\"model\":\"gpt-4o\",\"max_tokens\":100,\"stream\":{is_stream},\
             \"messages\":[{{\"role\":\"user\",\"content\":\""
        );
        let end = "\"}]}";
        let text = "tap ".repeat(size.saturating_sub(begin.len() + end.len()) / 4);
        let body = format!("{begin}{text}{end}");
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let bytes = format!(
            "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer k\r\n\
             content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
            way.path,
            body.len()
        );
        Self { address: way.address, bytes: bytes.into_bytes() }
    }

    pub(super) fn connect(&self) -> Result<Connection, String> {
        let stream = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).map_err(|error| error.to_string())?;
        Ok(Connection { stream, unread: Vec::new() })
    }
}

/// A connection that is kept.
pub(super) struct Connection {
    stream: TcpStream,
    pub(super) unread: Vec<u8>,
}

impl Connection {
    pub(super) fn send(&mut self, call: &Call) -> Result<(), String> {
        self.unread.clear();
        self.stream.write_all(&call.bytes).map_err(|error| error.to_string())
    }

    /// Reads what has come.
    pub(super) fn more(&mut self) -> Result<(), String> {
        let mut bytes = [0; 16 * 1_024];
        let count = self.stream.read(&mut bytes).map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("the connection was closed".to_owned());
        }
        self.unread.extend_from_slice(&bytes[..count]);
        Ok(())
    }

    /// Reads the head. Returns where it ends.
    pub(super) fn head(&mut self) -> Result<usize, String> {
        loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                if !self.unread.starts_with(b"HTTP/1.1 200") {
                    return Err(String::from_utf8_lossy(&self.unread).into_owned());
                }
                return Ok(at + 4);
            }
            self.more()?;
        }
    }

    /// Makes a call and reads its whole answer.
    pub(super) fn call(&mut self, call: &Call) -> Result<(), String> {
        self.send(call)?;
        let head = self.head()?;
        let text = String::from_utf8_lossy(&self.unread[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        match length.and_then(|length| length.parse::<usize>().ok()) {
            Some(length) => {
                while self.unread.len() < head + length {
                    self.more()?;
                }
            }
            None => {
                while !self.unread.ends_with(b"0\r\n\r\n") {
                    self.more()?;
                }
            }
        }
        Ok(())
    }
}

pub(super) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// So many calls as fast as they are answered.
pub(super) fn closed_loop(call: &Call, connections: usize, many: usize) -> Result<(), String> {
    let each = many.div_ceil(connections);
    let work = |_| {
        let mut connection = call.connect()?;
        (0..each).try_for_each(|_| connection.call(call))?;
        Ok(Vec::new())
    };
    at_once(connections, work).map(drop)
}

/// Calls at their instants, `rate` a second. Returns how long each took, in microseconds.
///
/// A call that is due while its connection waits for an answer is late by the fault of the proxy,
/// and its time counts from when it was due. A call whose thread merely woke late is not.
pub(super) fn open_loop(
    call: &Call,
    connections: usize,
    rate: f64,
    time: Duration,
) -> Result<Vec<f64>, String> {
    let start = Instant::now() + Duration::from_millis(20);
    let work = |number: usize| {
        let mut connection = call.connect()?;
        let mut took = Vec::new();
        for turn in 0.. {
            let index = (turn * connections + number) as f64;
            let offset = Duration::from_secs_f64(index / rate);
            if offset >= time {
                break;
            }
            let due = start + offset;
            let now = Instant::now();
            let counted = if now < due {
                thread::sleep(due - now);
                Instant::now()
            } else {
                due
            };
            connection.call(call)?;
            took.push(counted.elapsed().as_secs_f64() * 1e6);
        }
        Ok(took)
    };
    at_once(connections, work)
}

/// Runs the same on several threads.
fn at_once(
    threads: usize,
    work: impl Fn(usize) -> Result<Vec<f64>, String> + Sync,
) -> Result<Vec<f64>, String> {
    let work = &work;
    thread::scope(|scope| {
        let started: Vec<_> =
            (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        let mut all = Vec::new();
        for thread in started {
            all.extend(thread.join().map_err(|_| "a caller panicked")??);
        }
        Ok(all)
    })
}

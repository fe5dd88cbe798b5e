//! Connections of clients that do not behave: they end in the middle of something, are slow, or are
//! very many.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use standpipe_server::raise_file_limit;
use standpipe_sim::Random;

use crate::client::{Connection, request};
use crate::http;
use crate::setup::{BUCKET, SLOTS, WINDOW};

/// Where a client's connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In the head of its request.
    Head,
    /// In the body of its request.
    Body,
    /// While it waits.
    Waiting,
    /// Before it reads the answer.
    Granted,
    /// While it holds a lease.
    Held,
}

/// Connections that stay open until this is dropped.
#[derive(Debug)]
pub struct Crowd {
    open: Vec<Connection>,
    writer: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.open.clear();
        if let Some((ends, thread)) = self.writer.take() {
            ends.store(true, Ordering::Relaxed);
            let _joined = thread.join();
        }
    }
}

/// So many connections. A daemon that has just ended is given the time to start again.
fn connections(directory: &Path, count: usize) -> Result<Vec<Connection>, String> {
    let first = (0..100).find_map(|_| {
        let connected = Connection::by_port(directory).ok();
        if connected.is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        connected
    });
    let more = (1..count).map_while(|_| Connection::by_port(directory).ok());
    let open: Vec<Connection> = first.into_iter().chain(more).collect();
    let made = open.len();
    if made == count { Ok(open) } else { Err(format!("{made} of {count} clients could connect")) }
}

fn ask(pool: &str, timeout: u64) -> Value {
    json!({ "pool": pool, "agent": "vanishing", "timeout_ms": timeout })
}

fn a_pool(random: &mut Random) -> &'static str {
    [SLOTS, WINDOW, BUCKET][random.below(3) as usize]
}

/// Clients whose connections end at a stage. Those that wait do so until the result is dropped.
///
/// # Errors
/// When the daemon does not take their connections.
pub fn vanish(stage: Stage, directory: &Path, random: &mut Random) -> Result<Crowd, String> {
    let mut open = Vec::new();
    let count = match stage {
        Stage::Held => 6,
        Stage::Granted => 20,
        Stage::Head | Stage::Body | Stage::Waiting => 50,
    };
    for mut connection in connections(directory, count)? {
        // Slots are what a ticket that is not cancelled would take from others for long enough.
        let (pool, timeout) = match stage {
            Stage::Waiting => (SLOTS, 3_600_000),
            _ => (a_pool(random), 0),
        };
        let text = request("/v1/leases", &ask(pool, timeout));
        let head = text.find("\r\n\r\n").unwrap_or_default() + 4;
        // A connection that the daemon has closed already is one that vanished, too.
        match stage {
            Stage::Head | Stage::Body => {
                let (from, to) = if stage == Stage::Head { (1, head) } else { (head, text.len()) };
                let end = from + random.below((to - from) as u64) as usize;
                let _closed = connection.write_all(&text.as_bytes()[..end]);
            }
            Stage::Granted => {
                let _closed = connection.write_all(text.as_bytes());
            }
            Stage::Waiting => {
                let _closed = connection.write_all(text.as_bytes());
                open.push(connection);
            }
            Stage::Held => {
                let _timed = connection.set_read_timeout(Duration::from_millis(500));
                if http::exchange(&mut connection, &text).is_err() {
                    break;
                }
            }
        }
    }
    Ok(Crowd { open, writer: None })
}

/// Very many clients that wait, more than the daemon lets wait at once.
///
/// # Errors
/// As [`vanish`].
pub fn waiters(directory: &Path, count: usize, random: &mut Random) -> Result<Crowd, String> {
    raise_file_limit();
    let mut open = connections(directory, count)?;
    for connection in &mut open {
        let text = request("/v1/leases", &ask(a_pool(random), 20_000));
        let _closed = connection.write_all(text.as_bytes());
    }
    Ok(Crowd { open, writer: None })
}

/// Connections that send a byte of a head now and then.
///
/// # Errors
/// As [`vanish`].
pub fn slow_heads(directory: &Path, count: usize) -> Result<Crowd, String> {
    raise_file_limit();
    let mut open = connections(directory, count)?;
    for connection in &mut open {
        let _closed = connection.write_all(b"POST /v1/leases HTTP/1.1\r\nx-slow: ");
    }
    let ends = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&ends);
    let thread = std::thread::spawn(move || {
        while !theirs.load(Ordering::Relaxed) {
            for connection in &mut open {
                let _closed = connection.write_all(b"x");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    Ok(Crowd { open: Vec::new(), writer: Some((ends, thread)) })
}

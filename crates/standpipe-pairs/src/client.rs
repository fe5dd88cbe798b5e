//! A real process without the library: an HTTP client of the daemon. It asks, calls the provider,
//! settles, and writes the same record as `worker`.
//!
//! Started by the driver with `pairs client key=value …`. Every call has an `id`: when its
//! connection is lost it asks again, and gets the lease that it was granted the first time. The
//! leases live for a minute, so one that the daemon granted twice, or that is lost with an answer,
//! is missing when the probe takes all capacity.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use standpipe_sim::Random;

use crate::http::{self, ProviderClient, Reply};
use crate::record::{Recorder, now};
use crate::setup::NAMED;
use crate::worker::{Args, patience, service};

/// How long a lease lives, in milliseconds: longer than the probe tries to take all capacity.
const TTL: u64 = 60_000;
/// Between two attempts to reach the daemon.
const RETRY: Duration = Duration::from_millis(20);
/// For how long a call is repeated, in microseconds. The driver reports a process that takes as
/// long to end.
const BOUND: u64 = 90_000_000;

/// A connection to a daemon.
#[derive(Debug)]
pub enum Connection {
    /// By its port.
    Tcp(TcpStream),
    /// By its socket.
    Unix(UnixStream),
}

impl Connection {
    /// Connects to the daemon of a directory by its port, wherever that is just now.
    ///
    /// # Errors
    /// When no daemon is there, or it takes no connection.
    pub fn by_port(directory: &Path) -> io::Result<Self> {
        let running = standpipe_server::running(directory).ok_or(io::ErrorKind::NotFound)?;
        let stream = TcpStream::connect_timeout(&running.address, Duration::from_millis(500))?;
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    fn by_socket(directory: &Path) -> io::Result<Self> {
        UnixStream::connect(directory.join("standpipe.sock")).map(Self::Unix)
    }

    /// Reading takes at most so long.
    ///
    /// # Errors
    /// When the system does not set that.
    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(timeout)),
            Self::Unix(stream) => stream.set_read_timeout(Some(timeout)),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(space),
            Self::Unix(stream) => stream.read(space),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A request with a body of JSON.
#[must_use]
pub fn request(path: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// The process's life.
///
/// # Errors
/// When its own record cannot be written.
pub fn run(args: &Args) -> Result<(), String> {
    let recorder = Recorder::open(&args.path("log"))?;
    recorder.write("begin", 0, "-", &std::process::id().to_string());
    let mut client = Client {
        random: Random::new(args.number("seed")),
        number: 0,
        provider: ProviderClient::new(args.get("provider"), args.get("agent")),
        daemon: None,
        args: args.clone(),
        recorder,
    };
    let bound = now() + 180_000_000;
    while !args.is_stopped() && now() < bound {
        client.turn();
    }
    client.recorder.write("end", 0, "-", "");
    Ok(())
}

struct Client {
    args: Args,
    recorder: Recorder,
    random: Random,
    number: u64,
    provider: ProviderClient,
    daemon: Option<Connection>,
}

/// What an ask came to.
enum Outcome {
    Granted(String),
    Refused(String),
    Failed(String),
}

impl Client {
    /// One call, from the ask to its settlement.
    fn turn(&mut self) {
        let pool = NAMED[self.random.below(NAMED.len() as u64) as usize];
        self.number += 1;
        let (number, timeout) = (self.number, patience(pool, &mut self.random));
        self.recorder.write("ask", number, pool, &timeout.to_string());
        match self.reserve(pool, timeout) {
            Outcome::Granted(lease) => self.call(pool, &lease),
            Outcome::Refused(words) => {
                self.recorder.write("refuse", number, pool, &words);
                std::thread::sleep(Duration::from_millis(self.random.below(15)));
            }
            Outcome::Failed(words) => {
                self.recorder.write("error", number, pool, &words);
                std::thread::sleep(RETRY);
            }
        }
    }

    fn reserve(&mut self, pool: &str, timeout: u64) -> Outcome {
        let agent = self.args.get("agent").to_owned();
        let id = format!("{agent}-{}", self.number);
        let asked = now();
        let mut last = String::new();
        while now() < asked + BOUND {
            let left = timeout.saturating_sub((now() - asked) / 1_000);
            let body = json!({ "pool": pool, "agent": agent, "id": id, "ttl_ms": TTL,
                               "timeout_ms": left });
            let Reply { status, body } = match self.exchange("/v1/leases", &body) {
                Ok(reply) => reply,
                Err(error) => {
                    last = error.to_string();
                    continue;
                }
            };
            let said = serde_json::from_str::<Value>(&body).unwrap_or_default();
            return match (status, said["lease"].as_str(), said["type"].as_str()) {
                (200 | 201, Some(lease), _) if said["settled"] != true => {
                    Outcome::Granted(lease.to_owned())
                }
                (429, ..) => Outcome::Refused(body),
                // The daemon ends or has too many connections, or the store is unavailable and an
                // earlier attempt had no answer: that one may have been granted by a daemon that
                // has died since, and only its id leads to the lease before its ttl ends.
                (503, _, kind)
                    if matches!(kind, Some("stopping") | None)
                        || kind == Some("store") && !last.is_empty() =>
                {
                    last = body;
                    self.daemon = None;
                    std::thread::sleep(RETRY);
                    continue;
                }
                _ => Outcome::Failed(format!("{status}: {body}")),
            };
        }
        Outcome::Failed(format!("no answer: {last}"))
    }

    fn call(&mut self, pool: &str, lease: &str) {
        let number = self.number;
        self.recorder.write("grant", number, pool, &format!("store {lease}"));
        if self.random.below(8) == 0 {
            self.recorder.write("cancel", number, pool, "");
            self.settle(pool, lease, "cancel");
            return;
        }
        let service = service(pool, &mut self.random);
        if self.provider.call(pool, lease, service).is_err() {
            self.recorder.write("unanswered", number, pool, "");
        }
        self.recorder.write("settle", number, pool, "");
        self.settle(pool, lease, "commit");
    }

    /// Settles, again and again until the daemon has answered. A lease that is gone then was
    /// settled by an attempt whose answer was lost, or with the ledger.
    fn settle(&mut self, pool: &str, lease: &str, verb: &str) {
        let began = now();
        let mut last = String::new();
        while now() < began + BOUND {
            match self.exchange(&format!("/v1/leases/{lease}/{verb}"), &json!({})) {
                Ok(Reply { status: 200, .. }) => {
                    self.recorder.write("done", self.number, pool, "ok");
                    return;
                }
                Ok(Reply { status: 503, body }) => {
                    last = body;
                    self.daemon = None;
                    std::thread::sleep(RETRY);
                }
                Ok(Reply { status, body }) => {
                    self.recorder.write("done", self.number, pool, &format!("{status}: {body}"));
                    return;
                }
                Err(error) => last = error.to_string(),
            }
        }
        self.recorder.write("done", self.number, pool, &format!("no answer: {last}"));
    }

    /// One request to the daemon. After a failure the next one connects anew.
    fn exchange(&mut self, path: &str, body: &Value) -> io::Result<Reply> {
        let reply = self.connected().and_then(|mut stream| {
            let reply = http::exchange(&mut stream, &request(path, body))?;
            self.daemon = Some(stream);
            Ok(reply)
        });
        if reply.is_err() {
            std::thread::sleep(RETRY);
        }
        reply
    }

    fn connected(&mut self) -> io::Result<Connection> {
        if let Some(stream) = self.daemon.take() {
            return Ok(stream);
        }
        let directory = self.args.path("store");
        match self.number % 2 {
            0 => Connection::by_port(&directory),
            _ => Connection::by_socket(&directory),
        }
    }
}

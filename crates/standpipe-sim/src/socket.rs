//! The enforcing provider on a TCP socket, for clients that are real processes.
//!
//! It decides with the same [`Provider`](crate::Provider) as the virtual world, by a [`Clock`] that
//! is real or moved by a test, and keeps a log of its own. A test that trusts only what callers and
//! the provider saw reads that log; it never asks the ledger under test. Read `calls` next (what is
//! decided and written down), then `connection` and `http` (one client).

mod api;
mod calls;
mod clock;
mod connection;
mod fault;
mod http;
mod log;
mod realtime;
mod stream;
mod websocket;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use self::clock::{Clock, ManualClock, RealClock};
pub use self::log::Logged;

use self::calls::Calls;
use crate::provider::{Options, Rule, Shape};

/// How a [`ProviderServer`] behaves.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Whose replies are imitated.
    pub shape: Shape,
    /// What is enforced for each API key and path.
    pub rules: Vec<Rule>,
    /// Paths for which other rules are enforced instead.
    pub paths: BTreeMap<String, Vec<Rule>>,
    /// Whether the rules are enforced for each model apart.
    pub per_model: bool,
    /// The provider's other ways.
    pub options: Options,
    /// Where chance begins.
    pub seed: u64,
    /// How long a call takes, unless it names a length itself.
    pub service: Duration,
    /// How long a client may take to send a request, or to read a reply.
    pub patience: Duration,
    /// How many connections are served at once; more are answered with 503 and closed.
    pub connections: usize,
    /// The port on 127.0.0.1; 0 for one that the system chooses.
    pub port: u16,
}

impl ServerOptions {
    /// With these rules, and otherwise as a provider of this shape is documented to be: calls take
    /// no time, clients have ten seconds, and there may be 1,024 of them.
    #[must_use]
    pub fn new(shape: Shape, rules: Vec<Rule>) -> Self {
        Self {
            shape,
            rules,
            paths: BTreeMap::new(),
            per_model: false,
            options: Options::of(shape),
            seed: 0,
            service: Duration::ZERO,
            patience: Duration::from_secs(10),
            connections: 1_024,
            port: 0,
        }
    }
}

/// A provider that listens on 127.0.0.1 until it is dropped.
///
/// ```
/// use std::io::{Read, Write};
/// use standpipe_sim::{ProviderServer, Rule, ServerOptions, Shape, Unit};
///
/// let rule = Rule::Rolling { unit: Unit::Requests, amount: 1, period: 60_000_000 };
/// let server = ProviderServer::start(ServerOptions::new(Shape::Plain, vec![rule])).unwrap();
/// let call = || {
///     let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
///     let headers = "x-api-key: k\r\nx-agent: blog\r\nconnection: close";
///     write!(stream, "GET /v1/x HTTP/1.1\r\n{headers}\r\n\r\n").unwrap();
///     let mut reply = String::new();
///     stream.read_to_string(&mut reply).unwrap();
///     reply
/// };
/// assert!(call().starts_with("HTTP/1.1 200"));
/// assert!(call().starts_with("HTTP/1.1 429"));
/// let log = server.log();
/// assert_eq!(log[1].agent, "blog");
/// assert_eq!(log[1].refused_by, Some(0));
/// ```
#[derive(Debug)]
pub struct ProviderServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    shape: Shape,
    service: u64,
    patience: Duration,
    most_connections: usize,
    clock: Arc<dyn Clock>,
    calls: Mutex<Calls>,
    /// Notified whenever a call arrives or finishes.
    happened: Condvar,
    open: Mutex<Open>,
    /// Notified whenever a connection ends.
    closed: Condvar,
}

/// The connections that are being served.
#[derive(Debug, Default)]
struct Open {
    stopping: bool,
    next: u64,
    streams: BTreeMap<u64, TcpStream>,
}

impl ProviderServer {
    /// Starts one by the real clock, whose calendar is this machine's.
    ///
    /// # Errors
    /// When the port is in use, or no thread can be started.
    pub fn start(mut options: ServerOptions) -> io::Result<Self> {
        let clock = RealClock::new();
        options.options.origin = clock.origin();
        Self::start_with(options, Arc::new(clock))
    }

    /// Starts one by another clock.
    ///
    /// # Errors
    /// As [`ProviderServer::start`].
    pub fn start_with(options: ServerOptions, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            shape: options.shape,
            service: micros(options.service),
            // A length of zero would mean to wait for ever.
            patience: options.patience.max(Duration::from_millis(1)),
            most_connections: options.connections,
            clock,
            calls: Mutex::new(Calls::new(&options)),
            happened: Condvar::new(),
            open: Mutex::default(),
            closed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new().name("provider".to_owned());
        let acceptor = acceptor.spawn(move || accept(&listener, &accepting))?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every call so far, in the order in which they were decided.
    #[must_use]
    pub fn log(&self) -> Vec<Logged> {
        self.shared.calls().log().to_vec()
    }

    /// Blocks until the log fulfils a condition. It is asked again whenever a call arrives or
    /// finishes.
    pub fn wait_until(&self, condition: impl Fn(&[Logged]) -> bool) {
        let mut calls = self.shared.calls();
        while !condition(calls.log()) {
            calls = ignore_poison(self.shared.happened.wait(calls));
        }
    }

    /// Stops listening, closes every connection and waits until all threads have ended. Calls that
    /// were being served get no reply, and their entry in the log has no finish.
    pub fn stop(mut self) -> Vec<Logged> {
        self.shut_down();
        self.log()
    }

    fn shut_down(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.shared.open().stopping = true;
        self.shared.clock.stop();
        // The acceptor is inside `accept`; one more connection lets it see that it should end.
        let woken = TcpStream::connect(self.address);
        let _ended = acceptor.join();
        drop(woken);
        let mut open = self.shared.open();
        for stream in open.streams.values() {
            // One that the client closed already is as good.
            let _closed = stream.shutdown(Shutdown::Both);
        }
        while !open.streams.is_empty() {
            open = ignore_poison(self.shared.closed.wait(open));
        }
    }
}

impl Drop for ProviderServer {
    fn drop(&mut self) {
        self.shut_down();
    }
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        ignore_poison(self.calls.lock())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        ignore_poison(self.open.lock())
    }
}

/// A connection that is counted; dropped, it no longer is.
#[derive(Debug)]
struct Counted {
    number: u64,
    shared: Arc<Shared>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.open().streams.remove(&self.number);
        self.shared.closed.notify_all();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let mut open = shared.open();
        if open.stopping {
            return;
        }
        let Ok((stream, kept)) = stream.and_then(|stream| Ok((stream.try_clone()?, stream))) else {
            drop(open);
            // A client that left early, or too many open files: then some must be closed first.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        if open.streams.len() >= shared.most_connections {
            drop(open);
            connection::turn_away(stream);
            continue;
        }
        let number = open.next;
        open.next += 1;
        open.streams.insert(number, kept);
        drop(open);
        let counted = Counted { number, shared: Arc::clone(shared) };
        let serve = move || {
            connection::serve(stream, &counted.shared);
            drop(counted);
        };
        // Without a thread the closure is dropped, and the connection with it.
        let _started = std::thread::Builder::new().name("provider call".to_owned()).spawn(serve);
    }
}

/// A thread that panicked while it held a lock left consistent data: every change is one push or
/// one assignment.
fn ignore_poison<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

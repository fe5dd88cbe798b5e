//! A bad network: a proxy in this process between clients and a server.
//!
//! It passes bytes on as they come and knows no protocol. What it loses is whole: a connection
//! from which bytes were kept back is closed sooner or later, and never goes on with a hole in it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::port::Port;
use crate::server::Server;

/// A way to a server that can be cut. It closes with this value.
#[derive(Debug)]
pub struct Gate {
    shared: Arc<Shared>,
    /// The socket that listens and the thread that accepts; none while it is cut.
    door: Mutex<Option<(TcpListener, JoinHandle<()>)>>,
    url: String,
    // Outlives the door, so that the port stays ours while it is cut.
    port: Port,
}

#[derive(Debug)]
struct Shared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    target: String,
    stalled: bool,
    cut: bool,
    slow: Option<Slow>,
    to_lose: usize,
    /// How many answers to requests with this word in them are lost.
    to_lose_after: (String, usize),
    lost: usize,
    connections: Vec<Connection>,
    /// Connections so far; the number of one is its name.
    count: u64,
}

#[derive(Debug)]
struct Connection {
    name: u64,
    client: TcpStream,
    server: Option<TcpStream>,
    /// Bytes of it were swallowed.
    holed: bool,
    /// Its next answer is lost.
    doomed: bool,
}

/// How answers are slowed down.
#[derive(Clone, Copy, Debug)]
enum Slow {
    /// Each part of an answer is late by at least and at most so much.
    Lag(Duration, Duration),
    /// One byte after the other, with a gap.
    Trickle(Duration),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Request,
    Answer,
}

/// What becomes of the bytes that have just arrived.
enum Fate {
    Pass,
    Swallow,
    Close,
}

impl Gate {
    /// An open gate before that server.
    #[must_use]
    pub fn before(server: &Server) -> Self {
        let port = Port::new();
        let url = server.url_at("127.0.0.1", port.number());
        let state = State { target: server.address(), ..State::default() };
        let shared = Arc::new(Shared(Mutex::new(state)));
        let gate = Self { shared, door: Mutex::new(None), url, port };
        gate.open();
        gate
    }

    /// How a client names the way through it: as the server, with another port.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Where it listens, as `127.0.0.1:6379`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// The port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// From now on new connections lead to this server, as a name does after a failover. Those
    /// that exist stay where they are.
    pub fn lead_to(&self, server: &Server) {
        self.shared.state().target = server.address();
    }

    /// Closes every connection, and refuses new ones.
    pub fn cut(&self) {
        self.shared.state().cut = true;
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((listener, thread)) = door {
            // Linux ends an `accept` on a socket that is shut down, and refuses from then on.
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
            let _ = thread.join();
        }
        self.shared.state().close_where(|_| true);
    }

    /// Swallows what arrives, both ways. Connections stay open, and new ones are accepted.
    pub fn stall(&self) {
        self.shared.state().stalled = true;
    }

    /// Every answer is late from now on, by a length between these two.
    pub fn lag(&self, least: Duration, most: Duration) {
        self.shared.state().slow = Some(Slow::Lag(least, most));
    }

    /// Answers arrive byte by byte from now on, with this gap between two.
    pub fn trickle(&self, gap: Duration) {
        self.shared.state().slow = Some(Slow::Trickle(gap));
    }

    /// All is well again, except for connections that have lost something: those are closed.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.close_where(|connection| connection.holed);
        (state.stalled, state.cut, state.slow) = (false, false, None);
        drop(state);
        self.open();
    }

    /// The server gets the request and carries it out; when the first bytes of its answer are here,
    /// the connection is closed in place of passing them on. So often, each time one answer,
    /// whatever was asked.
    pub fn lose_next_answers(&self, count: usize) {
        self.shared.state().to_lose = count;
    }

    /// The same only for requests that have this word in them, in upper or lower case. For clients
    /// that ask one thing after the other on a connection: of several that are under way the first
    /// answer is the lost one.
    pub fn lose_next_answers_to(&self, word: &str, count: usize) {
        assert!(!word.is_empty(), "every request has the empty word");
        self.shared.state().to_lose_after = (word.to_lowercase(), count);
    }

    /// How many answers were lost, by either of the two.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.shared.state().lost
    }

    /// Listens, if it does not.
    fn open(&self) {
        let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        if door.is_some() {
            return;
        }
        let made = self.port.socket().and_then(|socket| {
            rustix::net::listen(&socket, 128)?;
            let listener = TcpListener::from(socket);
            Ok((listener.try_clone()?, listener))
        });
        let (listener, accepts) = match made {
            Ok(both) => both,
            Err(error) => panic!("cannot listen on {}: {error}", self.address()),
        };
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::spawn(move || {
            while let Ok((client, _)) = accepts.accept() {
                shared.admit(client);
            }
        });
        *door = Some((listener, thread));
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // What panicked was a test; the state is whole after every statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leads a client to the server. Two threads pass bytes on until one side is closed.
    fn admit(self: &Arc<Self>, client: TcpStream) {
        let Ok(kept) = client.try_clone() else { return };
        let mut state = self.state();
        if state.cut {
            return;
        }
        state.count += 1;
        let (name, target) = (state.count, state.target.clone());
        let connection =
            Connection { name, client: kept, server: None, holed: false, doomed: false };
        state.connections.push(connection);
        drop(state);
        let shared = Arc::clone(self);
        std::thread::spawn(move || {
            if shared.connect(name, &client, &target).is_err() {
                shared.state().close_where(|connection| connection.name == name);
            }
        });
    }

    fn connect(
        self: &Arc<Self>,
        name: u64,
        client: &TcpStream,
        target: &str,
    ) -> std::io::Result<()> {
        let server = TcpStream::connect(target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (answers, back) = (server.try_clone()?, client.try_clone()?);
        let kept = server.try_clone()?;
        match self.state().find(name) {
            Some(connection) => connection.server = Some(kept),
            // It was cut meanwhile.
            None => return Ok(()),
        }
        let shared = Arc::clone(self);
        std::thread::spawn(move || shared.pump(name, Way::Answer, answers, back));
        self.pump(name, Way::Request, client.try_clone()?, server);
        Ok(())
    }

    fn pump(&self, name: u64, way: Way, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let bytes = &buffer[..length];
            let fate = self.state().fate(name, way, bytes);
            match fate {
                Fate::Pass if self.pass(way, bytes, &mut to).is_ok() => {}
                Fate::Swallow => {}
                Fate::Pass | Fate::Close => break,
            }
        }
        self.state().close_where(|connection| connection.name == name);
    }

    /// Passes bytes on, answers as slowly as was asked for.
    fn pass(&self, way: Way, bytes: &[u8], to: &mut TcpStream) -> std::io::Result<()> {
        let slow = self.state().slow.filter(|_| way == Way::Answer);
        match slow {
            None => to.write_all(bytes),
            Some(Slow::Lag(least, most)) => {
                std::thread::sleep(between(least, most, bytes));
                to.write_all(bytes)
            }
            Some(Slow::Trickle(gap)) => bytes.iter().try_for_each(|byte| {
                std::thread::sleep(gap);
                to.write_all(&[*byte])
            }),
        }
    }
}

/// A length between two, the same for the same bytes.
fn between(least: Duration, most: Duration, bytes: &[u8]) -> Duration {
    let mixed = bytes.iter().fold(7_u32, |mixed, byte| mixed.wrapping_mul(31) ^ u32::from(*byte));
    least + most.saturating_sub(least) * (mixed % 1_000) / 1_000
}

impl State {
    fn find(&mut self, name: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.name == name)
    }

    fn fate(&mut self, name: u64, way: Way, bytes: &[u8]) -> Fate {
        let stalled = self.stalled;
        let (word, left) = &self.to_lose_after;
        let meant = way == Way::Request && *left > 0 && has(bytes, word);
        let Some(connection) = self.find(name) else { return Fate::Close };
        if stalled {
            connection.holed = true;
            return Fate::Swallow;
        }
        let doomed = connection.doomed;
        connection.doomed |= meant;
        match way {
            Way::Request => {
                self.to_lose_after.1 -= usize::from(meant && !doomed);
                Fate::Pass
            }
            Way::Answer if doomed || self.to_lose > 0 => {
                self.to_lose -= usize::from(!doomed);
                self.lost += 1;
                // At once: what else arrives on this connection is no second answer.
                self.close_where(|connection| connection.name == name);
                Fate::Close
            }
            Way::Answer => Fate::Pass,
        }
    }

    fn close_where(&mut self, meant: impl Fn(&Connection) -> bool) {
        self.connections.retain(|connection| {
            if !meant(connection) {
                return true;
            }
            // Also the clones that the threads hold: each wakes and ends.
            let _ = connection.client.shutdown(Shutdown::Both);
            if let Some(server) = &connection.server {
                let _ = server.shutdown(Shutdown::Both);
            }
            false
        });
    }
}

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

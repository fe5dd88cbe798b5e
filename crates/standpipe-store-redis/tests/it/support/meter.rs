//! A way to a server that measures what goes over it: how long each call is, and each answer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use standpipe_servers::Server;

/// A way that measures. It ends with the process.
pub(crate) struct Meter {
    port: u16,
    most: Arc<Most>,
}

#[derive(Default)]
struct Most {
    call: AtomicUsize,
    answer: AtomicUsize,
}

/// What went one way since something last went the other.
#[derive(Default)]
struct Turn {
    calls: bool,
    bytes: usize,
}

impl Meter {
    pub(crate) fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (most, target) = (Arc::new(Most::default()), server.address());
        let shared = Arc::clone(&most);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                pass(client.unwrap(), TcpStream::connect(&target).unwrap(), &shared);
            }
        });
        Self { port, most }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The longest call and the longest answer since this was last asked.
    pub(crate) fn longest(&self) -> (usize, usize) {
        let take = |most: &AtomicUsize| most.swap(0, Ordering::SeqCst);
        (take(&self.most.call), take(&self.most.answer))
    }
}

fn pass(client: TcpStream, server: TcpStream, most: &Arc<Most>) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    let turn = Arc::new(Mutex::new(Turn::default()));
    let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let ways = [(true, client, forth), (false, server, back)];
    for (calls, from, to) in ways {
        let (turn, most) = (Arc::clone(&turn), Arc::clone(most));
        std::thread::spawn(move || pump(calls, from, to, &turn, &most));
    }
}

fn pump(calls: bool, mut from: TcpStream, mut to: TcpStream, turn: &Mutex<Turn>, most: &Most) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let mut now = turn.lock().unwrap();
        if now.calls != calls {
            *now = Turn { calls, bytes: 0 };
        }
        now.bytes += length;
        let longest = if calls { &most.call } else { &most.answer };
        longest.fetch_max(now.bytes, Ordering::SeqCst);
        drop(now);
        if to.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

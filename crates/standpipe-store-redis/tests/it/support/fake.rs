//! A server that follows a script of its test: it answers whole, byte by byte, or not at all.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How a command is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// At once.
    Whole(Vec<u8>),
    /// One byte after the other, with this gap between two.
    Trickled(Vec<u8>, Duration),
    /// Not before the connection ends.
    Never,
}

/// A server of one test. Its threads end with the test's process, or with its connections.
pub(crate) struct FakeServer {
    port: u16,
    shared: Arc<Shared>,
}

type Script = dyn Fn(&[Vec<u8>]) -> Answer + Send + Sync;

struct Shared {
    script: Box<Script>,
    connections: AtomicUsize,
    commands: Mutex<Vec<String>>,
    cut_off: AtomicBool,
}

impl FakeServer {
    /// A server that answers each command as `script` does.
    pub(crate) fn start(script: impl Fn(&[Vec<u8>]) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            connections: AtomicUsize::new(0),
            commands: Mutex::default(),
            cut_off: AtomicBool::new(false),
        });
        let accepts = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accepts.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&accepts);
                std::thread::spawn(move || shared.serve(client));
            }
        });
        Self { port, shared }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// How many connections were accepted.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The names of the commands that arrived.
    pub(crate) fn commands(&self) -> Vec<String> {
        self.shared.commands.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a client left before it had the whole of an answer.
    pub(crate) fn was_cut_off(&self) -> bool {
        self.shared.cut_off.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn serve(&self, client: TcpStream) {
        client.set_nodelay(true).unwrap();
        let mut answers = client.try_clone().unwrap();
        let mut commands = BufReader::new(client);
        while let Some(command) = read_command(&mut commands) {
            let name = String::from_utf8_lossy(&command[0]).into_owned();
            self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            let sent = match (self.script)(&command) {
                Answer::Whole(bytes) => answers.write_all(&bytes),
                Answer::Trickled(bytes, gap) => bytes.iter().try_for_each(|byte| {
                    std::thread::sleep(gap);
                    answers.write_all(&[*byte])
                }),
                Answer::Never => Ok(()),
            };
            if sent.is_err() {
                self.cut_off.store(true, Ordering::SeqCst);
                return;
            }
        }
    }
}

fn read_command(from: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let count = read_number(from)?;
    (0..count).map(|_| read_word(from)).collect()
}

fn read_word(from: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut word = vec![0; read_number(from)? + 2];
    from.read_exact(&mut word).ok()?;
    word.truncate(word.len() - 2);
    Some(word)
}

/// The number of a line `*3` or `$5`.
fn read_number(from: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    line.trim_end().get(1..)?.parse().ok()
}

/// A bulk string.
pub(crate) fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// The answer of a server to `INFO server`.
pub(crate) fn info() -> Vec<u8> {
    bulk(format!("# Server\r\nrun_id:{}\r\n", "a".repeat(40)).as_bytes())
}

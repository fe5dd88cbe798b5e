//! A daemon as a command talks to it: where it listens, and one call at a time over plain HTTP.
//!
//! No TLS and no other machines: a token in the clear leaves this machine only through a tunnel.
//! Invariant: no answer, however odd or slow, takes more than a bounded time and memory.

pub(crate) mod address;
mod answer;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use serde_json::Value;

pub(crate) use address::Address;

use crate::failure::{Failure, one_line};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(2);
/// How long one call may take, all in all.
const WHOLE: Duration = Duration::from_secs(10);
/// More than any token has.
const LONGEST_TOKEN: u64 = 4_096;

/// A daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    address: Address,
    token: Option<Token>,
    whole: Duration,
}

/// What a daemon wants to see. It is never shown.
struct Token(String);

impl Daemon {
    const fn new(address: Address, token: Option<Token>) -> Self {
        Self { address, token, whole: WHOLE }
    }

    /// One that wants to see the token in a file, if any.
    ///
    /// # Errors
    /// When there is none that could be sent.
    pub(crate) fn with_token_file(address: Address, file: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self::new(address, file.map(token).transpose()?))
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// What is there.
    ///
    /// # Errors
    /// In one line: that it does not answer, or what it answered instead.
    pub(crate) fn get(&self, path: &str) -> Result<Value, String> {
        self.call("GET", path, None)
    }

    /// Asks for something to be done.
    ///
    /// # Errors
    /// As [`Daemon::get`].
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.call("POST", path, Some(body))
    }

    /// Ends something.
    ///
    /// # Errors
    /// As [`Daemon::get`].
    pub(crate) fn delete(&self, path: &str) -> Result<Value, String> {
        self.call("DELETE", path, None)
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let until = Instant::now() + self.whole;
        let bytes = self.send(&self.request(method, path, body), until);
        let bytes = bytes.map_err(|error| {
            one_line(&format!("the daemon does not answer ({error}) at {}", self.address))
        })?;
        bytes.meaning().map_err(|said| one_line(&said))
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address.host());
        text += "accept: application/json\r\nconnection: close\r\n";
        if let Some(Token(token)) = &self.token {
            text += &format!("authorization: Bearer {token}\r\n");
        }
        let body = body.map(Value::to_string);
        if let Some(body) = &body {
            let length = body.len();
            text += &format!("content-type: application/json\r\ncontent-length: {length}\r\n");
        }
        (text + "\r\n" + body.as_deref().unwrap_or_default()).into_bytes()
    }

    fn send(&self, request: &[u8], until: Instant) -> std::io::Result<answer::Answer> {
        match &self.address {
            Address::Tcp(at) => {
                let stream = TcpStream::connect_timeout(at, CONNECT)?;
                let timed = |left| {
                    stream.set_read_timeout(Some(left))?;
                    stream.set_write_timeout(Some(left))
                };
                exchange(&stream, request, until, &timed)
            }
            Address::Unix(path) => {
                let stream = connect(path)?;
                let timed = |left| {
                    stream.set_read_timeout(Some(left))?;
                    stream.set_write_timeout(Some(left))
                };
                exchange(&stream, request, until, &timed)
            }
        }
    }
}

/// A connection to a socket. One whose owner takes no more is told at once, not waited for.
fn connect(path: &Path) -> std::io::Result<UnixStream> {
    let at = SocketAddrUnix::new(path)?;
    let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    net::connect(&stream, &at)?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Sends and reads, each step within what is left of the time.
fn exchange<S>(
    stream: &S,
    request: &[u8],
    until: Instant,
    timed: &dyn Fn(Duration) -> std::io::Result<()>,
) -> std::io::Result<answer::Answer>
where
    for<'a> &'a S: Read + Write,
{
    let (mut writes, mut reads) = (stream, stream);
    timed(left(until)?)?;
    writes.write_all(request)?;
    answer::read(&mut |space: &mut [u8]| {
        timed(left(until)?)?;
        reads.read(space).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => std::io::ErrorKind::TimedOut.into(),
            _ => error,
        })
    })
}

fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The token in a file: the one word in it.
fn token(file: &Path) -> Result<Token, Failure> {
    let read = std::fs::File::open(file).and_then(|open| {
        let mut text = String::new();
        open.take(LONGEST_TOKEN + 1).read_to_string(&mut text).map(|_| text)
    });
    let shown = file.display();
    let text = read.map_err(|error| {
        let what = format!("the token in `{shown}` cannot be read: {error}");
        Failure::usage(&what, "name the file that the daemon's `token_file` names")
    })?;
    let word = text.trim();
    let fits = !word.is_empty() && text.len() as u64 <= LONGEST_TOKEN;
    if fits && word.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Token(word.to_owned()));
    }
    let what = format!("`{shown}` holds no token");
    Err(Failure::usage(&what, "it has one word of letters, digits and punctuation, and no more"))
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests;

//! As much of the protocol as a test needs to ask a server something: commands out, text in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::until::PATIENCE;

/// A connection to a server, without TLS. Errors are text: what the server said, or what went
/// wrong on the way.
pub struct Client {
    reader: BufReader<Box<dyn Stream>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").finish_non_exhaustive()
    }
}

trait Stream: Read + Write + Send {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

impl Client {
    /// Connects to `127.0.0.1:6379` and the like.
    ///
    /// # Errors
    /// When nobody answers there.
    pub fn connect(address: &str) -> Result<Self, String> {
        Self::connect_within(address, PATIENCE)
    }

    /// Connects, and waits no longer than that for the connection and for each answer.
    ///
    /// # Errors
    /// When nobody answers there.
    pub fn connect_within(address: &str, patience: Duration) -> Result<Self, String> {
        let target: SocketAddr =
            address.parse().map_err(|error| format!("`{address}` is no address: {error}"))?;
        let stream = TcpStream::connect_timeout(&target, patience)
            .and_then(|stream| stream.set_read_timeout(Some(patience)).map(|()| stream))
            .map_err(|error| format!("cannot connect to {address}: {error}"))?;
        Ok(Self { reader: BufReader::new(Box::new(stream)) })
    }

    pub(crate) fn connect_to_socket(path: &Path) -> Result<Self, String> {
        let stream = UnixStream::connect(path)
            .and_then(|stream| stream.set_read_timeout(Some(PATIENCE)).map(|()| stream))
            .map_err(|error| format!("cannot connect to {}: {error}", path.display()))?;
        Ok(Self { reader: BufReader::new(Box::new(stream)) })
    }

    /// Runs a command. Lists come as one line for each element, whatever is nested; nothing comes
    /// as `(nil)`.
    ///
    /// # Errors
    /// What the server refused with, as `NOPERM …`; or that there was no answer.
    pub fn run(&mut self, words: &[&str]) -> Result<String, String> {
        self.send(words)?;
        self.reply()
    }

    /// Sends a command and does not wait for its answer.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, words: &[&str]) -> Result<(), String> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        let sent = self.reader.get_mut().write_all(&request);
        sent.map_err(|error| format!("cannot send {words:?}: {error}"))
    }

    /// The next answer.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub fn reply(&mut self) -> Result<String, String> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).unwrap_or(("", ""));
        match kind {
            "+" | ":" | "," | "#" | "(" => Ok(rest.to_owned()),
            "-" => Err(rest.to_owned()),
            "_" => Ok("(nil)".into()),
            "$" => self.bulk(number(&line, rest)?),
            "*" | "~" | ">" => self.list(number(&line, rest)?),
            "%" => self.list(number(&line, rest)? * 2),
            _ => Err(format!("no reply: {line:?}")),
        }
    }

    fn bulk(&mut self, length: i64) -> Result<String, String> {
        let Ok(length) = usize::try_from(length) else { return Ok("(nil)".into()) };
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes).map_err(|error| no_answer(&error))?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&mut self, length: i64) -> Result<String, String> {
        if length < 0 {
            return Ok("(nil)".into());
        }
        // An error inside of a list, as after EXEC, is an element like others.
        let elements = (0..length).map(|_| match self.reply() {
            Err(error) if error.starts_with(NO_ANSWER) => Err(error),
            Ok(text) | Err(text) => Ok(text),
        });
        Ok(elements.collect::<Result<Vec<String>, String>>()?.join("\n"))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).map_err(|error| no_answer(&error))?;
        if read == 0 {
            return Err(format!("{NO_ANSWER}: the connection was closed"));
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

const NO_ANSWER: &str = "no answer";

fn no_answer(error: &std::io::Error) -> String {
    format!("{NO_ANSWER}: {error}")
}

fn number(line: &str, text: &str) -> Result<i64, String> {
    text.parse().map_err(|error| format!("no reply: {line:?}: {error}"))
}

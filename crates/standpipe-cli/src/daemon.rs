//! A client of a daemon on this machine, over HTTP/1.1 on TCP or a Unix socket.
//!
//! Each request opens a connection of its own and takes a bounded time and a bounded amount of
//! memory, whatever the other side sends. There is no TLS, and [`Address`] accepts only loopback
//! addresses, so a token never crosses a network in the clear. `http` sends, `reply` reads.

mod address;
mod http;
mod reply;
mod running;

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

pub(crate) use address::Address;
pub(crate) use running::{is_silent, other_store, pid, snapshot, store_outage, write_journal};

use crate::failure::{Failure, one_line};

/// The time limit of one request, from connecting to the last byte of the reply.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest token file that is read, in bytes.
const MAX_TOKEN: u64 = 4_096;

/// Sends requests to one daemon.
#[derive(Debug)]
pub(crate) struct DaemonClient {
    address: Address,
    token: Option<Token>,
    timeout: Duration,
}

/// A bearer token. Its `Debug` form does not show it.
struct Token(String);

impl DaemonClient {
    const fn new(address: Address, token: Option<Token>) -> Self {
        Self { address, token, timeout: REQUEST_TIMEOUT }
    }

    /// Creates a client that sends the token in `file`, if a file is given.
    ///
    /// # Errors
    /// When the file cannot be read or holds no valid token.
    pub(crate) fn with_token_file(address: Address, file: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self::new(address, file.map(read_token).transpose()?))
    }

    /// Sets the time limit of each request.
    const fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the address of the daemon.
    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a GET request and returns the JSON of the reply.
    ///
    /// # Errors
    /// One line: why there is no reply, or the problem that the daemon reports.
    pub(crate) fn get(&self, path: &str) -> Result<Value, String> {
        self.call("GET", path, None)
    }

    /// Sends a POST request and returns the JSON of the reply.
    ///
    /// # Errors
    /// As [`DaemonClient::get`].
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.call("POST", path, Some(body))
    }

    /// Sends a DELETE request and returns the JSON of the reply.
    ///
    /// # Errors
    /// As [`DaemonClient::get`].
    pub(crate) fn delete(&self, path: &str) -> Result<Value, String> {
        self.call("DELETE", path, None)
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let token = self.token.as_ref().map(|Token(token)| token.as_str());
        let reply = http::request(&self.address, method, path, token, body)
            .and_then(|request| http::send(&self.address, request, self.timeout));
        let reply = reply.map_err(|error| {
            one_line(&format!("the daemon does not answer ({error}) at {}", self.address))
        })?;
        reply.into_json().map_err(|problem| one_line(&problem))
    }
}

/// Reads the token in a file: one word of visible ASCII.
fn read_token(file: &Path) -> Result<Token, Failure> {
    let read = std::fs::File::open(file).and_then(|open| {
        let mut text = String::new();
        open.take(MAX_TOKEN + 1).read_to_string(&mut text).map(|_| text)
    });
    let shown = file.display();
    let text = read.map_err(|error| {
        let what = format!("the token in `{shown}` cannot be read: {error}");
        Failure::usage(&what, "name the file that the daemon's `token_file` names")
    })?;
    let word = text.trim();
    let fits = !word.is_empty() && text.len() as u64 <= MAX_TOKEN;
    if fits && word.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Token(word.to_owned()));
    }
    let what = format!("`{shown}` holds no token");
    Err(Failure::usage(&what, "write one word of letters, digits and punctuation into it"))
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests;

//! A client of the provider that says exactly what a test wants it to.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// A connection.
pub(super) struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, unread: Vec::new() }
    }

    /// Sends these bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends bytes that the other end may no longer take.
    pub(super) fn try_send(&mut self, bytes: &[u8]) {
        let _closed = self.stream.write_all(bytes);
    }

    /// Ends the request body.
    pub(super) fn close_sending(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// A call with these headers.
    pub(super) fn call(&mut self, headers: &[(&str, &str)]) {
        self.send(&call("/v1/x", headers));
    }

    /// The next answer.
    #[track_caller]
    pub(super) fn answer(&mut self) -> Answer {
        self.answer_if_any().expect("closed without an answer")
    }

    /// The next answer; none when the connection is closed instead.
    pub(super) fn answer_if_any(&mut self) -> Option<Answer> {
        let end = loop {
            match self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(end) => break end,
                None if !self.more() => return None,
                None => {}
            }
        };
        let head: Vec<u8> = self.unread.drain(..end + 4).collect();
        let head = String::from_utf8(head).unwrap();
        let mut answer = Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head,
            body: String::new(),
        };
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        while self.unread.len() < length {
            assert!(self.more(), "half a body");
        }
        let body: Vec<u8> = self.unread.drain(..length).collect();
        answer.body = String::from_utf8(body).unwrap();
        Some(answer)
    }

    /// All that comes until the connection is closed.
    pub(super) fn rest(&mut self) -> String {
        while self.more() {}
        String::from_utf8(std::mem::take(&mut self.unread)).unwrap()
    }

    fn more(&mut self) -> bool {
        let mut bytes = [0; 4_096];
        // A connection that is reset is closed, too.
        let count = self.stream.read(&mut bytes).unwrap_or(0);
        self.unread.extend_from_slice(&bytes[..count]);
        count > 0
    }
}

/// The bytes of a call.
pub(super) fn call(path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("POST {path} HTTP/1.1\r\nhost: x\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

//! As much HTTP/1.1 as test clients speak: requests one after another on a connection, with a body
//! of a stated length. Everything that a client can send is bounded in size and in time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::realtime::Session;
use super::websocket::Frame;
use crate::provider::Reply;

/// The longest request line and headers together.
pub(super) const LONGEST_HEAD: usize = 16 * 1_024;
/// How long a connection is kept between two requests.
const IDLE: Duration = Duration::from_secs(60);
/// The longest body.
pub(super) const LONGEST_BODY: u64 = 1 << 20;

/// A request whose head was read; its body follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// With its query.
    pub(super) target: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// How long the body is.
    pub(super) length: u64,
    pub(super) body: Vec<u8>,
    /// Whether another request may follow.
    pub(super) keep_alive: bool,
}

/// Why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The client is gone, or between two requests for too long.
    Closed,
    /// The client is told this status, and the connection is closed.
    Answer(u16),
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A header that is a whole number; anything else is none.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }

    pub(super) fn path(&self) -> &str {
        self.target.split_once('?').map_or(self.target.as_str(), |(path, _)| path)
    }

    /// Reads a head without its empty line.
    fn parse(head: &[u8]) -> Result<Self, Wrong> {
        const BAD: Wrong = Wrong::Answer(400);
        let text = std::str::from_utf8(head).map_err(|_| BAD)?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next().ok_or(BAD)?.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(BAD);
        };
        let is_new = match version {
            "HTTP/1.1" => true,
            "HTTP/1.0" => false,
            _ => return Err(Wrong::Answer(505)),
        };
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(BAD)?;
            if name.is_empty() || name.contains(|c: char| !c.is_ascii_graphic()) {
                return Err(BAD);
            }
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let (method, target) = (method.to_owned(), target.to_owned());
        let mut request =
            Self { method, target, headers, length: 0, body: Vec::new(), keep_alive: is_new };
        request.length = request.stated_length()?;
        if let Some(wish) = request.header("connection") {
            let is = |word: &str| wish.eq_ignore_ascii_case(word);
            request.keep_alive = if is_new { !is("close") } else { is("keep-alive") };
        }
        Ok(request)
    }

    /// Two lengths that differ would let one request hide inside another.
    fn stated_length(&self) -> Result<u64, Wrong> {
        if self.header("transfer-encoding").is_some() {
            return Err(Wrong::Answer(501));
        }
        let mut lengths = self.headers.iter().filter(|(name, _)| name == "content-length");
        let Some((_, first)) = lengths.next() else { return Ok(0) };
        let is_plain = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain || lengths.any(|(_, other)| other != first) {
            return Err(Wrong::Answer(400));
        }
        let length = first.parse().unwrap_or(u64::MAX);
        if length > LONGEST_BODY { Err(Wrong::Answer(413)) } else { Ok(length) }
    }
}

/// One client's connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    /// What was read and not yet used: requests may follow each other without a pause.
    unread: Vec<u8>,
    patience: Duration,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream, unread: Vec::new(), patience })
    }

    /// The next request, with its body.
    pub(super) fn request(&mut self) -> Result<Request, Wrong> {
        if self.unread.is_empty() && !self.more(Instant::now() + IDLE)? {
            return Err(Wrong::Closed);
        }
        let until = Instant::now() + self.patience;
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            if self.unread.len() > LONGEST_HEAD {
                return Err(Wrong::Answer(431));
            }
            self.expect_more(until)?;
        };
        if end > LONGEST_HEAD {
            return Err(Wrong::Answer(431));
        }
        let head: Vec<u8> = self.unread.drain(..end + 4).collect();
        let mut request = Request::parse(&head[..end])?;
        if request.length > 0 && request.header("expect").is_some() {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").map_err(|_| Wrong::Closed)?;
        }
        let length = usize::try_from(request.length).unwrap_or(usize::MAX);
        while self.unread.len() < length {
            self.expect_more(until)?;
        }
        request.body = self.unread.drain(..length).collect();
        Ok(request)
    }

    fn expect_more(&mut self, until: Instant) -> Result<(), Wrong> {
        if self.more(until)? { Ok(()) } else { Err(Wrong::Answer(408)) }
    }

    /// Reads what has come. Returns `false` when nothing came in time.
    fn more(&mut self, until: Instant) -> Result<bool, Wrong> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        self.stream.set_read_timeout(Some(left)).map_err(|_| Wrong::Closed)?;
        let mut bytes = [0; 4_096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Wrong::Closed),
            Ok(count) => {
                self.unread.extend_from_slice(&bytes[..count]);
                Ok(true)
            }
            Err(error) if is_late(&error) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(_) => Err(Wrong::Closed),
        }
    }

    /// Sends a reply. A body is only left out for a request that wants none.
    pub(super) fn reply(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        request: Option<&Request>,
    ) -> io::Result<()> {
        let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n", body.len()));
        if !request.is_some_and(|request| request.keep_alive) {
            text.push_str("connection: close\r\n");
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        if request.is_none_or(|request| request.method != "HEAD") {
            bytes.extend_from_slice(body);
        }
        self.write(&bytes)
    }

    /// Sends a reply whose body ends before its stated length.
    pub(super) fn reply_part(&mut self, reply: &Reply, count: usize) -> io::Result<()> {
        let mut text = format!("HTTP/1.1 {} {}\r\n", reply.status, reason(reply.status));
        for (name, value) in &reply.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n", reply.body.len()));
        self.write(text.as_bytes())?;
        self.write(&reply.body[..count.min(reply.body.len())])
    }

    /// Sends an informational reply, which another one follows.
    pub(super) fn inform(&mut self, status: u64) -> io::Result<()> {
        self.write(format!("HTTP/1.1 {status} Information\r\nx-early: 1\r\n\r\n").as_bytes())
    }

    /// Blocks until the client closes the connection.
    pub(super) fn until_closed(&mut self) {
        while let Ok(true) = self.more(Instant::now() + IDLE * 60) {
            self.unread.clear();
        }
    }

    /// Makes the end of the connection a reset.
    pub(super) fn reset(&mut self) {
        // Without it the connection is closed in order.
        let _best_effort =
            rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Switches to a WebSocket and serves it until one end closes it.
    pub(super) fn websocket(&mut self, accept: &str, session: &mut Session) -> io::Result<()> {
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket";
        self.write(format!("{head}\r\nsec-websocket-accept: {accept}\r\n\r\n").as_bytes())?;
        self.write(&session.begin())?;
        loop {
            let frame = Frame::read(&self.unread).map_err(|()| io::ErrorKind::InvalidData)?;
            if let Some(frame) = frame {
                self.unread.drain(..frame.length);
                let Some(answer) = session.answer(&frame) else { return Ok(()) };
                self.write(&answer)?;
                if frame.closes() {
                    return Ok(());
                }
            } else if !self.more(Instant::now() + IDLE * 60).is_ok_and(|came| came) {
                return Ok(());
            }
        }
    }

    /// Sends the head of a reply whose body follows in chunks.
    pub(super) fn begin_stream(&mut self, headers: &[(String, String)]) -> io::Result<()> {
        let mut text = "HTTP/1.1 200 OK\r\n".to_owned();
        for (name, value) in headers.iter().filter(|(name, _)| name != "content-type") {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
        self.write(text.as_bytes())
    }

    /// Sends a chunk; an empty one ends the stream.
    pub(super) fn chunk(&mut self, data: &str) -> io::Result<()> {
        self.write(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        529 => "Overloaded",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let head = b"POST /v1/x?y=1 HTTP/1.1\r\nX-Agent:  blog \r\nContent-Length: 12";
        let request = Request::parse(head).unwrap();
        assert_eq!((request.method.as_str(), request.path()), ("POST", "/v1/x"));
        assert_eq!((request.header("x-agent"), request.length), (Some("blog"), 12));
        assert!(request.keep_alive);
        assert!(!Request::parse(b"GET / HTTP/1.0").unwrap().keep_alive);
        assert!(!Request::parse(b"GET / HTTP/1.1\r\nConnection: Close").unwrap().keep_alive);
    }

    #[test]
    fn what_is_no_head_is_answered() {
        for (head, status) in [
            (&b"GET /"[..], 400),
            (b"GET / HTTP/1.1 x", 400),
            (b"GET / HTTP/3", 505),
            (b"GET / HTTP/1.1\r\nno colon", 400),
            (b"GET / HTTP/1.1\r\nbad name: x", 400),
            (b"GET / HTTP/1.1\r\n\xff: x", 400),
            (b"GET / HTTP/1.1\r\ntransfer-encoding: chunked", 501),
            (b"GET / HTTP/1.1\r\ncontent-length: +1", 400),
            (b"GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2", 400),
            (b"GET / HTTP/1.1\r\ncontent-length: 99999999999999999999", 413),
        ] {
            assert_eq!(Request::parse(head), Err(Wrong::Answer(status)), "{}", head.escape_ascii());
        }
    }
}

//! A blocking HTTP/1.1 client over any socket. It sends exactly the bytes it is given.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::BOUND;

/// A connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection to a daemon, and what has come of it but was not read yet.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) socket: Socket,
    /// What is asked for.
    host: String,
    unread: Vec<u8>,
}

/// What a daemon answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        write!(f, "{} {:?} {body}", self.status, self.headers)
    }
}

impl Client {
    pub(crate) fn tcp(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.set_write_timeout(Some(BOUND)).unwrap();
        Self { socket: Socket::Tcp(stream), host: address.to_string(), unread: Vec::new() }
    }

    pub(crate) fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.set_write_timeout(Some(BOUND)).unwrap();
        Self { socket: Socket::Unix(stream), host: "localhost".to_owned(), unread: Vec::new() }
    }

    /// Exactly these bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.write_all(bytes),
            Socket::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// A request, whose answer is not waited for.
    pub(crate) fn start(&mut self, method: &str, path: &str, headers: &[&str], body: &[u8]) {
        self.send(&request(&self.host, method, path, headers, body));
    }

    /// A request of JSON, whose answer is not waited for.
    pub(crate) fn start_json(&mut self, path: &str, body: &Value) {
        self.start("POST", path, &["content-type: application/json"], body.to_string().as_bytes());
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.start("GET", path, &[], b"");
        self.answer()
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.start_json(path, body);
        self.answer()
    }

    /// The next answer.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Answer {
        self.answer_if_any().expect("the connection was closed without an answer")
    }

    /// The next answer; none when the connection was closed before it began.
    #[track_caller]
    pub(crate) fn answer_if_any(&mut self) -> Option<Answer> {
        let mut answer = self.head()?;
        let length = answer.header("content-length").and_then(|text| text.parse().ok());
        if answer.header("transfer-encoding").is_some() {
            while let Some(piece) = self.chunk() {
                answer.body.extend(piece);
            }
        } else if let Some(length) = length {
            answer.body = self.exactly(length);
        }
        Some(answer)
    }

    /// Status and headers of the next answer.
    #[track_caller]
    pub(crate) fn head(&mut self) -> Option<Answer> {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at;
            }
            if !self.more() {
                assert!(self.unread.is_empty(), "half an answer: {:?}", self.unread);
                return None;
            }
        };
        let head = String::from_utf8(self.unread.drain(..end + 4).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        Some(Answer { status, headers: headers.collect(), body: Vec::new() })
    }

    /// The next piece of a body that comes in pieces; none at its end.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n") {
                break at;
            }
            if !self.more() {
                return None;
            }
        };
        let line: Vec<u8> = self.unread.drain(..end + 2).collect();
        let size = std::str::from_utf8(&line).unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        let mut piece = self.exactly(size + 2);
        piece.truncate(size);
        (size > 0).then_some(piece)
    }

    /// So many bytes, whatever they mean.
    pub(crate) fn bytes(&mut self, many: usize) -> Vec<u8> {
        self.exactly(many)
    }

    /// Whether the other end has closed it. Whatever it says before is not looked at.
    pub(crate) fn is_closed(&mut self) -> bool {
        while self.more() {
            self.unread.clear();
        }
        true
    }

    fn exactly(&mut self, many: usize) -> Vec<u8> {
        while self.unread.len() < many {
            assert!(self.more(), "closed in the midst of a body");
        }
        self.unread.drain(..many).collect()
    }

    /// Reads what comes next; `false` when nothing will.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let read = match &mut self.socket {
            Socket::Tcp(stream) => stream.read(&mut buffer),
            Socket::Unix(stream) => stream.read(&mut buffer),
        };
        match read {
            Ok(0) => false,
            Ok(many) => {
                self.unread.extend(&buffer[..many]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => self.more(),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no answer: {error}; so far {:?}", self.unread),
        }
    }

    /// Closes the connection so that the other end sees a reset.
    pub(crate) fn reset(self) {
        if let Socket::Tcp(stream) = &self.socket {
            let at_once = Some(std::time::Duration::ZERO);
            rustix::net::sockopt::set_socket_linger(stream, at_once).unwrap();
        }
    }
}

/// The bytes of a request.
pub(crate) fn request(
    host: &str,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    if !body.is_empty() {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend(body);
    bytes
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|some| some == wanted)
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It went well, with this status, and this is what it says.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        let value = self.json();
        assert_eq!(value["schema"], 1, "{self:?}");
        value
    }

    /// It is a problem of this status and kind, in the agreed shape.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, kind: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let origin = if kind == "upstream" { "provider" } else { "ledger" };
        assert_eq!(self.header("x-standpipe-origin"), Some(origin), "{self:?}");
        let value = self.json();
        assert_eq!(value["type"], kind, "{self:?}");
        assert_eq!(value["status"], status, "{self:?}");
        for said in ["title", "detail", "hint"] {
            let text = value[said].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "no {said}: {self:?}");
        }
        let seconds = self.header("retry-after").map(|text| text.parse::<u64>().unwrap());
        let millis = value["retry_after_ms"].as_u64();
        assert_eq!(seconds, millis.map(|millis| millis.div_ceil(1_000)), "{self:?}");
        assert!(seconds != Some(0) && !(seconds.is_some() && value["waiting_for"].is_string()));
        if matches!(kind, "not_in_time" | "queue_full" | "stopping" | "store") {
            assert!(seconds.is_some() || value["waiting_for"].is_string(), "{self:?}");
        }
        value
    }
}

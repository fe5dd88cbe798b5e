//! A caller over a Unix socket that does no more than it must.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

pub(super) struct Client {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) fn to(path: &str) -> Result<Self, String> {
        let stream = UnixStream::connect(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self { stream, buffer: vec![0; 1 << 20] })
    }

    pub(super) fn into_stream(self) -> UnixStream {
        self.stream
    }

    pub(super) fn send(&mut self, path: &str, body: &str) -> Result<(), String> {
        let ask = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(ask.as_bytes()).map_err(|error| error.to_string())
    }

    pub(super) fn post(&mut self, path: &str, body: &str, status: u16) -> Result<String, String> {
        self.send(path, body)?;
        let answer = self.answer()?;
        let expected = format!("HTTP/1.1 {status} ");
        if answer.starts_with(&expected) { Ok(answer) } else { Err(answer) }
    }

    pub(super) fn get(&mut self, path: &str) -> Result<String, String> {
        let ask = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        self.stream.write_all(ask.as_bytes()).map_err(|error| error.to_string())?;
        self.answer()
    }

    /// Head and body, which has a length.
    fn answer(&mut self) -> Result<String, String> {
        let mut filled = 0;
        loop {
            let rest = self.buffer.get_mut(filled..).ok_or("too much")?;
            let came = self.stream.read(rest).map_err(|error| error.to_string())?;
            if came == 0 {
                return Err("closed".to_owned());
            }
            filled += came;
            let text = String::from_utf8_lossy(self.buffer.get(..filled).ok_or("too much")?);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
            if body.len() >= length {
                return Ok(text.into_owned());
            }
        }
    }
}

/// The lease in an answer.
pub(super) fn lease_of(answer: &str) -> Result<String, String> {
    let lease = answer.split("\"lease\":\"").nth(1).and_then(|rest| rest.split('"').next());
    lease.map(ToOwned::to_owned).ok_or_else(|| answer.to_owned())
}

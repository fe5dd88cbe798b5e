//! An HTTP answer, read from bytes as they come: head, then a body of a stated length, in chunks,
//! or to the end. It knows nothing of sockets.
//!
//! Invariant: no more than a bounded number of bytes is kept, whatever is said.

use std::io::{Error, ErrorKind, Result};

use serde_json::Value;

/// More than any head of ours.
const HEAD: usize = 64 << 10;
/// More than any picture of pools that a terminal could show.
const BODY: usize = 32 << 20;
/// What is read at once.
const PIECE: usize = 16 << 10;

/// What was answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    status: u16,
    body: Vec<u8>,
}

/// How a body ends.
enum Length {
    Stated(usize),
    Chunks,
    /// When the connection does.
    ToTheEnd,
}

/// Bytes that came and were not used yet.
struct Pipe<'a> {
    more: &'a mut dyn FnMut(&mut [u8]) -> Result<usize>,
    bytes: Vec<u8>,
    used: usize,
}

/// Reads one answer. `more` fills a space and says how much of it; none is the end.
pub(super) fn read(more: &mut dyn FnMut(&mut [u8]) -> Result<usize>) -> Result<Answer> {
    let mut pipe = Pipe { more, bytes: Vec::new(), used: 0 };
    loop {
        let (status, length) = head(&mut pipe)?;
        // "Go on" and the like come before the answer.
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let body = match length {
            _ if status == 204 || status == 304 => Vec::new(),
            Length::Stated(length) if length > BODY => return Err(wrong("it is too long")),
            Length::Stated(length) => pipe.exactly(length)?,
            Length::Chunks => chunks(&mut pipe)?,
            Length::ToTheEnd => pipe.all()?,
        };
        return Ok(Answer { status, body });
    }
}

fn head(pipe: &mut Pipe<'_>) -> Result<(u16, Length)> {
    let mut left = HEAD;
    let first = pipe.line(&mut left)?;
    let mut words = first.split(' ');
    let version = words.next().unwrap_or_default();
    let status = words.next().and_then(|status| status.parse().ok());
    let status = status.filter(|status| (100..600).contains(status));
    let (true, Some(status)) = (version.starts_with("HTTP/1."), status) else {
        return Err(wrong("what came is not HTTP"));
    };
    let mut length = Length::ToTheEnd;
    loop {
        let line = pipe.line(&mut left)?;
        if line.is_empty() {
            return Ok((status, length));
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(wrong("a header has no colon"));
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(wrong("its body is in an encoding that was not asked for"));
            }
            length = Length::Chunks;
        } else if name.eq_ignore_ascii_case("content-length") {
            let stated = number(value, 10).ok_or_else(|| wrong("its length is no number"))?;
            match length {
                Length::Stated(other) if other != stated => {
                    return Err(wrong("it states two lengths"));
                }
                Length::Chunks => {}
                _ => length = Length::Stated(stated),
            }
        }
    }
}

fn chunks(pipe: &mut Pipe<'_>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = pipe.line(&mut HEAD.clone())?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = number(size, 16).ok_or_else(|| wrong("a chunk's size is no number"))?;
        if size == 0 {
            let mut left = HEAD;
            while !pipe.line(&mut left)?.is_empty() {}
            return Ok(body);
        }
        if size > BODY - body.len() {
            return Err(wrong("it is too long"));
        }
        body.extend(pipe.exactly(size)?);
        if !pipe.line(&mut HEAD.clone())?.is_empty() {
            return Err(wrong("a chunk is longer than it says"));
        }
    }
}

/// Digits and nothing else: no sign, no blank.
fn number(text: &str, base: u32) -> Option<usize> {
    let digits = !text.is_empty() && text.chars().all(|c| c.is_digit(base));
    usize::from_str_radix(text, base).ok().filter(|_| digits)
}

impl Pipe<'_> {
    /// The next line without its end, at most `left` bytes.
    fn line(&mut self, left: &mut usize) -> Result<String> {
        let mut looked = self.used;
        loop {
            let fresh = self.bytes.get(looked..).unwrap_or_default();
            if let Some(at) = fresh.iter().position(|byte| *byte == b'\n') {
                let line = self.take(looked + at + 1 - self.used);
                *left =
                    left.checked_sub(line.len()).ok_or_else(|| wrong("its head is too long"))?;
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                return Ok(String::from_utf8_lossy(line).into_owned());
            }
            looked = self.bytes.len();
            if looked - self.used > *left {
                return Err(wrong("its head is too long"));
            }
            self.fill()?;
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.bytes.len() - self.used < length {
            self.fill()?;
        }
        Ok(self.take(length))
    }

    fn all(&mut self) -> Result<Vec<u8>> {
        while self.try_fill()? {
            if self.bytes.len() - self.used > BODY {
                return Err(wrong("it is too long"));
            }
        }
        Ok(self.take(self.bytes.len() - self.used))
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let end = (self.used + length).min(self.bytes.len());
        let taken = self.bytes.get(self.used..end).unwrap_or_default().to_vec();
        self.used = end;
        if self.used > PIECE {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        taken
    }

    fn fill(&mut self) -> Result<()> {
        if self.try_fill()? { Ok(()) } else { Err(wrong("it ended in the middle")) }
    }

    fn try_fill(&mut self) -> Result<bool> {
        let mut space = [0; PIECE];
        loop {
            match (self.more)(&mut space) {
                Ok(count) => {
                    self.bytes.extend_from_slice(space.get(..count).unwrap_or_default());
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Answer {
    /// What it says, or the problem it tells of in one line.
    pub(super) fn meaning(self) -> std::result::Result<Value, String> {
        let read = serde_json::from_slice::<Value>(&self.body);
        if (200..300).contains(&self.status) {
            return match read {
                Ok(value) => Ok(value),
                Err(_) if self.body.is_empty() => Ok(Value::Null),
                Err(_) => Err("the daemon's answer is not JSON; is something else there?".into()),
            };
        }
        let problem = read.unwrap_or_default();
        let word = |key: &str| problem.get(key).and_then(Value::as_str).filter(|w| !w.is_empty());
        let status = self.status;
        let hint = match (word("hint"), status) {
            (Some(hint), _) => format!("; {hint}"),
            (None, 401) => "; give it the daemon's token with --token-file".to_owned(),
            (None, _) => String::new(),
        };
        match word("detail").or(word("title")) {
            Some(detail) => Err(format!("{detail}{hint}")),
            None => Err(format!("the daemon answered {status}{hint}")),
        }
    }
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer in these bytes, given a few at a time.
    fn answer(text: &str, at_once: usize) -> Result<Answer> {
        let mut left = text.as_bytes();
        read(&mut |space| {
            let count = left.len().min(at_once).min(space.len());
            space[..count].copy_from_slice(&left[..count]);
            left = &left[count..];
            Ok(count)
        })
    }

    #[track_caller]
    fn is(text: &str, status: u16, body: &str) {
        for at_once in [1, 7, 100_000] {
            let read = answer(text, at_once).unwrap();
            assert_eq!((read.status, String::from_utf8_lossy(&read.body).as_ref()), (status, body));
        }
    }

    #[track_caller]
    fn is_not(text: &str, why: &str) {
        for at_once in [1, 100_000] {
            let error = answer(text, at_once).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn bodies_end_as_they_say() {
        is("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}left over", 200, "{}");
        is("HTTP/1.0 200 OK\r\n\r\nto the end", 200, "to the end");
        is("HTTP/1.1 204 No Content\r\ncontent-length: 9\r\n\r\n", 204, "");
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\ncontent-length: 3\r\n\r\n";
        is(
            &format!("{chunked}2\r\nab\r\nA;x=y\r\n0123456789\r\n0\r\na: b\r\n\r\n"),
            200,
            "ab0123456789",
        );
        is(&format!("{chunked}0\r\n\r\n"), 200, "");
        is("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 410 Gone\ncontent-length: 0\n\n", 410, "");
    }

    #[test]
    fn odd_answers_are_told() {
        is_not("", "ended in the middle");
        is_not("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP");
        is_not("HTTP/2 200\r\n\r\n", "not HTTP");
        is_not("HTTP/1.1 2000 OK\r\n\r\n", "not HTTP");
        is_not("HTTP/1.1 200 OK\r\nodd\r\n\r\n", "no colon");
        is_not("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", "ended in the middle");
        is_not("HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nabcde", "no number");
        is_not(
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            "two lengths",
        );
        is_not("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", "too long");
        is_not("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "encoding");
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        is_not(&format!("{chunked}fffffffff\r\n"), "too long");
        is_not(&format!("{chunked}-1\r\n"), "no number");
        is_not(&format!("{chunked}2\r\nabc\r\n0\r\n\r\n"), "longer than it says");
        is_not(&format!("{chunked}2\r\nab\r\n"), "ended in the middle");
        is_not(&format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(HEAD)), "head is too long");
        is_not(&"z".repeat(HEAD * 2), "head is too long");
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(HEAD / 3));
        is_not(&endless, "head is too long");
    }

    #[test]
    fn a_body_without_end_is_cut_off() {
        let head = b"HTTP/1.1 200 OK\r\n\r\n";
        let mut first = true;
        let error = read(&mut |space| {
            if std::mem::take(&mut first) {
                space[..head.len()].copy_from_slice(head);
                return Ok(head.len());
            }
            space.fill(b'x');
            Ok(space.len())
        });
        assert!(error.unwrap_err().to_string().contains("too long"));
    }

    #[test]
    fn problems_are_told_in_their_own_words() {
        let told = |status: u16, body: &str| {
            Answer { status, body: body.as_bytes().to_vec() }.meaning().unwrap_err()
        };
        let gone = r#"{"type":"gone","title":"Gone","detail":"it has ended","hint":"look again"}"#;
        assert_eq!(told(410, gone), "it has ended; look again");
        assert_eq!(told(404, r#"{"title":"Not found"}"#), "Not found");
        assert!(told(401, "").contains("--token-file"));
        assert_eq!(told(502, "<html>"), "the daemon answered 502");
        assert!(told(200, "<html>").contains("not JSON"));
        let fine = Answer { status: 200, body: b"{\"a\":1}".to_vec() };
        assert_eq!(fine.meaning().unwrap()["a"], 1);
    }
}

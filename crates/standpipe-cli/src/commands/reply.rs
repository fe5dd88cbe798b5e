//! A provider's reply from the command line: headers one by one, or a whole reply on standard
//! input, as `curl -i` prints it.

use std::io::Read;

use serde_json::{Map, Value, json};
use standpipe::{Meaning, Pool, Reply};

use super::throttle::effect;
use crate::failure::Failure;
use crate::printer::Printer;

/// The most bytes that are read from standard input.
const MAX_INPUT: u64 = 1 << 20;

/// Builds the reply from headers and, if `stdin` is set, standard input.
pub(super) fn reply(
    headers: &[String],
    stdin: bool,
    status: Option<u16>,
) -> Result<Reply, Failure> {
    let mut given = Vec::new();
    for header in headers {
        given.push(split(header).ok_or_else(|| {
            // Not shown: it may be a secret that lost its name.
            let what = format!("a --header of {} bytes has no colon", header.len());
            Failure::usage(&what, "write it as 'name: value', in quotes")
        })?);
    }
    let answer = if stdin { parse(&read()?) } else { RawReply::default() };
    if stdin && status.is_none() && answer.status.is_none() && answer.headers.is_empty() {
        return Err(Failure::usage(
            "there is no response on standard input: neither a status line nor headers",
            "pipe what `curl -si` prints, or pass --status",
        ));
    }
    given.extend(answer.headers);
    let reply = Reply::new(answer.status.or(status).unwrap_or(200)).body(answer.body);
    Ok(given.into_iter().fold(reply, |reply, (name, value)| reply.header(name, value)))
}

/// Describes the meaning of a reply for programs.
pub(super) fn object(meaning: &Meaning) -> Map<String, Value> {
    let mut object = Map::new();
    match meaning {
        Meaning::Refused { kind, retry_after, message } => {
            let millis = retry_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(0));
            object.insert("meaning".to_owned(), json!("refused"));
            object.insert("kind".to_owned(), json!(kind.as_str()));
            object.insert("retry_after_ms".to_owned(), json!(millis));
            object.insert("message".to_owned(), json!(message));
        }
        Meaning::Failed { transient } => {
            object.insert("meaning".to_owned(), json!("failed"));
            object.insert("transient".to_owned(), json!(transient));
        }
        _ => {
            object.insert("meaning".to_owned(), json!("served"));
        }
    }
    object
}

/// Notes for people what a reply did to the pool, unless it was served.
pub(super) fn note(meaning: &Meaning, pool: &Pool, printer: &Printer) {
    match meaning {
        Meaning::Refused { kind, retry_after, .. } => {
            let after = retry_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(0));
            printer.note(&effect(pool, kind.as_str(), after).0);
        }
        Meaning::Failed { transient: true } => {
            printer.note("the call failed; it may be tried again");
        }
        Meaning::Failed { .. } => {
            printer.note("the call failed; trying it again will not help");
        }
        _ => {}
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct RawReply {
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Parses a reply. Lines that are no headers are skipped, a status line starts a new reply, as
/// after a redirect, and the body follows an empty line.
fn parse(bytes: &[u8]) -> RawReply {
    let mut whole = RawReply::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(status) = status(line) {
            whole = RawReply { status: Some(status), ..RawReply::default() };
        } else if !line.is_empty() {
            whole.headers.extend(split(line));
        } else if !rest.starts_with(b"HTTP/") {
            whole.body = rest.to_vec();
            break;
        }
    }
    whole
}

/// `HTTP/1.1 429 Too Many Requests`
fn status(line: &str) -> Option<u16> {
    line.strip_prefix("HTTP/")?.split(' ').nth(1)?.parse().ok()
}

/// `Name: value`, with the name in small letters.
fn split(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = !name.is_empty() && name.chars().all(plain);
    is_name.then(|| (name, value.trim().to_owned()))
}

fn read() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_INPUT)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::system("cannot read the response from standard input", &error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_curl_prints_it() {
        let text =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/2 429 \r\nRetry-After: 3\r\nodd line\r\n\r\n{}\n";
        let whole = parse(text);
        assert_eq!((whole.status, whole.body.as_slice()), (Some(429), &b"{}\n"[..]));
        assert_eq!(whole.headers, [("retry-after".to_owned(), "3".to_owned())]);
    }

    #[test]
    fn headers_alone_are_an_answer_too() {
        let whole = parse(b"x-ratelimit-remaining: 7\nX: y");
        assert_eq!((whole.status, whole.headers.len(), whole.body.len()), (None, 2, 0));
        assert_eq!(parse(b""), RawReply::default());
    }
}

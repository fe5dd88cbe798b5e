//! A program's standard error: copied to ours as it arrives, and matched line by line.
//!
//! Guarantee: a line is matched up to [`MAX_LINE`] bytes, so memory is bounded.

use std::io::{Read, Write};
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use regex::bytes::Regex;
use standpipe::dialect::printed_limit;

/// The part of a line that is matched.
const MAX_LINE: usize = 64 << 10;

/// The part of a matching line that is kept.
const MAX_EXCERPT: usize = 2 << 10;

/// How long the rest of the output is awaited: a process that the program left running may keep the
/// pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Which lines mean that a program was throttled.
#[derive(Clone, Debug)]
pub(crate) enum LinePattern {
    /// Lines that match.
    Regex(Regex),
    /// The messages of known programs.
    Known,
}

/// What was found in a program's standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StderrMatch {
    /// The last line that matched, or its beginning.
    pub(crate) line: Option<String>,
    /// What the group `wait` of the pattern caught, if it has one.
    pub(crate) wait: Option<String>,
}

/// Copies and matches on its own thread.
pub(crate) struct Tee {
    found: Receiver<StderrMatch>,
}

impl Tee {
    /// Starts the thread.
    pub(crate) fn new(mut from: ChildStderr, pattern: LinePattern) -> Self {
        let (sender, found) = channel();
        std::thread::spawn(move || {
            let mut lines = LineMatcher::new(pattern);
            let mut buffer = [0; 8 << 10];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                // A closed standard error must not end the program.
                let _closed = std::io::stderr().write_all(&buffer[..count]);
                lines.feed(&buffer[..count]);
                let _ended = sender.send(lines.found.clone());
            }
            lines.end();
            let _ended = sender.send(lines.found);
        });
        Self { found }
    }

    /// Returns what was found in all of it, after the program has ended.
    pub(crate) fn found(self) -> StderrMatch {
        let mut found = StderrMatch::default();
        while let Ok(latest) = self.found.recv_timeout(DRAIN_TIMEOUT) {
            found = latest;
        }
        found
    }
}

/// Splits text that arrives in pieces into lines.
struct LineMatcher {
    pattern: LinePattern,
    line: Vec<u8>,
    found: StderrMatch,
}

impl LineMatcher {
    fn new(pattern: LinePattern) -> Self {
        Self { pattern, line: Vec::new(), found: StderrMatch::default() }
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.more(&bytes[..end]);
            self.end();
            bytes = &bytes[end + 1..];
        }
        self.more(bytes);
    }

    fn more(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self) {
        let line = || String::from_utf8_lossy(&self.line[..self.line.len().min(MAX_EXCERPT)]);
        match &self.pattern {
            LinePattern::Regex(pattern) => {
                if let Some(caught) = pattern.captures(&self.line) {
                    self.found.line = Some(line().into_owned());
                    let wait = caught.name("wait").map(|wait| wait.as_bytes());
                    if let Some(wait) = wait {
                        self.found.wait = Some(String::from_utf8_lossy(wait).into_owned());
                    }
                }
            }
            LinePattern::Known => {
                if printed_limit(&line()).is_some() {
                    self.found.line = Some(line().into_owned());
                }
            }
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, pieces: &[&str]) -> StderrMatch {
        let mut lines = LineMatcher::new(LinePattern::Regex(Regex::new(pattern).unwrap()));
        for piece in pieces {
            lines.feed(piece.as_bytes());
        }
        lines.end();
        lines.found
    }

    #[test]
    fn a_line_is_found_however_it_is_split() {
        let pieces = ["all is w", "ell\nrate li", "mit exceeded\n"];
        assert!(found("rate limit", &pieces).line.is_some());
        let end = found("(?i)RATE LIMIT", &["last words: rate limit"]);
        assert_eq!(end.line.as_deref(), Some("last words: rate limit"), "without an end");
        assert_eq!(found("well rate", &pieces).line, None, "no line has both");
        let bars = found("^done$", &["10%\r100%\rdone\r"]);
        assert!(bars.line.is_some(), "progress bars end lines too");
    }

    #[test]
    fn a_group_gives_the_wait() {
        let matched = found(r"try again in (?<wait>\d+)", &["try again in 5\ntry again in 30\n"]);
        assert_eq!(matched.wait.as_deref(), Some("30"));
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut lines = LineMatcher::new(LinePattern::Regex(Regex::new("x").unwrap()));
        for _ in 0..100 {
            lines.feed(&[b'y'; 8 << 10]);
        }
        assert_eq!(lines.line.len(), MAX_LINE);
    }
}

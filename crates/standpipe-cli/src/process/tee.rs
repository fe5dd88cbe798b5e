//! A program's standard error, passed on as it comes and looked through line by line.

use std::io::{Read, Write};
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use regex::bytes::Regex;
use standpipe::printed_limit;

/// A line is looked at up to here.
const LONGEST_LINE: usize = 64 << 10;

/// So much of a line that matched is kept.
const KEPT: usize = 2 << 10;

/// How long the last words are waited for: whoever the program left behind may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Which lines of a program say that it was throttled.
#[derive(Clone, Debug)]
pub(crate) enum LinePattern {
    /// Those that match.
    Regex(Regex),
    /// The messages of programs we know.
    Known,
}

/// What was found in a program's standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The last line that matched, or its beginning.
    pub(crate) line: Option<String>,
    /// What the group `wait` of the pattern caught, if it has one.
    pub(crate) wait: Option<String>,
}

/// Reads in the background.
pub(crate) struct Tee {
    found: Receiver<Found>,
}

impl Tee {
    /// Begins to read.
    pub(crate) fn new(mut from: ChildStderr, pattern: LinePattern) -> Self {
        let (tell, found) = channel();
        std::thread::spawn(move || {
            let mut lines = Lines::new(pattern);
            let mut buffer = [0; 8 << 10];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                // If nobody takes it there is nobody to tell.
                let _lost = std::io::stderr().write_all(&buffer[..count]);
                lines.feed(&buffer[..count]);
                let _over = tell.send(lines.found.clone());
            }
            lines.end();
            let _over = tell.send(lines.found);
        });
        Self { found }
    }

    /// What was found in all of it, now that the program has ended.
    pub(crate) fn found(self) -> Found {
        let mut found = Found::default();
        while let Ok(latest) = self.found.recv_timeout(LAST_WORDS) {
            found = latest;
        }
        found
    }
}

/// Text that comes in pieces, line by line.
struct Lines {
    pattern: LinePattern,
    line: Vec<u8>,
    found: Found,
}

impl Lines {
    fn new(pattern: LinePattern) -> Self {
        Self { pattern, line: Vec::new(), found: Found::default() }
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
        let room = LONGEST_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self) {
        let line = || String::from_utf8_lossy(&self.line[..self.line.len().min(KEPT)]);
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

    fn found(pattern: &str, pieces: &[&str]) -> Found {
        let mut lines = Lines::new(LinePattern::Regex(Regex::new(pattern).unwrap()));
        for piece in pieces {
            lines.feed(piece.as_bytes());
        }
        lines.end();
        lines.found
    }

    #[test]
    fn a_line_is_found_however_it_is_cut() {
        let pieces = ["all is w", "ell\nrate li", "mit exceeded\n"];
        assert!(found("rate limit", &pieces).line.is_some());
        let end = found("(?i)RATE LIMIT", &["last words: rate limit"]);
        assert_eq!(end.line.as_deref(), Some("last words: rate limit"), "without an end");
        assert_eq!(found("well rate", &pieces).line, None, "no line has both");
        let bars = found("^done$", &["10%\r100%\rdone\r"]);
        assert!(bars.line.is_some(), "progress bars end lines too");
    }

    #[test]
    fn a_group_says_how_long_to_wait() {
        let told = found(r"try again in (?<wait>\d+)", &["try again in 5\ntry again in 30\n"]);
        assert_eq!(told.wait.as_deref(), Some("30"));
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut lines = Lines::new(LinePattern::Regex(Regex::new("x").unwrap()));
        for _ in 0..100 {
            lines.feed(&[b'y'; 8 << 10]);
        }
        assert_eq!(lines.line.len(), LONGEST_LINE);
    }
}

//! Server-sent events: lines, of which those that begin with `data:` make up an event.
//!
//! The name of an event is not needed: every event that matters says in its data what it is.

use crate::bounds;

/// The lines so far of an event that is not complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The event is too large: everything up to its end is passed over.
    skips: bool,
    /// The last byte ended a line, and a line feed after it belongs to it.
    after_return: bool,
}

impl Lines {
    pub(super) fn feed(&mut self, bytes: &[u8], mut event: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.after_return {
                self.after_return = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.extend(rest);
                return;
            };
            self.extend(&rest[..end]);
            self.after_return = rest[end] == b'\r';
            self.end_line(&mut event);
            rest = &rest[end + 1..];
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.line.len() + self.data.len() + bytes.len() > bounds::EVENT {
            self.skips = true;
        }
        if !self.skips {
            self.line.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            // That the line is not blank is all that is still of interest.
            self.data.clear();
            self.line.clear();
            self.line.push(b':');
        }
    }

    fn end_line(&mut self, event: &mut impl FnMut(&[u8])) {
        if self.line.is_empty() {
            if self.has_data && !self.skips {
                event(&self.data);
            }
            self.data.clear();
            self.has_data = false;
            self.skips = false;
            return;
        }
        let line = self.line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.line);
        if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.has_data = true;
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        Lines::default().feed(bytes, |data| found.push(String::from_utf8_lossy(data).into_owned()));
        found
    }

    #[test]
    fn data_is_gathered_whatever_ends_the_lines() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ": hi|event: x|data: a|data:b||data|:|||data: c||data: never ended|";
            assert_eq!(events(text.replace('|', end).as_bytes()), ["a\nb", "c"], "{end:?}");
        }
    }

    #[test]
    fn an_event_that_is_too_large_is_passed_over() {
        let large = "x".repeat(bounds::EVENT);
        let text = format!("data: a\n\ndata: {large}\ndata: {large}\n\ndata: b\n\n");
        assert_eq!(events(text.as_bytes()), ["a", "b"]);
        let mut lines = Lines::default();
        let mut count = 0;
        for byte in text.bytes() {
            lines.feed(&[byte], |_| count += 1);
        }
        assert_eq!(count, 2);
        assert!(lines.line.capacity() + lines.data.capacity() <= 4 * bounds::EVENT);
    }
}

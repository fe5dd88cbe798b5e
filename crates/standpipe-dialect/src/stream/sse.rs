//! Splits server-sent events: the `data:` lines up to a blank line are one event.
//!
//! Event names are ignored: every event that matters states its type in its data.

use memchr::memchr2;

use crate::bounds;

/// Decoder that buffers the event under way.
#[derive(Clone, Debug, Default)]
pub(super) struct SseDecoder {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The event is larger than [`bounds::EVENT`]: skip to its end.
    skips: bool,
    /// The last byte was a carriage return; a line feed right after it belongs to it.
    after_return: bool,
}

impl SseDecoder {
    pub(super) fn feed(&mut self, bytes: &[u8], mut on_event: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.after_return {
                self.after_return = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.extend(rest);
                return;
            };
            self.extend(&rest[..end]);
            self.after_return = rest[end] == b'\r';
            self.end_line(&mut on_event);
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
            // Keep one byte of the line: a blank line would end the event.
            self.data.clear();
            self.line.clear();
            self.line.push(b':');
        }
    }

    fn end_line(&mut self, on_event: &mut impl FnMut(&[u8])) {
        if self.line.is_empty() {
            if self.has_data && !self.skips {
                on_event(&self.data);
            }
            self.data.clear();
            self.has_data = false;
            self.skips = false;
            return;
        }
        // The stream may start with a byte order mark.
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
        SseDecoder::default()
            .feed(bytes, |data| found.push(String::from_utf8_lossy(data).into_owned()));
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
        let mut decoder = SseDecoder::default();
        let mut count = 0;
        for byte in text.bytes() {
            decoder.feed(&[byte], |_| count += 1);
        }
        assert_eq!(count, 2);
        assert!(decoder.line.capacity() + decoder.data.capacity() <= 4 * bounds::EVENT);
    }
}

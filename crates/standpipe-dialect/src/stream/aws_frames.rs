//! Splits AWS event-stream frames: two lengths, headers, a payload, checksums.
//!
//! Checksums are not verified: the transport already protects the bytes.

use crate::bounds;

/// Bytes before the headers: both lengths and a checksum.
const PRELUDE: usize = 12;
/// Bytes after the payload: a checksum.
const TRAILER: usize = 4;

/// Decoder that buffers the frame under way.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameDecoder {
    frame: Vec<u8>,
    /// Bytes left of a frame that is larger than [`bounds::EVENT`].
    skip: usize,
    /// A frame had impossible lengths. The start of the next frame cannot be found, so the rest
    /// of the stream is ignored.
    is_broken: bool,
}

impl FrameDecoder {
    pub(super) fn feed(&mut self, bytes: &[u8], mut on_event: impl FnMut(&str, &[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_broken {
            if self.skip > 0 {
                let skipped = self.skip.min(rest.len());
                self.skip -= skipped;
                rest = &rest[skipped..];
                continue;
            }
            let wanted = if self.frame.len() < PRELUDE { PRELUDE } else { self.length() };
            let taken = (wanted - self.frame.len()).min(rest.len());
            self.frame.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            self.step(&mut on_event);
        }
    }

    fn step(&mut self, on_event: &mut impl FnMut(&str, &[u8])) {
        if self.frame.len() < PRELUDE {
            return;
        }
        let (length, headers) = (self.length(), self.headers_length());
        if length < PRELUDE + TRAILER || headers > length - PRELUDE - TRAILER {
            self.is_broken = true;
            self.frame = Vec::new();
        } else if length > bounds::EVENT {
            self.skip = length - self.frame.len();
            self.frame.clear();
        } else if self.frame.len() == length {
            let (headers, payload) = self.frame[PRELUDE..length - TRAILER].split_at(headers);
            on_event(event_name(headers).unwrap_or_default(), payload);
            self.frame.clear();
        }
    }

    fn length(&self) -> usize {
        u32_at(&self.frame, 0)
    }

    fn headers_length(&self) -> usize {
        u32_at(&self.frame, 4)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, |four| u32::from_be_bytes(four) as usize)
}

/// The exception type, else the event type, in the headers of a frame. A header is a name, a tag
/// for the type of its value, and the value; the tag determines the length of the value.
fn event_name(mut headers: &[u8]) -> Option<&str> {
    let mut found = None;
    while let Some((length, rest)) = headers.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (tag, rest) = rest.split_first()?;
        let length = match tag {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | 7 => 2 + usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)),
            9 => 16,
            _ => return found,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        let text = value.get(2..).and_then(|text| std::str::from_utf8(text).ok());
        match name {
            b":exception-type" => return text,
            b":event-type" => found = text,
            _ => {}
        }
        headers = rest;
    }
    found
}

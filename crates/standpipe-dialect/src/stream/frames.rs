//! The frames of AWS event streams: two lengths, headers, a payload; checksums are not looked at.

use crate::bounds;

/// Before the headers: both lengths and a checksum.
const PRELUDE: usize = 12;
/// Behind the payload: a checksum.
const TAIL: usize = 4;

/// The frame that is not complete yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    frame: Vec<u8>,
    /// Bytes of a frame that is too large and is passed over.
    skip: usize,
    /// Lengths that cannot be: nothing behind them can be found again.
    is_broken: bool,
}

impl Frames {
    pub(super) fn feed(&mut self, bytes: &[u8], mut event: impl FnMut(&str, &[u8])) {
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
            self.step(&mut event);
        }
    }

    fn step(&mut self, event: &mut impl FnMut(&str, &[u8])) {
        if self.frame.len() < PRELUDE {
            return;
        }
        let (length, headers) = (self.length(), self.headers_length());
        if length < PRELUDE + TAIL || headers > length - PRELUDE - TAIL {
            self.is_broken = true;
            self.frame = Vec::new();
        } else if length > bounds::EVENT {
            self.skip = length - self.frame.len();
            self.frame.clear();
        } else if self.frame.len() == length {
            let (headers, payload) = self.frame[PRELUDE..length - TAIL].split_at(headers);
            event(name(headers).unwrap_or_default(), payload);
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

/// The type of the event or of the exception.
fn name(mut headers: &[u8]) -> Option<&str> {
    let mut found = None;
    while let Some((length, rest)) = headers.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let length = match kind {
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

//! Entries: the framing of events in a log.
//!
//! ```text
//! length   LEB128       of the body
//! stamp    8 bytes LE   the engine's clock, in microseconds
//! checksum 4 bytes LE   CRC-32 of the body, then of the stamp
//! body     semantics (LEB128), then the event in the byte layout
//! ```
//!
//! The appender encodes the body; the engine orders and stamps it. The checksum covers the body
//! first, so that an engine that cannot checksum bytes itself (a script) can continue from the
//! appender's value.
//!
//! Reading distinguishes three cases: an entry that this program understands; an entry with a valid
//! checksum that it does not, which every process skips alike; and a wrong checksum, which no
//! process may skip. [`crate::replica`] acts on each case.

use std::fmt;

use standpipe_core::{Event, Instant, SEMANTICS};

use crate::layout::{self, Malformed, put_number, take_number};

/// The most bytes of a body, and of the bodies of one append: a store carries at most 64 KB per
/// call.
pub const MAX_BODY_LEN: usize = 60_000;

/// The most bytes that a store adds to a body in transit. It counts, because with many small bodies
/// it doubles the size of a call.
pub const BODY_OVERHEAD: usize = 32;

/// The number of bytes between an entry's length and its body.
pub const STAMP_AND_CHECKSUM: usize = 12;

/// An entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The engine's clock when it appended the entry.
    pub stamp: Instant,
    /// The bytes that the appender passed in.
    pub body: &'a [u8],
    /// The decoded body.
    pub content: Content,
}

/// The decoded body of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An event.
    Event(Event),
    /// An intact body that this program does not understand.
    Unknown(Unknown),
}

/// Why this program does not understand an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// A program with these other semantics wrote it.
    Semantics(u32),
    /// It is not in the byte layout.
    Malformed(Malformed),
}

/// Bytes that differ from what was written. They must not be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The part that is damaged.
    pub what: &'static str,
}

/// Encodes the body of an event.
#[must_use]
pub fn body(event: &Event) -> Vec<u8> {
    let mut body = Vec::with_capacity(48);
    put_number(u64::from(SEMANTICS), &mut body);
    layout::put_event(event, &mut body);
    body
}

/// Encodes a body of any semantics. This program understands only [`SEMANTICS`].
#[must_use]
pub fn body_of(semantics: u32, payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(payload.len() + 5);
    put_number(u64::from(semantics), &mut body);
    body.extend_from_slice(payload);
    body
}

/// Appends an encoded entry to `out`.
pub fn put(stamp: Instant, body: &[u8], out: &mut Vec<u8>) {
    put_number(body.len() as u64, out);
    out.extend_from_slice(&stamp.0.to_le_bytes());
    out.extend_from_slice(&checksum(stamp, body).to_le_bytes());
    out.extend_from_slice(body);
}

/// Decodes the first entry of `bytes`, and returns it with the bytes after it.
///
/// # Errors
/// When the checksum does not match or the entry is truncated.
pub fn take(bytes: &[u8]) -> Result<(Entry<'_>, &[u8]), Damaged> {
    let (length, rest) = take_number(bytes).map_err(|_| Damaged { what: "an entry's length" })?;
    let (stamp, rest) = split(rest, 8)?;
    let (sum, rest) = split(rest, 4)?;
    let (body, rest) = split(rest, usize::try_from(length).unwrap_or(usize::MAX))?;
    let stamp = Instant(u64::from_le_bytes(stamp.try_into().unwrap_or_default()));
    if sum != checksum(stamp, body).to_le_bytes() {
        return Err(Damaged { what: "an entry's checksum" });
    }
    Ok((Entry { stamp, body, content: decode_body(body) }, rest))
}

/// Decodes a body whose checksum is known to match.
pub(crate) fn decode_body(body: &[u8]) -> Content {
    let malformed = |wrong| Content::Unknown(Unknown::Malformed(wrong));
    let (semantics, payload) = match take_number(body) {
        Ok(taken) => taken,
        Err(wrong) => return malformed(wrong),
    };
    if semantics != u64::from(SEMANTICS) {
        let semantics = u32::try_from(semantics).unwrap_or(u32::MAX);
        return Content::Unknown(Unknown::Semantics(semantics));
    }
    layout::decode_event(payload).map_or_else(malformed, Content::Event)
}

fn split(bytes: &[u8], count: usize) -> Result<(&[u8], &[u8]), Damaged> {
    bytes.split_at_checked(count).ok_or(Damaged { what: "the end of an entry" })
}

fn checksum(stamp: Instant, body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(body);
    sum.update(&stamp.0.to_le_bytes());
    sum.finalize()
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not match what was written", self.what)
    }
}

impl std::error::Error for Damaged {}

#[cfg(test)]
mod tests {
    use standpipe_core::{Action, Key};

    use super::*;

    fn resume() -> Event {
        Event { key: Key { session: 7, number: 1 }, action: Action::Resume { by: None } }
    }

    fn written(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(Instant(123_456), body, &mut out);
        out
    }

    #[test]
    fn what_was_put_is_taken_and_the_rest_is_left() {
        let mut bytes = written(&body(&resume()));
        bytes.push(9);
        let (entry, rest) = take(&bytes).unwrap();
        assert_eq!(entry.stamp, Instant(123_456));
        assert_eq!(entry.content, Content::Event(resume()));
        assert_eq!(rest, [9]);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_damage() {
        let bytes = written(&body(&resume()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(take(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(take(&bytes[..length]).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn what_is_whole_but_not_understood_is_told_apart() {
        let foreign = written(&body_of(SEMANTICS + 1, b"whatever"));
        let (entry, _) = take(&foreign).unwrap();
        assert_eq!(entry.content, Content::Unknown(Unknown::Semantics(SEMANTICS + 1)));
        let odd = written(&body_of(SEMANTICS, &[1, 1, 200]));
        let (entry, _) = take(&odd).unwrap();
        assert!(matches!(entry.content, Content::Unknown(Unknown::Malformed(_))));
        let empty = written(&[]);
        let (entry, _) = take(&empty).unwrap();
        assert!(matches!(entry.content, Content::Unknown(Unknown::Malformed(_))));
    }
}

//! Entries: events as they lie in a log.
//!
//! ```text
//! length   LEB128       of the body
//! stamp    8 bytes LE   the engine's clock, in microseconds
//! checksum 4 bytes LE   CRC-32 of the body, then of the stamp
//! body     semantics (LEB128), then the event in the byte layout
//! ```
//!
//! The appender makes the body; the engine orders and stamps it. The checksum runs over the body
//! first so that an engine that cannot compute it whole (a script) can go on from the appender's.
//!
//! Reading tells three things apart: an entry that is understood; one whose checksum is right but
//! which is not understood, which everybody skips alike; and a wrong checksum, which nobody may
//! skip. What to do about each is the business of [`crate::replica`].

use std::fmt;

use standpipe_core::{Event, Instant, SEMANTICS};

use crate::layout::{self, Malformed, put_number, take_number};

/// The largest body. A store may have to carry several entries in one call of 64 KB.
pub const LARGEST_BODY: usize = 60_000;

/// What a store may put around a body on its way: small ones would make a call twice as long.
pub const AROUND_BODY: usize = 32;

/// What stands between an entry's length and its body, in bytes.
pub const STAMP_AND_CHECKSUM: usize = 12;

/// An entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When the engine took it in.
    pub stamp: Instant,
    /// What the appender handed in.
    pub body: &'a [u8],
    /// What it says.
    pub content: Content,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An event.
    Event(Event),
    /// Something whole that this program does not understand.
    Unknown(Unknown),
}

/// Why an entry is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It was written by a program of these other semantics.
    Semantics(u32),
    /// It is not in the byte layout.
    Malformed(Malformed),
}

/// Bytes that are not what was written: they may not be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// What was seen.
    pub what: &'static str,
}

/// The body for an event.
#[must_use]
pub fn body(event: &Event) -> Vec<u8> {
    let mut body = Vec::with_capacity(48);
    put_number(u64::from(SEMANTICS), &mut body);
    layout::put_event(event, &mut body);
    body
}

/// A body of any semantics. Only [`SEMANTICS`] is understood by this program.
#[must_use]
pub fn body_of(semantics: u32, payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(payload.len() + 5);
    put_number(u64::from(semantics), &mut body);
    body.extend_from_slice(payload);
    body
}

/// Writes an entry behind what is there.
pub fn put(stamp: Instant, body: &[u8], out: &mut Vec<u8>) {
    put_number(body.len() as u64, out);
    out.extend_from_slice(&stamp.0.to_le_bytes());
    out.extend_from_slice(&checksum(stamp, body).to_le_bytes());
    out.extend_from_slice(body);
}

/// Reads the entry at the front. Answers it and what follows.
///
/// # Errors
/// When the checksum is wrong or the entry is not whole.
pub fn take(bytes: &[u8]) -> Result<(Entry<'_>, &[u8]), Damaged> {
    let (length, rest) = take_number(bytes).map_err(|_| Damaged { what: "an entry's length" })?;
    let (stamp, rest) = split(rest, 8)?;
    let (sum, rest) = split(rest, 4)?;
    let (body, rest) = split(rest, usize::try_from(length).unwrap_or(usize::MAX))?;
    let stamp = Instant(u64::from_le_bytes(stamp.try_into().unwrap_or_default()));
    if sum != checksum(stamp, body).to_le_bytes() {
        return Err(Damaged { what: "an entry's checksum" });
    }
    Ok((Entry { stamp, body, content: understand(body) }, rest))
}

fn understand(body: &[u8]) -> Content {
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
        write!(f, "{} is not as it was written", self.what)
    }
}

impl std::error::Error for Damaged {}

#[cfg(test)]
mod tests {
    use standpipe_core::{Action, Key};

    use super::*;

    fn resume() -> Event {
        Event { key: Key { session: 7, number: 1 }, action: Action::Resume }
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

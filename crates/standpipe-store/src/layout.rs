//! The one byte layout of events and of a pool's facts, for logs, snapshots and whatever else keeps
//! them.
//!
//! It is compact (LEB128 integers, one-byte tags, stamps as differences), canonical (what decodes
//! encodes to the same bytes again) and total (no bytes, however odd, make it panic or allocate
//! more than they could hold). It says nothing about checksums, lengths and stamps of entries: see
//! [`crate::entry`].
//!
//! There is no version number in the bytes: [`standpipe_core::SEMANTICS`] changes whenever the
//! layout does, and travels with every entry and every snapshot. Tags are never used again for
//! anything else.

mod event;
mod facts;
mod wire;

use core::fmt;

use standpipe_core::{Event, Facts};

use self::wire::{Reader, Wire};

/// Bytes that are not what they should be. Sending or reading them again does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// How many bytes had been understood.
    pub at: usize,
    /// What was wrong there.
    pub what: &'static str,
}

/// An event as bytes.
#[must_use]
pub fn encode_event(event: &Event) -> Vec<u8> {
    let mut out = Vec::with_capacity(48);
    put_event(event, &mut out);
    out
}

/// Writes an event's bytes behind what is there.
pub fn put_event(event: &Event, out: &mut Vec<u8>) {
    event.put(out);
}

/// The event these bytes are.
///
/// # Errors
/// When they are no event, or not written as [`encode_event`] writes it.
pub fn decode_event(bytes: &[u8]) -> Result<Event, Malformed> {
    decode(bytes)
}

/// All that a pool's ledger knows, as bytes. Replicas are equal when these are.
#[must_use]
pub fn encode_state(facts: &Facts) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_024);
    facts.put(&mut out);
    out
}

/// The facts these bytes are. Whether they fit together is for `State::from_facts` to say.
///
/// # Errors
/// When they are no facts, or not written as [`encode_state`] writes them.
pub fn decode_state(bytes: &[u8]) -> Result<Facts, Malformed> {
    decode(bytes)
}

/// Writes a number as the layout does.
pub fn put_number(number: u64, out: &mut Vec<u8>) {
    number.put(out);
}

/// Reads a number from the front. Answers it and what follows.
///
/// # Errors
/// When there is none.
pub fn take_number(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let mut input = Reader::new(bytes);
    let number = u64::get(&mut input)?;
    Ok((number, &bytes[bytes.len() - input.left()..]))
}

fn decode<T: Wire>(bytes: &[u8]) -> Result<T, Malformed> {
    let mut input = Reader::new(bytes);
    let value = T::get(&mut input)?;
    input.finish()?;
    Ok(value)
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} bytes", self.what, self.at)
    }
}

impl std::error::Error for Malformed {}

#[cfg(all(test, feature = "conformance"))]
mod tests;

//! The byte layout of events and of a pool's facts, shared by all logs and snapshots.
//!
//! The layout is compact (LEB128 integers, one-byte tags, stamps as differences), canonical
//! (whatever decodes encodes to the same bytes) and total (no input makes it panic or allocate out
//! of proportion to its length). Checksums, lengths and stamps of entries are in [`crate::entry`].
//!
//! The bytes carry no version number: [`standpipe_core::SEMANTICS`] changes whenever the layout
//! does, and every entry and every snapshot carries it. Tags are never reused.
//!
//! `wire.rs` encodes plain values and has the macros; `event.rs` and `facts.rs` list the fields.

mod event;
mod facts;
mod wire;

use core::fmt;

use standpipe_core::{Event, Facts};

use self::wire::{Reader, Wire};

/// Bytes that do not decode. Reading them again does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// How many bytes were decoded before the error.
    pub at: usize,
    /// What is wrong at that point.
    pub what: &'static str,
}

/// Encodes an event.
#[must_use]
pub fn encode_event(event: &Event) -> Vec<u8> {
    let mut out = Vec::with_capacity(48);
    put_event(event, &mut out);
    out
}

/// Appends an encoded event to `out`.
pub fn put_event(event: &Event, out: &mut Vec<u8>) {
    event.put(out);
}

/// Decodes an event.
///
/// # Errors
/// When the bytes are not exactly what [`encode_event`] writes for some event.
pub fn decode_event(bytes: &[u8]) -> Result<Event, Malformed> {
    decode(bytes)
}

/// Encodes the facts of a ledger. Two replicas are equal if and only if these bytes are.
#[must_use]
pub fn encode_state(facts: &Facts) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_024);
    facts.put(&mut out);
    out
}

/// Decodes the facts of a ledger. `State::from_facts` checks that they are consistent.
///
/// # Errors
/// When the bytes are not exactly what [`encode_state`] writes for some facts.
pub fn decode_state(bytes: &[u8]) -> Result<Facts, Malformed> {
    decode(bytes)
}

/// Appends a LEB128 number to `out`.
pub fn put_number(number: u64, out: &mut Vec<u8>) {
    number.put(out);
}

/// Decodes the LEB128 number at the start of `bytes`, and returns it with the bytes after it.
///
/// # Errors
/// When the bytes do not start with a number.
pub fn take_number(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let mut input = Reader::new(bytes);
    let number = u64::get(&mut input)?;
    Ok((number, &bytes[bytes.len() - input.remaining()..]))
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

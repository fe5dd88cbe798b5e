//! Records: entries as the server stores them in the log string.
//!
//! ```text
//! length   4 bytes LE    of the body
//! checksum 4 bytes LE    CRC-32 of the body, computed by the appender
//! body
//! stamp    8 bytes LE    the server's clock, in microseconds
//! chain    16 bytes      hash chain up to and including this record, hexadecimal
//! ```
//!
//! The appender sends length, checksum and body; `append.lua` adds stamp and chain. The chain
//! covers every other field, so a reader detects any change of a record.

use sha1::{Digest, Sha1};
use standpipe_core::Instant;
use standpipe_store::entry::{self, Damaged};

/// Length of a chain in hexadecimal digits.
pub(crate) const CHAIN_LEN: usize = 16;
/// Length of what precedes the body.
pub(crate) const HEADER_LEN: usize = 8;
/// Length of what follows the body.
const TRAILER_LEN: usize = 8 + CHAIN_LEN;

/// Encodes an entry as the appender sends it: without stamp and chain.
pub(crate) fn encode(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + body.len());
    bytes.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Returns the length of the whole record of a body.
pub(crate) const fn record_len(body: &[u8]) -> u64 {
    (HEADER_LEN + body.len() + TRAILER_LEN) as u64
}

/// Computes the chain after an entry. It must equal what `append.lua` computes.
pub(crate) fn chain(before: u64, stamp: Instant, body: &[u8]) -> u64 {
    let mut hash = Sha1::new();
    hash.update(chain_hex(before).as_bytes());
    hash.update(stamp.0.to_le_bytes());
    hash.update(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    hash.update(crc32fast::hash(body).to_le_bytes());
    hash.update(body);
    let digest = hash.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// Formats a chain as the scripts store it.
pub(crate) fn chain_hex(chain: u64) -> String {
    format!("{chain:016x}")
}

/// Parses a chain. Returns `None` unless the text is exactly what [`chain_hex`] writes.
pub(crate) fn parse_chain(text: &[u8]) -> Option<u64> {
    let chain = u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?;
    (chain_hex(chain).as_bytes() == text).then_some(chain)
}

/// A decoded record.
pub(crate) struct Record<'a> {
    pub(crate) body: &'a [u8],
    checksum: [u8; 4],
    pub(crate) stamp: Instant,
    pub(crate) chain: u64,
    /// Length of the whole record.
    pub(crate) length: u64,
}

/// Decodes the first record. Returns it and the bytes after it. Verifies neither checksum nor
/// chain.
pub(crate) fn split_first(bytes: &[u8]) -> Result<(Record<'_>, &[u8]), Damaged> {
    let (length, rest) = bytes.split_at_checked(4).ok_or(TRUNCATED)?;
    let length = u32::from_le_bytes(length.try_into().unwrap_or_default());
    let (checksum, rest) = rest.split_at_checked(4).ok_or(TRUNCATED)?;
    let (body, rest) = rest.split_at_checked(length as usize).ok_or(TRUNCATED)?;
    let (stamp, rest) = rest.split_at_checked(8).ok_or(TRUNCATED)?;
    let (chain, rest) = rest.split_at_checked(CHAIN_LEN).ok_or(TRUNCATED)?;
    let record = Record {
        body,
        checksum: checksum.try_into().unwrap_or_default(),
        stamp: Instant(u64::from_le_bytes(stamp.try_into().unwrap_or_default())),
        chain: parse_chain(chain).ok_or(Damaged { what: "the chain behind an entry" })?,
        length: (bytes.len() - rest.len()) as u64,
    };
    Ok((record, rest))
}

/// Converts records to the entry format that all stores share, and verifies checksum and chain.
///
/// At the first damaged record it stops and appends bytes that no reader accepts as an entry. So
/// the reader applies what precedes the damage and then reports it, as on every other store.
pub(crate) fn to_entries(mut chain_before: u64, records: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(records.len());
    let mut rest = records;
    while !rest.is_empty() {
        let intact = split_first(rest).ok().filter(|(record, _)| {
            record.checksum == crc32fast::hash(record.body).to_le_bytes()
                && record.chain == chain(chain_before, record.stamp, record.body)
        });
        let Some((record, after)) = intact else {
            out.extend_from_slice(&[0; 5]);
            return out;
        };
        entry::put(record.stamp, record.body, &mut out);
        chain_before = record.chain;
        rest = after;
    }
    out
}

const TRUNCATED: Damaged = Damaged { what: "the end of an entry" };

#[cfg(test)]
mod tests {
    use super::*;

    fn record(before: u64, stamp: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = encode(body);
        bytes.extend_from_slice(&stamp.to_le_bytes());
        bytes.extend_from_slice(chain_hex(chain(before, Instant(stamp), body)).as_bytes());
        bytes
    }

    #[test]
    fn records_become_entries() {
        let mut log = record(7, 100, b"one");
        log.extend(record(chain(7, Instant(100), b"one"), 101, b"another"));
        let entries = to_entries(7, &log);
        let (first, rest) = entry::take(&entries).unwrap();
        assert_eq!((first.stamp, first.body), (Instant(100), &b"one"[..]));
        let (second, rest) = entry::take(rest).unwrap();
        assert_eq!((second.stamp, second.body, rest), (Instant(101), &b"another"[..], &[][..]));
        let (first, _) = split_first(&log).unwrap();
        assert_eq!(first.length, record_len(b"one"));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_stops_a_reader_before_it() {
        let before = record(7, 100, b"one");
        let whole = record(chain(7, Instant(100), b"one"), 101, b"another");
        let stops = |log: &[u8]| {
            let entries = to_entries(7, log);
            let (_, rest) = entry::take(&entries).unwrap();
            entry::take(rest).is_err()
        };
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(stops(&[before.clone(), flipped].concat()), "bit {bit}");
        }
        for length in 1..whole.len() {
            assert!(stops(&[&before[..], &whole[..length]].concat()), "cut to {length}");
        }
    }
}

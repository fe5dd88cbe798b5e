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
//!
//! A reader hashes each record once, as it is stored. It does not compute the checksum of a body:
//! the chain covers it, and the replica verifies it when it decodes the entry.

use sha1::{Digest, Sha1};
use standpipe_core::Instant;
use standpipe_store::entry::Damaged;
use standpipe_store::layout::put_number;

/// Length of a chain in hexadecimal digits.
pub(crate) const CHAIN_LEN: usize = 16;
/// Length of what precedes the body.
pub(crate) const HEADER_LEN: usize = 8;
/// Length of what follows the body.
const TRAILER_LEN: usize = 8 + CHAIN_LEN;

/// Encodes an entry as the appender sends it: without stamp and chain.
pub(crate) fn encode(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + body.len());
    bytes.extend_from_slice(&header(body));
    bytes.extend_from_slice(body);
    bytes
}

/// Returns the length of the whole record of a body.
pub(crate) const fn record_len(body: &[u8]) -> u64 {
    (HEADER_LEN + body.len() + TRAILER_LEN) as u64
}

/// Computes the chain after an entry. It must equal what `append.lua` computes.
pub(crate) fn chain(before: u64, stamp: Instant, body: &[u8]) -> u64 {
    hash(before, stamp, &[&header(body), body])
}

/// Returns the length and the checksum of a body.
fn header(body: &[u8]) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..4].copy_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    header[4..].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
    header
}

/// Hashes an entry, in the parts that the appender sent, behind the chain before it.
fn hash(before: u64, stamp: Instant, sent: &[&[u8]]) -> u64 {
    let mut hash = Sha1::new();
    hash.update(chain_hex(before));
    hash.update(stamp.0.to_le_bytes());
    for part in sent {
        hash.update(part);
    }
    let digest = hash.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// Formats a chain as the scripts store it.
pub(crate) fn chain_hex(chain: u64) -> [u8; CHAIN_LEN] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; CHAIN_LEN];
    for (pair, byte) in text.chunks_exact_mut(2).zip(chain.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// Parses a chain. Returns `None` unless the text is exactly what [`chain_hex`] writes.
pub(crate) fn parse_chain(text: &[u8]) -> Option<u64> {
    if text.len() != CHAIN_LEN {
        return None;
    }
    text.iter().try_fold(0, |chain, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(chain << 4 | u64::from(value))
    })
}

/// A decoded record.
pub(crate) struct Record<'a> {
    /// Length, checksum and body: what the appender sent.
    sent: &'a [u8],
    pub(crate) stamp: Instant,
    pub(crate) chain: u64,
    /// Length of the whole record.
    pub(crate) length: u64,
}

impl<'a> Record<'a> {
    /// Returns the body.
    pub(crate) fn body(&self) -> &'a [u8] {
        &self.sent[HEADER_LEN..]
    }

    /// Returns whether this record was appended behind `before` and has not changed since.
    fn follows(&self, before: u64) -> bool {
        self.chain == hash(before, self.stamp, &[self.sent])
    }

    /// Appends the record to `out` in the entry format that all stores share
    /// ([`standpipe_store::entry`]). The entry's checksum covers the body, then the stamp, so it
    /// continues from the appender's.
    fn put_entry(&self, out: &mut Vec<u8>) {
        let stamp = self.stamp.0.to_le_bytes();
        let appended = self.sent[4..HEADER_LEN].try_into().unwrap_or_default();
        let mut checksum = crc32fast::Hasher::new_with_initial(u32::from_le_bytes(appended));
        checksum.update(&stamp);
        put_number(self.body().len() as u64, out);
        out.extend_from_slice(&stamp);
        out.extend_from_slice(&checksum.finalize().to_le_bytes());
        out.extend_from_slice(self.body());
    }
}

/// Decodes the first record. Returns it and the bytes after it. Does not verify the chain.
pub(crate) fn split_first(bytes: &[u8]) -> Result<(Record<'_>, &[u8]), Damaged> {
    let (length, _) = bytes.split_first_chunk::<4>().ok_or(TRUNCATED)?;
    let length = HEADER_LEN + u32::from_le_bytes(*length) as usize;
    let (sent, rest) = bytes.split_at_checked(length).ok_or(TRUNCATED)?;
    let (stamp, rest) = rest.split_first_chunk::<8>().ok_or(TRUNCATED)?;
    let (chain, rest) = rest.split_at_checked(CHAIN_LEN).ok_or(TRUNCATED)?;
    let record = Record {
        sent,
        stamp: Instant(u64::from_le_bytes(*stamp)),
        chain: parse_chain(chain).ok_or(Damaged { what: "the chain behind an entry" })?,
        length: (bytes.len() - rest.len()) as u64,
    };
    Ok((record, rest))
}

/// Records in the entry format that all stores share.
pub(crate) struct Converted {
    pub(crate) entries: Vec<u8>,
    /// How many bytes of the records are intact.
    pub(crate) intact: usize,
    /// The chain after the intact ones.
    pub(crate) chain: u64,
}

/// Verifies the chain of records and converts them to the entry format that all stores share.
///
/// At the first damaged record it stops and appends bytes that no reader accepts as an entry, so
/// the replica finds the damage and applies nothing.
pub(crate) fn to_entries(chain_before: u64, records: &[u8]) -> Converted {
    let (mut entries, mut chain) = (Vec::with_capacity(records.len()), chain_before);
    let mut rest = records;
    while !rest.is_empty() {
        let intact = split_first(rest).ok().filter(|(record, _)| record.follows(chain));
        let Some((record, after)) = intact else {
            entries.extend_from_slice(&[0; 5]);
            break;
        };
        record.put_entry(&mut entries);
        (chain, rest) = (record.chain, after);
    }
    Converted { entries, intact: records.len() - rest.len(), chain }
}

const TRUNCATED: Damaged = Damaged { what: "the end of an entry" };

#[cfg(test)]
mod tests {
    use standpipe_store::entry;

    use super::*;

    fn record(before: u64, stamp: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = encode(body);
        bytes.extend_from_slice(&stamp.to_le_bytes());
        bytes.extend_from_slice(&chain_hex(chain(before, Instant(stamp), body)));
        bytes
    }

    #[test]
    fn records_become_entries() {
        let mut log = record(7, 100, b"one");
        log.extend(record(chain(7, Instant(100), b"one"), 101, b"another"));
        let Converted { entries, intact, chain: reached } = to_entries(7, &log);
        assert_eq!(intact, log.len());
        assert_eq!(reached, chain(chain(7, Instant(100), b"one"), Instant(101), b"another"));
        let (first, rest) = entry::take(&entries).unwrap();
        assert_eq!((first.stamp, first.body), (Instant(100), &b"one"[..]));
        let (second, rest) = entry::take(rest).unwrap();
        assert_eq!((second.stamp, second.body, rest), (Instant(101), &b"another"[..], &[][..]));
        let (first, _) = split_first(&log).unwrap();
        assert_eq!(first.length, record_len(b"one"));
    }

    #[test]
    fn a_converted_record_equals_the_entry_of_its_body() {
        for body in [&b""[..], b"x", &[7; 300]] {
            let mut entry = Vec::new();
            entry::put(Instant(100), body, &mut entry);
            assert_eq!(to_entries(7, &record(7, 100, body)).entries, entry);
        }
    }

    #[test]
    fn a_body_that_differs_from_its_checksum_stops_a_reader() {
        // Not changed since it was appended, so its chain is right: the appender was wrong.
        let mut sent = encode(b"one");
        sent[HEADER_LEN] ^= 1;
        let chain = hash(7, Instant(100), &[&sent]);
        let log = [&sent[..], &100_u64.to_le_bytes(), &chain_hex(chain)].concat();
        assert!(entry::take(&to_entries(7, &log).entries).is_err());
    }

    #[test]
    fn a_chain_is_read_only_as_it_is_written() {
        for chain in [0, 7, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(chain_hex(chain).as_slice(), format!("{chain:016x}").as_bytes());
            assert_eq!(parse_chain(&chain_hex(chain)), Some(chain));
        }
        let others = ["", "1", "00000000000000001", "000000000000000A", "+000000000000001"];
        for text in others {
            assert_eq!(parse_chain(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_stops_a_reader_before_it() {
        let before = record(7, 100, b"one");
        let whole = record(chain(7, Instant(100), b"one"), 101, b"another");
        let stops = |log: &[u8]| {
            let Converted { entries, intact, .. } = to_entries(7, log);
            assert_eq!(intact, before.len());
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

//! Entries as they lie in a log on the server.
//!
//! ```text
//! length   4 bytes LE    of the body
//! checksum 4 bytes LE    CRC-32 of the body, by the appender
//! body
//! stamp    8 bytes LE    the server's clock, in microseconds
//! chain    16 bytes      of everything up to here, in hexadecimal digits
//! ```
//!
//! The appender sends the first three; the script puts stamp and chain behind them. The chain
//! covers stamp, length and checksum, so nothing of a record can change unseen.

use sha1::{Digest, Sha1};
use standpipe_core::Instant;
use standpipe_store::entry::{self, Damaged};

/// The digits of a chain.
pub(crate) const CHAIN: usize = 16;
/// What stands behind a body.
pub(crate) const BEHIND: usize = 8 + CHAIN;
/// What stands before it.
const BEFORE: usize = 8;

/// What an appender sends of an entry.
pub(crate) fn sent(body: &[u8]) -> Vec<u8> {
    let mut sent = Vec::with_capacity(BEFORE + body.len());
    sent.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    sent.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    sent.extend_from_slice(body);
    sent
}

/// How long a body's record is in the log.
pub(crate) const fn length(body: &[u8]) -> u64 {
    (BEFORE + body.len() + BEHIND) as u64
}

/// The chain behind an entry, as the script computes it.
pub(crate) fn chain(before: u64, stamp: Instant, body: &[u8]) -> u64 {
    let mut hash = Sha1::new();
    hash.update(digits(before).as_bytes());
    hash.update(stamp.0.to_le_bytes());
    hash.update(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    hash.update(crc32fast::hash(body).to_le_bytes());
    hash.update(body);
    let digest = hash.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// A chain as the script writes it.
pub(crate) fn digits(chain: u64) -> String {
    format!("{chain:016x}")
}

/// A chain as it is written; none if it is none.
pub(crate) fn of_digits(text: &[u8]) -> Option<u64> {
    let chain = u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?;
    (digits(chain).as_bytes() == text).then_some(chain)
}

/// A record of a log.
pub(crate) struct Record<'a> {
    pub(crate) body: &'a [u8],
    checksum: [u8; 4],
    pub(crate) stamp: Instant,
    pub(crate) chain: u64,
    pub(crate) length: u64,
}

/// Reads the record at the front. Answers it and what follows.
pub(crate) fn take(bytes: &[u8]) -> Result<(Record<'_>, &[u8]), Damaged> {
    let (length, rest) = bytes.split_at_checked(4).ok_or(CUT)?;
    let length = u32::from_le_bytes(length.try_into().unwrap_or_default());
    let (checksum, rest) = rest.split_at_checked(4).ok_or(CUT)?;
    let (body, rest) = rest.split_at_checked(length as usize).ok_or(CUT)?;
    let (stamp, rest) = rest.split_at_checked(8).ok_or(CUT)?;
    let (chain, rest) = rest.split_at_checked(CHAIN).ok_or(CUT)?;
    let record = Record {
        body,
        checksum: checksum.try_into().unwrap_or_default(),
        stamp: Instant(u64::from_le_bytes(stamp.try_into().unwrap_or_default())),
        chain: of_digits(chain).ok_or(Damaged { what: "the chain behind an entry" })?,
        length: (bytes.len() - rest.len()) as u64,
    };
    Ok((record, rest))
}

/// Records as every store hands entries out. One that is not as it was written, and what follows
/// it, is handed out as something that nobody takes for an entry: so a reader stops before it.
pub(crate) fn entries(mut chain_before: u64, records: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(records.len());
    let mut rest = records;
    while !rest.is_empty() {
        let whole = take(rest).ok().filter(|(record, _)| {
            record.checksum == crc32fast::hash(record.body).to_le_bytes()
                && record.chain == chain(chain_before, record.stamp, record.body)
        });
        let Some((record, behind)) = whole else {
            out.extend_from_slice(&[0; 5]);
            return out;
        };
        entry::put(record.stamp, record.body, &mut out);
        chain_before = record.chain;
        rest = behind;
    }
    out
}

const CUT: Damaged = Damaged { what: "the end of an entry" };

#[cfg(test)]
mod tests {
    use super::*;

    fn record(before: u64, stamp: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = sent(body);
        bytes.extend_from_slice(&stamp.to_le_bytes());
        bytes.extend_from_slice(digits(chain(before, Instant(stamp), body)).as_bytes());
        bytes
    }

    #[test]
    fn records_become_entries() {
        let mut log = record(7, 100, b"one");
        log.extend(record(chain(7, Instant(100), b"one"), 101, b"another"));
        let entries = entries(7, &log);
        let (first, rest) = entry::take(&entries).unwrap();
        assert_eq!((first.stamp, first.body), (Instant(100), &b"one"[..]));
        let (second, rest) = entry::take(rest).unwrap();
        assert_eq!((second.stamp, second.body, rest), (Instant(101), &b"another"[..], &[][..]));
        let (taken, _) = take(&log).unwrap();
        assert_eq!(taken.length, length(b"one"));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_stops_a_reader_before_it() {
        let before = record(7, 100, b"one");
        let whole = record(chain(7, Instant(100), b"one"), 101, b"another");
        let stops = |log: &[u8]| {
            let entries = entries(7, log);
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

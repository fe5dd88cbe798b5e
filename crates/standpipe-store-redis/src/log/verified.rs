//! The records of the last read, whose chain was verified when they arrived.
//!
//! A replica asks for the chain after every entry that it applies, with [`Log::chain`]. For an
//! entry that was just read, the answer is known. It is given only for the same entry at the same
//! place: the stamp and the body are compared byte by byte. So a tail that lost, repeated or
//! reordered an entry after it was read still leads to another chain.
//!
//! [`Log::chain`]: standpipe_store::Log::chain

use std::cell::Cell;

use standpipe_core::Instant;
use standpipe_store::{Appended, Position};

use super::MAX_CALL_BYTES;
use crate::protocol::record;

/// Verified records, and how far a replica has asked for them.
#[derive(Debug, Default)]
pub(super) struct VerifiedRecords {
    bytes: Vec<u8>,
    /// The offset of the next record, and the chain before it.
    next: Cell<(usize, u64)>,
}

impl VerifiedRecords {
    /// Keeps records that follow `chain_before` and were verified. A long tail is not kept, because
    /// the log may be idle afterwards; its entries are hashed again.
    pub(super) fn new(chain_before: u64, bytes: Vec<u8>) -> Self {
        let bytes = if bytes.len() <= MAX_CALL_BYTES { bytes } else { Vec::new() };
        Self { bytes, next: Cell::new((0, chain_before)) }
    }

    /// Returns the chain after an entry if it is the next record, and proceeds to the one after it.
    pub(super) fn chain_after(&self, before: u64, stamp: Instant, body: &[u8]) -> Option<u64> {
        let (offset, chain_before) = self.next.get();
        let (record, _) = record::split_first(self.bytes.get(offset..)?).ok()?;
        let same = before == chain_before && stamp == record.stamp && body == record.body();
        same.then(|| {
            let length = usize::try_from(record.length).unwrap_or(usize::MAX);
            self.next.set((offset.saturating_add(length), record.chain));
            record.chain
        })
    }
}

/// Returns an append of `sent` behind `after` if its chain leads to `head`.
///
/// The server computed that chain over what it received. If that is what was sent, nothing is left
/// that reading the entries back could prove.
pub(super) fn appended(
    after: Position,
    stamp: Instant,
    sent: &[&[u8]],
    head: Position,
) -> Option<Appended> {
    let next = |chain, body: &&[u8]| record::chain(chain, stamp, body);
    let same = sent.iter().fold(after.chain, next) == head.chain;
    (same && !sent.is_empty()).then_some(Appended { after, stamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_is_not_read_back_only_if_the_server_has_what_was_sent() {
        let (after, stamp) = (Position { number: 4, chain: 7 }, Instant(100));
        let sent = [&b"one"[..], b"another"];
        let chain = |bodies: &[&[u8]]| {
            bodies.iter().fold(7, |chain, body| record::chain(chain, stamp, body))
        };
        let accepts = |chain| {
            appended(after, stamp, &sent, Position { number: 6, chain })
                == Some(Appended { after, stamp })
        };
        assert!(accepts(chain(&sent)));
        assert!(!accepts(chain(&[b"one"])), "one is missing");
        assert!(!accepts(chain(&[b"another", b"one"])), "another order");
        assert!(!accepts(chain(&[b"one", b"Another"])), "another body");
        let elsewhere =
            appended(after, Instant(101), &sent, Position { number: 6, chain: chain(&sent) });
        assert_eq!(elsewhere, None, "another stamp");
        assert_eq!(appended(after, stamp, &[], after), None, "a read has no own entries");
    }

    #[test]
    fn a_chain_is_known_only_for_the_next_record_as_it_was_read() {
        let mut log = Vec::new();
        let (mut chain, mut chains) = (7, vec![7]);
        for body in ["one", "another", "third"] {
            chain = record::chain(chain, Instant(100), body.as_bytes());
            chains.push(chain);
            log.extend(record::encode(body.as_bytes()));
            log.extend(100_u64.to_le_bytes());
            log.extend(record::chain_hex(chain));
        }
        let records = VerifiedRecords::new(7, log);
        let after = |before, stamp, body: &str| {
            records.chain_after(before, Instant(stamp), body.as_bytes())
        };
        assert_eq!(after(chains[0], 100, "another"), None, "an entry is missing before it");
        assert_eq!(after(chains[0], 100, "one"), Some(chains[1]));
        assert_eq!(after(chains[1], 100, "one"), None, "it is there twice");
        assert_eq!(after(chains[1], 101, "another"), None, "another stamp");
        assert_eq!(after(chains[0], 100, "another"), None, "another place");
        assert_eq!(after(chains[1], 100, "another"), Some(chains[2]));
        assert_eq!(after(chains[2], 100, "third"), Some(chains[3]));
        assert_eq!(after(chains[3], 100, "third"), None, "there is no other one");
    }
}

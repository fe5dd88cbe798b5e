//! The head of a pool's log, decoded outside of scripts.
//!
//! `scripts/head.lua` defines the layout. Only searches for a position and fault injection read the
//! head here; steps never do.

use super::record::{self, CHAIN_LEN};

/// The packed field `h` of the head key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Number of entries ever appended.
    pub(crate) entries: u64,
    /// Stamp of the last entry.
    pub(crate) last_stamp: u64,
    /// Bytes ever appended: the offset of the log's end.
    pub(crate) bytes: u64,
    /// Bytes dropped from the front: the offset of the first kept record.
    pub(crate) trimmed: u64,
    /// Offset that the latest snapshot covers.
    pub(crate) snapshot_at: u64,
    /// Length of the latest snapshot, 0 if there is none.
    pub(crate) snapshot_length: u64,
    /// Hash chain at the end of the log.
    pub(crate) chain: u64,
    /// Random id of the log.
    pub(crate) log_id: String,
    /// The whole field, so that what is not decoded survives a rewrite.
    packed: Vec<u8>,
}

const HEAD_LEN: usize = 147;
const CHAIN_AT: usize = 77;
const LOG_ID_AT: usize = HEAD_LEN - 14;

impl Head {
    /// Decodes a head. Returns `None` if the bytes are not one.
    pub(crate) fn decode(packed: Vec<u8>) -> Option<Self> {
        if packed.len() != HEAD_LEN {
            return None;
        }
        let word = |index: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&packed[index * 8..index * 8 + 8]);
            u64::from_le_bytes(word)
        };
        Some(Self {
            entries: word(0),
            last_stamp: word(1),
            bytes: word(2),
            trimmed: word(3),
            snapshot_at: word(4),
            snapshot_length: word(5),
            chain: record::parse_chain(&packed[CHAIN_AT..CHAIN_AT + CHAIN_LEN])?,
            log_id: String::from_utf8(packed[LOG_ID_AT..].to_vec()).ok()?,
            packed,
        })
    }

    /// Encodes the head again. The log id and the fields that were not decoded stay as they were.
    #[cfg(feature = "harm")]
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut packed = self.packed.clone();
        let words = [
            self.entries,
            self.last_stamp,
            self.bytes,
            self.trimmed,
            self.snapshot_at,
            self.snapshot_length,
        ];
        for (index, word) in words.into_iter().enumerate() {
            packed[index * 8..index * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        let chain = record::chain_hex(self.chain);
        packed[CHAIN_AT..CHAIN_AT + CHAIN_LEN].copy_from_slice(&chain);
        packed
    }
}

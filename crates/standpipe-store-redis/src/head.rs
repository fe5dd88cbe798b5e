//! A pool's head as the scripts pack it, for the few who look at it from outside a script.

use crate::record::{self, CHAIN};

/// What is packed in field `h`: see `scripts/head.lua`, which is the layout's home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Entries.
    pub(crate) number: u64,
    /// The stamp of the last.
    pub(crate) stamp: u64,
    /// Their bytes, and of them those that were let go of.
    pub(crate) end: u64,
    pub(crate) base: u64,
    /// The place and the length of the snapshot.
    pub(crate) snapshot_at: u64,
    pub(crate) snapshot_length: u64,
    pub(crate) chain: u64,
    pub(crate) id: String,
    /// All else, as it is.
    bytes: Vec<u8>,
}

/// How long it is.
const LENGTH: usize = 147;
const CHAIN_AT: usize = 77;
const ID_AT: usize = LENGTH - 14;

impl Head {
    /// What a head says; none if it is none.
    pub(crate) fn read(bytes: Vec<u8>) -> Option<Self> {
        if bytes.len() != LENGTH {
            return None;
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
            u64::from_le_bytes(word)
        };
        Some(Self {
            number: word(0),
            stamp: word(1),
            end: word(2),
            base: word(3),
            snapshot_at: word(4),
            snapshot_length: word(5),
            chain: record::of_digits(&bytes[CHAIN_AT..CHAIN_AT + CHAIN])?,
            id: String::from_utf8(bytes[ID_AT..].to_vec()).ok()?,
            bytes,
        })
    }

    /// The same as bytes.
    #[cfg(feature = "harm")]
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let words =
            [self.number, self.stamp, self.end, self.base, self.snapshot_at, self.snapshot_length];
        for (at, word) in words.into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes[CHAIN_AT..CHAIN_AT + CHAIN].copy_from_slice(record::digits(self.chain).as_bytes());
        bytes
    }
}

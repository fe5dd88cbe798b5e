//! The last records of the log, which the head carries itself.
//!
//! An append writes its head anyway. With its records in the same bytes it needs no second write,
//! and a power loss leaves both or neither, because a head lies on one page. When the tail has no
//! room for new records, its old ones are written to the ring, and the next head carries only the
//! new ones.

use std::sync::Arc;

/// The most bytes that a head carries: a dozen small records.
pub(crate) const TAIL_SIZE: usize = 768;

/// The records between the end of what the ring has and the end of the log.
///
/// Heads are moved and cloned in every step, so clones of a tail share its bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tail {
    bytes: Option<Arc<[u8; TAIL_SIZE]>>,
    length: usize,
    /// CRC-32 of the records. Appending continues it, so that an append costs its own bytes only.
    sum: u32,
}

impl Tail {
    /// A tail without records.
    pub(crate) const EMPTY: Self = Self { bytes: None, length: 0, sum: 0 };

    /// Returns the records.
    pub(crate) fn records(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], |bytes| &bytes[..self.length])
    }

    /// Returns how many bytes the records have.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// Appends records. Returns `false`, and changes nothing, if there is no room for them.
    pub(crate) fn push(&mut self, records: &[u8]) -> bool {
        let end = self.length + records.len();
        if end > TAIL_SIZE || records.is_empty() {
            return records.is_empty();
        }
        let bytes = self.bytes.get_or_insert_with(|| Arc::new([0; TAIL_SIZE]));
        Arc::make_mut(bytes)[self.length..end].copy_from_slice(records);
        let mut sum = crc32fast::Hasher::new_with_initial_len(self.sum, self.length as u64);
        sum.update(records);
        (self.length, self.sum) = (end, sum.finalize());
        true
    }

    /// Returns the length and the checksum in one word, which the head stores.
    pub(crate) fn word(&self) -> u64 {
        (self.length as u64) << 32 | u64::from(self.sum)
    }

    /// Decodes a tail from the bytes that end where the head's own begin; `None` if they are not
    /// those that `word` was computed from.
    pub(crate) fn decode(word: u64, before_head: &[u8]) -> Option<Self> {
        let begin = before_head.len().checked_sub(usize::try_from(word >> 32).ok()?)?;
        let mut tail = Self::EMPTY;
        (tail.push(&before_head[begin..]) && tail.word() == word).then_some(tail)
    }
}

impl std::fmt::Debug for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail").field("length", &self.length).field("sum", &self.sum).finish()
    }
}

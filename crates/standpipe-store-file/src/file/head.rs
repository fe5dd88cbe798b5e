//! The head of a pool's file: the checkpoint that says which bytes of the file count.
//!
//! A file has two heads, written alternately, each with a checksum. They lie on two pages next to
//! each other, so that one read returns both and a torn page spoils at most one. Bytes in and out;
//! nothing here touches a file.
//!
//! ```text
//! tail       up to 768 bytes   the last records, see [`crate::file::tail`]; they end where the
//!                              rest begins, so that one write covers both
//! fields     240 bytes         everything below, the length and the checksum of the tail
//! checksum   8 bytes           of the fields
//! closing    8 bytes           follows from the number of the head
//! ```
//!
//! Every append writes a head, although the entries behind an older one would prove themselves by
//! length, checksum and chain. After a power loss any page of the log can be an old one. A chain
//! that ends at the edge of such a page looks complete; only a head shows that something followed.
//! With a head per append, a file in which anything newer survived is either complete or is
//! recognised as damaged.
//!
//! The closing word is written last. If one head is damaged, it shows whether that one can be the
//! later one: then an append whose process has its answer may be lost, and the file cannot be used.

use standpipe_core::Instant;
use standpipe_store::{Position, SnapshotId, hash};

use crate::file::tail::{TAIL_SIZE, Tail};
use crate::time::{ClockOrigin, LastStamp};

/// Where the two heads are: the last bytes of the first page and the first bytes of the second.
pub(crate) const HEADS_AT: u64 = 4_096 - HEAD_SIZE as u64;
/// The bytes of one head with a full tail.
pub(crate) const HEAD_SIZE: usize = TAIL_SIZE + FIELDS_SIZE + 16;
/// The bytes of the fields of a head.
const FIELDS_SIZE: usize = 240;
/// The bytes of the retired mark, directly before the heads: not zero in a file that a process
/// renamed because another one takes its place.
pub(crate) const MARK_SIZE: usize = 8;
pub(crate) const MARK_AT: u64 = HEADS_AT - MARK_SIZE as u64;
/// Where the log begins.
pub(crate) const LOG_AT: u64 = 8_192;

/// The sizes of the parts of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The log, in bytes.
    pub log: u64,
    /// Each of the two snapshot slots, in bytes.
    pub snapshot: u64,
}

impl Default for Sizes {
    /// A ledger at all its bounds at once fits, and the file has 6 MB.
    fn default() -> Self {
        Self { log: 512 << 10, snapshot: (6 << 20) / 2 - (512 << 10) / 2 - LOG_AT / 2 }
    }
}

/// Everything about a pool's file that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The number of this head. Of two valid heads the one with the greater number is the latest.
    pub(crate) sequence: u64,
    /// The semantics of the program that wrote the file.
    pub(crate) semantics: u32,
    /// The end of the log.
    pub(crate) end: LogOffset,
    /// The start of the first entry that is kept.
    pub(crate) base: LogOffset,
    /// The last stamp.
    pub(crate) stamp: Instant,
    /// The wall clock at the last stamp.
    pub(crate) wall: u64,
    /// How stamps follow from the boot-time clock.
    pub(crate) origin: ClockOrigin,
    /// The bytes of the log's ring.
    pub(crate) log_size: u64,
    /// The snapshot slots.
    pub(crate) slots: [SnapshotSlot; 2],
    /// Which slot has the latest snapshot, if there is one.
    pub(crate) latest_slot: Option<usize>,
    /// The inode of the file this head was written to, which identifies a copy; 0 in files of
    /// versions that did not record it.
    pub(crate) inode: u64,
    /// The records before the end that are not in the ring.
    pub(crate) tail: Tail,
}

/// The bytes of a head. They lie on one page of memory, where no write can be interrupted, and the
/// closing word is aligned, so that it is never written in part.
#[repr(align(1024))]
#[derive(Clone, Copy)]
pub(crate) struct HeadBytes(pub(crate) [u8; HEAD_SIZE]);

/// A position in the log and its byte offset, counted from the first byte ever written. The ring
/// holds offset `n` at `n % log_size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogOffset {
    pub(crate) position: Position,
    pub(crate) bytes: u64,
}

/// A place for a snapshot and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SnapshotSlot {
    /// Where the slot begins in the file.
    pub(crate) offset: u64,
    /// How many bytes fit.
    pub(crate) capacity: u64,
    /// The length of the snapshot; 0 means that the slot is empty.
    pub(crate) length: u64,
    /// The hash of the snapshot.
    pub(crate) hash: u64,
    /// The end of the log when the snapshot was taken.
    pub(crate) taken_at: LogOffset,
}

impl SnapshotSlot {
    /// Returns the position and hash of the snapshot.
    pub(crate) const fn id(&self) -> SnapshotId {
        SnapshotId { at: self.taken_at.position, hash: self.hash }
    }
}

impl Head {
    /// Returns the first head of a new file.
    pub(crate) fn first(sizes: Sizes, semantics: u32, last: LastStamp) -> Self {
        let slot =
            |offset| SnapshotSlot { offset, capacity: sizes.snapshot, ..SnapshotSlot::default() };
        let first = LOG_AT + sizes.log;
        Self {
            sequence: 1,
            semantics,
            end: LogOffset::default(),
            base: LogOffset::default(),
            stamp: last.stamp,
            wall: last.wall,
            origin: last.origin,
            log_size: sizes.log,
            slots: [slot(first), slot(first + sizes.snapshot)],
            latest_slot: None,
            inode: 0,
            tail: Tail::EMPTY,
        }
    }

    /// Returns the offset up to which the ring has the log. The tail has the rest.
    pub(crate) const fn ring_end(&self) -> u64 {
        self.end.bytes - self.tail.len() as u64
    }

    /// Returns the length of the file.
    pub(crate) fn file_size(&self) -> u64 {
        let ends = self.slots.iter().map(|slot| slot.offset + slot.capacity);
        ends.max().unwrap_or(0).max(LOG_AT + self.log_size)
    }

    /// Returns the slot with the latest snapshot.
    pub(crate) fn snapshot(&self) -> Option<&SnapshotSlot> {
        self.latest_slot.map(|latest| &self.slots[latest])
    }

    /// Returns the last stamp with the clocks at that moment.
    pub(crate) const fn last_stamp(&self) -> LastStamp {
        LastStamp { stamp: self.stamp, wall: self.wall, origin: self.origin }
    }

    /// Returns which of the two places in the file this head is written to.
    pub(crate) const fn file_offset(&self) -> u64 {
        HEADS_AT + (self.sequence % 2) * HEAD_SIZE as u64
    }

    /// Encodes the head. Its bytes are the last of those returned, from the first index on.
    pub(crate) fn encode(&self) -> (usize, HeadBytes) {
        let mut bytes = HeadBytes([0; HEAD_SIZE]);
        let (before, fields) = bytes.0.split_at_mut(TAIL_SIZE);
        let records = self.tail.records();
        let begin = TAIL_SIZE - records.len();
        before[begin..].copy_from_slice(records);
        let mut places = fields.chunks_exact_mut(8);
        let mut put = |words: &[u64]| {
            for (word, place) in words.iter().zip(&mut places) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        };
        put(&[
            self.sequence,
            u64::from(self.semantics),
            self.stamp.0,
            self.wall,
            self.origin.boot_id,
            self.origin.offset,
            self.log_size,
            self.latest_slot.map_or(0, |latest| latest as u64 + 1),
        ]);
        put(&self.end.words());
        put(&self.base.words());
        for slot in &self.slots {
            put(&[slot.offset, slot.capacity, slot.length, slot.hash]);
            put(&slot.taken_at.words());
        }
        put(&[self.inode, self.tail.word()]);
        let (sealed, closing) = fields.split_at_mut(FIELDS_SIZE + 8);
        seal(sealed);
        closing.copy_from_slice(&closing_of(self.sequence).to_le_bytes());
        (begin, bytes)
    }

    /// Decodes a head; `None` if a checksum does not match.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (before, fields) = bytes.split_at_checked(TAIL_SIZE)?;
        let (fields, closing) = fields.split_last_chunk::<8>()?;
        let (fields, sum) = fields.split_last_chunk::<8>()?;
        let right = hash(CHECKSUM_SEED, fields) == u64::from_le_bytes(*sum);
        if fields.len() != FIELDS_SIZE || !right {
            return None;
        }
        let mut words = fields.chunks_exact(8).map(word);
        let mut next = || words.next().unwrap_or(0);
        let (sequence, semantics) = (next(), u32::try_from(next()).ok()?);
        let (stamp, wall) = (Instant(next()), next());
        let origin = ClockOrigin { boot_id: next(), offset: next() };
        let (log_size, latest) = (next(), usize::try_from(next()).ok()?);
        let mut log_offset =
            || LogOffset { position: Position { number: next(), chain: next() }, bytes: next() };
        let (end, base) = (log_offset(), log_offset());
        let mut slot = || SnapshotSlot {
            offset: next(),
            capacity: next(),
            length: next(),
            hash: next(),
            taken_at: LogOffset {
                position: Position { number: next(), chain: next() },
                bytes: next(),
            },
        };
        let slots = [slot(), slot()];
        let latest_slot = latest.checked_sub(1).filter(|latest| *latest < slots.len());
        let (inode, tail) = (next(), Tail::decode(next(), before)?);
        let closed = u64::from_le_bytes(*closing) == closing_of(sequence);
        let head = Self {
            sequence,
            semantics,
            end,
            base,
            stamp,
            wall,
            origin,
            log_size,
            slots,
            latest_slot,
            inode,
            tail,
        };
        closed.then_some(head)
    }

    /// Whether the bytes of a damaged head cannot be a later head than this one that was completely
    /// written: the head before this one was the last that was completely written there.
    pub(crate) fn is_later_than(&self, damaged: &[u8]) -> bool {
        let closing = damaged.last_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        closing == Some(closing_of(self.sequence.wrapping_sub(1)))
    }
}

/// Returns the closing word of a head. Those of two heads differ in many bits, so that a flipped
/// bit never turns one into the other.
const fn closing_of(sequence: u64) -> u64 {
    sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ CHECKSUM_SEED
}

impl LogOffset {
    const fn words(&self) -> [u64; 3] {
        [self.position.number, self.position.chain, self.bytes]
    }
}

/// Writes the checksum of all bytes before it into the last eight.
pub(crate) fn seal(bytes: &mut [u8]) {
    let content = bytes.len() - 8;
    let sum = hash(CHECKSUM_SEED, &bytes[..content]);
    bytes[content..].copy_from_slice(&sum.to_le_bytes());
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// Not zero, so that a run of zeros has no valid checksum.
pub(crate) const CHECKSUM_SEED: u64 = 0x7374_616e_6470_6970;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::label::{Label, decode_label, encode_label};

    fn head() -> Head {
        let origin = ClockOrigin { boot_id: 3, offset: 4 };
        let last = LastStamp { stamp: Instant(5), wall: 6, origin };
        let mut head = Head::first(Sizes::default(), 1, last);
        head.end = LogOffset { position: Position { number: 6, chain: 7 }, bytes: 8 };
        head.slots[1].taken_at = head.end;
        (head.latest_slot, head.slots[1].length, head.slots[1].hash) = (Some(1), 9, 10);
        head.inode = 11;
        assert!(head.tail.push(b"the last records"));
        head
    }

    #[test]
    fn a_head_comes_back_and_every_flipped_bit_is_seen() {
        let (begin, HeadBytes(bytes)) = head().encode();
        assert_eq!(Head::decode(&bytes), Some(head()));
        for bit in begin * 8..HEAD_SIZE * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(Head::decode(&[0; HEAD_SIZE]), None);
    }

    /// A damaged head is used as if it were not there only if it was not the later one. A write
    /// that a kill cuts short leaves the end of the head before the valid one.
    #[test]
    fn a_damaged_head_that_may_be_the_later_one_is_not_ignored() {
        let numbered = |sequence| Head { sequence, ..head() };
        let latest = numbered(8);
        let (begin, HeadBytes(next)) = numbered(9).encode();
        let (_, HeadBytes(before)) = numbered(7).encode();
        for cut in (begin..HEAD_SIZE).step_by(8) {
            let mut torn = before;
            torn[begin..cut].copy_from_slice(&next[begin..cut]);
            assert!(latest.is_later_than(&torn), "cut at {cut}");
        }
        for bit in begin * 8..HEAD_SIZE * 8 {
            let mut flipped = next;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!latest.is_later_than(&flipped), "bit {bit}");
        }
        assert!(!latest.is_later_than(&[0; HEAD_SIZE]));
    }

    #[test]
    fn the_longest_name_fits_and_a_file_has_six_megabytes() {
        let long = format!("{}/{b}/{b}/{b}", "a".repeat(64), b = "b".repeat(128));
        let label = encode_label(&long.parse().unwrap());
        assert_eq!(decode_label(&label), Label::Pool(long));
        assert_eq!(head().file_size(), 6 << 20);
        assert!(HEADS_AT as usize + 2 * HEAD_SIZE <= LOG_AT as usize);
    }
}

//! The head of a pool's file: where everything in it is, and how far it goes.
//!
//! There are two, written alternately, each with a checksum, on two pages that one read covers. The
//! entry is written before the head that covers it, so a process killed at any instant leaves the
//! whole event or none. In front of them is a label that never changes: whose file this is.
//!
//! Plain bytes in and out; nothing here touches a file.

use standpipe_core::Instant;
use standpipe_store::{Mark, PoolName, Position, hash};

use crate::time::Origin;

/// Where the two heads are, on either side of the end of the first page.
pub(crate) const HEADS_AT: u64 = 4_096 - HEAD_SIZE as u64;
/// The bytes of one head.
pub(crate) const HEAD_SIZE: usize = 320;
/// Where the log begins.
pub(crate) const LOG_AT: u64 = 8_192;
/// The bytes of the label.
pub(crate) const LABEL_SIZE: usize = 1_024;

/// How the bytes of a file are laid out. Another number is another program's.
const FORMAT: u32 = 1;
const MAGIC: &[u8; 16] = b"standpipe pool\n\0";

/// How large the parts of a new file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The log, in bytes.
    pub log: u64,
    /// Each of the two places for a snapshot, in bytes.
    pub snapshot: u64,
}

impl Default for Sizes {
    /// All bounds of the ledger reached at once fit, and the file has 4 MB.
    fn default() -> Self {
        Self { log: 512 << 10, snapshot: (4 << 20) / 2 - (512 << 10) / 2 - LOG_AT / 2 }
    }
}

/// Everything that changes about a pool's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Counts the heads ever written; the greater counts.
    pub(crate) sequence: u64,
    pub(crate) semantics: u32,
    /// The end of the log.
    pub(crate) end: Spot,
    /// The first entry that is kept.
    pub(crate) base: Spot,
    /// The clock's last stamp, and what the wall clock showed then.
    pub(crate) stamp: Instant,
    pub(crate) wall: u64,
    pub(crate) origin: Origin,
    pub(crate) log_size: u64,
    /// The places for snapshots, and what they hold.
    pub(crate) slots: [Slot; 2],
    /// Which of them is the latest, if any is.
    pub(crate) latest: Option<usize>,
}

/// A place in the log and the bytes that were ever written before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) at: Position,
    pub(crate) bytes: u64,
}

/// A place for a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Where in the file, and how much room there is.
    pub(crate) offset: u64,
    pub(crate) room: u64,
    /// What it holds; a length of nothing means nothing.
    pub(crate) length: u64,
    pub(crate) hash: u64,
    /// What it is a snapshot of.
    pub(crate) of: Spot,
}

impl Slot {
    pub(crate) const fn mark(&self) -> Mark {
        Mark { at: self.of.at, hash: self.hash }
    }
}

impl Head {
    /// Of a new file.
    pub(crate) fn first(sizes: Sizes, semantics: u32, stamp: Instant, origin: Origin) -> Self {
        let slot = |offset| Slot { offset, room: sizes.snapshot, ..Slot::default() };
        let first = LOG_AT + sizes.log;
        Self {
            sequence: 1,
            semantics,
            end: Spot::default(),
            base: Spot::default(),
            stamp,
            wall: 0,
            origin,
            log_size: sizes.log,
            slots: [slot(first), slot(first + sizes.snapshot)],
            latest: None,
        }
    }

    /// How long the file is.
    pub(crate) fn file_size(&self) -> u64 {
        let ends = self.slots.iter().map(|slot| slot.offset + slot.room);
        ends.max().unwrap_or(0).max(LOG_AT + self.log_size)
    }

    /// The latest snapshot.
    pub(crate) fn snapshot(&self) -> Option<&Slot> {
        self.latest.map(|latest| &self.slots[latest])
    }

    /// Where its bytes are, of the two heads.
    pub(crate) const fn place(&self) -> u64 {
        HEADS_AT + (self.sequence % 2) * HEAD_SIZE as u64
    }

    pub(crate) fn encode(&self) -> [u8; HEAD_SIZE] {
        let mut words = vec![
            self.sequence,
            u64::from(self.semantics),
            self.stamp.0,
            self.wall,
            self.origin.boot_id,
            self.origin.offset,
            self.log_size,
            self.latest.map_or(0, |latest| latest as u64 + 1),
        ];
        words.extend(self.end.words());
        words.extend(self.base.words());
        for slot in &self.slots {
            words.extend([slot.offset, slot.room, slot.length, slot.hash]);
            words.extend(slot.of.words());
        }
        let mut bytes = [0; HEAD_SIZE];
        for (word, place) in words.iter().zip(bytes.chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        seal(&mut bytes);
        bytes
    }

    /// The head, if these bytes are one as it was written.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, sum) = bytes.split_last_chunk::<8>()?;
        if content.len() != HEAD_SIZE - 8 || hash(SEED, content) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut words = content.chunks_exact(8).map(word);
        let mut next = || words.next().unwrap_or(0);
        let (sequence, semantics) = (next(), u32::try_from(next()).ok()?);
        let (stamp, wall) = (Instant(next()), next());
        let origin = Origin { boot_id: next(), offset: next() };
        let (log_size, latest) = (next(), usize::try_from(next()).ok()?);
        let mut spot = || Spot { at: Position { number: next(), chain: next() }, bytes: next() };
        let (end, base) = (spot(), spot());
        let mut slot = || Slot {
            offset: next(),
            room: next(),
            length: next(),
            hash: next(),
            of: Spot { at: Position { number: next(), chain: next() }, bytes: next() },
        };
        let slots = [slot(), slot()];
        let latest = latest.checked_sub(1).filter(|latest| *latest < slots.len());
        Some(Self { sequence, semantics, end, base, stamp, wall, origin, log_size, slots, latest })
    }
}

impl Spot {
    const fn words(&self) -> [u64; 3] {
        [self.at.number, self.at.chain, self.bytes]
    }
}

/// Whose file it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// This pool's.
    Pool(String),
    /// Written by a later program.
    Newer(u32),
    /// Not a pool's, or not as it was written.
    Unreadable,
}

/// The label of a pool's file.
pub(crate) fn encode_label(pool: &PoolName) -> [u8; LABEL_SIZE] {
    let mut bytes = [0; LABEL_SIZE];
    let name = pool.as_str().as_bytes();
    bytes[..16].copy_from_slice(MAGIC);
    bytes[16..20].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[20..22].copy_from_slice(&u16::try_from(name.len()).unwrap_or(0).to_le_bytes());
    bytes[22..22 + name.len()].copy_from_slice(name);
    seal(&mut bytes);
    bytes
}

#[cfg(feature = "harm")]
pub(crate) fn pretend_format(bytes: &mut [u8], format: u32) {
    bytes[16..20].copy_from_slice(&format.to_le_bytes());
    seal(&mut bytes[..LABEL_SIZE]);
}

/// Writes the checksum at the end.
fn seal(bytes: &mut [u8]) {
    let content = bytes.len() - 8;
    let sum = hash(SEED, &bytes[..content]);
    bytes[content..].copy_from_slice(&sum.to_le_bytes());
}

pub(crate) fn decode_label(bytes: &[u8]) -> Label {
    let whole = |bytes: &[u8]| {
        let (content, sum) = bytes.split_last_chunk::<8>()?;
        let right = content.len() == LABEL_SIZE - 8
            && content.starts_with(MAGIC)
            && hash(SEED, content) == u64::from_le_bytes(*sum);
        right.then(|| content.to_vec())
    };
    let Some(content) = whole(bytes) else { return Label::Unreadable };
    let format = u32::from_le_bytes(content[16..20].try_into().unwrap_or_default());
    if format > FORMAT {
        return Label::Newer(format);
    }
    let length = usize::from(u16::from_le_bytes(content[20..22].try_into().unwrap_or_default()));
    let name = content.get(22..22 + length).and_then(|name| std::str::from_utf8(name).ok());
    name.map_or(Label::Unreadable, |name| Label::Pool(name.to_owned()))
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// So that a run of zeros is no head.
const SEED: u64 = 0x7374_616e_6470_6970;

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let origin = Origin { boot_id: 3, offset: 4 };
        let mut head = Head::first(Sizes::default(), 1, Instant(5), origin);
        head.end = Spot { at: Position { number: 6, chain: 7 }, bytes: 8 };
        head.slots[1].of = head.end;
        (head.latest, head.slots[1].length, head.slots[1].hash) = (Some(1), 9, 10);
        head
    }

    #[test]
    fn a_head_comes_back_and_every_flipped_bit_is_seen() {
        let bytes = head().encode();
        assert_eq!(Head::decode(&bytes), Some(head()));
        for bit in 0..HEAD_SIZE * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(Head::decode(&[0; HEAD_SIZE]), None);
    }

    #[test]
    fn a_label_comes_back_and_every_flipped_bit_is_seen() {
        let pool: PoolName = "anthropic/sonnet".parse().unwrap();
        let bytes = encode_label(&pool);
        assert_eq!(decode_label(&bytes), Label::Pool("anthropic/sonnet".to_owned()));
        for bit in 0..LABEL_SIZE * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_label(&flipped), Label::Unreadable, "bit {bit}");
        }
    }

    #[test]
    fn the_longest_name_fits_and_a_file_has_four_megabytes() {
        let long = format!("{}/{b}/{b}/{b}", "a".repeat(64), b = "b".repeat(128));
        let label = encode_label(&long.parse().unwrap());
        assert_eq!(decode_label(&label), Label::Pool(long));
        assert_eq!(head().file_size(), 4 << 20);
        assert!(HEADS_AT as usize + 2 * HEAD_SIZE <= LOG_AT as usize);
    }
}

//! An open pool file: reading and writing its label, heads, log and snapshots.
//!
//! This module has the layout, not the order of reads and writes: that is in [`crate::log`] and
//! [`crate::file::append`]. A read beyond the end of the file returns zeros, which no checksum
//! accepts, so a truncated file is damage like any other. Nothing is mapped, so truncation never
//! raises `SIGBUS`.

use std::fs::File;
use std::io;
use std::mem;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standpipe_store::{Snapshot, entry, layout};
use standpipe_sys::UnsharedFile;

use crate::file::head::{
    HEAD_SIZE, Head, HeadBytes, LOG_AT, LogOffset, MARK_AT, MARK_SIZE, SnapshotSlot,
};
use crate::file::label::{LABEL_SIZE, Label, decode_label};
use crate::sys;

/// The bytes of the chain hash behind an entry.
pub(crate) const CHAIN_SIZE: usize = 8;

/// An open pool file.
#[derive(Debug)]
pub(crate) struct PoolFile {
    pub(crate) file: UnsharedFile,
    device: u64,
    inode: u64,
    /// The heads as this process last read or wrote them. Equal bytes need not be decoded again.
    known: Mutex<KnownHeads>,
}

/// The heads as they were last read or written.
#[derive(Debug, Default)]
struct KnownHeads {
    /// The later of two consecutive heads; `None` if it is not known.
    head: Option<Arc<Head>>,
    /// The bytes of both heads, while `head` is set.
    raw: Box<RawHeads>,
    /// Where the heads are read to, kept because clearing a new buffer costs as much as reading.
    buffer: Box<RawHeads>,
}

/// The retired mark and both heads of a file, as they were read.
#[derive(Debug, PartialEq, Eq)]
struct RawHeads([u8; MARK_SIZE + 2 * HEAD_SIZE]);

/// The two heads of a file, decoded.
pub(crate) enum Heads {
    /// Both are valid and have consecutive numbers. This is the later one.
    Consecutive(Arc<Head>),
    /// Both are valid but their numbers are not consecutive: at least one of them is not the last
    /// head written in its place, as after a power loss. This is the later one.
    Inconsistent(Arc<Head>),
    /// One has a wrong checksum and is not the later one, or was not completely written: a process
    /// was killed meanwhile. This is the other one.
    OneValid(Arc<Head>),
    /// One has a wrong checksum and may be the later one. This is the other one.
    LatestDamaged(Arc<Head>),
    /// Both have a wrong checksum.
    NoneValid,
}

/// A record of the log: an entry and the chain hash after it.
pub(crate) struct Record<'a> {
    pub(crate) entry: entry::Entry<'a>,
    /// The chain hash as it was written.
    pub(crate) chain: u64,
    /// The bytes of the whole record.
    pub(crate) length: usize,
}

impl PoolFile {
    /// Opens the pool file at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::open_by(|| sys::file::open_noatime(path))
    }

    /// Opens the file that `open` opens or creates.
    pub(crate) fn open_by(open: impl FnOnce() -> io::Result<File>) -> io::Result<Self> {
        let file = UnsharedFile::open(open)?;
        let meta = file.metadata()?;
        let known = Mutex::default();
        Ok(Self { file, device: meta.dev(), inode: meta.ino(), known })
    }

    /// Whether `path` still names this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        sys::file::identity(path).is_ok_and(|identity| identity == (self.device, self.inode))
    }

    /// Reads the label.
    pub(crate) fn label(&self) -> io::Result<Label> {
        let mut bytes = [0; LABEL_SIZE];
        self.read_at(&mut bytes, 0)?;
        Ok(decode_label(&bytes))
    }

    /// Returns how many names the file has; `None` if the system does not say.
    pub(crate) fn link_count(&self) -> Option<u64> {
        sys::file::link_count(&self.file).ok()
    }

    /// Reads both heads.
    pub(crate) fn heads(&self) -> io::Result<Heads> {
        self.read_heads().map(|(heads, _)| heads)
    }

    /// Reads both heads and whether the retired mark is set, which is a hint to look at the path.
    pub(crate) fn read_heads(&self) -> io::Result<(Heads, bool)> {
        let mut guard = self.known();
        let known = &mut *guard;
        self.read_at(&mut known.buffer.0, MARK_AT)?;
        let retired = known.buffer.is_retired();
        if let Some(head) = known.head.as_ref().filter(|_| known.raw == known.buffer) {
            return Ok((Heads::Consecutive(Arc::clone(head)), retired));
        }
        let heads = known.buffer.decode();
        known.head = match &heads {
            Heads::Consecutive(head) => Some(Arc::clone(head)),
            _ => None,
        };
        mem::swap(&mut known.raw, &mut known.buffer);
        Ok((heads, retired))
    }

    /// Sets or clears the mark that this file is no longer the pool's.
    pub(crate) fn mark_retired(&self, retired: bool) -> io::Result<()> {
        self.file.write_all_at(&[u8::from(retired); MARK_SIZE], MARK_AT)
    }

    /// Writes a head to the place that its number selects.
    pub(crate) fn write_head(&self, head: &mut Arc<Head>) -> io::Result<()> {
        if head.inode != self.inode {
            Arc::make_mut(head).inode = self.inode;
        }
        let (begin, HeadBytes(bytes)) = head.encode();
        let mut known = self.known();
        // A write that fails may have written a part.
        let before = known.head.take().filter(|before| before.sequence + 1 == head.sequence);
        self.file.write_all_at(&bytes[begin..], head.file_offset() + begin as u64)?;
        if before.is_some() {
            known.raw.replace(head.file_offset() + begin as u64, &bytes[begin..]);
            known.head = Some(Arc::clone(head));
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, KnownHeads> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this file is a copy of the one that the head was written to.
    pub(crate) const fn is_copy(&self, head: &Head) -> bool {
        head.inode != 0 && head.inode != self.inode
    }

    /// Reads the bytes of the log between two offsets that the head covers.
    pub(crate) fn read_log(&self, head: &Head, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let ring_end = head.ring_end();
        let mut bytes = self.read_ring(head, from, to.min(ring_end))?;
        let index = |offset: u64| usize::try_from(offset.saturating_sub(ring_end)).ok();
        let carried = head.tail.records();
        let range = index(from).zip(index(to)).map(|(from, to)| from..to.min(carried.len()));
        bytes.extend_from_slice(range.and_then(|range| carried.get(range)).unwrap_or_default());
        Ok(bytes)
    }

    /// Reads the bytes of the ring between two offsets. Behind [`Head::ring_end`] it has whatever
    /// was written there before.
    pub(crate) fn read_ring(&self, head: &Head, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let length = to.saturating_sub(from).min(head.log_size);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let (begin, first) = ring_span(head, from, bytes.len());
        let (before, wrapped) = bytes.split_at_mut(first);
        self.read_at(before, begin)?;
        self.read_at(wrapped, LOG_AT)?;
        Ok(bytes)
    }

    /// Writes bytes to the ring at an offset.
    pub(crate) fn write_ring(&self, head: &Head, at: u64, bytes: &[u8]) -> io::Result<()> {
        let (begin, first) = ring_span(head, at, bytes.len());
        let (before, wrapped) = bytes.split_at(first);
        self.file.write_all_at(before, begin)?;
        if wrapped.is_empty() { Ok(()) } else { self.file.write_all_at(wrapped, LOG_AT) }
    }

    /// Reads the snapshot in a slot. The caller verifies its hash.
    pub(crate) fn snapshot(&self, slot: &SnapshotSlot) -> io::Result<Snapshot> {
        let length = usize::try_from(slot.length.min(slot.capacity)).unwrap_or(0);
        let mut bytes = vec![0; length];
        self.read_at(&mut bytes, slot.offset)?;
        Ok(Snapshot { id: slot.id(), bytes })
    }

    /// Fills `bytes` from an offset of the file. Bytes beyond the end of the file are zero.
    fn read_at(&self, bytes: &mut [u8], mut at: u64) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.read_at(rest, at) {
                Ok(0) => {
                    rest.fill(0);
                    return Ok(());
                }
                Ok(read) => {
                    at += read as u64;
                    rest = &mut rest[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Default for RawHeads {
    fn default() -> Self {
        Self([0; MARK_SIZE + 2 * HEAD_SIZE])
    }
}

impl RawHeads {
    fn is_retired(&self) -> bool {
        self.0[..MARK_SIZE] != [0; MARK_SIZE]
    }

    fn decode(&self) -> Heads {
        let (first, second) = self.0[MARK_SIZE..].split_at(HEAD_SIZE);
        match (Head::decode(first).map(Arc::new), Head::decode(second).map(Arc::new)) {
            (Some(first), Some(second)) => {
                let consecutive = first.sequence.abs_diff(second.sequence) == 1;
                let later = if first.sequence > second.sequence { first } else { second };
                if consecutive { Heads::Consecutive(later) } else { Heads::Inconsistent(later) }
            }
            (Some(valid), None) if valid.is_later_than(second) => Heads::OneValid(valid),
            (None, Some(valid)) if valid.is_later_than(first) => Heads::OneValid(valid),
            (Some(valid), None) | (None, Some(valid)) => Heads::LatestDamaged(valid),
            (None, None) => Heads::NoneValid,
        }
    }

    /// Puts bytes in their place that were just written to an offset of the file.
    fn replace(&mut self, offset: u64, bytes: &[u8]) {
        let at = usize::try_from(offset - MARK_AT).unwrap_or(MARK_SIZE);
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Returns where in the file a log offset is, and how many of `length` bytes fit before the ring
/// wraps.
fn ring_span(head: &Head, at: u64, length: usize) -> (u64, usize) {
    let size = head.log_size.max(1);
    let until_wrap = usize::try_from(size - at % size).unwrap_or(usize::MAX);
    (LOG_AT + at % size, length.min(until_wrap))
}

/// Splits off the first record and verifies the checksum of its entry.
pub(crate) fn split_record(bytes: &[u8]) -> Result<(Record<'_>, &[u8]), entry::Damaged> {
    let (entry, rest) = entry::take(bytes)?;
    let truncated = entry::Damaged { what: "the end of an entry" };
    let (chain, rest) = rest.split_first_chunk::<CHAIN_SIZE>().ok_or(truncated)?;
    let length = bytes.len() - rest.len();
    Ok((Record { entry, chain: u64::from_le_bytes(*chain), length }, rest))
}

/// Returns the entries of a run of records, without the chain hashes between them.
///
/// Only lengths are read: the replica that applies the entries verifies them. Bytes that cannot be
/// split into records are passed on unchanged, so that the replica finds the damage.
pub(crate) fn entries_of(records: &[u8]) -> Vec<u8> {
    let mut entries = Vec::with_capacity(records.len());
    let mut rest = records;
    while let Some(length) = layout::take_number(rest).ok().and_then(|(body, behind)| {
        let before = rest.len() - behind.len() + entry::STAMP_AND_CHECKSUM;
        before.checked_add(usize::try_from(body).ok()?)
    }) {
        let Some(with_chain) = length.checked_add(CHAIN_SIZE).filter(|end| *end <= rest.len())
        else {
            break;
        };
        entries.extend_from_slice(&rest[..length]);
        rest = &rest[with_chain..];
    }
    entries.extend_from_slice(rest);
    entries
}

/// Whether the record that ends at `offset` has the chain hash of that position.
pub(crate) fn chain_matches(file: &PoolFile, head: &Head, offset: LogOffset) -> io::Result<bool> {
    let bytes =
        file.read_log(head, offset.bytes.saturating_sub(CHAIN_SIZE as u64), offset.bytes)?;
    Ok(bytes == offset.position.chain.to_le_bytes())
}

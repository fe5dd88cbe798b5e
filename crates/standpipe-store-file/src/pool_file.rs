//! One pool's file, open: reading and writing its parts.
//!
//! ```text
//! label      whose file it is; never changes
//! two heads  see `head.rs`
//! log        a ring of records: an entry, then the chain up to its end
//! two places for snapshots
//! ```
//!
//! It knows the layout, not the order of steps: that is in `log.rs`. Reads beyond the end of the
//! file give zeros, which no checksum accepts, so a file cut short is damage like any other.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use standpipe_store::{Snapshot, entry, layout};

use crate::head::{HEAD_SIZE, HEADS_AT, Head, LABEL_SIZE, LOG_AT, Label, Slot, Spot, decode_label};
use crate::sys;

/// What the chain behind an entry takes.
pub(crate) const CHAIN: usize = 8;

/// A pool's file, open.
#[derive(Debug)]
pub(crate) struct PoolFile {
    pub(crate) file: File,
    device: u64,
    inode: u64,
}

/// The two heads as they were read.
pub(crate) enum Heads {
    /// Both are whole; this is the later one.
    Whole(Head),
    /// One is not as it was written, and the other is this.
    One(Head),
    /// Neither is as it was written.
    None,
}

/// A record that was found in the log.
pub(crate) struct Record<'a> {
    pub(crate) entry: entry::Entry<'a>,
    /// The chain up to its end, as written.
    pub(crate) chain: u64,
    /// Its length with everything.
    pub(crate) length: usize,
}

impl PoolFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::of(sys::open_quietly(path)?)
    }

    pub(crate) fn of(file: File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self { file, device: meta.dev(), inode: meta.ino() })
    }

    /// Whether it is still the file at its path.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        sys::identity(path).is_ok_and(|identity| identity == (self.device, self.inode))
    }

    pub(crate) fn label(&self) -> io::Result<Label> {
        let mut bytes = [0; LABEL_SIZE];
        self.read_at(&mut bytes, 0)?;
        Ok(decode_label(&bytes))
    }

    pub(crate) fn heads(&self) -> io::Result<Heads> {
        let mut bytes = [0; 2 * HEAD_SIZE];
        self.read_at(&mut bytes, HEADS_AT)?;
        let (first, second) = bytes.split_at(HEAD_SIZE);
        Ok(match (Head::decode(first), Head::decode(second)) {
            (Some(first), Some(second)) if first.sequence > second.sequence => Heads::Whole(first),
            (Some(_), Some(second)) => Heads::Whole(second),
            (Some(one), None) | (None, Some(one)) => Heads::One(one),
            (None, None) => Heads::None,
        })
    }

    pub(crate) fn write_head(&self, head: &Head) -> io::Result<()> {
        self.file.write_all_at(&head.encode(), head.place())
    }

    /// The bytes of the log between two places.
    pub(crate) fn read_log(&self, head: &Head, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let length = to.saturating_sub(from).min(head.log_size);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let (begin, first) = ring(head, from, bytes.len());
        let (before, behind) = bytes.split_at_mut(first);
        self.read_at(before, begin)?;
        self.read_at(behind, LOG_AT)?;
        Ok(bytes)
    }

    /// Writes bytes to the log.
    pub(crate) fn write_log(&self, head: &Head, at: u64, bytes: &[u8]) -> io::Result<()> {
        let (begin, first) = ring(head, at, bytes.len());
        let (before, behind) = bytes.split_at(first);
        self.file.write_all_at(before, begin)?;
        if behind.is_empty() { Ok(()) } else { self.file.write_all_at(behind, LOG_AT) }
    }

    /// The snapshot in a place. Whether it is as it was written is for its reader to see.
    pub(crate) fn snapshot(&self, slot: &Slot) -> io::Result<Snapshot> {
        let length = usize::try_from(slot.length.min(slot.room)).unwrap_or(0);
        let mut bytes = vec![0; length];
        self.read_at(&mut bytes, slot.offset)?;
        Ok(Snapshot { mark: slot.mark(), bytes })
    }

    /// What is not there reads as zeros.
    fn read_at(&self, bytes: &mut [u8], mut at: u64) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.read_at(rest, at) {
                Ok(0) => return Ok(()),
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

/// Where in the file a place of the log is, and how many bytes fit before the ring begins anew.
fn ring(head: &Head, at: u64, length: usize) -> (u64, usize) {
    let size = head.log_size.max(1);
    let before_the_end = usize::try_from(size - at % size).unwrap_or(usize::MAX);
    (LOG_AT + at % size, length.min(before_the_end))
}

/// Reads the record at the front, checksum and all.
pub(crate) fn take_record(bytes: &[u8]) -> Result<(Record<'_>, &[u8]), entry::Damaged> {
    let (entry, rest) = entry::take(bytes)?;
    let cut = entry::Damaged { what: "the end of an entry" };
    let (chain, rest) = rest.split_first_chunk::<CHAIN>().ok_or(cut)?;
    let length = bytes.len() - rest.len();
    Ok((Record { entry, chain: u64::from_le_bytes(*chain), length }, rest))
}

/// The entries in a stretch of the log, one behind the other, without the chains between them.
///
/// Only lengths are looked at: whoever applies the entries checks them. What cannot be cut into
/// records is handed on as it is, for them to find.
pub(crate) fn entries(records: &[u8]) -> Vec<u8> {
    let mut entries = Vec::with_capacity(records.len());
    let mut rest = records;
    while let Some(length) = layout::take_number(rest).ok().and_then(|(body, behind)| {
        let before = rest.len() - behind.len() + entry::STAMP_AND_CHECKSUM;
        before.checked_add(usize::try_from(body).ok()?)
    }) {
        let Some(with_chain) = length.checked_add(CHAIN).filter(|end| *end <= rest.len()) else {
            break;
        };
        entries.extend_from_slice(&rest[..length]);
        rest = &rest[with_chain..];
    }
    entries.extend_from_slice(rest);
    entries
}

/// A place in the log and whether the record that ends there says so.
pub(crate) fn chain_before(file: &PoolFile, head: &Head, spot: Spot) -> io::Result<bool> {
    let bytes = file.read_log(head, spot.bytes.saturating_sub(CHAIN as u64), spot.bytes)?;
    Ok(bytes == spot.at.chain.to_le_bytes())
}

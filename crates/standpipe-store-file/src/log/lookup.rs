//! Finding a position in the file, and choosing what to read for it.

use standpipe_store::{Log, Position, StoreError, entry};

use super::FileLog;
use crate::file::head::{Head, LogOffset, SnapshotSlot};
use crate::file::pool_file::{Heads, PoolFile, Record, chain_matches, split_record};

/// The result of looking for a position in the log.
pub(super) enum Lookup {
    /// The position is at this offset.
    At(LogOffset),
    /// The entries there were trimmed.
    Trimmed,
    /// The log has other entries there: it lost some and continued, in the same file.
    Forked,
    /// The file was replaced since the position was read.
    Replaced,
}

/// The part of the file that answers a read: a snapshot, perhaps, and all entries from an offset.
pub(super) struct ReadRange {
    /// The slot of the snapshot.
    pub(super) snapshot: Option<usize>,
    pub(super) begin: LogOffset,
}

impl ReadRange {
    /// Chooses the shorter of two answers: all entries since the position, or the latest snapshot
    /// and the entries after it.
    pub(super) fn choose(head: &Head, found: &Lookup) -> Self {
        let latest = head.latest_slot.map(|slot| (slot, &head.slots[slot]));
        match (found, latest) {
            (Lookup::At(offset), Some((slot, snapshot)))
                if head.end.bytes - offset.bytes
                    > snapshot.length.saturating_add(head.end.bytes - snapshot.taken_at.bytes) =>
            {
                Self { snapshot: Some(slot), begin: snapshot.taken_at }
            }
            (Lookup::At(offset), _) => Self { snapshot: None, begin: *offset },
            (_, Some((slot, snapshot))) => Self { snapshot: Some(slot), begin: snapshot.taken_at },
            (_, None) => Self { snapshot: None, begin: head.base },
        }
    }

    /// Whether the head itself carries this range, so that it is not read from the file.
    pub(super) fn is_in_head(&self, head: &Head) -> bool {
        self.snapshot.is_none() && self.begin.bytes >= head.ring_end()
    }

    /// Whether nobody overwrote this range while it was read without the lock.
    ///
    /// No process writes bytes that the latest head covers, so it is enough that the latest head
    /// still covers the range.
    pub(super) fn is_still_covered(&self, file: &PoolFile, head: &Head) -> bool {
        let Ok(Heads::Consecutive(now)) = file.heads() else { return false };
        let same = |slot| now.latest_slot == Some(slot) && now.slots[slot] == head.slots[slot];
        self.snapshot.is_none_or(same) && now.base.bytes <= self.begin.bytes
    }
}

impl FileLog {
    /// Finds a position; [`Lookup::Replaced`] if the file was replaced since the last answer.
    pub(super) fn locate_from(
        &mut self,
        file: &PoolFile,
        head: &Head,
        from: Position,
    ) -> Result<Lookup, StoreError> {
        match std::mem::take(&mut self.replaced) && from != Position::START {
            true => Ok(Lookup::Replaced),
            false => self.locate(file, head, from),
        }
    }

    /// Finds a position in the log.
    ///
    /// The head names the offsets of the base, the end and the snapshots, and this process
    /// remembers where it read to. Only a position that is none of these is searched for.
    pub(super) fn locate(
        &self,
        file: &PoolFile,
        head: &Head,
        from: Position,
    ) -> Result<Lookup, StoreError> {
        if from.number > head.end.position.number {
            return Ok(Lookup::Forked);
        }
        if from.number < head.base.position.number {
            return Ok(Lookup::Trimmed);
        }
        let kept = |slot: &&SnapshotSlot| slot.length > 0 && slot.taken_at.bytes >= head.base.bytes;
        let snapshots = head.slots.iter().filter(kept).map(|slot| slot.taken_at);
        let mut nearest = head.base;
        for offset in snapshots.chain([head.base, head.end]) {
            if offset.position == from {
                return Ok(Lookup::At(offset));
            }
            if offset.position.number == from.number {
                return Ok(Lookup::Forked);
            }
            if offset.position.number < from.number
                && offset.position.number > nearest.position.number
            {
                nearest = offset;
            }
        }
        if let Some(known) = self.last_end.filter(|known| known.position == from)
            && (head.base.bytes..head.end.bytes).contains(&known.bytes)
            && chain_matches(file, head, known).map_err(|error| self.io_error("read", error))?
        {
            return Ok(Lookup::At(known));
        }
        self.scan(file, head, nearest, from)
    }

    /// Scans from a known offset to a position and verifies every record on the way.
    fn scan(
        &self,
        file: &PoolFile,
        head: &Head,
        mut offset: LogOffset,
        to: Position,
    ) -> Result<Lookup, StoreError> {
        let bytes = file.read_log(head, offset.bytes, head.end.bytes);
        let bytes = bytes.map_err(|error| self.io_error("read", error))?;
        let mut rest = bytes.as_slice();
        while offset.position.number < to.number {
            let passed = split_record(rest)
                .and_then(|(record, behind)| Ok((self.advance(offset, &record)?, behind)));
            // Damage after the latest snapshot is found by the replica that applies the entries.
            // Damage before it only means that this process has to load the snapshot.
            let Ok((next, behind)) = passed else { return Ok(Lookup::Trimmed) };
            (offset, rest) = (next, behind);
        }
        Ok(if offset.position == to { Lookup::At(offset) } else { Lookup::Forked })
    }

    /// Returns the offset after a record; fails if the record's chain hash does not follow.
    pub(crate) fn advance(
        &self,
        offset: LogOffset,
        record: &Record<'_>,
    ) -> Result<LogOffset, entry::Damaged> {
        let chain = self.chain(offset.position.chain, record.entry.stamp, record.entry.body);
        if chain != record.chain {
            return Err(entry::Damaged { what: "the chain behind an entry" });
        }
        let position = Position { number: offset.position.number + 1, chain };
        Ok(LogOffset { position, bytes: offset.bytes + record.length as u64 })
    }
}

//! Appending entries and storing snapshots, with the lock held.
//!
//! Invariant: no byte that the latest head covers is written. New entries are written with the head
//! that covers them, in one write, or to the ring before it; bytes that are given up are uncovered
//! by a head before they are overwritten. A process killed between two writes leaves the state of
//! the last head.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use standpipe_core::Instant;
use standpipe_store::{Log, Snapshot, StoreError, entry};

use crate::file::head::{Head, LogOffset, SnapshotSlot};
use crate::file::pool_file::PoolFile;
use crate::file::tail::{TAIL_SIZE, Tail};
use crate::log::FileLog;
use crate::sys;
use crate::testing::failpoint;

impl FileLog {
    /// Appends entries, stamped with the present time, and writes the head. Returns the new head.
    pub(crate) fn append_entries(
        &self,
        file: &PoolFile,
        head: &Head,
        bodies: &[Vec<u8>],
    ) -> Result<Arc<Head>, StoreError> {
        self.append_entries_at(file, head, bodies, self.store.time.now(head.origin))
    }

    /// Appends entries stamped with `now`, or with the last stamp if that is later.
    ///
    /// This is the only place that computes checksum and chain of an own entry.
    pub(crate) fn append_entries_at(
        &self,
        file: &PoolFile,
        head: &Head,
        bodies: &[Vec<u8>],
        now: Instant,
    ) -> Result<Arc<Head>, StoreError> {
        let mut shared = Arc::new(head.clone());
        let next = Arc::make_mut(&mut shared);
        next.stamp = head.stamp.max(now);
        next.wall = self.store.time.wall_for(next.stamp, head.last_stamp());
        let mut records = Vec::with_capacity(bodies.iter().map(|body| body.len() + 24).sum());
        for body in bodies {
            next.end.position.chain = self.chain(next.end.position.chain, next.stamp, body);
            next.end.position.number += 1;
            entry::put(next.stamp, body, &mut records);
            records.extend_from_slice(&next.end.position.chain.to_le_bytes());
        }
        next.end.bytes += records.len() as u64;
        self.trim_if_full(file, head, next)?;
        if !next.tail.push(&records) {
            // The ring gets no entry before a head covers it, unless no head can carry it: an entry
            // there that is newer than both heads shows that a power loss took a head.
            let carried = records.len() <= TAIL_SIZE;
            let with_it: &[u8] = if carried { &[] } else { &records };
            self.write_tail(file, next, head.ring_end(), with_it)?;
            failpoint::reach("entry written");
            next.tail.push(if carried { &records } else { &[] });
        }
        self.write_next_head(file, &mut shared)?;
        Ok(shared)
    }

    /// Writes the records that a head carries to the ring, where they begin at `begin`, with those
    /// after them, and empties its tail.
    pub(crate) fn write_tail(
        &self,
        file: &PoolFile,
        head: &mut Head,
        begin: u64,
        after: &[u8],
    ) -> Result<(), StoreError> {
        let records = [head.tail.records(), after].concat();
        head.tail = Tail::EMPTY;
        let written = file.write_ring(head, begin, &records);
        written.map_err(|error| self.io_error("write", error))
    }

    /// Gives `next` the next number and writes it in the place of the older head.
    pub(crate) fn write_next_head(
        &self,
        file: &PoolFile,
        next: &mut Arc<Head>,
    ) -> Result<(), StoreError> {
        Arc::make_mut(next).sequence += 1;
        file.write_head(next).map_err(|error| self.io_error("write", error))?;
        failpoint::reach("head written");
        Ok(())
    }

    /// Trims the log to the latest snapshot if the ring has no room for `next`.
    ///
    /// A head with the new base is written before the entries that overwrite the trimmed ones:
    /// otherwise a kill in between would leave a head that covers overwritten bytes.
    fn trim_if_full(
        &self,
        file: &PoolFile,
        head: &Head,
        next: &mut Head,
    ) -> Result<(), StoreError> {
        let fits = |head: &Head| head.end.bytes - head.base.bytes <= head.log_size;
        if fits(next) {
            return Ok(());
        }
        if let Some(latest) = next.snapshot() {
            next.base = latest.taken_at;
        }
        if !fits(next) {
            return Err(StoreError::transient(format!(
                "the log of `{}` is full and no snapshot could be written; free disk space, or \
                 `standpipe store reset {}`",
                self.pool, self.pool
            )));
        }
        let mut trimmed = Arc::new(Head { base: next.base, ..head.clone() });
        self.write_next_head(file, &mut trimmed)?;
        next.sequence = trimmed.sequence;
        Ok(())
    }

    /// Stores a snapshot in the slot of the older one and trims the log to the previous snapshot.
    ///
    /// The previous snapshot and the entries after it stay, so that a process that reads them
    /// without the lock can finish.
    pub(crate) fn store_snapshot(
        &self,
        file: &PoolFile,
        head: &Head,
        taken_at: LogOffset,
        snapshot: &Snapshot,
    ) -> Result<Arc<Head>, StoreError> {
        let mut next = head.clone();
        let into = head.latest_slot.map_or(0, |latest| 1 - latest);
        let length = snapshot.bytes.len() as u64;
        if length > next.slots[into].capacity {
            // Only texts of maximal length at all bounds of the ledger at once exceed the default
            // capacity. The slot moves to the end of the file.
            let offset = next.file_size();
            let capacity = length + length / 2;
            let grown = sys::file::preallocate(&file.file, offset + capacity);
            grown.map_err(|error| self.io_error("enlarge", error))?;
            (next.slots[into].offset, next.slots[into].capacity) = (offset, capacity);
        }
        let offset = next.slots[into].offset;
        let written = file.file.write_all_at(&snapshot.bytes, offset);
        written.map_err(|error| self.io_error("write", error))?;
        failpoint::reach("snapshot written");
        let slot = SnapshotSlot { length, hash: snapshot.id.hash, taken_at, ..next.slots[into] };
        if let Some(previous) = head.snapshot() {
            next.base = previous.taken_at;
        }
        (next.slots[into], next.latest_slot) = (slot, Some(into));
        let mut next = Arc::new(next);
        self.write_next_head(file, &mut next)?;
        failpoint::reach("snapshot published");
        Ok(next)
    }
}

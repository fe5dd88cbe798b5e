//! Writing to a pool's file, inside a step: entries, snapshots, and the heads that cover them.
//!
//! Invariant: nothing that the latest head covers is written. What is new is written first, then
//! the head that covers it; what is let go is said in a head before it is written over.

use standpipe_store::{Log, Snapshot, StoreError, entry};

use crate::head::{Head, Slot, Spot};
use crate::log::FileLog;
use crate::point;
use crate::pool_file::PoolFile;
use crate::sys;

impl FileLog {
    /// Appends bodies behind all others and writes the head. Inside a step.
    pub(crate) fn put(
        &self,
        file: &PoolFile,
        head: &Head,
        bodies: &[Vec<u8>],
    ) -> Result<(Head, Vec<u8>), StoreError> {
        let mut next = head.clone();
        next.stamp = head.stamp.max(self.store.time.now(head.origin));
        next.wall = self.store.time.wall();
        let mut records = Vec::with_capacity(bodies.iter().map(|body| body.len() + 24).sum());
        for body in bodies {
            next.end.at.chain = self.chain(next.end.at.chain, next.stamp, body);
            next.end.at.number += 1;
            entry::put(next.stamp, body, &mut records);
            records.extend_from_slice(&next.end.at.chain.to_le_bytes());
        }
        next.end.bytes += records.len() as u64;
        self.make_room(file, head, &mut next)?;
        let written = file.write_log(&next, head.end.bytes, &records);
        written.map_err(|error| self.cannot("write", error))?;
        point::reach("entry written");
        self.finish(file, &mut next)?;
        Ok((next, records))
    }

    /// Writes a head behind the one it was made from.
    pub(crate) fn finish(&self, file: &PoolFile, next: &mut Head) -> Result<(), StoreError> {
        next.sequence += 1;
        file.write_head(next).map_err(|error| self.cannot("write", error))?;
        point::reach("head written");
        Ok(())
    }

    /// Lets go of what the ring has no room for: everything before the latest snapshot. That is
    /// said in a head before anything is written over it.
    fn make_room(&self, file: &PoolFile, head: &Head, next: &mut Head) -> Result<(), StoreError> {
        let fits = |head: &Head| head.end.bytes - head.base.bytes <= head.log_size;
        if fits(next) {
            return Ok(());
        }
        if let Some(latest) = next.snapshot() {
            next.base = latest.of;
        }
        if !fits(next) {
            return Err(StoreError::transient(format!(
                "the log of `{}` is full and no snapshot could be written; free disk space, or \
                 `standpipe store reset {}`",
                self.pool, self.pool
            )));
        }
        let mut shorter = Head { base: next.base, ..head.clone() };
        self.finish(file, &mut shorter)?;
        next.sequence = shorter.sequence;
        Ok(())
    }

    /// Puts a snapshot into the place of the older one. Inside a step.
    pub(crate) fn put_snapshot(
        &self,
        file: &PoolFile,
        head: &Head,
        of: Spot,
        snapshot: &Snapshot,
    ) -> Result<Head, StoreError> {
        let mut next = head.clone();
        let into = head.latest.map_or(0, |latest| 1 - latest);
        let length = snapshot.bytes.len() as u64;
        if length > next.slots[into].room {
            // Only texts of the greatest length at all bounds at once come here.
            let offset = next.file_size();
            let room = length + length / 2;
            let made = sys::preallocate(&file.file, offset + room);
            made.map_err(|error| self.cannot("enlarge", error))?;
            (next.slots[into].offset, next.slots[into].room) = (offset, room);
        }
        let place = next.slots[into].offset;
        let written = std::os::unix::fs::FileExt::write_all_at(&file.file, &snapshot.bytes, place);
        written.map_err(|error| self.cannot("write", error))?;
        point::reach("snapshot written");
        let slot = Slot { length, hash: snapshot.mark.hash, of, ..next.slots[into] };
        if let Some(previous) = head.snapshot() {
            next.base = previous.of;
        }
        (next.slots[into], next.latest) = (slot, Some(into));
        self.finish(file, &mut next)?;
        point::reach("snapshot named");
        Ok(next)
    }
}

//! Reading a whole file as a new process would, with the lock held.

use std::sync::Arc;

use standpipe_core::Instant;
use standpipe_store::{Log, LogRead, Position, Replica, Snapshot, StoreError, Tail};

use crate::file::head::{Head, SnapshotSlot};
use crate::file::pool_file::{PoolFile, entries_of, split_record};
use crate::log::FileLog;

impl FileLog {
    /// Extends the head over records behind it whose chain continues, and writes it if it changed
    /// or if the file had only one valid head.
    ///
    /// A process that was killed after it had written records to the ring, and before their head,
    /// leaves them there. They count, like everything that was written whole.
    pub(crate) fn roll_forward(
        &self,
        file: &PoolFile,
        head: &Head,
        both_valid: bool,
    ) -> Result<Arc<Head>, StoreError> {
        let (end, ring_end, mut next) = (head.end, head.ring_end(), head.clone());
        let limit = next.base.bytes.saturating_add(next.log_size);
        let bytes = file.read_ring(&next, next.end.bytes, limit);
        let bytes = bytes.map_err(|error| self.io_error("read", error))?;
        let mut rest = bytes.as_slice();
        while let Ok((record, behind)) = split_record(rest)
            && let Ok(offset) = self.advance(next.end, &record)
        {
            next.stamp = next.stamp.max(record.entry.stamp);
            next.end = offset;
            rest = behind;
        }
        if next.end != end {
            let taken_up = &bytes[..bytes.len() - rest.len()];
            self.write_tail(file, &mut next, ring_end, taken_up)?;
        }
        let mut next = Arc::new(next);
        if !both_valid || next.end != end {
            self.write_next_head(file, &mut next)?;
        }
        Ok(next)
    }

    /// Returns what is damaged in the file, if anything is.
    pub(crate) fn find_damage(
        &self,
        file: &PoolFile,
        head: &Head,
    ) -> Result<Option<String>, StoreError> {
        Ok(self.replay(file, head)?.err())
    }

    /// Returns the replica that a new process would build from the file, or what is damaged.
    pub(crate) fn replay(
        &self,
        file: &PoolFile,
        head: &Head,
    ) -> Result<Result<Replica, String>, StoreError> {
        let (mut replica, tail) = (Replica::new(), self.full_tail(file, head)?);
        match replica.catch_up(&mut SingleRead { log: self, tail }, |_, _, _| ()) {
            Ok(_) => Ok(Ok(replica)),
            // The head has these semantics, so a snapshot of others does not belong to it.
            Err(error) if error.is_damaged() || error.is_incompatible() => {
                Ok(Err(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the latest snapshot and everything after it.
    fn full_tail(&self, file: &PoolFile, head: &Head) -> Result<Tail, StoreError> {
        let latest = head.snapshot();
        let failed = |error| self.io_error("read", error);
        let begin = latest.map_or(head.base, |slot| slot.taken_at);
        let records = file.read_log(head, begin.bytes, head.end.bytes).map_err(failed)?;
        Ok(Tail {
            snapshot: latest.map(|slot| file.snapshot(slot).map_err(failed)).transpose()?,
            entries: entries_of(&records),
            appended: None,
            head: head.end.position,
            now: head.stamp,
            latest_snapshot: latest.map(SnapshotSlot::id),
            snapshot_due: false,
        })
    }
}

/// A read-only log that returns bytes that were read before, so that a replica can apply them
/// while the lock is held.
struct SingleRead<'a> {
    log: &'a FileLog,
    tail: Tail,
}

impl Log for SingleRead<'_> {
    fn append(&mut self, _from: Position, _bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        Err(StoreError::unusable("this log is read-only"))
    }

    fn read(&mut self, _from: Position) -> Result<LogRead, StoreError> {
        Ok(LogRead::Tail(self.tail.clone()))
    }

    fn write_snapshot(&mut self, _snapshot: &Snapshot) -> Result<(), StoreError> {
        Ok(())
    }

    fn chain(&self, chain: u64, stamp: Instant, body: &[u8]) -> u64 {
        self.log.chain(chain, stamp, body)
    }
}

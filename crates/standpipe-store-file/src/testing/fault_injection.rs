//! Corrupting a pool's file in tests. Built only with the feature `harm`.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use standpipe_store::StoreError;

use crate::file::head::{Head, LOG_AT, LogOffset};
use crate::file::label;
use crate::file::pool_file::{PoolFile, split_record};
use crate::log::FileLog;

impl FileLog {
    /// Removes the last entries, as a restore from an older copy does.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn lose(&mut self, entries: u64) -> Result<(), StoreError> {
        self.with_lock(|log, file, head| {
            let last =
                head.end.position.number.saturating_sub(entries).max(head.base.position.number);
            let mut next = Head::clone(&head);
            log.write_tail(file, &mut next, head.ring_end(), &[])?;
            next.end = log
                .record_offsets(file, &head)?
                .into_iter()
                .find(|offset| offset.position.number == last)
                .unwrap_or(head.base);
            let kept = |slot: usize| {
                head.slots[slot].length > 0 && head.slots[slot].taken_at.position.number <= last
            };
            next.latest_slot = head
                .latest_slot
                .and_then(|latest| [latest, 1 - latest].into_iter().find(|slot| kept(*slot)));
            log.write_next_head(file, &mut Arc::new(next))
        })
    }

    /// Flips a bit in the middle of an entry if the log still has it. The first entry is 1.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn damage(&mut self, entry: u64) -> Result<(), StoreError> {
        self.with_lock(|log, file, mut head| {
            let offsets = log.record_offsets(file, &head)?;
            let ring_end = head.ring_end();
            log.write_tail(file, Arc::make_mut(&mut head), ring_end, &[])?;
            log.write_next_head(file, &mut head)?;
            let pair = offsets.windows(2).find(|pair| pair[1].position.number == entry);
            let Some([before, _]) = pair else { return Ok(()) };
            let at = LOG_AT + (before.bytes + 15) % head.log_size;
            let mut byte = [0];
            let read = file.file.read_exact_at(&mut byte, at);
            read.and_then(|()| file.file.write_all_at(&[byte[0] ^ 1], at))
                .map_err(|error| log.io_error("write", error))
        })
    }

    /// Runs `act` while it holds the lock of the pool's file.
    ///
    /// # Errors
    /// When the file cannot be read or locked.
    pub fn while_locked(&mut self, act: impl FnOnce()) -> Result<(), StoreError> {
        self.with_lock(|_, _, _| {
            act();
            Ok(())
        })
    }

    /// Sets the semantics that the head names, as if another version had used the pool last.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn set_semantics(&mut self, semantics: u32) -> Result<(), StoreError> {
        self.with_lock(|log, file, head| {
            let next = Head { semantics, ..Head::clone(&head) };
            log.write_next_head(file, &mut Arc::new(next))
        })
    }

    /// Returns the offsets of all record boundaries that are still in the log.
    fn record_offsets(&self, file: &PoolFile, head: &Head) -> Result<Vec<LogOffset>, StoreError> {
        let bytes = file.read_log(head, head.base.bytes, head.end.bytes);
        let bytes = bytes.map_err(|error| self.io_error("read", error))?;
        let (mut rest, mut offsets) = (bytes.as_slice(), vec![head.base]);
        let mut offset = head.base;
        while let Ok((record, behind)) = split_record(rest) {
            offset = self.advance(offset, &record)?;
            offsets.push(offset);
            rest = behind;
        }
        Ok(offsets)
    }
}

/// Sets the format version in the bytes of a pool's file.
pub fn set_format(bytes: &mut [u8], format: u32) {
    label::set_format(bytes, format);
}

//! What a test does to a pool's file. Built only with the feature `harm`.

use std::os::unix::fs::FileExt;

use standpipe_store::StoreError;

use crate::head::{Head, LOG_AT, Spot};
use crate::log::FileLog;
use crate::pool_file::{PoolFile, take_record};

impl FileLog {
    /// Forgets the last entries and goes on, as a file restored from an older copy would.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn lose(&mut self, entries: u64) -> Result<(), StoreError> {
        self.step(|log, file, head| {
            let upto = head.end.at.number.saturating_sub(entries).max(head.base.at.number);
            let mut next = head.clone();
            next.end = log
                .spots(file, &head)?
                .into_iter()
                .find(|spot| spot.at.number == upto)
                .unwrap_or(head.base);
            let kept =
                |slot: usize| head.slots[slot].length > 0 && head.slots[slot].of.at.number <= upto;
            next.latest = head
                .latest
                .and_then(|latest| [latest, 1 - latest].into_iter().find(|slot| kept(*slot)));
            log.finish(file, &mut next)
        })
    }

    /// Flips a bit in the middle of an entry, the first being 1, if it is still there.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn damage(&mut self, entry: u64) -> Result<(), StoreError> {
        self.step(|log, file, head| {
            let spots = log.spots(file, &head)?;
            let pair = spots.windows(2).find(|pair| pair[1].at.number == entry);
            let Some([before, _]) = pair else { return Ok(()) };
            let at = LOG_AT + (before.bytes + 15) % head.log_size;
            let mut byte = [0];
            let read = file.file.read_exact_at(&mut byte, at);
            read.and_then(|()| file.file.write_all_at(&[byte[0] ^ 1], at))
                .map_err(|error| log.cannot("write", error))
        })
    }

    /// Every place between two records that are kept.
    fn spots(&self, file: &PoolFile, head: &Head) -> Result<Vec<Spot>, StoreError> {
        let bytes = file.read_log(head, head.base.bytes, head.end.bytes);
        let bytes = bytes.map_err(|error| self.cannot("read", error))?;
        let (mut rest, mut spots) = (bytes.as_slice(), vec![head.base]);
        let mut spot = head.base;
        while let Ok((record, behind)) = take_record(rest) {
            spot = self.pass(spot, &record)?;
            spots.push(spot);
            rest = behind;
        }
        Ok(spots)
    }
}

impl FileLog {
    /// Says that the pool was last used by a program of these semantics.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn pretend_semantics(&mut self, semantics: u32) -> Result<(), StoreError> {
        self.step(|log, file, head| {
            let mut next = Head { semantics, ..head };
            log.finish(file, &mut next)
        })
    }
}

/// Says in a file's bytes that a program of this format wrote it.
pub fn pretend_format(bytes: &mut [u8], format: u32) {
    crate::head::pretend_format(bytes, format);
}

//! Recovery: preambles after a loss or a change of server, quarantine of unusable keys, and the
//! upgrade to new semantics.
//!
//! A quarantined log is renamed, never deleted. The log that follows it records a loss, so its
//! limits count as full until living processes have re-appended what they hold.

use standpipe_core::{Action, Span};
use standpipe_store::engine::{entry_bodies, semantics};
use standpipe_store::{Replica, StoreError};

use super::{Preamble, REJOIN_PAUSE, RedisLog};
use crate::protocol::reply;
use crate::protocol::resp::{Command, Reply, cmd};

impl RedisLog {
    /// Returns the entry of a preamble.
    pub(super) fn preamble_entry(&self, preamble: Preamble) -> Option<Vec<u8>> {
        let action =
            match preamble {
                Preamble::None => return None,
                Preamble::RejoinPause => {
                    self.store.report(Some(&self.pool), format!(
                    "another server process answers for {}; `{}` pauses for {} s while every \
                     process restores what the server may have lost",
                    self.store.servers.place,
                    self.pool,
                    REJOIN_PAUSE.0 / 1_000_000
                ));
                    Action::Pause { length: REJOIN_PAUSE, by: None }
                }
                Preamble::StateLost => Action::Forgotten,
            };
        entry_bodies([action]).pop()
    }

    pub(super) fn report_loss(&self) {
        self.store.report(
            Some(&self.pool),
            format!(
                "`{}` was lost on {}; rates count as full and recover over one period, slots after \
             `lease_ttl`; if no call of it can be in flight, start over: standpipe store reset {} \
             --yes",
                self.pool, self.store.servers.place, self.pool
            ),
        );
    }

    pub(super) fn damaged_keys(&self) -> StoreError {
        StoreError::damaged(format!(
            "the keys of `{}` on {} do not fit together; some were removed or changed",
            self.pool, self.store.servers.place
        ))
    }

    pub(super) fn log_full(&self) -> StoreError {
        StoreError::transient(format!(
            "the log of `{}` is full and no snapshot could be written; check the server's \
             memory, or run `standpipe store reset {}`",
            self.pool, self.pool
        ))
    }

    /// Quarantines a log that older programs wrote, once they were silent for long enough.
    ///
    /// # Errors
    /// When newer programs wrote the log, or older ones still use it.
    pub(super) fn upgrade_semantics(
        &mut self,
        theirs: u64,
        last_stamp: u64,
        now: u64,
    ) -> Result<(), StoreError> {
        let theirs = u32::try_from(theirs).unwrap_or(u32::MAX);
        let silent = Span(now.saturating_sub(last_stamp));
        semantics::reject_in_use(&self.pool, theirs, silent)?;
        let head = self.read_head()?;
        self.quarantine_keys("older", &head)?;
        self.marker.assume_lost();
        self.store.report(Some(&self.pool), format!(
            "`{}` was last used by an older Standpipe; its ledger is kept for a week; rates count \
             as full and recover over one period, slots after `lease_ttl`",
            self.pool
        ));
        Ok(())
    }

    /// Quarantines the log if it is still damaged. Returns whether the pool has a new log, or will
    /// have one with the next append.
    pub(super) fn quarantine_if_damaged(&mut self) -> Result<bool, StoreError> {
        if !self.store.options.quarantine_damaged {
            return Ok(false);
        }
        let log_id = self.log_id.clone();
        // Read the head before the check: if somebody replaces the log in between, the script sees
        // another head and leaves the new log alone.
        let head = self.read_head()?;
        match Replica::new().catch_up(self, |_, _, _| ()) {
            Err(error) if error.is_damaged() => {}
            // It was damaged in transit only, or another process has replaced it.
            Ok(_) => return Ok(self.log_id != log_id),
            Err(error) => return Err(error),
        }
        if self.quarantine_keys("damaged", &head)? {
            self.store.report(
                Some(&self.pool),
                format!(
                    "the ledger of `{}` on {} is damaged. It is kept for a week as `{}:damaged:…`; \
                 the pool starts again; rates count as full and recover over one period, slots \
                 after `lease_ttl`",
                    self.pool,
                    self.store.servers.place,
                    self.keys.base()
                ),
            );
        }
        self.marker.assume_lost();
        self.last_head = None;
        Ok(true)
    }

    /// Returns the packed head, or nothing if there is none or the key holds something else.
    fn read_head(&self) -> Result<Vec<u8>, StoreError> {
        match self.call(cmd("HGET").arg(&self.keys.head).arg("h")) {
            Ok(value) => Ok(reply::bulk(value).unwrap_or_default()),
            Err(error) if error.is_damaged() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Renames the keys if the head is still this one. Returns whether it did; if not, another
    /// process did.
    fn quarantine_keys(&self, why: &str, head: &[u8]) -> Result<bool, StoreError> {
        let names = self.keys.quarantined(why, self.store.wall_millis());
        let arguments = |command: &mut Command| {
            command.arg(8_u64).arg(self.keys.all()).arg(&names).arg(head);
        };
        let quarantined = self.run_script(&self.store.scripts.quarantine, arguments)?;
        Ok(quarantined == Reply::Int(1))
    }
}

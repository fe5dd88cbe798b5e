//! Verifying a file with the lock held, the first time after it was opened.
//!
//! Did the machine reboot since the file was last used, and does the file prove that it is the
//! latest one written? After a power loss each page of a file is its old or its new version, in any
//! mixture. A file whose heads and chain cannot prove that nothing newer was written is
//! quarantined. One case is undetectable: if nothing newer survived, neither a head nor a whole
//! entry, the file looks like that of a machine that stopped earlier.

use std::sync::Arc;

use standpipe_core::{Action, Instant, SEMANTICS, Span};
use standpipe_store::engine::entry_bodies;
use standpipe_store::{Liveness, Replica, StoreError, entry, layout};

use crate::file::head::Head;
use crate::file::pool_file::{Heads, PoolFile, split_record};
use crate::log::FileLog;

/// Whether the machine rebooted between a pool's last append and now.
enum BootCheck {
    /// It did not.
    Same,
    /// It did. This is the state in the file.
    Rebooted(Box<Replica>),
    /// The clocks differ, and the file cannot be read for this reason.
    Unreadable(String),
}

impl FileLog {
    /// Returns the latest head of a verified file. `None` means that the file was quarantined and
    /// another one is in its place.
    ///
    /// Once per opening and clock origin the log is verified too: after a reboot all of it, after
    /// an idle time or with a damaged head what lies behind the head. Otherwise only the heads are.
    pub(crate) fn verified_head(
        &mut self,
        file: &PoolFile,
        heads: Heads,
    ) -> Result<Option<Arc<Head>>, StoreError> {
        let (head, both_valid) = match heads {
            Heads::Consecutive(head) => (head, true),
            Heads::OneValid(head) => (head, false),
            Heads::LatestDamaged(_) => {
                return self.quarantine_or_fail(file, "its latest head is damaged");
            }
            Heads::Inconsistent(_) => {
                return self.quarantine_or_fail(file, "its two heads are not consecutive");
            }
            Heads::NoneValid => {
                return self.quarantine_or_fail(file, "both of its heads are damaged");
            }
        };
        if head.semantics != SEMANTICS {
            return self.handle_other_semantics(file, &head);
        }
        if both_valid && self.verified_origin == Some(head.origin) {
            return Ok(Some(head));
        }
        match self.check_boot(file, &head)? {
            BootCheck::Unreadable(reason) => self.quarantine_or_fail(file, &reason),
            BootCheck::Rebooted(_) if !both_valid => {
                self.quarantine_or_fail(file, "one of its heads is damaged")
            }
            BootCheck::Rebooted(replica) => match self.find_newer_writes(file, &head, true)? {
                Some(reason) => self.quarantine_or_fail(file, reason),
                None => {
                    let head = self.carry_over_reboot(file, head, *replica)?;
                    self.mark_verified(file, head)
                }
            },
            BootCheck::Same => {
                if both_valid && !self.store.time.was_idle(head.last_stamp()) {
                    return self.mark_verified(file, head);
                }
                match self.find_newer_writes(file, &head, false)? {
                    Some(reason) => self.quarantine_or_fail(file, reason),
                    None => {
                        let head = self.roll_forward(file, &head, both_valid)?;
                        self.mark_verified(file, head)
                    }
                }
            }
        }
    }

    fn mark_verified(
        &mut self,
        file: &PoolFile,
        head: Arc<Head>,
    ) -> Result<Option<Arc<Head>>, StoreError> {
        let head = match file.is_copy(&head) {
            true => self.pause_for_restore(file, head)?,
            false => head,
        };
        self.verified_origin = Some(head.origin);
        Ok(Some(head))
    }

    /// Pauses the pool because an older copy replaced its file.
    ///
    /// Other processes may have used units that the copy lacks. Nothing is admitted until every
    /// living process had time to restore its own entries.
    pub(crate) fn pause_for_restore(
        &self,
        file: &PoolFile,
        head: Arc<Head>,
    ) -> Result<Arc<Head>, StoreError> {
        if !self.recover_if_damaged {
            return Ok(head);
        }
        self.store.warn(
            Some(&self.pool),
            format!(
                "an older copy replaced the ledger of `{}`; the pool pauses for 2 s while all \
             processes restore what the copy lacks of theirs",
                self.pool
            ),
        );
        let pause = entry_bodies([Action::Pause { length: RESTORE_PAUSE, by: None }]);
        self.append_entries(file, &head, &pause)
    }

    fn quarantine_or_fail(
        &self,
        file: &PoolFile,
        reason: &str,
    ) -> Result<Option<Arc<Head>>, StoreError> {
        match self.recover_if_damaged {
            true => self.quarantine_file(file, reason).map(|()| None),
            false => Err(StoreError::damaged(reason)),
        }
    }

    /// Decides whether the machine rebooted.
    ///
    /// While a session that the pool knows holds its lock there was no reboot, whatever boot id
    /// this process sees: it may run in a container with its own.
    fn check_boot(&self, file: &PoolFile, head: &Head) -> Result<BootCheck, StoreError> {
        if self.store.time.is_same_boot(head.last_stamp()) {
            return Ok(BootCheck::Same);
        }
        let replica = match self.replay(file, head)? {
            Ok(replica) => replica,
            Err(reason) => return Ok(BootCheck::Unreadable(reason)),
        };
        let mut sessions = replica.state().facts().sessions.keys();
        let lives = |session: &u64| self.store.sessions.liveness(*session) == Liveness::Alive;
        if !sessions.any(lives) {
            return Ok(BootCheck::Rebooted(Box::new(replica)));
        }
        match self.store.time.is_plausible(head.last_stamp()) {
            true => Ok(BootCheck::Same),
            false => Err(StoreError::unusable(format!(
                "this process's clock is behind the one that stamps `{}`, which other processes \
                 use now; start it with the machine's own clock, or use a daemon or Redis",
                self.pool
            ))),
        }
    }

    /// Returns the evidence, if there is any, that something newer was written than the head
    /// covers.
    ///
    /// A process killed between the ring and its head leaves the records of one append behind the
    /// head, all with one stamp. Without a reboot that is no evidence.
    fn find_newer_writes(
        &self,
        file: &PoolFile,
        head: &Head,
        rebooted: bool,
    ) -> Result<Option<&'static str>, StoreError> {
        let failed = |error| self.io_error("read", error);
        let free = head.log_size.saturating_sub(head.end.bytes - head.base.bytes);
        let scanned = if rebooted { free } else { free.min(SCAN_WITHOUT_REBOOT) };
        let end = head.end.bytes;
        let bytes = file.read_ring(head, end, end + scanned).map_err(failed)?;
        let (mut rest, mut offset, mut latest) = (bytes.as_slice(), head.end, head.stamp);
        while let Ok((record, behind)) = split_record(rest)
            && let Ok(next) = self.advance(offset, &record)
        {
            let one_append = latest == head.stamp || latest == record.entry.stamp;
            if rebooted || record.entry.stamp > head.stamp && !one_append {
                return Ok(Some(NEWER_ENTRIES));
            }
            (rest, offset, latest) = (behind, next, latest.max(record.entry.stamp));
        }
        // The page with the first newer record may be the old one, so look at every byte.
        if (0..rest.len()).any(|at| starts_newer_entry(&rest[at..], latest)) {
            return Ok(Some(NEWER_ENTRIES));
        }
        let previous = head.latest_slot.map(|latest| &head.slots[1 - latest]);
        let Some(slot) = previous.filter(|slot| rebooted && slot.length > 0) else {
            return Ok(None);
        };
        // The next snapshot is written over the previous one. If that one no longer has its hash,
        // a newer snapshot was being written.
        let snapshot = file.snapshot(slot).map_err(failed)?;
        let intact = standpipe_store::hash(0, &snapshot.bytes) == slot.hash;
        Ok((!intact).then_some("a snapshot is newer than its heads"))
    }
}

/// Whether a valid entry with a stamp after `than` starts here.
fn starts_newer_entry(bytes: &[u8], than: Instant) -> bool {
    let Ok((length, rest)) = layout::take_number(bytes) else { return false };
    let Some((stamp, _)) = rest.split_first_chunk::<8>().filter(|_| length > 0) else {
        return false;
    };
    let stamp = u64::from_le_bytes(*stamp);
    // The stamp is compared before the checksum is computed, because it is cheaper.
    (than.0.saturating_add(1)..than.0.saturating_add(MAX_STAMP_LEAD)).contains(&stamp)
        && entry::take(bytes).is_ok()
}

/// Twice as long as processes need to notice that their file was replaced.
const RESTORE_PAUSE: Span = Span::secs(2);
const NEWER_ENTRIES: &str = "it has entries that are newer than its heads";
/// How many bytes behind the end are searched for newer entries if the machine did not reboot.
const SCAN_WITHOUT_REBOOT: u64 = 64 << 10;
/// How far after the head a newer entry's stamp can be, in microseconds: ten years.
const MAX_STAMP_LEAD: u64 = 10 * 365 * 86_400 * 1_000_000;

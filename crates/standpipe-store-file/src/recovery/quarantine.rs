//! Replacing a damaged file: the old one is renamed, never deleted at once, and a new one starts
//! with full limits and the old configuration.
//!
//! All of it happens with the lock held. At most four damaged files per pool are kept.

use std::fs;
use std::path::PathBuf;

use standpipe_core::{Action, Configure, Event, Facts, Source};
use standpipe_store::entry::Content;
use standpipe_store::{Replica, StoreError};

use crate::file::head::Head;
use crate::file::label::Label;
use crate::file::pool_file::{Heads, PoolFile, split_record};
use crate::log::FileLog;
use crate::store::directory::fs_error;
use crate::sys;
use crate::testing::failpoint;

impl FileLog {
    /// Renames a damaged file and creates a new one, with the configuration if it can still be
    /// read.
    pub(crate) fn quarantine_file(&self, file: &PoolFile, reason: &str) -> Result<(), StoreError> {
        let quarantined = self.quarantine_path(reason, self.salvage_config(file));
        self.retire(file);
        quarantined
    }

    /// Marks a renamed file, so that every process that has it open looks at the path at once.
    ///
    /// Only a hint, so it need not succeed. What is not a ledger of this pool is kept as it is; its
    /// heads are of no use to anybody, so processes look at the path anyway.
    pub(crate) fn retire(&self, file: &PoolFile) {
        if matches!(file.label(), Ok(Label::Pool(name)) if name == self.pool.as_str()) {
            let _ = file.mark_retired(true);
        }
    }

    /// Renames whatever is at the pool's path and creates a new file with full limits.
    pub(crate) fn quarantine_path(
        &self,
        reason: &str,
        config: Option<Configure>,
    ) -> Result<(), StoreError> {
        let kept = self.quarantine_name("damaged");
        fs::rename(&self.path, &kept).map_err(|error| fs_error("rename", &self.path, error))?;
        failpoint::reach("damage quarantined");
        self.store.warn(Some(&self.pool), format!(
            "the ledger of `{}` is damaged: {reason}. It is kept as {}; a new ledger is created, \
             rates count as full and recover over one period, slots after `lease_ttl`",
            self.pool,
            kept.display()
        ));
        let mut events = vec![Action::Forgotten];
        events.splice(0..0, config.map(|configure| Action::Configure(Box::new(configure))));
        self.create(&events)
    }

    /// Returns an unused name for a quarantined file, and deletes the oldest beyond
    /// [`MAX_QUARANTINED`].
    pub(crate) fn quarantine_name(&self, why: &str) -> PathBuf {
        let stem = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours = |name: &str| name.starts_with(&format!("{stem}.{why}-"));
        let entries = self.path.parent().and_then(|parent| fs::read_dir(parent).ok());
        let mut kept: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().is_some_and(|name| ours(&name.to_string_lossy())))
            .collect();
        kept.sort();
        for old in kept.iter().rev().skip(MAX_QUARANTINED - 1) {
            let _ = fs::remove_file(old);
        }
        self.path.with_file_name(format!("{stem}.{why}-{:016}", sys::clock::wall_micros()))
    }

    /// Reads the configuration from whatever of the file is still readable.
    pub(crate) fn salvage_config(&self, file: &PoolFile) -> Option<Configure> {
        let heads = file.heads().ok()?;
        let (Heads::Consecutive(head)
        | Heads::Inconsistent(head)
        | Heads::OneValid(head)
        | Heads::LatestDamaged(head)) = heads
        else {
            return None;
        };
        let latest = head.latest_slot;
        let slots = [latest, latest.map(|latest| 1 - latest)].into_iter().flatten();
        let loaded = slots
            .filter_map(|slot| Replica::load(&file.snapshot(&head.slots[slot]).ok()?).ok())
            .next();
        let begin = head.snapshot().map_or(head.base, |slot| slot.taken_at);
        let later = self.last_config_since(file, &head, begin.bytes);
        later.or_else(|| config_event(loaded?.state().facts()))
    }

    /// Returns the last `Configure` event after an offset, up to the first damaged record.
    fn last_config_since(&self, file: &PoolFile, head: &Head, from: u64) -> Option<Configure> {
        let bytes = file.read_log(head, from, head.end.bytes).ok()?;
        let (mut rest, mut found) = (bytes.as_slice(), None);
        while let Ok((record, behind)) = split_record(rest) {
            rest = behind;
            if let Content::Event(Event { action: Action::Configure(configure), .. }) =
                record.entry.content
            {
                found = Some(*configure);
            }
        }
        found
    }
}

/// Returns the `Configure` event that gives a new ledger the configuration of an old one.
fn config_event(facts: &Facts) -> Option<Configure> {
    let config = facts.config.clone()?;
    let from = facts.provenance;
    let source = match from.file {
        true => Source::File { version: from.version, written: from.written },
        false if from.changes > 0 => Source::Change,
        false => Source::Code,
    };
    Some(Configure { source, config })
}

/// How many quarantined files of a kind are kept per pool.
const MAX_QUARANTINED: usize = 4;

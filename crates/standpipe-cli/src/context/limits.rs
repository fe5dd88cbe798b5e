//! Notes about the limits of a call's pool: a new pool, limits that changed, limits that are kept.

use standpipe::observe::Origin;
use standpipe::{Configured, Lease, Limit, Pool, PoolName, Standpipe};

use super::Context;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::limits_kept;

/// The limits of a pool before a call that may change them.
#[derive(Debug)]
pub(crate) enum LimitsBefore {
    /// The call creates the pool, alone or together with others.
    New,
    /// They were not read.
    NotRead,
    /// They are these.
    Are(Vec<Limit>),
}

impl Context {
    /// Notes that a call creates a pool: one that resembles another may be misspelled, and one
    /// without limits has to learn them. Returns what the pool's limits are before the call.
    ///
    /// # Errors
    /// When the pools cannot be listed.
    pub(crate) fn note_new_pool(
        tap: &Standpipe,
        pool: &Pool,
        limits: &[Limit],
        printer: &Printer,
    ) -> Result<LimitsBefore, Failure> {
        let name = pool.name();
        // A list of a network store costs a round trip, which limits that are stated do not earn.
        let is_costly = !limits.is_empty() && tap.is_remote()?;
        if is_costly || tap.settings().pools.contains_key(name) {
            return Ok(LimitsBefore::NotRead);
        }
        let known = tap.pools().blocking()?;
        if known.contains(name) {
            let config = if limits.is_empty() { None } else { pool.config().blocking()? };
            // Another process may be about to create it.
            let config = config.filter(|config| !config.limits.is_empty() || pool.learns());
            return Ok(config.map_or(LimitsBefore::New, |config| LimitsBefore::Are(config.limits)));
        }
        let described = tap.settings().pools.keys();
        let names = known.iter().chain(described).map(PoolName::as_str);
        let near = standpipe::config::nearest_path(name.as_str(), names);
        let near = near.map(|near| format!("; did you mean `{near}`?"));
        match (near, limits.is_empty()) {
            (None, false) => {}
            (near, false) => {
                printer.note(&format!("created `{name}`{}", near.unwrap_or_default()));
            }
            (near, true) => printer.note(&format!(
                "created `{name}`, whose limits are unknown: they are learned from the provider's \
                 responses{}",
                near.unwrap_or_default()
            )),
        }
        Ok(LimitsBefore::New)
    }

    /// Notes it when the limits of the command line changed a pool. What the ledger decided only an
    /// admitted call knows: of several calls that create a pool together, the first one creates it
    /// and the others change nothing.
    pub(crate) fn note_changed_limits(
        pool: &Pool,
        before: &LimitsBefore,
        limits: &[Limit],
        lease: Option<&Lease>,
        printer: &Printer,
    ) {
        let changed = lease.map(Lease::limits_changed);
        let was_shared = lease.is_some_and(Lease::was_shared);
        let (is_due, before) = match before {
            LimitsBefore::New => (false, None),
            LimitsBefore::NotRead => (changed == Some(true) && was_shared, None),
            // Another process may have been about to create the pool, with the same limits.
            LimitsBefore::Are(before) if before.is_empty() && !was_shared => (false, None),
            LimitsBefore::Are(before) => {
                let is_other = !limits.iter().all(|limit| before.contains(limit));
                (is_other && changed != Some(false), Some(before.as_slice()))
            }
        };
        let Some(Ok(Some(now))) = is_due.then(|| pool.config().blocking()) else { return };
        let note = limits_kept::changed_by_flags(pool.name(), before, &now.limits, limits);
        if let Some(note) = note {
            printer.note(&note);
        }
    }

    /// Notes it when the pool keeps other limits than those of the file or of the command line.
    /// `in_force` is what the reserve found out about the latter.
    ///
    /// # Errors
    /// When the pool cannot be read.
    pub(crate) fn note_kept_limits(
        tap: &Standpipe,
        pool: &Pool,
        limits: &[Limit],
        in_force: Option<bool>,
        printer: &Printer,
    ) -> Result<(), Failure> {
        let name = pool.name();
        // The reserve has sent the file's configuration, so this takes no step.
        let described = tap.settings().pools.contains_key(name);
        if let Some(file) = tap.settings().origin.as_ref().filter(|_| described)
            && matches!(pool.configured().blocking(), Ok(Some(Configured::Kept)))
        {
            let (kept, stated) = (pool.config().blocking()?, tap.settings().pool_config(name));
            let origin = pool.status().blocking()?.origin;
            let note = limits_kept::over_file(name, &origin, kept.as_ref(), stated.as_ref(), file);
            note.iter().for_each(|note| printer.note(note));
        }
        if in_force == Some(false) {
            let (origin, kept) = limits_in_force(pool)?;
            if let Some(note) = limits_kept::over_flags(name, described, &origin, &kept, limits) {
                printer.note(&note);
            }
        }
        Ok(())
    }
}

/// Returns the limits of a pool and where they come from.
fn limits_in_force(pool: &Pool) -> Result<(Origin, Vec<Limit>), Failure> {
    let limits = pool.config().blocking()?.map(|config| config.limits).unwrap_or_default();
    Ok((pool.status().blocking()?.origin, limits))
}

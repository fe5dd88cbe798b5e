//! Lookup of leases by the ids that `reserve` printed.

use standpipe::{InvalidLeaseId, LeaseHandle, LeaseId, Standpipe};

use crate::exit::Exit;
use crate::failure::{Failure, split_hint};

/// How much of an invalid id is repeated.
const MAX_SHOWN: usize = 40;

/// Parses an id. Ids are opaque to callers, so an invalid one is a lease that does not exist.
pub(super) fn id(text: &str) -> Result<LeaseId, Failure> {
    text.trim().parse().map_err(|error: InvalidLeaseId| {
        let mut shown: String = text.chars().take(MAX_SHOWN).collect();
        if text.chars().nth(MAX_SHOWN).is_some() {
            shown.push('…');
        }
        let text = error.to_string();
        let (why, remedy) = split_hint(&text);
        let what = format!("there is no lease `{shown}`: {why}");
        Failure::new(Exit::NoLease, "no_lease", &what, remedy)
    })
}

/// Returns the lease of an id, without creating its pool.
pub(super) fn handle(tap: &Standpipe, text: &str) -> Result<LeaseHandle, Failure> {
    let id = id(text)?;
    if !tap.pools().blocking()?.contains(id.pool()) {
        let what = format!("there is no such lease, and no pool `{}` on this store", id.pool());
        let remedy = "use the store it was reserved on (--store, --config, $STANDPIPE_HOME)";
        return Err(Failure::new(Exit::NoLease, "no_lease", &what, remedy));
    }
    Ok(tap.lease(&id)?)
}

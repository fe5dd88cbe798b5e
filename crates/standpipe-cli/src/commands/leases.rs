//! Leases by the ids that `reserve` printed.

use standpipe::{InvalidLeaseId, LeaseHandle, LeaseId, Standpipe};

use crate::exit::Exit;
use crate::failure::Failure;

/// How much is repeated of what is no id.
const LONGEST: usize = 40;

/// The id, if it is one. To whoever holds it an id is opaque: one that cannot be read is a lease
/// that does not exist.
pub(super) fn id(text: &str) -> Result<LeaseId, Failure> {
    text.trim().parse().map_err(|error: InvalidLeaseId| {
        let mut shown: String = text.chars().take(LONGEST).collect();
        if text.chars().nth(LONGEST).is_some() {
            shown.push('…');
        }
        let said = error.to_string();
        let (why, remedy) = said.split_once("; ").unwrap_or((&said, ""));
        let what = format!("there is no lease `{shown}`: {why}");
        Failure::new(Exit::NoLease, "no_lease", &what, remedy)
    })
}

/// The lease behind an id. Asking for one of a pool that is not there does not make the pool.
pub(super) fn handle(tap: &Standpipe, text: &str) -> Result<LeaseHandle, Failure> {
    let id = id(text)?;
    if !tap.pools()?.contains(id.pool()) {
        let what = format!("there is no such lease, and no pool `{}` on this store", id.pool());
        let remedy = "use the store it was reserved on (--store, --config, $STANDPIPE_HOME)";
        return Err(Failure::new(Exit::NoLease, "no_lease", &what, remedy));
    }
    Ok(tap.lease(&id)?)
}

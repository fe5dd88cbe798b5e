//! Lookup of leases by the ids that `reserve` printed.

use std::time::{Duration, SystemTime};

use serde_json::json;
use standpipe::observe::journal::{EventData, EventKind};
use standpipe::{Error, InvalidLeaseId, LeaseHandle, LeaseId, PoolName, Span, Standpipe};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::show::duration::length;
use crate::show::local_time::clock;

/// How far back the journal is read for the end of a lease.
const LOOK_BACK: Duration = Duration::from_secs(86_400);

/// How much of an invalid id is repeated.
const MAX_SHOWN: usize = 40;

/// Parses an id. Ids are opaque to callers, so an invalid one is a lease that does not exist.
pub(super) fn id(text: &str) -> Result<LeaseId, Failure> {
    if text.trim().is_empty() {
        let hint = "give the id that `reserve` printed; a variable such as $lease may be empty";
        return Err(Failure::new(Exit::NoLease, "no_lease", "the id of the lease is empty", hint));
    }
    text.trim().parse().map_err(|error: InvalidLeaseId| {
        let mut shown: String = text.chars().take(MAX_SHOWN).collect();
        if text.chars().nth(MAX_SHOWN).is_some() {
            shown.push('…');
        }
        let (why, remedy) = match error {
            InvalidLeaseId::NotALease => {
                ("not a lease id", "use the id that `reserve` printed, which begins with lease1_")
            }
            InvalidLeaseId::Damaged => (
                "a part of the id is missing or changed",
                "copy the whole id that `reserve` printed",
            ),
        };
        let what = format!("there is no lease `{shown}`: {why}");
        Failure::new(Exit::NoLease, "no_lease", &what, remedy)
    })
}

/// Says why a lease has ended, if the journal has it, and what to do about it.
pub(super) fn ended(tap: &Standpipe, error: Error) -> Failure {
    let Error::LeaseGone { lease } = &error else { return error.into() };
    let (id, pool) = (lease.to_string(), lease.pool().clone());
    // The step that failed may be the one that found the lease expired.
    tap.flush_journal();
    let since = SystemTime::now().checked_sub(LOOK_BACK);
    let events = |kind| tap.journal().events(since, Some(kind)).rev();
    let settled = || {
        events(EventKind::Settle).find_map(|event| match event.what {
            EventData::Settle { lease, by, .. } if lease == id => Some((by, clock(event.at))),
            _ => None,
        })
    };
    let why = events(EventKind::Reclaim).find_map(|event| match event.what {
        EventData::Reclaim { lease, why, .. } if lease == id => Some((why, clock(event.at))),
        _ => None,
    });
    let Some((why, at)) = why else {
        let Some((by, at)) = settled() else { return error.into() };
        let what = format!("the lease {id} on `{pool}` has ended: `{by}` settled it at {at}");
        let hint = "nothing changed; a new call needs a lease of its own";
        return Failure::new(Exit::NoLease, "lease_gone", &what, hint)
            .with("pool", json!(pool.as_str()));
    };
    let (why, hint) = match why.as_str() {
        "expired" => (
            format!("it expired at {at}"),
            format!(
                "reserve again with a longer --ttl{}, or extend it in time: standpipe heartbeat \
                 LEASE",
                longest_ttl(tap, &pool)
            ),
        ),
        _ => (
            format!("its owner ended at {at}"),
            "reserve again; --owner must be a process that lives as long as the call".to_owned(),
        ),
    };
    let what = format!("the lease {id} on `{pool}` has ended: {why}, and it counts its estimate");
    Failure::new(Exit::NoLease, "lease_gone", &what, &hint).with("pool", json!(pool.as_str()))
}

/// What bounds the time to live of the pool's leases, in parentheses, if something does.
fn longest_ttl(tap: &Standpipe, pool: &PoolName) -> String {
    let config = tap.existing_pool(pool).config().blocking().ok().flatten();
    let longest = config.and_then(|config| config.longest_lease);
    let bound = |longest: Span| {
        format!(" (at most {}, the pool's `longest_lease`)", length(longest.0 / 1_000))
    };
    longest.map(bound).unwrap_or_default()
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

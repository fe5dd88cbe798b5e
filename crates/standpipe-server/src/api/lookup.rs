//! Finds the pool or lease that a request names.
//!
//! A typing error must not create a ledger: a pool comes into being only by a reserve whose limits
//! are configured, stated or can be learned.

use std::sync::Arc;

use standpipe::config::nearest;
use standpipe::{InvalidLeaseId, LeaseHandle, LeaseId, Pool, PoolName, Standpipe};

use crate::http::problem::Problem;
use crate::state::AppState;

/// The most pools that requests may create.
const MAX_POOLS: usize = 1_024;

/// Parses the name of a pool.
pub(crate) fn name(text: &str) -> Result<PoolName, Problem> {
    text.parse().map_err(|wrong: standpipe::InvalidPoolName| {
        let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
        Problem::invalid(format!("`{shown}` is not a valid pool name"), wrong.to_string())
    })
}

/// A pool to reserve on, and whether the reserve would create it. Creates nothing itself. Before a
/// pool is refused the file is checked: it may have been edited a moment ago.
pub(crate) fn to_reserve(
    state: &AppState,
    tap: &Standpipe,
    name: &PoolName,
    has_limits: bool,
) -> Result<(Pool, bool), Problem> {
    let found = find_to_reserve(state, tap, name, has_limits);
    if !matches!(&found, Err(problem) if problem.r#type == "no_pool") {
        return found;
    }
    state.file_check.wait();
    find_to_reserve(state, &state.tap(), name, has_limits)
}

fn find_to_reserve(
    state: &AppState,
    tap: &Standpipe,
    name: &PoolName,
    has_limits: bool,
) -> Result<(Pool, bool), Problem> {
    let pool = tap.pool(name.as_str())?;
    if exists(state, tap, name)? {
        return Ok((pool, false));
    }
    let configured = tap.settings().pools.contains_key(name);
    if !configured && !has_limits && !pool.learns() {
        // A call through the proxy can state no limits.
        let hint = "describe it in standpipe.toml with a limit; POST /v1/leases may also state \
                    \"limits\": {\"requests\": \"60/min\"}";
        return Err(absent(tap, name, hint));
    }
    if !configured && state.known_pools().len() >= MAX_POOLS {
        let detail = format!("there are {MAX_POOLS} pools, the most that requests may create");
        let hint = "use one of them, describe it in standpipe.toml, or remove unused ones: \
                    standpipe store reset POOL --yes";
        return Err(Problem::invalid(detail, hint).about(name.as_str()));
    }
    Ok((pool, true))
}

/// A pool to report a provider's answer to. A report may create the pool of a known provider.
pub(crate) fn to_report(
    state: &AppState,
    tap: &Standpipe,
    name: &PoolName,
) -> Result<Pool, Problem> {
    match tap.pool(name.as_str()) {
        Ok(pool) if pool.learns() => to_reserve(state, tap, name, false).map(|_| pool),
        _ => existing(state, tap, name),
    }
}

/// A pool that is configured or exists in the store.
pub(crate) fn existing(
    state: &AppState,
    tap: &Standpipe,
    name: &PoolName,
) -> Result<Pool, Problem> {
    if tap.settings().pools.contains_key(name) || exists(state, tap, name)? {
        return Ok(tap.existing_pool(name));
    }
    Err(absent(tap, name, "GET /v1/pools lists the pools; the first POST /v1/leases creates one"))
}

/// The problem of a pool that does not exist. `hint` is for one that resembles no other.
fn absent(tap: &Standpipe, name: &PoolName, hint: &str) -> Problem {
    // A store that cannot be listed has no suggestion.
    let pools = tap.pools().blocking().unwrap_or_default();
    let near = nearest(name.as_str(), pools.iter().map(PoolName::as_str));
    let hint = near.map_or_else(|| hint.to_owned(), |near| format!("did you mean `{near}`?"));
    Problem::no_pool(name.as_str(), hint)
}

/// A lease by its parsed id. Its pools must exist.
pub(crate) fn lease_of(
    state: &AppState,
    tap: &Standpipe,
    id: &LeaseId,
) -> Result<LeaseHandle, Problem> {
    for pool in id.pools() {
        if !exists(state, tap, pool)? {
            return Err(standpipe::Error::LeaseGone { lease: id.clone() }.into());
        }
    }
    Ok(tap.lease(id)?)
}

/// A lease by its id, found without blocking if its pools are known.
pub(crate) async fn find_lease(state: &Arc<AppState>, text: &str) -> Result<LeaseHandle, Problem> {
    let id = id(text)?;
    let is_known = |pool: &PoolName| state.known_pools().contains(pool.as_str());
    if id.pools().all(is_known) {
        return Ok(state.tap().lease(&id)?);
    }
    let shared = Arc::clone(state);
    state.on_store(move |tap| lease_of(&shared, tap, &id)).await
}

/// Parses the id of a lease.
pub(crate) fn id(text: &str) -> Result<LeaseId, Problem> {
    text.parse().map_err(|wrong: InvalidLeaseId| {
        let shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
        match wrong {
            InvalidLeaseId::NotALease => Problem::invalid(
                format!("`{shown}` is not a lease id"),
                "use the `lease` that POST /v1/leases returned, which begins with lease1_",
            ),
            InvalidLeaseId::Damaged => Problem::invalid(
                format!("a part of the lease id `{shown}` is missing or changed"),
                "copy the whole id, as POST /v1/leases returned it",
            ),
        }
    })
}

/// Whether the store has the pool. The store is asked once; a pool that is reset later comes into
/// being again at the next reserve.
fn exists(state: &AppState, tap: &Standpipe, name: &PoolName) -> Result<bool, Problem> {
    if state.known_pools().contains(name.as_str()) {
        return Ok(true);
    }
    let pools = tap.pools().blocking()?;
    let mut known = state.known_pools();
    known.extend(pools.iter().map(ToString::to_string));
    Ok(pools.contains(name))
}

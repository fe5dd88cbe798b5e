//! Which pool is meant, and whether there is one: a slip of the pen must not make a new ledger.

use standpipe::config::nearest;
use standpipe::{LeaseId, Pool, PoolName, Standpipe};

use crate::house::House;
use crate::problem::Problem;

/// How many pools there may be before calls from here make no more.
const MOST: usize = 1_024;

/// The name, if it is one.
pub(crate) fn name(text: &str) -> Result<PoolName, Problem> {
    text.parse().map_err(|wrong: standpipe::InvalidPoolName| {
        let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
        Problem::invalid(format!("`{shown}` cannot be the name of a pool"), wrong.to_string())
    })
}

/// A pool to draw on. It may come into being by this, if its limits are known or can be learned.
pub(crate) fn to_draw_on(
    house: &House,
    tap: &Standpipe,
    name: &PoolName,
    has_limits: bool,
) -> Result<Pool, Problem> {
    let pool = tap.pool(name.as_str())?;
    if exists(house, tap, name)? {
        return Ok(pool);
    }
    let described = tap.settings().pools.contains_key(name);
    if !described && !has_limits && !pool.learns() {
        return Err(standpipe::Error::NoLimits { pool: name.clone() }.into());
    }
    if !described && house.known().len() >= MOST {
        let detail = format!("there are {MOST} pools already, the most that calls make");
        let hint = "use one of them, describe it in standpipe.toml, or remove those that nobody \
                    needs: standpipe store reset POOL --yes";
        return Err(Problem::invalid(detail, hint).about(name.as_str()));
    }
    Ok(pool)
}

/// A pool to tell what its provider said. One of a provider we know may hear that first of all.
pub(crate) fn to_tell(house: &House, tap: &Standpipe, name: &PoolName) -> Result<Pool, Problem> {
    match tap.pool(name.as_str()) {
        Ok(pool) if pool.learns() => to_draw_on(house, tap, name, false).map(|_| pool),
        _ => known(house, tap, name),
    }
}

/// A pool that is there, described or not.
pub(crate) fn known(house: &House, tap: &Standpipe, name: &PoolName) -> Result<Pool, Problem> {
    if tap.settings().pools.contains_key(name) || exists(house, tap, name)? {
        return Ok(tap.pool_as_it_is(name));
    }
    let known = tap.pools()?;
    let hint = match nearest(name.as_str(), known.iter().map(PoolName::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "GET /v1/pools shows those there are; the first POST /v1/leases makes one".into(),
    };
    Err(Problem::no_pool(name.as_str(), hint))
}

/// The lease of that id, whose pool must be there.
pub(crate) fn lease(
    house: &House,
    tap: &Standpipe,
    text: &str,
) -> Result<standpipe::LeaseHandle, Problem> {
    let id: LeaseId = id(text)?;
    if !exists(house, tap, id.pool())? {
        return Err(standpipe::Error::LeaseGone { lease: id }.into());
    }
    Ok(tap.lease(&id)?)
}

/// The id of a lease, if it is one.
pub(crate) fn id(text: &str) -> Result<LeaseId, Problem> {
    text.parse().map_err(|wrong: standpipe::InvalidLeaseId| {
        Problem::invalid(
            format!("that is not the id of a lease: {wrong}"),
            "use it as it was given",
        )
    })
}

/// Whether the store has it. Asked once; a pool that was reset comes into being again by itself.
fn exists(house: &House, tap: &Standpipe, name: &PoolName) -> Result<bool, Problem> {
    if house.known().contains(name.as_str()) {
        return Ok(true);
    }
    let pools = tap.pools()?;
    let mut known = house.known();
    known.extend(pools.iter().map(ToString::to_string));
    Ok(pools.contains(name))
}

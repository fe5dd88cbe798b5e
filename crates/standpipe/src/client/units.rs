//! Rejects units that are neither built in nor declared: a misspelled unit would be charged
//! nowhere.

use standpipe_core::{Amounts, Key, Limit, PoolConfig, Rule, State, Unit};
use standpipe_store::PoolName;

use super::StoreClient;
use crate::client::PoolClient;
use crate::config::nearest;
use crate::config::text::KNOWN_UNITS;
use crate::error::Error;

impl StoreClient {
    /// Checks the units of a cost or of usage against the pool's limits. `own` are limits that this
    /// process declares; `lease` counts the units of its own cost.
    ///
    /// A pool without any limit passes: its missing limits are the error.
    pub(crate) fn check_units(
        &self,
        client: &PoolClient,
        amounts: &Amounts,
        own: &[Limit],
        lease: Option<Key>,
    ) -> Result<(), Error> {
        let custom = custom(amounts, own);
        if custom.is_empty() {
            return Ok(());
        }
        // A replica that has not read the configuration yet knows no unit.
        let passes = |state: &State| {
            let known = state.facts().config.is_some();
            (known && undeclared(state, &custom, lease).is_none()).then_some(())
        };
        if self.find(client, passes)?.is_some() {
            return Ok(());
        }
        let dispatcher = client.dispatcher();
        let state = dispatcher.participant.replica().state();
        check(state, amounts, own, lease, client.pool())
    }
}

/// Checks the units of a cost or of usage against a state that has just been read.
pub(crate) fn check(
    state: &State,
    amounts: &Amounts,
    own: &[Limit],
    lease: Option<Key>,
    pool: &PoolName,
) -> Result<(), Error> {
    // Its first limits come with this call.
    if state.facts().config.is_none() && !own.is_empty() {
        return check_stated(amounts, own, pool);
    }
    match undeclared(state, &custom(amounts, own), lease) {
        Some(unit) => {
            let limits = state.facts().config.iter().flat_map(|config| &config.limits);
            Err(unknown(unit, limits.chain(own), pool))
        }
        None => Ok(()),
    }
}

/// Returns the amounts without custom units that the pool does not count.
pub(crate) fn without_undeclared(state: &State, amounts: &Amounts, own: &[Limit]) -> Amounts {
    let custom = custom(amounts, own);
    let declared = |unit: &Unit| {
        let limits = state.facts().config.iter().flat_map(|config| &config.limits);
        let mut limits = limits.filter_map(unit_of);
        !custom.contains(&unit) || limits.any(|known| known == unit)
    };
    let kept = amounts.iter().filter(|(unit, _)| declared(unit));
    Amounts::new(kept.map(|(unit, amount)| (unit.clone(), amount))).unwrap_or_default()
}

/// Returns whether a state has a configuration that counts all of these units.
pub(crate) fn are_declared(state: &State, units: &[&Unit]) -> bool {
    state.facts().config.is_some() && undeclared(state, units, None).is_none()
}

/// Checks the units of a cost against these limits alone.
pub(crate) fn check_stated(amounts: &Amounts, own: &[Limit], pool: &PoolName) -> Result<(), Error> {
    match custom(amounts, own).first() {
        Some(unit) => Err(unknown(unit, own.iter(), pool)),
        None => Ok(()),
    }
}

/// Returns the units that are not built in and that none of these limits counts.
pub(crate) fn custom<'a>(amounts: &'a Amounts, own: &[Limit]) -> Vec<&'a Unit> {
    let units = amounts.iter().map(|(unit, _)| unit);
    let custom = units.filter(|unit| matches!(unit, Unit::Other(_)));
    custom.filter(|unit| !own.iter().any(|limit| unit_of(limit) == Some(*unit))).collect()
}

/// Returns the first of these units that the pool does not count.
fn undeclared<'a>(state: &State, units: &[&'a Unit], lease: Option<Key>) -> Option<&'a Unit> {
    let config: &PoolConfig = state.facts().config.as_ref()?;
    let lease = lease.and_then(|lease| state.facts().leases.get(&lease));
    let declared = |unit: &Unit| config.limits.iter().any(|limit| unit_of(limit) == Some(unit));
    let reserved = |unit: &Unit| lease.is_some_and(|lease| lease.call.cost.of(unit).is_some());
    units.iter().find(|unit| !declared(unit) && !reserved(unit)).copied()
}

fn unknown<'a>(unit: &Unit, limits: impl Iterator<Item = &'a Limit>, pool: &PoolName) -> Error {
    let declared = limits.filter_map(unit_of).map(Unit::name);
    let known: Vec<&str> = declared.chain(KNOWN_UNITS).collect();
    let remedy = match nearest(unit.name(), known.into_iter()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "declare it with a limit in [pool.\"{pool}\".units], or in the limits of a reserve"
        ),
    };
    Error::invalid(format!("`{pool}` has no unit `{unit}`"), remedy)
}

const fn unit_of(limit: &Limit) -> Option<&Unit> {
    match &limit.rule {
        Rule::Window { unit, .. } | Rule::Bucket { unit, .. } => Some(unit),
        Rule::Parallel { .. } => None,
    }
}

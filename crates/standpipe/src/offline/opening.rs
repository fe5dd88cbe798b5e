//! What an offline ledger begins with: the charges and leases of this process, and an equal part,
//! rounded up, of the usage that no living session made.
//!
//! So processes that lose the store together do not use again what was used before. `charges`
//! records who used what.

use std::collections::{BTreeMap, BTreeSet};

use standpipe_core::{
    Action, AgentName, Amounts, Facts, Instant, Key, Lease, LeaseOwner, LimitId, Priority,
    Recovered, Reserve, Rule, Span, State, Unit, bounds,
};
use standpipe_core::{Charged, Limit, PoolConfig};

use super::alive::alive;
use super::charges::{SessionCharges, Stamped, unit_of};

/// What was known when the store was last read.
pub(crate) struct LastRead<'a> {
    pub(crate) state: &'a State,
    pub(crate) now: Instant,
    /// The session of this process.
    pub(crate) session: u64,
    /// The number of processes that share the limits.
    pub(crate) among: u64,
    pub(crate) charges: &'a SessionCharges,
}

/// Actions by the instants at which they are applied, none of them after the current one.
pub(crate) type Replay = BTreeMap<Instant, Vec<Action>>;

/// Returns the actions that a share begins with.
pub(crate) fn opening(last: &LastRead<'_>) -> Replay {
    let facts = last.state.facts();
    let Some(config) = &facts.config else { return Replay::new() };
    let alive = alive(facts, last.now);
    let mut used: BTreeMap<Instant, BTreeMap<Unit, u64>> = BTreeMap::new();
    for unit in units(config) {
        for (stamp, sum) in last.start_of(config, &unit, &alive) {
            let at = used.entry(stamp.min(last.now)).or_default();
            let before = at.get(&unit).copied().unwrap_or(0);
            at.insert(unit.clone(), before.saturating_add(sum).min(bounds::AMOUNT));
        }
    }
    let mut replay = Replay::new();
    for (number, (stamp, sums)) in (1..).zip(used) {
        let lease = Key { session: NO_SESSION, number };
        let settled = reserve(lease, config, &sums, None).map(|call| [call, commit(lease)]);
        replay.entry(stamp).or_default().extend(settled.into_iter().flatten());
    }
    let present = replay.entry(last.now).or_default();
    present.extend(last.blocked_slots(config, &alive));
    present.extend(own_leases(last.state, last.now, &|key| last.is_own(key)));
    replay
}

/// Returns the actions that restore the leases of this process in its offline ledger.
pub(crate) fn own_leases(state: &State, now: Instant, own: &dyn Fn(Key) -> bool) -> Vec<Action> {
    let facts = state.facts();
    let leases = facts.leases.iter().filter(|(key, _)| own(**key));
    leases.filter_map(|(key, lease)| carried(facts, *key, lease, now)).collect()
}

impl LastRead<'_> {
    fn is_own(&self, lease: Key) -> bool {
        lease.session == self.session || self.charges.is_own(lease)
    }

    /// Returns the usage that a share of a unit's limits begins with.
    fn start_of(&self, config: &PoolConfig, unit: &Unit, alive: &BTreeSet<u64>) -> Stamped {
        let Some((lane, limit)) = measured_by(config, unit) else { return Stamped::new() };
        let figures = self.state.figures(self.now);
        let used = figures.get(lane).map_or(0, |figures| figures.used);
        let (period, total) = match &limit.rule {
            Rule::Window { period, .. } => {
                let period = *period + config.slack;
                let mut units = self.state.facts().units.iter();
                let usage = units.find(|own| own.unit == *unit && own.charged == limit.charged);
                let charges = usage.into_iter().flat_map(|usage| usage.history.charges());
                let counts = charges.filter(|charge| charge.stamp + period > self.now);
                let mut total = Stamped::new();
                counts.for_each(|own| *total.entry(own.stamp).or_default() += own.units);
                // Usage that is assumed after a loss of state has no charges.
                let assumed = used.saturating_sub(total.values().sum());
                *total.entry(self.now).or_default() += assumed;
                (period, total)
            }
            // A bucket stores how much is missing, not since when.
            Rule::Bucket { period, .. } => {
                (*period + config.slack, Stamped::from([(self.now, used)]))
            }
            Rule::Parallel { .. } => return Stamped::new(),
        };
        let since = self.now - period;
        let living = self.charges.of_living(unit, since, alive);
        let mut start = self.own_part(limit, unit, since, &total);
        let held = self.unowned_reserved(limit, unit, alive);
        for (stamp, sum) in parts(&total, &living, held, self.among, self.now) {
            *start.entry(stamp).or_default() += sum;
        }
        start
    }

    /// Returns the charges of this process, without its calls in flight.
    fn own_part(&self, limit: &Limit, unit: &Unit, since: Instant, total: &Stamped) -> Stamped {
        let own = self.charges.own().get(unit).into_iter().flatten();
        let own = own.filter(|(stamp, _)| **stamp >= since);
        if matches!(limit.rule, Rule::Window { .. }) {
            return own.map(|(stamp, units)| (*stamp, *units)).collect();
        }
        // What has been refilled since is no longer missing.
        let sum: u64 = own.map(|(_, units)| *units).sum();
        Stamped::from([(self.now, sum.min(total.values().sum()))])
    }

    /// Returns what leases without a living session hold and is not charged yet.
    fn unowned_reserved(&self, limit: &Limit, unit: &Unit, alive: &BTreeSet<u64>) -> u64 {
        if limit.charged == Charged::Start {
            return 0;
        }
        let costs = self.unowned_leases(alive).map(|(_, lease)| lease.call.cost.of(unit));
        costs.map(Option::unwrap_or_default).sum()
    }

    /// Returns the action that blocks this share's part of the slots held by leases without a
    /// living session.
    fn blocked_slots(&self, config: &PoolConfig, alive: &BTreeSet<u64>) -> Option<Action> {
        let slots = |limit: &Limit| matches!(limit.rule, Rule::Parallel { .. });
        if !config.limits.iter().any(slots) {
            return None;
        }
        let ends = self.unowned_leases(alive).map(|(_, lease)| match lease.owner {
            LeaseOwner::Ttl { expires, .. } => expires.since(self.now),
            LeaseOwner::Session(_) => bounds::SILENCE,
        });
        let ttl = ends.max()?.max(Span(1));
        let held: u64 = self.unowned_leases(alive).map(|(_, lease)| lease.call.cost.slots()).sum();
        let part = held.div_ceil(self.among).min(bounds::AMOUNT);
        let slots = BTreeMap::from([(Unit::Parallel, part)]);
        let lease = Key { session: NO_SESSION, number: SLOTS };
        reserve(lease, config, &slots, Some(ttl))
    }

    fn unowned_leases(&self, alive: &BTreeSet<u64>) -> impl Iterator<Item = (&Key, &Lease)> {
        let owned = |key: &Key| self.is_own(*key) || alive.contains(&key.session);
        self.state.facts().leases.iter().filter(move |(key, _)| !owned(key))
    }
}

/// Returns an equal part, rounded up as a whole, of what is in `total` or held and not in `living`,
/// stamped where `total` has more than `living` had by then.
fn parts(total: &Stamped, living: &Stamped, held: u64, among: u64, now: Instant) -> Stamped {
    let sum = |stamped: &Stamped| stamped.values().sum::<u64>();
    let unowned = sum(total).saturating_sub(sum(living));
    let (mut seen, mut before) = (0_u64, 0_u64);
    let mut parts = Stamped::new();
    let mut part_up_to = |stamp: Instant, upto: u64| {
        let part = upto.div_ceil(among) - before.div_ceil(among);
        before = upto;
        *parts.entry(stamp).or_default() += part;
    };
    let mut last = 0;
    for (stamp, units) in total {
        seen += units;
        let lived: u64 = living.range(..=*stamp).map(|(_, units)| *units).sum();
        last = seen.saturating_sub(lived).min(unowned).max(last);
        part_up_to(*stamp, last);
    }
    part_up_to(now, unowned + held);
    parts.retain(|_, part| *part > 0);
    parts
}

/// Returns the units that the pool's rates count, each once.
pub(crate) fn units(config: &PoolConfig) -> BTreeSet<Unit> {
    config.limits.iter().filter_map(|limit| unit_of(&limit.rule).cloned()).collect()
}

/// Returns the limit that keeps a unit's charges for longest: a window where there is one.
fn measured_by<'a>(config: &'a PoolConfig, unit: &Unit) -> Option<(usize, &'a Limit)> {
    let rank = |limit: &Limit| match limit.id() {
        LimitId::Window(_, period) => (1, period),
        LimitId::Bucket(_, period) => (0, period),
        _ => (0, Span::ZERO),
    };
    let its = |limit: &Limit| unit_of(&limit.rule) == Some(unit);
    let limits = config.limits.iter().enumerate().filter(|(_, limit)| its(limit));
    limits.max_by_key(|(_, limit)| rank(limit))
}

/// Returns a restored call with these amounts. It names every limited unit, so that nothing is
/// estimated.
fn reserve(
    lease: Key,
    config: &PoolConfig,
    sums: &BTreeMap<Unit, u64>,
    ttl: Option<Span>,
) -> Option<Action> {
    let figure = |unit: Unit| {
        let sum = sums.get(&unit).copied().unwrap_or(0);
        (unit, sum)
    };
    let slots = sums.get(&Unit::Parallel).map(|slots| (Unit::Parallel, *slots));
    let figures = units(config).into_iter().map(figure).chain(slots);
    let cost = Amounts::new(figures).unwrap_or_default();
    let mut reserve = Reserve::new(AgentName::new(EARLIER)?, cost);
    (reserve.priority, reserve.ttl) = (Some(Priority::Background), ttl);
    Some(Action::Recovered(Recovered::Reserve { lease, reserve: Box::new(reserve) }))
}

const fn commit(lease: Key) -> Action {
    Action::Recovered(Recovered::Commit { lease })
}

/// Returns the action that restores a lease in flight.
fn carried(facts: &Facts, key: Key, lease: &Lease, now: Instant) -> Option<Action> {
    let agent = facts.agents.get(usize::from(lease.agent))?.name.clone();
    let mut reserve = Reserve::new(agent, lease.call.cost.clone());
    reserve.priority = Some(lease.tier);
    reserve.ttl = match lease.owner {
        LeaseOwner::Ttl { expires, .. } => Some(expires.since(now).max(Span(1))),
        LeaseOwner::Session(_) => None,
    };
    reserve.model = lease.call.model.clone();
    reserve.id = lease.call.id.as_ref().map(|own| own.id.clone());
    Some(Action::Recovered(Recovered::Reserve { lease: key, reserve: Box::new(reserve) }))
}

/// The agent under which earlier use is shown while the store is unavailable.
const EARLIER: &str = "earlier";

/// The session of leases that belong to none.
const NO_SESSION: u64 = 0;

/// The number of the lease that blocks slots, behind those of charges.
const SLOTS: u64 = 1 << 32;

//! Which session made which charges, as far as this process saw it in the log.
//!
//! The ledger keeps what was used, not by whom. A process that may lose the store needs its own
//! part and that of the other living sessions; charges that it did not see count as made by none of
//! them.
//!
//! Invariant: charges are stamped like those in the ledger or later, so none is forgotten early.

use std::collections::{BTreeMap, BTreeSet};

use standpipe_core::{
    Action, Amounts, Answer, Charged, Commit, Decision, Event, Facts, Instant, Key, LeaseAnswer,
    Notice, Outcome, PoolConfig, Recovered, Rule, Span, Unit, bounds,
};

/// Units by the stamp until one period after which they count.
pub(crate) type Stamped = BTreeMap<Instant, u64>;

/// Charges of several units.
pub(crate) type Charges = BTreeMap<Unit, Stamped>;

/// Which session made which charges.
#[derive(Debug, Default)]
pub(crate) struct SessionCharges {
    /// The longest period in which a unit is counted.
    periods: BTreeMap<Unit, Span>,
    /// Units that are charged when a call ends.
    at_end: BTreeSet<Unit>,
    /// The number of the last event of each session, because an event can be read twice.
    seen: BTreeMap<u64, u64>,
    in_flight: BTreeMap<Key, InFlight>,
    own: Charges,
    others: BTreeMap<u64, Charges>,
}

#[derive(Debug)]
struct InFlight {
    /// The session that holds it; `None` if it is this process.
    session: Option<u64>,
    at: Instant,
    cost: Amounts,
}

impl SessionCharges {
    /// Returns what this process used, without its calls in flight.
    pub(crate) const fn own(&self) -> &Charges {
        &self.own
    }

    /// Returns whether a call in flight is this process's own.
    pub(crate) fn is_own(&self, lease: Key) -> bool {
        self.in_flight.get(&lease).is_some_and(|held| held.session.is_none())
    }

    /// Returns what living sessions used of a unit since an instant, this process included.
    pub(crate) fn of_living(&self, unit: &Unit, since: Instant, alive: &BTreeSet<u64>) -> Stamped {
        let mut sum = Stamped::new();
        let others = self.others.iter().filter(|(session, _)| alive.contains(session));
        for charges in others.map(|(_, charges)| charges).chain([&self.own]) {
            for (stamp, units) in charges.get(unit).into_iter().flatten() {
                add(&mut sum, *stamp, *units);
            }
        }
        for held in self.in_flight.values() {
            let living = held.session.is_none_or(|session| alive.contains(&session));
            let units = held.cost.of(unit).filter(|_| living && !self.at_end.contains(unit));
            add(&mut sum, held.at, units.unwrap_or(0));
        }
        sum.retain(|stamp, _| *stamp >= since);
        sum
    }

    /// Removes charges that no longer count and sessions that are no longer known, and updates the
    /// pool's periods.
    pub(crate) fn prune(&mut self, facts: &Facts, now: Instant) {
        if let Some(config) = &facts.config {
            self.configure(config);
        }
        // A snapshot may have skipped entries: a call that is no longer in flight settled at its
        // estimate.
        let known = |key: &Key| facts.leases.contains_key(key);
        let gone: Vec<Key> = self.in_flight.keys().filter(|key| !known(key)).copied().collect();
        for lease in gone {
            self.settle(lease, &Amounts::default(), now);
        }
        self.seen.retain(|session, _| facts.sessions.contains_key(session));
        self.others.retain(|session, _| facts.sessions.contains_key(session));
        let periods = &self.periods;
        for charges in self.others.values_mut().chain([&mut self.own]) {
            // A unit that is no longer limited may be limited again: the longest period of all.
            let longest = periods.values().max().copied().unwrap_or(bounds::SPAN);
            for (unit, stamped) in charges {
                let oldest = now - periods.get(unit).copied().unwrap_or(longest);
                stamped.retain(|stamp, _| *stamp >= oldest);
            }
        }
    }

    fn configure(&mut self, config: &PoolConfig) {
        self.periods.clear();
        for limit in &config.limits {
            if let Rule::Window { unit, period, .. } | Rule::Bucket { unit, period, .. } =
                &limit.rule
            {
                let longest = self.periods.entry(unit.clone()).or_default();
                *longest = (*longest).max(*period + config.slack);
            }
        }
        let late = config.limits.iter().filter(|limit| limit.charged == Charged::End);
        self.at_end = late.filter_map(|limit| unit_of(&limit.rule).cloned()).collect();
    }

    fn admit(&mut self, lease: Key, session: Option<u64>, at: Instant, cost: &Amounts) {
        let held = InFlight { session, at, cost: cost.clone() };
        self.in_flight.entry(lease).or_insert(held);
    }

    /// Ends a call with these amounts, and with its estimate for units they do not name.
    fn settle(&mut self, lease: Key, used: &Amounts, now: Instant) {
        let Some(held) = self.in_flight.remove(&lease) else { return };
        let charges = match held.session {
            Some(session) => self.others.entry(session).or_default(),
            None => &mut self.own,
        };
        for (unit, units) in overlaid(&held.cost, used) {
            let at = if self.at_end.contains(&unit) { now } else { held.at };
            let period = self.periods.get(&unit).copied().unwrap_or_default();
            let stamp = slice_end(at, period);
            add(charges.entry(unit).or_default(), stamp, units);
        }
    }

    /// Records an event that is read for the first time.
    fn record(&mut self, event: &Event, own: bool, at: Instant, outcome: &Outcome) {
        let session = (!own).then_some(event.key.session);
        match (&event.action, &outcome.answer) {
            (Action::Reserve(reserve), Answer::Decided(Decision::Admit(grant)))
                if !grant.settled =>
            {
                self.admit(grant.lease, session, at, &reserve.cost);
            }
            (Action::Recovered(Recovered::Reserve { lease, reserve }), _) => {
                self.admit(*lease, session, at, &reserve.cost);
            }
            (Action::Commit(commit), Answer::Lease(LeaseAnswer::Ended)) => {
                self.settle(commit.lease, &commit.used, at);
            }
            (Action::Recovered(Recovered::Commit { lease }), _) => {
                self.settle(*lease, &Amounts::default(), at);
            }
            (Action::Commit(Commit { lease, used, .. }), Answer::Lease(LeaseAnswer::Lives(_))) => {
                if let Some(held) = self.in_flight.get_mut(lease)
                    && let Ok(cost) = Amounts::new(overlaid(&held.cost, used))
                {
                    held.cost = cost;
                }
            }
            (
                Action::Cancel { lease } | Action::Withdraw { lease } | Action::Redate { lease },
                Answer::Lease(LeaseAnswer::Ended),
            ) => {
                self.in_flight.remove(lease);
            }
            (Action::Throttled(throttled), _) => {
                if let Some(lease) = throttled.lease {
                    self.settle(lease, &Amounts::default(), at);
                }
            }
            _ => {}
        }
    }

    /// Receives an event of the log.
    pub(crate) fn on_event(&mut self, event: &Event, own: bool, at: Instant, outcome: &Outcome) {
        for notice in &outcome.notices {
            if let Notice::Reclaimed { lease, .. } = notice {
                self.settle(*lease, &Amounts::default(), at);
            }
        }
        let ignored = matches!(outcome.answer, Answer::Duplicate | Answer::SessionEnded);
        let last = self.seen.entry(event.key.session).or_default();
        if ignored || event.key.number <= *last {
            return;
        }
        *last = event.key.number;
        self.record(event, own, at, outcome);
    }
}

/// Returns a cost in which known amounts replace estimates.
pub(crate) fn overlaid(cost: &Amounts, used: &Amounts) -> Vec<(Unit, u64)> {
    let figure = |(unit, estimate): (&Unit, u64)| (unit.clone(), used.of(unit).unwrap_or(estimate));
    let new = used.iter().filter(|(unit, _)| cost.of(unit).is_none());
    let new = new.map(|(unit, units)| (unit.clone(), units));
    cost.iter().map(figure).chain(new).collect()
}

/// Returns the unit that a rate counts.
pub(crate) const fn unit_of(rule: &Rule) -> Option<&Unit> {
    match rule {
        Rule::Window { unit, .. } | Rule::Bucket { unit, .. } => Some(unit),
        Rule::Parallel { .. } => None,
    }
}

fn add(to: &mut Stamped, stamp: Instant, units: u64) {
    if units > 0 {
        let sum = to.entry(stamp).or_default();
        *sum = sum.saturating_add(units);
    }
}

/// Returns the end of the slice that contains an instant, so that many calls need little memory.
const fn slice_end(at: Instant, period: Span) -> Instant {
    let slice = period.0 / SLICES;
    if slice == 0 {
        return at;
    }
    Instant((at.0.div_ceil(slice)).saturating_mul(slice))
}

/// How many slices a period has.
const SLICES: u64 = 512;

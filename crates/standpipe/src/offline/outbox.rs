//! What the store must receive about the calls that were admitted without it.
//!
//! A call that has ended is added to the sum of its agent, so that an outage of any length needs
//! little memory and a short hand-over. A call in flight is handed over as a lease; later actions
//! about it follow.
//!
//! Invariant: each call is handed over exactly once, unless it was cancelled before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Commit, Decision, Event, Instant, Key, LeaseAnswer, Notice,
    Outcome, PoolConfig, Priority, Recovered, Reserve, Span, Throttled, Unit, bounds,
};

use super::charges::overlaid;
use super::opening::units;

/// What the store must receive.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The units that the pool's rates count, without money where it follows from the others.
    units: BTreeSet<Unit>,
    priced: bool,
    /// Sessions under which calls were admitted here.
    sessions: BTreeSet<u64>,
    in_flight: BTreeMap<Key, InFlight>,
    /// Sums of calls that have ended.
    ended: BTreeMap<(AgentName, Option<Priority>), Sum>,
    /// Actions that are handed over unchanged, in this order.
    actions: VecDeque<Action>,
    /// How many refusals of the provider are among them.
    refusals: usize,
    calls: u64,
}

#[derive(Debug)]
struct InFlight {
    reserve: Box<Reserve>,
    /// The cost it was admitted with, estimates included.
    estimate: Option<Amounts>,
    progress: Option<Commit>,
    handed_over: bool,
}

#[derive(Debug)]
struct Sum {
    /// The key of the first call in the sum.
    lease: Key,
    units: BTreeMap<Unit, u64>,
}

impl Outbox {
    pub(crate) fn new(config: &PoolConfig) -> Self {
        let (mut units, priced) = (units(config), !config.prices.is_empty());
        if priced {
            units.remove(&Unit::Usd);
        }
        Self {
            units,
            priced,
            sessions: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            ended: BTreeMap::new(),
            actions: VecDeque::new(),
            refusals: 0,
            calls: 0,
        }
    }

    /// Returns whether a lease was granted here.
    pub(crate) fn granted(&self, lease: Key) -> bool {
        self.sessions.contains(&lease.session)
    }

    /// Returns how many calls were admitted here and not cancelled.
    pub(crate) const fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns whether everything was handed over.
    pub(crate) fn is_empty(&self) -> bool {
        let handed_over = self.in_flight.values().all(|held| held.handed_over);
        handed_over && self.ended.is_empty() && self.actions.is_empty()
    }

    /// Returns the next actions, about `most` of them. They count as handed over.
    pub(crate) fn next_batch(&mut self, most: usize) -> Vec<Action> {
        let mut batch = Vec::new();
        while batch.len() < most
            && let Some(action) = self.actions.pop_front()
        {
            let refusal = matches!(action, Action::Recovered(Recovered::Throttled(_)));
            self.refusals -= usize::from(refusal);
            batch.push(action);
        }
        while batch.len() < most
            && let Some(((agent, priority), sum)) = self.ended.pop_first()
        {
            batch.extend(sum.actions(agent, priority));
        }
        for (lease, held) in self.in_flight.iter_mut().filter(|(_, held)| !held.handed_over) {
            if batch.len() >= most {
                break;
            }
            held.handed_over = true;
            batch.push(recovered(*lease, held.reserve.clone()));
            batch.extend(held.progress.clone().map(Action::Commit));
        }
        batch
    }

    /// Records an event of the offline ledger.
    pub(crate) fn on_event(&mut self, event: &Event, _at: Instant, outcome: &Outcome) {
        for notice in &outcome.notices {
            if let Notice::Reclaimed { lease, .. } = notice {
                self.end(*lease, &Amounts::default());
            }
        }
        match (&event.action, &outcome.answer) {
            (Action::Reserve(reserve), Answer::Decided(Decision::Admit(grant)))
                if !grant.settled =>
            {
                self.admit(grant.lease, reserve);
            }
            (Action::Commit(commit), Answer::Lease(LeaseAnswer::Lives(_))) => {
                self.progress(commit);
            }
            (Action::Commit(commit), Answer::Lease(LeaseAnswer::Ended)) => {
                match self.take_handed_over(commit.lease) {
                    true => self.actions.push_back(event.action.clone()),
                    false => self.end(commit.lease, &commit.used),
                }
            }
            (
                Action::Cancel { lease } | Action::Withdraw { lease } | Action::Redate { lease },
                Answer::Lease(LeaseAnswer::Ended),
            ) => {
                if self.take_handed_over(*lease) {
                    self.actions.push_back(event.action.clone());
                } else if self.in_flight.remove(lease).is_some() {
                    self.calls -= 1;
                }
            }
            (
                Action::Heartbeat { lease: Some(lease), ttl },
                Answer::Lease(LeaseAnswer::Lives(_)),
            ) => {
                self.extend(*lease, *ttl);
            }
            (Action::Throttled(throttled), _) => self.throttled(throttled),
            _ => {}
        }
    }

    fn admit(&mut self, lease: Key, reserve: &Reserve) {
        self.sessions.insert(lease.session);
        // A repeated id is the same call.
        if self.in_flight.contains_key(&lease) {
            return;
        }
        let mut reserve = Box::new(reserve.clone());
        (reserve.ticket, reserve.hold, reserve.patience) = (None, None, Span::ZERO);
        let held = InFlight { reserve, estimate: None, progress: None, handed_over: false };
        self.in_flight.insert(lease, held);
        self.calls += 1;
    }

    /// Records the cost that a call was admitted with.
    pub(crate) fn note_cost(&mut self, lease: Key, cost: &Amounts) {
        if let Some(held) = self.in_flight.get_mut(&lease) {
            held.estimate = Some(cost.clone());
        }
    }

    fn progress(&mut self, commit: &Commit) {
        match self.in_flight.get_mut(&commit.lease) {
            Some(held) if held.handed_over => {
                self.actions.push_back(Action::Commit(commit.clone()));
            }
            Some(held) => held.progress = Some(commit.clone()),
            None => {}
        }
    }

    fn extend(&mut self, lease: Key, ttl: Option<Span>) {
        match self.in_flight.get_mut(&lease) {
            Some(held) if held.handed_over => {
                self.actions.push_back(Action::Heartbeat { lease: Some(lease), ttl });
            }
            Some(held) => held.reserve.ttl = ttl.or(held.reserve.ttl),
            None => {}
        }
    }

    /// Records a refusal of the provider. It settles its call, so the store needs the call first.
    fn throttled(&mut self, throttled: &Throttled) {
        if let Some((lease, held)) = throttled.lease.and_then(|l| self.in_flight.remove_entry(&l))
            && !held.handed_over
        {
            self.actions.push_back(recovered(lease, held.reserve));
        } else if throttled.lease.is_none() && self.refusals >= MOST_REFUSALS {
            return;
        }
        self.refusals += 1;
        self.actions.push_back(Action::Recovered(Recovered::Throttled(throttled.clone())));
    }

    /// Removes a lease that was handed over. Returns whether it was; then the store must receive
    /// its end.
    fn take_handed_over(&mut self, lease: Key) -> bool {
        let handed_over = self.in_flight.get(&lease).is_some_and(|held| held.handed_over);
        if handed_over {
            self.in_flight.remove(&lease);
        }
        handed_over
    }

    /// Ends a call with these amounts, and with its estimate for units they do not name.
    fn end(&mut self, lease: Key, used: &Amounts) {
        let Some(mut held) = self.in_flight.remove(&lease) else { return };
        if held.handed_over {
            self.actions.push_back(Action::Recovered(Recovered::Commit { lease }));
            return;
        }
        held.settle(used, self.priced);
        let reserve = held.reserve;
        // A call with an id may be repeated, so the store needs it unchanged.
        let whole = self.units.iter().all(|unit| reserve.cost.of(unit).is_some());
        if whole && reserve.id.is_none() {
            self.add(lease, &reserve);
        } else {
            self.actions.push_back(recovered(lease, reserve));
            self.actions.push_back(Action::Recovered(Recovered::Commit { lease }));
        }
    }

    fn add(&mut self, lease: Key, reserve: &Reserve) {
        let whose = (reserve.agent.clone(), reserve.priority);
        let fits = |sum: &Sum| sum.fits(&reserve.cost);
        if self.ended.get(&whose).is_some_and(|sum| !fits(sum))
            && let Some(full) = self.ended.remove(&whose)
        {
            self.actions.extend(full.actions(whose.0.clone(), whose.1));
        }
        let sum = self.ended.entry(whose).or_insert_with(|| Sum::of(lease));
        for (unit, units) in reserve.cost.iter() {
            *sum.units.entry(unit.clone()).or_default() += units;
        }
    }
}

impl InFlight {
    /// Sets the cost to what the call used: its progress, then its last amounts, and the estimate
    /// for other units. Amounts that follow from others are left to the store, unless the caller
    /// named them.
    fn settle(&mut self, used: &Amounts, priced: bool) {
        let asked = std::mem::take(&mut self.reserve.cost);
        let so_far = self.progress.take().map(|commit| commit.used).unwrap_or_default();
        let named =
            |unit: &Unit| [&asked, &so_far, used].iter().any(|figures| figures.of(unit).is_some());
        let mut cost = self.estimate.take().unwrap_or_else(|| asked.clone());
        for figures in [&so_far, used] {
            cost = Amounts::new(overlaid(&cost, figures)).unwrap_or(cost);
        }
        let both = [Unit::InputTokens, Unit::OutputTokens].map(|unit| cost.of(&unit));
        let tokens: u64 = both.iter().flatten().sum();
        let figured = cost.iter().filter_map(|(unit, units)| match unit {
            Unit::Usd if priced && !named(unit) => None,
            Unit::Tokens if !named(unit) && tokens > 0 => Some((unit.clone(), tokens)),
            _ => Some((unit.clone(), units)),
        });
        self.reserve.cost = Amounts::new(figured).unwrap_or_else(|_| cost.clone());
    }
}

impl Sum {
    const fn of(lease: Key) -> Self {
        Self { lease, units: BTreeMap::new() }
    }

    fn fits(&self, cost: &Amounts) -> bool {
        let new = cost.iter().filter(|(unit, _)| !self.units.contains_key(unit)).count();
        let sum = |unit: &Unit, units: u64| self.units.get(unit).map_or(units, |sum| sum + units);
        self.units.len() + new <= bounds::UNITS
            && cost.iter().all(|(unit, units)| sum(unit, units) <= bounds::AMOUNT)
    }

    fn actions(self, agent: AgentName, priority: Option<Priority>) -> [Action; 2] {
        let mut reserve = Reserve::new(agent, Amounts::new(self.units).unwrap_or_default());
        reserve.priority = priority;
        let commit = Action::Recovered(Recovered::Commit { lease: self.lease });
        [recovered(self.lease, Box::new(reserve)), commit]
    }
}

const fn recovered(lease: Key, reserve: Box<Reserve>) -> Action {
    Action::Recovered(Recovered::Reserve { lease, reserve })
}

/// How many refusals without a lease are kept: more would add no information.
const MOST_REFUSALS: usize = 1_024;

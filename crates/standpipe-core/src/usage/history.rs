//! The history of charges per unit, kept beyond the limits in force.
//!
//! A limit or cap that is added, changed or restored counts every remembered charge as if it had
//! always been in force, so a changed configuration never hands out a second quota. Charges are
//! remembered for the longest period of their unit in this configuration and the previous one;
//! nothing older is invented. `config/change.rs` carries counters from one configuration to the
//! next.

use alloc::vec::Vec;

use crate::agents::agent::AgentId;
use crate::bounds;
use crate::config::compiled::CompiledConfig;
use crate::config::{Charged, PoolConfig};
use crate::event::Key;
use crate::lease::{Charge, Target};
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::{Amounts, Unit};
use crate::usage::counter::{Count, CounterSpec, UsageCounter};
use crate::usage::window::{Grain, Window};

/// The remembered charges of one unit. There are two if some of its limits are charged at the start
/// of a call and others at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitHistory {
    /// The unit.
    pub unit: Unit,
    /// The longest period of the unit in the configuration in force; zero if it has no limit there.
    pub span: Span,
    /// The same in the previous configuration.
    pub span_before: Span,
    /// When calls are charged.
    pub charged: Charged,
    /// The charges.
    pub counter: UsageCounter,
}

impl UnitHistory {
    fn new(unit: Unit, charged: Charged) -> Self {
        let counter = UsageCounter::new(Count::Window(Window::new(Grain::Limit)));
        Self { unit, span: Span::ZERO, span_before: Span::ZERO, charged, counter }
    }

    /// How long a charge is remembered.
    pub(crate) fn kept_for(&self) -> Span {
        self.span.max(self.span_before)
    }

    /// How its charges are counted.
    pub(crate) const fn spec(&self) -> CounterSpec {
        let kept_for = if self.span.0 > self.span_before.0 { self.span } else { self.span_before };
        CounterSpec {
            stated: bounds::AMOUNT,
            effective: bounds::AMOUNT,
            period: kept_for,
            refill: 0,
            charged: self.charged,
            slack: Span::ZERO,
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        let window =
            matches!(&self.counter.count, Count::Window(own) if own.grain() == Grain::Limit);
        let plain = self.counter.reset.is_none() && self.counter.learning.is_none();
        window && plain && self.kept_for() <= bounds::SPAN && self.kept_for() > Span::ZERO
    }

    /// The charges, oldest first.
    pub(crate) fn charges(&self) -> Option<&Window> {
        charges_of(&self.counter)
    }
}

/// The charges in a counter's window.
pub(crate) const fn charges_of(counter: &UsageCounter) -> Option<&Window> {
    match &counter.count {
        Count::Window(window) => Some(window),
        _ => None,
    }
}

/// From when on charges count.
#[derive(Clone, Copy)]
pub(crate) struct CountsFrom {
    /// When the state was lost, and how long unknown leases may live.
    pub(crate) lost: Option<(Instant, Span)>,
    /// Limits were switched on then: use before is not debt.
    pub(crate) enforced: Instant,
}

/// A counter replayed from remembered charges.
pub(crate) struct Replayed {
    pub(crate) counter: UsageCounter,
    /// The refund handle of each charge, by its stamp.
    marks: Vec<(Instant, u64)>,
}

impl Replayed {
    /// Replays charges as if this limit had been in force when they were made.
    pub(crate) fn new(
        mut counter: UsageCounter,
        spec: &CounterSpec,
        charges: Option<&Window>,
        since: CountsFrom,
        now: Instant,
    ) -> Self {
        if let Some((lost, lease_ttl)) = since.lost {
            counter.assume_full(lost, lease_ttl, spec);
        }
        let mut forgiven = false;
        let window = matches!(counter.count, Count::Window(_));
        let mut marks = Vec::new();
        let entries = charges.into_iter().flat_map(Window::entries);
        for entry in entries.filter(|entry| entry.units > 0) {
            // A slice may end after now. Only a window can be charged ahead of time.
            let at = if window { entry.stamp } else { entry.stamp.min(now) };
            if window && now >= at + spec.period {
                continue;
            }
            if at > since.enforced && !forgiven {
                counter.forgive_debt(since.enforced, spec);
                forgiven = true;
            }
            marks.push((entry.stamp, counter.charge(at, entry.units, spec)));
        }
        if !forgiven {
            counter.forgive_debt(since.enforced, spec);
        }
        if let Count::Bucket(bucket) = &mut counter.count {
            bucket.settle(now, spec.as_refill());
        }
        counter.expire(now, spec);
        Self { counter, marks }
    }

    /// A counter that continues as it is.
    pub(crate) const fn unchanged(counter: UsageCounter) -> Self {
        Self { counter, marks: Vec::new() }
    }

    /// Keeps the debt of a bucket, which may be older than what is remembered.
    pub(crate) fn keep_debt(
        &mut self,
        before: &UsageCounter,
        old: &CounterSpec,
        new: &CounterSpec,
        now: Instant,
    ) {
        let missing =
            |counter: &UsageCounter, spec| counter.taken_at(now, spec).saturating_sub(counter.held);
        let owed = missing(before, old);
        let counted = missing(&self.counter, new);
        if matches!(self.counter.count, Count::Bucket(_)) && owed > old.effective && owed > counted
        {
            self.counter.charge(now, owed - counted, new);
        }
    }

    /// A lease's charge here, from its remembered charge.
    pub(crate) fn charge_of(&mut self, to: Target, remembered: &Charge) -> Charge {
        self.counter.held = self.counter.held.saturating_add(remembered.holds());
        // A charge that is no longer remembered cannot be refunded.
        let found = self.marks.binary_search_by_key(&remembered.mark, |(stamp, _)| stamp.0);
        let mark = found.map_or(u64::MAX, |at| self.marks[at].1);
        Charge { to, mark, ..remembered.clone() }
    }
}

impl State {
    /// Records what a call takes.
    pub(crate) fn remember(
        &mut self,
        agent: AgentId,
        cost: &Amounts,
        now: Instant,
        charges: &mut Vec<Charge>,
    ) {
        let own = &mut self.facts.agents[usize::from(agent)].units;
        for (at, history) in self.facts.units.iter_mut().enumerate() {
            let (spec, need) = (history.spec(), cost.of(&history.unit).unwrap_or(0));
            let at8 = u8::try_from(at).unwrap_or(u8::MAX);
            history.counter.expire(now, &spec);
            charges.push(Charge::take(Target::Unit(at8), &mut history.counter, &spec, need, now));
            if let Some(counter) = own.get_mut(at) {
                counter.expire(now, &spec);
                charges.push(Charge::take(Target::AgentUnit(at8), counter, &spec, need, now));
            }
        }
    }

    /// Empty histories for an agent; none if there are too many agents.
    pub(crate) fn fresh_units(&self, agent: usize) -> Vec<UsageCounter> {
        let units = self.facts.units.len();
        let kept = if has_histories(agent, units) { units } else { 0 };
        (0..kept).map(|_| UsageCounter::new(Count::Window(Window::new(Grain::Coarse)))).collect()
    }

    /// Decides which histories exist under a new configuration, and for how long. Histories of
    /// units without a limit in this and the previous configuration are dropped.
    pub(crate) fn carry_histories(
        &mut self,
        config: &PoolConfig,
        new: &CompiledConfig,
        now: Instant,
    ) {
        let changes = self.facts.config.as_ref() != Some(config);
        let mut kept = self.expire_histories(now);
        for (_, history) in kept.iter_mut().filter(|_| changes) {
            history.span_before = core::mem::replace(&mut history.span, Span::ZERO);
        }
        for Need { unit, charged, span } in needs(new) {
            let of_unit = |history: &UnitHistory| history.unit == unit;
            let known = kept.iter().position(|(_, own)| of_unit(own) && own.charged == charged);
            let at = known.unwrap_or_else(|| {
                // What was charged at another time of the call was used all the same.
                let other = kept.iter().find(|(_, own)| of_unit(own)).cloned();
                let (from, other) =
                    other.unwrap_or_else(|| (None, UnitHistory::new(unit.clone(), charged)));
                kept.push((from, UnitHistory { charged, span: Span::ZERO, ..other }));
                kept.len() - 1
            });
            let history = &mut kept[at].1;
            history.span = history.span.max(span);
        }
        kept.retain(|(_, history)| history.kept_for() > Span::ZERO);
        let from: Vec<Option<usize>> = kept.iter().map(|(from, _)| *from).collect();
        self.facts.units = kept.into_iter().map(|(_, history)| history).collect();
        self.carry_agent_histories(&from);
        self.carry_remembered_charges(&from, now);
    }

    /// Takes the histories out, each with its old index, without what is too old.
    fn expire_histories(&mut self, now: Instant) -> Vec<(Option<usize>, UnitHistory)> {
        let mut kept = Vec::new();
        for (at, mut history) in core::mem::take(&mut self.facts.units).into_iter().enumerate() {
            let spec = history.spec();
            history.counter.expire(now, &spec);
            for agent in &mut self.facts.agents {
                if let Some(counter) = agent.units.get_mut(at) {
                    counter.expire(now, &spec);
                }
            }
            kept.push((Some(at), history));
        }
        kept
    }

    fn carry_agent_histories(&mut self, from: &[Option<usize>]) {
        for agent in 0..self.facts.agents.len() {
            let fresh = self.fresh_units(agent);
            let before = core::mem::replace(&mut self.facts.agents[agent].units, fresh);
            for (counter, old) in self.facts.agents[agent].units.iter_mut().zip(from) {
                if let Some(known) = old.and_then(|old| before.get(old)) {
                    *counter = known.clone();
                }
            }
        }
    }

    /// Charges calls in flight that are not remembered yet as of now.
    fn carry_remembered_charges(&mut self, from: &[Option<usize>], now: Instant) {
        let keys: Vec<Key> = self.facts.leases.keys().copied().collect();
        for key in keys {
            let Some(lease) = self.facts.leases.get_mut(&key) else { continue };
            let (agent, cost) = (usize::from(lease.agent), &lease.call.cost);
            let mut charges = Vec::new();
            for (at, history) in self.facts.units.iter_mut().enumerate() {
                let (spec, need) = (history.spec(), cost.of(&history.unit).unwrap_or(0));
                let old = from[at].map(|old| u8::try_from(old).unwrap_or(u8::MAX));
                let at = u8::try_from(at).unwrap_or(u8::MAX);
                let mut carry = |to, before: Option<Target>, counter: &mut UsageCounter| {
                    let known = lease.charges.iter().find(|charge| Some(charge.to) == before);
                    charges.push(match known {
                        Some(charge) => Charge { to, ..charge.clone() },
                        None => Charge::take(to, counter, &spec, need, now),
                    });
                };
                carry(Target::Unit(at), old.map(Target::Unit), &mut history.counter);
                if let Some(counter) = self.facts.agents[agent].units.get_mut(usize::from(at)) {
                    carry(Target::AgentUnit(at), old.map(Target::AgentUnit), counter);
                }
            }
            lease.charges.retain(|charge| !charge.to.is_history());
            lease.charges.extend(charges);
        }
    }

    /// The index of the history that a limit of a unit counts.
    pub(crate) fn history_of(&self, unit: Option<&Unit>, charged: Charged) -> Option<usize> {
        let of_unit = |history: &UnitHistory| Some(&history.unit) == unit;
        let same = |history: &UnitHistory| of_unit(history) && history.charged == charged;
        let units = &self.facts.units;
        units.iter().position(same).or_else(|| units.iter().position(of_unit))
    }
}

/// Whether an agent has histories of its own; their number is bounded over all agents.
pub(crate) const fn has_histories(agent: usize, units: usize) -> bool {
    (agent + 1) * units <= bounds::AGENT_HISTORIES
}

/// A history that a configuration needs.
struct Need {
    unit: Unit,
    charged: Charged,
    /// How long its charges matter.
    span: Span,
}

/// The histories that a configuration needs: those of limits first, then those of caps.
fn needs(compiled: &CompiledConfig) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    let mut add = |unit: &Unit, spec: &CounterSpec| {
        let (charged, span) = (spec.charged, spec.remembers().min(bounds::SPAN));
        let full = needs.len() == bounds::UNIT_HISTORIES;
        let same = |need: &&mut Need| need.unit == *unit && need.charged == charged;
        match needs.iter_mut().find(same) {
            Some(need) => need.span = need.span.max(span),
            None if full => {}
            None => needs.push(Need { unit: unit.clone(), charged, span }),
        }
    };
    for constraint in &compiled.constraints {
        constraint.id.unit().into_iter().for_each(|unit| add(unit, &constraint.spec));
    }
    for usage in compiled.agents.iter().flat_map(|agent| &agent.usages) {
        usage.unit(&compiled.constraints).into_iter().for_each(|unit| add(unit, &usage.spec));
    }
    needs
}

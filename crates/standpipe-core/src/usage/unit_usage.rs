//! The use of one unit: its history, and what calls in flight hold.
//!
//! A unit has one history, kept for the longest period of the unit in this configuration and the
//! previous one. So a limit or cap that is added, changed or restored counts every remembered
//! charge as if it had always been in force, and a changed configuration never hands out a second
//! quota. Nothing older is invented.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::compiled::CompiledConfig;
use crate::config::{Charged, PoolConfig};
use crate::event::Key;
use crate::id::{AgentId, Id, IdVec, UnitId};
use crate::lease::Charge;
use crate::rules::spread;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::Unit;
use crate::usage::bucket::Refund;
use crate::usage::counter::{Count, CounterSpec};
use crate::usage::history::{History, Resolution};

/// The use of one unit. There are two if some limits are charged at the start of a call and others
/// at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitUsage {
    /// The unit.
    pub unit: Unit,
    /// When calls are charged.
    pub charged: Charged,
    /// The longest period of the unit in the configuration in force; zero if it has no limit there.
    pub span: Span,
    /// The same in the previous configuration.
    pub span_before: Span,
    /// The mark of the next charge. Marks number the charges of a unit.
    pub next_mark: u64,
    /// The charges.
    pub history: History,
    /// Units of calls in flight that are not charged yet.
    pub held: u64,
}

/// One agent's use of one unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentUnitUsage {
    /// The agent's charges, with the marks of the unit.
    pub history: History,
    /// Units of the agent's calls in flight that are not charged yet.
    pub held: u64,
}

impl UnitUsage {
    fn new(unit: Unit, charged: Charged) -> Self {
        Self {
            unit,
            charged,
            span: Span::ZERO,
            span_before: Span::ZERO,
            next_mark: 1,
            history: History::new(),
            held: 0,
        }
    }

    /// How long a charge is remembered.
    pub(crate) fn kept_for(&self) -> Span {
        self.span.max(self.span_before)
    }
}

/// The resolution of the histories of a unit, derived from the periods that count it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitPeriods(Vec<Span>);

impl UnitPeriods {
    /// Of the periods, those that are at least twice the one before; the last one is kept in full.
    pub(crate) fn new(mut periods: Vec<Span>, longest: Span) -> Self {
        periods.retain(|period| *period < longest && *period > Span::ZERO);
        periods.sort_unstable();
        let mut kept: Vec<Span> = Vec::new();
        for period in periods {
            let apart = kept.last().is_none_or(|last| period.0 / 2 >= last.0);
            if apart && kept.len() + 1 < bounds::UNIT_PERIODS {
                kept.push(period);
            }
        }
        // Charges younger than the last period but one have its finer slices.
        kept.push(longest);
        Self(kept)
    }

    pub(crate) fn of_pool(&self) -> Resolution<'_> {
        Resolution { periods: &self.0, slices: bounds::WINDOW_SLICES }
    }

    pub(crate) fn of_agent(&self) -> Resolution<'_> {
        Resolution { periods: &self.0, slices: bounds::AGENT_SLICES }
    }
}

impl State {
    /// Charges units of a unit to the pool and to an agent, and returns the mark of the charge.
    pub(crate) fn charge_unit(
        &mut self,
        at: UnitId,
        agent: AgentId,
        units: u64,
        now: Instant,
    ) -> u64 {
        let periods = &self.index.compiled.units[at];
        let usage = &mut self.facts.units[at];
        let mark = usage.next_mark;
        if units == 0 {
            return mark;
        }
        usage.next_mark += 1;
        usage.history.charge(mark, now, units, periods.of_pool());
        if let Some(own) = self.facts.agents[agent].units.row_mut(at) {
            own.history.charge(mark, now, units, periods.of_agent());
        }
        let constraints = self.index.compiled.constraints.iter();
        for (constraint, counter) in constraints.zip(&mut self.facts.counters) {
            if constraint.unit != Some(at) {
                continue;
            }
            if let Count::Bucket(bucket) = &mut counter.count {
                bucket.charge(now, units, constraint.spec.as_refill());
            }
            if let Some(bucket) = &mut counter.spread {
                bucket.charge(now, units, spread::refill(&constraint.spec));
            }
        }
        mark
    }

    /// Returns unused units of a charge wherever it counts.
    pub(crate) fn refund_unit(
        &mut self,
        charge: &Charge,
        agent: AgentId,
        unused: u64,
        now: Instant,
    ) {
        let at = charge.unit;
        let usage = &mut self.facts.units[at];
        let found = usage.history.find(charge.mark).map(|(sample, _)| sample.stamp);
        let constraints = self.index.compiled.constraints.iter();
        for (constraint, counter) in constraints.zip(&mut self.facts.counters) {
            if constraint.unit != Some(charge.unit) {
                continue;
            }
            let (mark, charged) = (charge.mark, charge.charged);
            if let Some(bucket) = &mut counter.spread {
                let back = Refund { mark, charged, unused, by_others: 0 };
                bucket.refund(now, back, &usage.history, spread::refill(&constraint.spec));
            }
            match &mut counter.count {
                Count::Bucket(bucket) => {
                    let by_others = external_charges(&self.facts.external, constraint, now);
                    let back = Refund { mark, charged, unused, by_others };
                    bucket.refund(now, back, &usage.history, constraint.spec.as_refill());
                }
                Count::Window { began: Some(began) } if found.is_none_or(|at| at < began.at) => {
                    // It was in flight when the provider's window began.
                    began.carried = began.carried.saturating_sub(unused);
                }
                _ => {}
            }
        }
        usage.history.refund(charge.mark, unused);
        if let Some(own) = self.facts.agents[agent].units.row_mut(at) {
            own.history.refund(charge.mark, unused);
        }
    }

    /// Changes what calls in flight hold of a unit.
    pub(crate) fn change_held(&mut self, at: UnitId, agent: AgentId, before: u64, after: u64) {
        let change = |held: &mut u64| *held = held.saturating_sub(before).saturating_add(after);
        change(&mut self.facts.units[at].held);
        if let Some(own) = self.facts.agents[agent].units.row_mut(at) {
            change(&mut own.held);
        }
    }

    /// Empty histories for an agent; none if there are too many agents.
    pub(crate) fn fresh_units(
        &self,
        agent: AgentId,
        has_rule: bool,
    ) -> IdVec<UnitId, AgentUnitUsage> {
        let units = self.facts.units.len();
        let kept = if has_rule || has_histories(agent, units) { units } else { 0 };
        (0..kept).map(|_| AgentUnitUsage::default()).collect()
    }

    /// Decides which units have histories under a new configuration, and for how long. Histories of
    /// units without a limit in this and the previous configuration are dropped.
    pub(crate) fn carry_histories(
        &mut self,
        config: &PoolConfig,
        new: &CompiledConfig,
        now: Instant,
    ) {
        let changes = self.facts.config.as_ref() != Some(config);
        let mut kept = self.take_histories(now);
        for (_, usage) in kept.iter_mut().filter(|_| changes) {
            usage.span_before = core::mem::replace(&mut usage.span, Span::ZERO);
        }
        for Need { unit, charged, span } in needs(new) {
            let of_unit = |usage: &UnitUsage| usage.unit == unit;
            let known = kept.iter().position(|(_, own)| of_unit(own) && own.charged == charged);
            let at = known.unwrap_or_else(|| {
                // What was charged at another time of the call was used all the same.
                let other = kept.iter().find(|(_, own)| of_unit(own)).cloned();
                let (from, other) =
                    other.unwrap_or_else(|| (None, UnitUsage::new(unit.clone(), charged)));
                kept.push((from, UnitUsage { charged, span: Span::ZERO, ..other }));
                kept.len() - 1
            });
            let usage = &mut kept[at].1;
            usage.span = usage.span.max(span);
        }
        kept.retain(|(_, usage)| usage.kept_for() > Span::ZERO);
        let from: IdVec<UnitId, Option<UnitId>> = kept.iter().map(|(from, _)| *from).collect();
        self.facts.units = kept.into_iter().map(|(_, usage)| usage).collect();
        self.index.compiled.units = unit_periods(&self.facts.units, new);
        self.carry_agent_histories(config, &from);
        self.carry_charges(&from, now);
    }

    /// Takes the histories out, each with its old index, without what is too old.
    fn take_histories(&mut self, now: Instant) -> Vec<(Option<UnitId>, UnitUsage)> {
        let mut kept = Vec::new();
        for (at, mut usage) in core::mem::take(&mut self.facts.units).into_iter().enumerate() {
            let at = UnitId::of(at);
            let kept_for = usage.kept_for();
            usage.history.expire(now, kept_for);
            let agents = self.facts.agents.iter_mut();
            for own in agents.filter_map(|agent| agent.units.row_mut(at)) {
                own.history.expire(now, kept_for);
            }
            kept.push((Some(at), usage));
        }
        kept
    }

    fn carry_agent_histories(&mut self, config: &PoolConfig, from: &IdVec<UnitId, Option<UnitId>>) {
        for agent in self.facts.agents.ids() {
            let has_rule = config.agent(&self.facts.agents[agent].name).is_some();
            let fresh = self.fresh_units(agent, has_rule);
            let before = core::mem::replace(&mut self.facts.agents[agent].units, fresh);
            for (at, usage) in (0..).map(UnitId::of).zip(&mut self.facts.agents[agent].units) {
                *usage = match from[at].and_then(|old| before.row(old)) {
                    Some(known) => known.clone(),
                    // An agent without a history of its own counts as if all charges were its own.
                    None if before.is_empty() => {
                        AgentUnitUsage { history: self.facts.units[at].history.clone(), held: 0 }
                    }
                    None => AgentUnitUsage::default(),
                };
            }
        }
    }

    /// Brings all histories to the resolution of the configuration that comes into force. Before
    /// that, buckets that changed have replayed all that was remembered.
    pub(crate) fn fit_histories(&mut self, now: Instant) {
        let periods = &self.index.compiled.units;
        for (usage, periods) in self.facts.units.iter_mut().zip(periods) {
            usage.history.fit(now, periods.of_pool());
        }
        for agent in &mut self.facts.agents {
            for (usage, periods) in agent.units.iter_mut().zip(periods) {
                usage.history.fit(now, periods.of_agent());
            }
        }
    }

    /// Charges calls in flight to the units that are counted from now on.
    fn carry_charges(&mut self, from: &IdVec<UnitId, Option<UnitId>>, now: Instant) {
        self.facts.units.iter_mut().for_each(|usage| usage.held = 0);
        let agents = self.facts.agents.iter_mut().flat_map(|agent| &mut agent.units);
        agents.for_each(|usage| usage.held = 0);
        let keys: Vec<Key> = self.facts.leases.keys().copied().collect();
        for key in keys {
            let Some(mut lease) = self.facts.leases.remove(&key) else { continue };
            let before = core::mem::take(&mut lease.charges);
            for (at, old) in from.rows() {
                let known = before.iter().find(|charge| Some(charge.unit) == *old);
                let charge = match known {
                    Some(charge) => Charge { unit: at, ..charge.clone() },
                    None => {
                        let unit = &self.facts.units[at].unit;
                        let need = lease.call.cost.of(unit).unwrap_or(0);
                        self.take_unit(at, lease.agent, need, now)
                    }
                };
                if known.is_some() {
                    self.change_held(at, lease.agent, 0, charge.holds());
                }
                lease.charges.push(charge);
            }
            self.facts.leases.insert(key, lease);
        }
    }

    /// The index of the history that a limit of a unit counts.
    pub(crate) fn history_of(&self, unit: Option<&Unit>, charged: Charged) -> Option<UnitId> {
        history_of(&self.facts.units, unit, charged)
    }
}

/// The units that were charged to a bucket for others and may not be refilled yet.
pub(crate) fn external_charges(
    external: &[crate::ExternalUsage],
    constraint: &crate::config::compiled::Constraint,
    now: Instant,
) -> u64 {
    let known = external.iter().find(|known| known.limit == constraint.id);
    known.map_or(0, |known| known.charged.used_at(now, constraint.spec.remembers()))
}

/// The index of the history that a limit of a unit counts.
pub(crate) fn history_of(
    units: &IdVec<UnitId, UnitUsage>,
    unit: Option<&Unit>,
    charged: Charged,
) -> Option<UnitId> {
    let of_unit = |usage: &UnitUsage| Some(&usage.unit) == unit;
    let same = |usage: &UnitUsage| of_unit(usage) && usage.charged == charged;
    let at = units.iter().position(same).or_else(|| units.iter().position(of_unit))?;
    Some(UnitId::of(at))
}

/// Whether an agent without a rule has histories of its own; their number is bounded.
pub(crate) fn has_histories(agent: AgentId, units: usize) -> bool {
    (agent.index() + 1) * units <= bounds::AGENT_HISTORIES
}

/// The periods that count each unit under a configuration.
pub(crate) fn unit_periods(
    units: &IdVec<UnitId, UnitUsage>,
    compiled: &CompiledConfig,
) -> IdVec<UnitId, UnitPeriods> {
    let of_unit = |usage: &UnitUsage| {
        let all = counted(compiled).filter(|(unit, _)| **unit == usage.unit);
        UnitPeriods::new(all.map(|(_, spec)| spec.period).collect(), usage.kept_for())
    };
    units.iter().map(of_unit).collect()
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
    for (unit, spec) in counted(compiled) {
        let (charged, span) = (spec.charged, spec.remembers().min(bounds::SPAN));
        let full = needs.len() == bounds::UNIT_HISTORIES;
        let same = |need: &&mut Need| need.unit == *unit && need.charged == charged;
        match needs.iter_mut().find(same) {
            Some(need) => need.span = need.span.max(span),
            None if full => {}
            None => needs.push(Need { unit: unit.clone(), charged, span }),
        }
    }
    needs
}

/// Everything that counts a unit.
fn counted(compiled: &CompiledConfig) -> impl Iterator<Item = (&Unit, &CounterSpec)> {
    let constraints = compiled.constraints.iter();
    let limits = constraints.filter_map(|own| Some((own.id.unit()?, &own.spec)));
    let usages = compiled.agents.iter().flat_map(|agent| &agent.usages);
    let shares = usages.filter_map(|own| Some((own.unit(&compiled.constraints)?, &own.spec)));
    limits.chain(shares)
}

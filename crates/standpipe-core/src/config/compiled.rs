//! A configuration compiled for admission: constraints with effective figures, floors and caps per
//! agent.
//!
//! It is computed when a configuration comes into force or when something changes what is usable.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::{
    AgentRule, Charged, Limit, LimitId, LimitSelector, Order, PoolConfig, Portion, Priority,
    Resets, Rule, Share, mul_div,
};
use crate::facts::Facts;
use crate::id::{ConstraintId, IdVec, RuleId, UnitId};
use crate::provider::auto_margin::usable_share;
use crate::provider::learn::limits_in_force;

use crate::provider::reconcile::believed;

use crate::rules::gate;
use crate::time::Span;
use crate::unit::{Amounts, Unit};
use crate::usage::bucket::Bucket;
use crate::usage::counter::{Count, CounterSpec, UsageCounter};
use crate::usage::unit_usage::{UnitPeriods, UnitUsage, history_of, unit_periods};

/// What a configuration means for admission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompiledConfig {
    /// In the order of [`crate::Facts::counters`].
    pub(crate) constraints: IdVec<ConstraintId, Constraint>,
    /// The constraint at which calls wait for the answers of others.
    pub(crate) gate: Option<ConstraintId>,
    /// In the order of the configuration's agents.
    pub(crate) agents: IdVec<RuleId, CompiledAgent>,
    /// The periods that count each unit, in the order of [`crate::Facts::units`].
    pub(crate) units: IdVec<UnitId, UnitPeriods>,
    pub(crate) lease_ttl: Span,
    pub(crate) longest_lease: Option<Span>,
    pub(crate) claim: Span,
    pub(crate) enforce: bool,
    /// Whether tickets have fair tags.
    pub(crate) fair: bool,
    /// Whether zones, yield or spread need to know who is active.
    pub(crate) protects: bool,
    pub(crate) yields: bool,
    pub(crate) spreads: bool,
    /// Whether a limit is reset at a time of day.
    pub(crate) calendars: bool,
    pub(crate) promotes: bool,
}

/// Something a ticket can wait for: a limit, the pace of a limit, or the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraint {
    pub(crate) id: LimitId,
    pub(crate) kind: ConstraintKind,
    /// The index of the unit whose charges it counts.
    pub(crate) unit: Option<UnitId>,
    pub(crate) spec: CounterSpec,
    pub(crate) resets: Resets,
    /// Whether an agent has a floor on it.
    pub(crate) floored: bool,
    /// Whether zones apply to it.
    pub(crate) lit: bool,
    /// Whether a ramp applies to it.
    pub(crate) ramped: bool,
    /// Whether background draws on it at an even pace.
    pub(crate) spread: bool,
    /// Whether it is the first that counts a unit which is estimated where a cost omits it.
    pub(crate) estimated: bool,
}

/// In the order in which tickets join lines: what is earmarked last is earmarked shortest, and a
/// slot is the most expensive to earmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConstraintKind {
    Rate,
    Gate,
    Slots,
}

/// The floors and caps of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompiledAgent {
    pub(crate) tier: Priority,
    pub(crate) weight: u16,
    pub(crate) usages: Vec<AgentUsage>,
}

/// An agent's floor or cap, and how its use is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentUsage {
    pub(crate) measures: UsageOf,
    /// The index of the unit whose charges it counts.
    pub(crate) unit_index: Option<UnitId>,
    /// The effective limit is the cap.
    pub(crate) spec: CounterSpec,
    pub(crate) floor: u64,
    /// Whether a floor is declared. It may come to zero while little is usable.
    pub(crate) owned: bool,
    pub(crate) capped: bool,
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UsageOf {
    /// The agent's use of a constraint.
    Constraint(ConstraintId),
    /// The agent's use of a unit over the cap's own period.
    Unit(Unit),
}

impl CompiledConfig {
    /// Compiles the configuration in force.
    pub(crate) fn of_facts(facts: &Facts) -> Self {
        let Some(config) = &facts.config else { return Self::default() };
        let mut compiled = Self::of(config, facts);
        if let Some(gate) = compiled.gate {
            compiled.constraints[gate].spec.effective = gate::width(facts);
        }
        compiled.connect(&facts.units);
        compiled
    }

    /// Connects limits, floors and caps to the units whose charges they count.
    pub(crate) fn connect(&mut self, units: &IdVec<UnitId, UnitUsage>) {
        self.units = unit_periods(units, self);
        for constraint in &mut self.constraints {
            let counts = constraint.kind == ConstraintKind::Rate;
            let unit = constraint.id.unit().filter(|_| counts);
            constraint.unit = history_of(units, unit, constraint.spec.charged);
        }
        for usage in self.agents.iter_mut().flat_map(|agent| &mut agent.usages) {
            let unit = usage.unit(&self.constraints).cloned();
            usage.unit_index = history_of(units, unit.as_ref(), usage.spec.charged);
        }
    }

    /// Compiles a configuration with an open gate.
    pub(crate) fn of(config: &PoolConfig, facts: &Facts) -> Self {
        let limits = limits_in_force(config, facts);
        let mut constraints: Vec<Constraint> =
            limits.iter().map(|limit| constraint(config, facts, limit)).collect();
        let paced = limits.iter().filter(|limit| limit.pace.is_some());
        constraints.extend(paced.map(pace));
        mark_ramped(&mut constraints);
        mark_estimated(&mut constraints, !config.prices.is_empty());
        let mut constraints: IdVec<ConstraintId, _> = constraints.into();
        let gate = config.policy.gates().then(|| constraints.push(unanswered()));
        let mut agents: IdVec<RuleId, _> =
            config.agents.iter().map(|rule| agent(config, rule, &limits, &constraints)).collect();
        fit_floors(&mut agents, &constraints);
        for usage in agents.iter().flat_map(|agent| &agent.usages) {
            if let (UsageOf::Constraint(constraint), true) = (&usage.measures, usage.owned) {
                constraints[*constraint].floored = true;
            }
        }
        Self {
            constraints,
            gate,
            agents,
            units: IdVec::new(),
            lease_ttl: config.lease_ttl,
            longest_lease: config.longest_lease,
            claim: config.claim,
            enforce: config.enforce,
            fair: config.order == Order::Fair,
            protects: config.policy.protects(),
            yields: config.policy.yields,
            spreads: config.policy.spreads,
            calendars: config.limits.iter().any(|limit| limit.resets.is_calendar()),
            promotes: config.policy.promotes,
        }
    }
}

impl CompiledConfig {
    /// The period of the rates that a ramp applies to.
    pub(crate) fn ramp_period(&self) -> Option<Span> {
        let mut ramped = self.constraints.iter().filter(|constraint| constraint.ramped);
        ramped.next().and_then(|constraint| constraint.id.period())
    }
}

impl Constraint {
    /// What a cost takes of this constraint.
    #[inline]
    pub(crate) fn need(&self, cost: &Amounts) -> u64 {
        let units = match &self.id {
            LimitId::Window(unit, _) | LimitId::Bucket(unit, _) => cost.of(unit).unwrap_or(0),
            LimitId::Parallel => cost.slots(),
            LimitId::Unanswered => 1,
        };
        if self.kind == ConstraintKind::Gate { units.min(1) } else { units }
    }

    /// Its name in answers. The gate is not a limit.
    pub(crate) fn limit(&self) -> Option<LimitId> {
        (self.id != LimitId::Unanswered).then(|| self.id.clone())
    }

    /// The unit that a commit settles here; gates and slots have none.
    pub(crate) fn settles(&self) -> Option<&Unit> {
        self.id.unit().filter(|_| self.kind == ConstraintKind::Rate)
    }

    /// A counter with nothing charged.
    pub(crate) fn fresh(&self) -> UsageCounter {
        UsageCounter::new(match (self.kind, &self.id) {
            (ConstraintKind::Gate, LimitId::Unanswered) => Count::Slots,
            (ConstraintKind::Gate, _) => Count::Pace { last: None },
            (_, LimitId::Window(..)) => Count::Window { began: None },
            (_, LimitId::Bucket(..)) => Count::Bucket(Bucket::default()),
            (_, LimitId::Parallel | LimitId::Unanswered) => Count::Slots,
        })
    }

    /// Over which idle time the floor of an owner is lent.
    pub(crate) fn lending_period(&self) -> Span {
        self.id.period().unwrap_or(bounds::IDLE)
    }
}

impl AgentUsage {
    pub(crate) fn is_of_constraint(&self, constraint: ConstraintId) -> bool {
        matches!(self.measures, UsageOf::Constraint(at) if at == constraint)
    }

    /// What a cost adds.
    pub(crate) fn need(
        &self,
        constraints: &IdVec<ConstraintId, Constraint>,
        cost: &Amounts,
    ) -> u64 {
        match &self.measures {
            UsageOf::Constraint(constraint) => constraints[*constraint].need(cost),
            UsageOf::Unit(unit) => cost.of(unit).unwrap_or(0),
        }
    }

    /// The unit it counts; `None` for calls in flight.
    pub(crate) fn unit<'a>(
        &'a self,
        constraints: &'a IdVec<ConstraintId, Constraint>,
    ) -> Option<&'a Unit> {
        match &self.measures {
            UsageOf::Constraint(constraint) => constraints[*constraint].id.unit(),
            UsageOf::Unit(unit) => Some(unit),
        }
    }

    /// What it counts: calls in flight, or the charges of a unit in a window of its period.
    pub(crate) fn kind(&self, constraints: &IdVec<ConstraintId, Constraint>) -> ConstraintKind {
        match &self.measures {
            UsageOf::Constraint(constraint) => constraints[*constraint].kind,
            UsageOf::Unit(_) => ConstraintKind::Rate,
        }
    }
}

fn constraint(config: &PoolConfig, facts: &Facts, limit: &Limit) -> Constraint {
    let share = u64::from(usable_share(config, &facts.auto_margins, &limit.id()));
    let used_of = |amount: u64| mul_div(amount, share, 1_000).max(1);
    let (kind, effective, refill, period) = match limit.rule {
        Rule::Window { amount, period, .. } => {
            let beside_others = amount.saturating_sub(believed(&facts.external, &limit.id()));
            (ConstraintKind::Rate, used_of(beside_others), 0, period)
        }
        Rule::Bucket { amount, period, burst, .. } => {
            (ConstraintKind::Rate, used_of(burst), used_of(amount), period)
        }
        Rule::Parallel { amount } => (ConstraintKind::Slots, amount, 0, Span::ZERO),
    };
    let spec = CounterSpec {
        stated: largest_call(config, limit),
        effective,
        period: limit.counts_for().unwrap_or(period) + config.slack,
        refill,
        charged: limit.charged,
        slack: config.slack,
    };
    let lit = kind == ConstraintKind::Rate && config.policy.zones.look_at(period);
    let spread = kind == ConstraintKind::Rate && config.policy.spreads;
    let (id, resets) = (limit.id(), limit.resets.clone());
    let (unit, floored, ramped) = (None, false, false);
    let estimated = false;
    Constraint { id, kind, unit, spec, resets, floored, lit, ramped, spread, estimated }
}

/// The largest cost that one call can ever have on a limit. A call above a learned concurrency runs
/// alone: the provider counts what it counts, and may accept the call when nothing else runs.
fn largest_call(config: &PoolConfig, limit: &Limit) -> u64 {
    if limit.id() != LimitId::Parallel {
        return limit.stated();
    }
    let declared = config.limits.iter().find(|own| own.id() == LimitId::Parallel);
    declared.map_or(bounds::AMOUNT, Limit::stated)
}

fn pace(limit: &Limit) -> Constraint {
    let spec = CounterSpec {
        stated: 1,
        effective: 1,
        period: limit.pace.unwrap_or(Span::ZERO),
        refill: 0,
        charged: Charged::Start,
        slack: Span::ZERO,
    };
    gate_of(limit.id(), spec)
}

/// Open until a reason shuts it.
const fn unanswered() -> Constraint {
    let spec = CounterSpec {
        stated: 1,
        effective: bounds::AMOUNT,
        period: Span::ZERO,
        refill: 0,
        charged: Charged::End,
        slack: Span::ZERO,
    };
    gate_of(LimitId::Unanswered, spec)
}

const fn gate_of(id: LimitId, spec: CounterSpec) -> Constraint {
    Constraint {
        id,
        kind: ConstraintKind::Gate,
        unit: None,
        spec,
        resets: Resets::Rolling,
        floored: false,
        lit: false,
        ramped: false,
        spread: false,
        estimated: false,
    }
}

/// Marks the limits on units that a call does not know in advance, each unit once. With prices,
/// money is computed and not estimated.
fn mark_estimated(constraints: &mut [Constraint], has_prices: bool) {
    for at in 0..constraints.len() {
        let (before, rest) = constraints.split_at_mut(at);
        let Some(constraint) = rest.first_mut() else { continue };
        let Some(unit) = constraint.settles() else { continue };
        let learned = match unit {
            Unit::InputTokens | Unit::OutputTokens | Unit::Tokens => true,
            Unit::Usd => !has_prices,
            // A call that names no points takes one, and of the others none.
            Unit::Requests | Unit::Points | Unit::Content | Unit::Parallel | Unit::Other(_) => {
                false
            }
        };
        constraint.estimated = learned && !before.iter().any(|other| other.settles() == Some(unit));
    }
}

/// Marks the shortest rates that are charged when a call starts: a ramp applies to them. What calls
/// from before the pause will be charged at their end says nothing about calls after it.
fn mark_ramped(constraints: &mut [Constraint]) {
    let at_start = |constraint: &&mut Constraint| {
        constraint.kind == ConstraintKind::Rate && constraint.spec.charged == Charged::Start
    };
    let periods = constraints.iter_mut().filter(at_start).filter_map(|own| own.id.period());
    let shortest = periods.min();
    for constraint in constraints.iter_mut().filter(at_start) {
        constraint.ramped = constraint.id.period() == shortest;
    }
}

/// The floors and caps of an agent on the limits in force: the stated ones, then those that are
/// learned.
fn agent(
    config: &PoolConfig,
    rule: &AgentRule,
    in_force: &[Limit],
    constraints: &IdVec<ConstraintId, Constraint>,
) -> CompiledAgent {
    let mut usages = Vec::new();
    // Of a stated limit they are shares as it is stated, also while the provider allows less.
    let limits = config.limits.iter().chain(in_force.iter().skip(config.limits.len()));
    for (limit, (id, constraint)) in limits.zip(constraints.rows()) {
        let usable = constraint.spec.effective;
        let floors = rule.floors.iter().filter_map(|floor| floor.of_usable(limit, usable));
        let floor = floors.fold(0, u64::saturating_add).min(usable);
        let shared = rule.caps.iter().filter(|cap| !matches!(cap.portion, Portion::Rate { .. }));
        let cap = shared.filter_map(|cap| cap.of_limit(limit)).min();
        let owned = rule.floors.iter().any(|floor| floor.of_limit(limit).is_some());
        if owned || cap.is_some() {
            let mut spec = constraint.spec.clone();
            spec.effective = cap.map_or(u64::MAX, |cap| cap.max(1));
            // The use of a bucket is counted in a window of its period.
            spec.refill = 0;
            let measures = UsageOf::Constraint(id);
            let capped = cap.is_some();
            usages.push(AgentUsage { measures, unit_index: None, spec, floor, owned, capped });
        }
    }
    usages.extend(rule.caps.iter().filter_map(|cap| cap_of_its_own(config, cap)));
    CompiledAgent { tier: rule.priority.unwrap_or_default(), weight: rule.weight, usages }
}

/// Scales floors down together where they exceed what is usable. Otherwise each owner would be kept
/// from its floor by the others.
fn fit_floors(agents: &mut [CompiledAgent], constraints: &IdVec<ConstraintId, Constraint>) {
    for (at, constraint) in constraints.rows() {
        let of_constraint = |usage: &&mut AgentUsage| usage.is_of_constraint(at);
        let floors = agents.iter().flat_map(|agent| &agent.usages);
        let floors = floors.filter(|usage| usage.is_of_constraint(at)).map(|usage| usage.floor);
        let all = floors.fold(0, u64::saturating_add);
        if all > constraint.spec.effective {
            let usages = agents.iter_mut().flat_map(|agent| &mut agent.usages);
            usages.filter(of_constraint).for_each(|usage| {
                usage.floor = mul_div(usage.floor, constraint.spec.effective, all);
            });
        }
    }
}

/// A cap given as a rate has a period of its own, whatever the pool's limits have.
fn cap_of_its_own(config: &PoolConfig, cap: &Share) -> Option<AgentUsage> {
    let (LimitSelector::Unit(unit), Portion::Rate { amount, period }) = (&cap.of, cap.portion)
    else {
        return None;
    };
    let same_unit = config.limits.iter().find(|limit| limit.id().unit() == Some(unit));
    let spec = CounterSpec {
        stated: amount,
        effective: amount,
        period: period + config.slack,
        refill: 0,
        charged: same_unit.map_or(Charged::Start, |limit| limit.charged),
        slack: config.slack,
    };
    Some(AgentUsage {
        measures: UsageOf::Unit(unit.clone()),
        unit_index: None,
        spec,
        floor: 0,
        owned: false,
        capped: true,
    })
}

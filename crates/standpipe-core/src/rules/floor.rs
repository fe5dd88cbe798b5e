//! Floors: units of every period that are kept for an agent.
//!
//! A floor holds against the same and lower tiers. It is lent step by step while its owner is idle,
//! so that an agent that comes every five minutes still has most of an hourly floor, and a lone
//! agent can use everything within one period. A lower bound.

use crate::config::compiled::{AgentUsage, UsageOf};
use crate::config::{LimitId, Priority, mul_div};
use crate::id::{AgentId, ConstraintId, RuleId};
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::queue::ticket::{Phase, QueueKey};
use crate::rules::{Admits, ConstraintRule, Part, limit};
use crate::state::State;
use crate::time::{Instant, Span};

/// The steps in which the floor of an idle owner is lent.
const LENDING: u64 = 32;

pub(super) const RULE: ConstraintRule = ConstraintRule {
    reason: |_, _, _| Reason::Floor,
    admits: |state, part, from| state.floors_admit(part, from),
    short_by: limit::short_by,
};

impl State {
    /// What floors keep falls only when a step of one is lent, or when the call has waited for a
    /// whole period. So nothing fits before that, or before it fits beside what is kept now.
    fn floors_admit(&self, part: &Part<'_>, from: Instant) -> Admits {
        let kept = self.kept(part, from);
        if kept == 0 {
            return Admits::Now;
        }
        // What is kept is left of the provider's last window: one call finds out about the next.
        let probe = part.usage.probe_opens().filter(|_| part.before == 0);
        let want = part.need.saturating_add(part.before).saturating_add(kept);
        if probe.is_some_and(|opens| opens <= from) || want <= part.usage.free_at(from) {
            return Admits::Now;
        }
        let beside = if want > part.usage.spec.effective {
            Instant::NEVER
        } else {
            part.usage.fits_from(want, from)
        };
        let owners = self.index.floor_owners.iter();
        let lending = owners.filter_map(|owner| self.next_lending(*owner, part.constraint, from));
        let ends = lending.chain(self.floors_end(part.candidate, part.constraint)).chain(probe);
        let earliest = ends.chain([beside]).filter(|at| *at > from).min();
        match earliest.filter(|at| *at != Instant::NEVER) {
            Some(earliest) => Admits::NotBefore { earliest, by_time: earliest },
            None => Admits::Unknown,
        }
    }

    /// The units kept from a candidate.
    pub(super) fn kept(&self, part: &Part<'_>, at: Instant) -> u64 {
        match part.is_forecast {
            true => self.kept_ahead(part.candidate, part.constraint, at),
            false => self.kept_for_others(part.candidate, part.constraint, at),
        }
    }

    /// The units of a constraint kept for other agents than the candidate's: the unfilled floors of
    /// owners of the same or a higher tier. Nothing is kept from critical calls, nor from a ticket
    /// that has waited for a whole period.
    pub(crate) fn kept_for_others(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> u64 {
        let kept = self.kept_from_each(candidate, constraint, now, false);
        kept.map(|(_, kept)| kept).fold(0, u64::saturating_add)
    }

    /// The same at a later instant.
    fn kept_ahead(&self, candidate: &Candidate<'_>, constraint: ConstraintId, at: Instant) -> u64 {
        let kept = self.kept_from_each(candidate, constraint, at, true);
        kept.map(|(_, kept)| kept).fold(0, u64::saturating_add)
    }

    /// The units of a constraint that are kept for each owner. In a forecast owners with tickets
    /// count as served by then, which may be soon.
    pub(crate) fn kept_from_each(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        at: Instant,
        is_forecast: bool,
    ) -> impl Iterator<Item = (AgentId, u64)> {
        let binds = self.floors_bind(candidate, constraint)
            && !self.waited_enough(candidate, constraint, at);
        let covered = binds && self.is_covered(candidate, constraint, at);
        let owners = binds.then_some(&self.index.floor_owners).into_iter().flatten().copied();
        let owners = owners.filter(move |owner| {
            let served = is_forecast && self.index.agent_loads[*owner].tickets > 0;
            let equal = covered && self.tier_of(*owner) == candidate.tier();
            Some(*owner) != candidate.agent && !served && !equal
        });
        owners.map(move |owner| (owner, self.kept_for(owner, candidate, constraint, at)))
    }

    /// Whether a cost is covered by its agent's own unfilled floor. Then floors of the same tier do
    /// not hold it back: once floors were lent, they exceed what is left, and each owner would wait
    /// for the others.
    pub(super) fn is_covered(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> bool {
        let need = self.index.compiled.constraints[constraint].need(candidate.cost);
        candidate.agent.is_some_and(|agent| need <= self.unfilled(agent, constraint, now))
    }

    fn waited_enough(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> bool {
        self.floors_end(candidate, constraint).is_some_and(|end| now >= end)
    }

    /// When floors no longer bind a ticket.
    pub(crate) fn floors_end(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
    ) -> Option<Instant> {
        let period = self.index.compiled.constraints[constraint].lending_period();
        candidate.since.map(|since| since + period)
    }

    pub(crate) fn floors_bind(&self, candidate: &Candidate<'_>, constraint: ConstraintId) -> bool {
        self.index.compiled.constraints[constraint].floored
            && candidate.tier() != Priority::Critical
    }

    /// Units earmarked for the owner before the candidate are withheld already and must not be kept
    /// twice.
    fn kept_for(
        &self,
        owner: AgentId,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> u64 {
        if self.tier_of(owner) > candidate.tier() {
            return 0;
        }
        let idle = self.idle_for(owner, candidate.queue_key, now);
        let kept = self.keeps(owner, constraint, idle, now);
        let holders = &self.index.earmarks[constraint].holders;
        if kept == 0 || holders.is_empty() {
            return kept;
        }
        let before =
            self.tickets_of(owner).take_while(|queue_key| *queue_key < candidate.queue_key);
        let earmarked = before.filter(|queue_key| holders.contains(queue_key));
        let earmarked: u64 =
            earmarked.map(|queue_key| self.need_of_ticket(constraint, queue_key)).sum();
        kept.saturating_sub(earmarked)
    }

    /// What an agent's floor on a constraint still lacks.
    pub(crate) fn unfilled(&self, agent: AgentId, constraint: ConstraintId, now: Instant) -> u64 {
        self.floor_usage(agent, constraint).map_or(0, |usage| {
            usage.floor.saturating_sub(self.agent_usage(Some(agent), usage).taken_at(now))
        })
    }

    /// What is kept of a constraint for an owner: what its floor lacks, less what is lent the
    /// longer it is idle, if that covers its last cost. Less than one of its calls would not help
    /// it, and two owners could keep each other out for ever.
    pub(crate) fn keeps(
        &self,
        owner: AgentId,
        constraint: ConstraintId,
        idle: Span,
        now: Instant,
    ) -> u64 {
        let lent = self.lending_steps(constraint, idle);
        let unfilled = self.unfilled(owner, constraint, now);
        // While its owner counts as active a floor is rounded up, or the last unit of a small floor
        // would never be kept; afterwards down, so that all of it is lent within the period.
        let round_up = if lent <= LENDING / 4 { LENDING - 1 } else { 0 };
        let kept = u128::from(unfilled) * u128::from(LENDING - lent) + u128::from(round_up);
        let kept = u64::try_from(kept / u128::from(LENDING)).unwrap_or(u64::MAX);
        if kept < self.last_need(owner, constraint) { 0 } else { kept }
    }

    /// How many of the [`LENDING`] steps of a floor are lent to others after an idle time.
    fn lending_steps(&self, constraint: ConstraintId, idle: Span) -> u64 {
        let over = self.index.compiled.constraints[constraint].lending_period();
        mul_div(idle.0, LENDING, over.0).min(LENDING)
    }

    /// When the next step of an idle owner's floor is lent.
    pub(crate) fn next_lending(
        &self,
        owner: AgentId,
        constraint: ConstraintId,
        now: Instant,
    ) -> Option<Instant> {
        let active = self.facts.agents[owner].active;
        let lent = self.lending_steps(constraint, now.since(active));
        let over = self.index.compiled.constraints[constraint].lending_period();
        let next = (u128::from(over.0) * u128::from(lent + 1)).div_ceil(u128::from(LENDING));
        let next = active + Span(u64::try_from(next).unwrap_or(u64::MAX));
        (lent < LENDING && self.index.agent_loads[owner].leases == 0).then_some(next)
    }

    /// What an agent's last cost takes of a constraint.
    pub(crate) fn last_need(&self, agent: AgentId, constraint: ConstraintId) -> u64 {
        self.index.compiled.constraints[constraint].need(&self.facts.agents[agent].asked)
    }

    /// An agent's floor on a constraint.
    pub(crate) fn floor_usage(
        &self,
        agent: AgentId,
        constraint: ConstraintId,
    ) -> Option<&AgentUsage> {
        let rule = self.index.agent_loads[agent].rule;
        let mut usages = self.usages_of(rule).iter();
        usages.find(|usage| usage.owned && usage.is_of_constraint(constraint))
    }

    /// For how long an owner counts as idle: not at all while it has a call in flight, or waits
    /// before a queue key. A ticket of the owner behind the candidate is no reason: the two could
    /// wait for each other.
    fn idle_for(&self, owner: AgentId, queue_key: QueueKey, now: Instant) -> Span {
        let busy = self.index.agent_loads[owner].leases > 0
            || self.first_waiting(owner).is_some_and(|first| first < queue_key);
        if busy { Span::ZERO } else { now.since(self.facts.agents[owner].active) }
    }

    /// The first ticket of an owner that waits for units. A ticket that is held back could not use
    /// what is kept for it.
    pub(crate) fn first_waiting(&self, owner: AgentId) -> Option<QueueKey> {
        self.tickets_of(owner).find(|queue_key| {
            let phase = self.facts.tickets.get(queue_key).map(|ticket| ticket.phase);
            matches!(phase, Some(Phase::Line(_) | Phase::Due(_)))
        })
    }

    /// The tickets of an agent with a floor or a cap, in order.
    pub(crate) fn tickets_of(&self, agent: AgentId) -> impl Iterator<Item = QueueKey> {
        let from = (agent, QueueKey::first_of(Priority::Critical));
        let upto = (agent, QueueKey::last_of(Priority::Background));
        self.index.tickets_by_agent.range(from..=upto).map(|(_, queue_key)| *queue_key)
    }

    pub(crate) fn tier_of(&self, agent: AgentId) -> Priority {
        let rule = self.index.agent_loads[agent].rule;
        rule.map_or(Priority::default(), |rule| self.index.compiled.agents[rule].tier)
    }

    /// The floors and caps of an agent's rule.
    pub(crate) fn usages_of(&self, rule: Option<RuleId>) -> &[AgentUsage] {
        rule.map_or(&[], |rule| &self.index.compiled.agents[rule].usages)
    }

    pub(crate) fn limit_of(&self, usage: &AgentUsage) -> Option<LimitId> {
        match &usage.measures {
            UsageOf::Constraint(constraint) => {
                Some(self.index.compiled.constraints[*constraint].id.clone())
            }
            UsageOf::Unit(unit) => Some(LimitId::Window(unit.clone(), usage.spec.period)),
        }
    }
}

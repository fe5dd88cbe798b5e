//! Floors: units of every period that are kept for an agent.
//!
//! A floor holds against the same and lower tiers while its owner is active. An idle owner's floor
//! is lent.

use crate::config::compiled::{AgentUsage, UsageOf};
use crate::config::{LimitId, Priority};
use crate::id::{AgentId, ConstraintId, RuleId};
use crate::lease::admission::{Candidate, Rank};
use crate::queue::ticket::{Phase, QueueKey};
use crate::state::State;
use crate::time::Instant;

impl State {
    /// The units of a constraint kept for other agents than the candidate's: the unfilled floors of
    /// active owners of the same or a higher tier. Nothing is kept from critical calls.
    pub(crate) fn kept_for_others(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> u64 {
        if !self.floors_bind(candidate, constraint) {
            return 0;
        }
        let others =
            self.index.floor_owners.iter().filter(|owner| Some(**owner) != candidate.agent);
        others
            .map(|owner| self.kept_for(*owner, candidate, constraint, now))
            .fold(0, u64::saturating_add)
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
        if self.tier_of(owner) > candidate.tier()
            || !self.is_active(owner, candidate, constraint, now)
        {
            return 0;
        }
        let unfilled = self.keeps(owner, constraint, now);
        let holders = &self.index.earmarks[constraint].holders;
        if unfilled == 0 || holders.is_empty() {
            return unfilled;
        }
        let before =
            self.tickets_of(owner).take_while(|queue_key| *queue_key < candidate.queue_key);
        let earmarked = before.filter(|queue_key| holders.contains(queue_key));
        let earmarked: u64 =
            earmarked.map(|queue_key| self.need_of_ticket(constraint, queue_key)).sum();
        unfilled.saturating_sub(earmarked)
    }

    /// The rank of a candidate on a constraint.
    pub(crate) fn rank(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        need: u64,
        now: Instant,
    ) -> Rank {
        let floored = self.index.compiled.constraints[constraint].floored && candidate.passes;
        let unfilled = candidate
            .agent
            .filter(|_| floored)
            .map_or(0, |agent| self.unfilled(agent, constraint, now));
        Rank { covered: floored && need <= unfilled, ..Rank::of(candidate.queue_key) }
    }

    pub(crate) fn rank_of_ticket(
        &self,
        queue_key: QueueKey,
        constraint: ConstraintId,
        now: Instant,
    ) -> Rank {
        if !self.index.due_owners.contains(&queue_key) {
            return Rank::of(queue_key);
        }
        self.facts.tickets.get(&queue_key).map_or(Rank::of(queue_key), |ticket| {
            let need = self.index.compiled.constraints[constraint].need(&ticket.call.cost);
            self.rank(&self.candidate_of(queue_key, ticket), constraint, need, now)
        })
    }

    /// What an agent's floor on a constraint still lacks.
    pub(crate) fn unfilled(&self, agent: AgentId, constraint: ConstraintId, now: Instant) -> u64 {
        self.floor_usage(agent, constraint).map_or(0, |usage| {
            usage.floor.saturating_sub(self.agent_usage(Some(agent), usage).taken_at(now))
        })
    }

    /// What is kept of a constraint for an active owner: what its floor lacks, if that covers its
    /// last cost. Less than one of its calls would not help it, and two owners could keep each
    /// other out for ever.
    pub(crate) fn keeps(&self, owner: AgentId, constraint: ConstraintId, now: Instant) -> u64 {
        let unfilled = self.unfilled(owner, constraint, now);
        if unfilled < self.last_need(owner, constraint) { 0 } else { unfilled }
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

    /// Whether an owner's floor is withheld from the candidate. A ticket of the owner behind the
    /// candidate is no reason: the two could wait for each other.
    fn is_active(
        &self,
        owner: AgentId,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> bool {
        self.is_busy(owner, constraint, now)
            || self.first_waiting(owner).is_some_and(|first| first < candidate.queue_key)
    }

    /// The first ticket of an owner that waits for units. A ticket that is held back could not use
    /// what is kept for it.
    pub(crate) fn first_waiting(&self, owner: AgentId) -> Option<QueueKey> {
        self.tickets_of(owner).find(|queue_key| {
            let phase = self.facts.tickets.get(queue_key).map(|ticket| ticket.phase);
            matches!(phase, Some(Phase::Line(_) | Phase::Due(_)))
        })
    }

    /// Whether an owner is active, whoever asks.
    pub(crate) fn is_busy(&self, owner: AgentId, constraint: ConstraintId, now: Instant) -> bool {
        self.index.agent_loads[owner].leases > 0 || now < self.goes_idle(owner, constraint)
    }

    /// The tickets of an agent with a floor or a cap, in order.
    pub(crate) fn tickets_of(&self, agent: AgentId) -> impl Iterator<Item = QueueKey> {
        let from = (agent, QueueKey::first_of(Priority::Critical));
        let upto = (agent, QueueKey::last_of(Priority::Background));
        self.index.limited_tickets.range(from..=upto).map(|(_, queue_key)| *queue_key)
    }

    /// When an agent with nothing in flight or waiting becomes idle.
    pub(crate) fn goes_idle(&self, agent: AgentId, constraint: ConstraintId) -> Instant {
        self.facts.agents[agent].active + self.index.compiled.constraints[constraint].idle_after()
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

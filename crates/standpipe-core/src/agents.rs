//! The table of agents: which agent gets a record, and which refusals keep it active.
//!
//! The table is bounded: beyond [`bounds::AGENTS`], an unknown agent reuses the record of a long
//! idle one or shares the record `other`. `agents/agent.rs` has the record.

pub(crate) mod activity;
pub(crate) mod agent;
pub(crate) mod share;

use crate::agents::agent::Agent;
use crate::bounds;
use crate::event::Reserve;
use crate::id::{AgentId, Id, RuleId};
use crate::name::AgentName;
use crate::state::{AgentLoad, State};
use crate::time::Instant;
use crate::unit::Amounts;

impl State {
    /// The index of an agent's rules in the configuration, by name.
    pub(crate) fn rule_of(&self, name: &AgentName) -> Option<RuleId> {
        let config = self.facts.config.as_ref()?;
        config.agents.iter().position(|rule| rule.name == *name).map(RuleId::of)
    }

    /// The record that counts for an agent: its own, or `other` if the table is full. `None` if the
    /// agent is new and would get a record.
    pub(crate) fn record_of(&self, name: &AgentName, now: Instant) -> Option<AgentId> {
        let own = self.index.agent_of.get(name).copied();
        own.or_else(|| {
            if self.has_room_for(name) {
                return None;
            }
            let shared = self.index.agent_of.get(AgentName::OTHER).copied();
            shared.filter(|_| self.longest_idle(now).is_none())
        })
    }

    /// Whether the table has or can make a record for an agent. Only configured agents need one:
    /// `other` cannot count the floor or cap of one agent.
    pub(crate) fn has_record_for(&self, name: &AgentName, now: Instant) -> bool {
        self.rule_of(name).is_none()
            || self.index.agent_of.contains_key(name)
            || self.has_room_for(name)
            || self.longest_idle(now).is_some()
    }

    /// Whether the table has room for another record; the last one is kept free for `other`.
    fn has_room_for(&self, name: &AgentName) -> bool {
        let max = match self.rule_of(name) {
            Some(_) => bounds::AGENT_RECORDS,
            None => bounds::AGENTS,
        };
        self.facts.agents.len() + 1 < max
    }

    /// The id of an agent's record. A new agent gets a new record, else the record of the agent
    /// that is idle longest, else `other`.
    pub(crate) fn agent_for(&mut self, name: &AgentName, now: Instant) -> AgentId {
        if let Some(agent) = self.index.agent_of.get(name) {
            return *agent;
        }
        if self.has_room_for(name) {
            return self.new_agent(name, now);
        }
        if let Some(idle) = self.longest_idle(now) {
            return self.replace_agent(idle, name, now);
        }
        match (self.index.agent_of.get(AgentName::OTHER), AgentName::new(AgentName::OTHER)) {
            (Some(other), _) => *other,
            (None, Some(other)) => self.new_agent(&other, now),
            (None, None) => AgentId::default(),
        }
    }

    fn new_agent(&mut self, name: &AgentName, now: Instant) -> AgentId {
        let record = self.record_for(name, AgentId::of(self.facts.agents.len()), now);
        // Records and loads are parallel.
        let agent = self.facts.agents.push(record);
        self.index.agent_loads.push(AgentLoad::default());
        self.index.agent_of.insert(name.clone(), agent);
        self.index.index_rule(agent, self.rule_of(name));
        agent
    }

    fn replace_agent(&mut self, agent: AgentId, name: &AgentName, now: Instant) -> AgentId {
        let record = self.record_for(name, agent, now);
        let replaced = core::mem::replace(&mut self.facts.agents[agent], record);
        // Whatever refers to the agent by its id must not pass to the new one.
        self.facts.cascade.throttled.retain(|(refused, _)| *refused != agent);
        self.forget_sizes(agent);
        self.index.agent_of.remove(&replaced.name);
        self.index.agent_of.insert(name.clone(), agent);
        self.index.index_rule(agent, self.rule_of(name));
        agent
    }

    fn record_for(&self, name: &AgentName, agent: AgentId, now: Instant) -> Agent {
        let has_rule = self.rule_of(name).is_some();
        Agent {
            name: name.clone(),
            active: now,
            refused: None,
            asked: Amounts::default(),
            admitted: None,
            denied: None,
            promoted: None,
            tags: [0; 3],
            units: self.fresh_units(agent, has_rule),
        }
    }

    /// The longest idle agent that has no rule, no lease and no ticket.
    fn longest_idle(&self, now: Instant) -> Option<AgentId> {
        let unloaded = |load: &AgentLoad| *load == AgentLoad::default();
        let idle = self.facts.agents.rows().filter(|(id, agent)| {
            let other = agent.name.as_str() == AgentName::OTHER;
            let idle = now >= agent.active + bounds::IDLE;
            unloaded(&self.index.agent_loads[*id]) && !other && idle
        });
        idle.min_by_key(|(_, agent)| agent.active).map(|(id, _)| id)
    }

    /// Remembers the last cost of a floor owner: its floor must cover that.
    pub(crate) fn record_ask(&mut self, agent: AgentId, cost: &Amounts) {
        let asked = &mut self.facts.agents[agent].asked;
        if self.index.floor_owners.contains(&agent) && asked != cost {
            *asked = cost.clone();
        }
    }

    pub(crate) fn touch_agent(&mut self, agent: AgentId, now: Instant) {
        self.facts.agents[agent].active = now;
    }

    /// Returns whether a refusal of this reserve must be appended to the log.
    ///
    /// A floor owner that only polls is active, and a background agent that only polls is denied,
    /// so their refusals change the state, at most once per interval. All other refusals change
    /// nothing, and a store may answer them without appending.
    #[must_use]
    pub fn refusal_leaves_trace(&self, reserve: &Reserve, now: Instant) -> bool {
        let now = now.max(self.facts.clock);
        self.owner_refusal_counts(reserve, &reserve.cost, now) || self.denial_counts(reserve, now)
    }

    /// Whether a refusal keeps a floor owner active. A cost above the floor does not draw on it, so
    /// polling with such a cost must not reserve the floor.
    fn owner_refusal_counts(&self, reserve: &Reserve, cost: &Amounts, now: Instant) -> bool {
        let constraints = &self.index.compiled.constraints;
        let usages = self.usages_of(self.rule_of(&reserve.agent)).iter();
        let mut floors = usages.filter(|usage| usage.owned).peekable();
        let owns_floor = floors.peek().is_some();
        if !owns_floor || floors.any(|usage| usage.need(constraints, cost) > usage.floor) {
            return false;
        }
        let Some(agent) = self.index.agent_of.get(&reserve.agent) else { return true };
        let record = &self.facts.agents[*agent];
        let idle = now >= record.active + bounds::IDLE;
        idle || record.refused.is_none_or(|last| now >= last + bounds::REFUSAL_EVERY)
    }

    /// Records a refusal if it changes the state, and returns whether it does.
    pub(crate) fn record_refusal(
        &mut self,
        reserve: &Reserve,
        cost: &Amounts,
        now: Instant,
    ) -> bool {
        let denied = self.denial_counts(reserve, now);
        let owns = self.owner_refusal_counts(reserve, cost, now);
        if owns {
            let agent = self.agent_for(&reserve.agent, now);
            let record = &mut self.facts.agents[agent];
            (record.refused, record.active) = (Some(now), now);
            self.record_ask(agent, cost);
            let rule = self.rule_of(&reserve.agent);
            self.touch_tier(self.tier_asked(reserve, rule), agent, now);
        }
        if denied {
            let agent = self.agent_for(&reserve.agent, now);
            self.record_denial(agent, cost, now);
        }
        owns || denied
    }
}

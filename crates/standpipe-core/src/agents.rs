//! The table of agents: who gets a record, and when an agent counts as active.

use alloc::vec::Vec;

use crate::agent::{Agent, AgentId};
use crate::bounds;
use crate::event::Reserve;
use crate::name::AgentName;
use crate::state::{Load, State};
use crate::time::Instant;

impl State {
    /// What the configuration says of an agent, by name.
    pub(crate) fn rule_of(&self, name: &AgentName) -> Option<u16> {
        let config = self.facts.config.as_ref()?;
        let rule = config.agents.iter().position(|rule| rule.name == *name)?;
        u16::try_from(rule).ok()
    }

    /// An agent's number. A new one gets a record while there is room, else the record of one long
    /// gone; failing that it counts as `other`.
    pub(crate) fn agent_for(&mut self, name: &AgentName, now: Instant) -> AgentId {
        if let Some(agent) = self.index.agent_of.get(name) {
            return *agent;
        }
        let known = self.facts.agents.len();
        // The last record is kept for `other`.
        if known + 1 < bounds::AGENTS {
            return self.new_agent(name, now);
        }
        if let Some(gone) = self.longest_gone(now) {
            return self.replace_agent(gone, name, now);
        }
        match (self.index.agent_of.get(AgentName::OTHER), AgentName::new(AgentName::OTHER)) {
            (Some(other), _) => *other,
            (None, Some(other)) => self.new_agent(&other, now),
            (None, None) => 0,
        }
    }

    fn new_agent(&mut self, name: &AgentName, now: Instant) -> AgentId {
        let agent = AgentId::try_from(self.facts.agents.len()).unwrap_or(AgentId::MAX);
        let record = self.record_for(name, now);
        self.facts.agents.push(record);
        self.index.loads.push(Load::default());
        self.index.agent_of.insert(name.clone(), agent);
        self.index.obey_rule(agent, self.rule_of(name).map(usize::from));
        agent
    }

    fn replace_agent(&mut self, agent: AgentId, name: &AgentName, now: Instant) -> AgentId {
        let record = self.record_for(name, now);
        let gone = core::mem::replace(&mut self.facts.agents[usize::from(agent)], record);
        self.facts.trouble.refused.retain(|(refused, _)| *refused != agent);
        self.forget_sizes(agent);
        self.index.agent_of.remove(&gone.name);
        self.index.agent_of.insert(name.clone(), agent);
        self.index.obey_rule(agent, self.rule_of(name).map(usize::from));
        agent
    }

    fn record_for(&self, name: &AgentName, now: Instant) -> Agent {
        let meters = self.meters_of(self.rule_of(name)).iter();
        let meters: Vec<_> = meters.map(|meter| meter.fresh(&self.index.plan.lanes)).collect();
        Agent {
            name: name.clone(),
            active: now,
            refused: None,
            admitted: None,
            denied: None,
            promoted: None,
            meters,
        }
    }

    /// Of the agents without a rule or anything under way that are idle, the one idle longest.
    fn longest_gone(&self, now: Instant) -> Option<AgentId> {
        let free = |load: &Load| *load == Load::default();
        let all = self.facts.agents.iter().zip(&self.index.loads).enumerate();
        let idle = all.filter(|(_, (agent, load))| {
            let other = agent.name.as_str() == AgentName::OTHER;
            free(load) && !other && now >= agent.active + bounds::IDLE
        });
        let gone = idle.min_by_key(|(_, (agent, _))| agent.active)?;
        AgentId::try_from(gone.0).ok()
    }

    pub(crate) fn seen_active(&mut self, agent: AgentId, now: Instant) {
        self.facts.agents[usize::from(agent)].active = now;
    }

    /// Whether a refusal of this reserve would leave a trace: a floor owner that only polls is
    /// active too, and a background agent that only polls is denied too, so their refusals are
    /// recorded, though not each. A store that answers refusals without appending them must append
    /// this one.
    #[must_use]
    pub fn refusal_leaves_trace(&self, reserve: &Reserve, now: Instant) -> bool {
        let now = now.max(self.facts.clock);
        self.owner_refusal_counts(reserve, now) || self.denial_counts(reserve, now)
    }

    /// Who asks for more than its floor does not draw on it: its polling keeps nothing from others.
    fn owner_refusal_counts(&self, reserve: &Reserve, now: Instant) -> bool {
        let lanes = &self.index.plan.lanes;
        let meters = self.meters_of(self.rule_of(&reserve.agent)).iter();
        let mut floors = meters.filter(|meter| meter.floor > 0).peekable();
        let owns = floors.peek().is_some();
        if !owns || floors.any(|meter| meter.need(lanes, &reserve.cost) > meter.floor) {
            return false;
        }
        let Some(agent) = self.index.agent_of.get(&reserve.agent) else { return true };
        let record = &self.facts.agents[usize::from(*agent)];
        let idle = now >= record.active + bounds::IDLE;
        idle || record.refused.is_none_or(|last| now >= last + bounds::REFUSAL_EVERY)
    }

    pub(crate) fn record_refusal(&mut self, reserve: &Reserve, now: Instant) {
        let denied = self.denial_counts(reserve, now);
        if self.owner_refusal_counts(reserve, now) {
            let agent = self.agent_for(&reserve.agent, now);
            let record = &mut self.facts.agents[usize::from(agent)];
            (record.refused, record.active) = (Some(now), now);
            let rule = self.rule_of(&reserve.agent);
            self.tier_was_active(self.tier_asked(reserve, rule), now);
        }
        if denied {
            let agent = self.agent_for(&reserve.agent, now);
            self.record_denial(agent, now);
        }
    }
}

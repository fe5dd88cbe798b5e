//! Cascades: when several agents are throttled within a short time (three within 30 s, unless
//! configured), one call at a time is admitted, in order, until three succeed in a row or that time
//! passes without a refusal.

use crate::id::AgentId;
use crate::name::AgentName;
use crate::outcome::Notice;

use crate::state::State;
use crate::time::Instant;
use alloc::vec::Vec;

/// The agents throttled lately, and the sequential phase that follows from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cascade {
    /// The agents throttled lately, each once, in order of time.
    pub throttled: Vec<(AgentId, Instant)>,
    /// Set while one call at a time is admitted.
    pub sequential: Option<Sequential>,
}

/// One call at a time is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequential {
    /// Since when.
    pub began: Instant,
    /// Until when, if no further refusal comes.
    pub ends: Instant,
    /// Successes in a row.
    pub successes: u8,
}

/// How many successes in a row end it.
const SUCCESSES: u8 = 3;

impl State {
    /// Records that an agent was throttled.
    pub(crate) fn cascade(&mut self, agent: Option<AgentName>, now: Instant) {
        let policy = self.facts.config.as_ref().map(|config| &config.policy);
        let Some(threshold) = policy.and_then(|policy| policy.cascade) else { return };
        let (agents, within) = (usize::from(threshold.agents), threshold.within);
        if let Some(agent) = agent {
            let agent = self.agent_for(&agent, now);
            let refused = &mut self.facts.cascade.throttled;
            refused.retain(|(other, at)| *other != agent && *at + within > now);
            refused.push((agent, now));
            refused.drain(..refused.len().saturating_sub(agents));
        }
        // Nothing can be refused during the pause, so the quiet time begins after it.
        let ends = self.facts.pause.unwrap_or(now).max(now) + within;
        match &mut self.facts.cascade.sequential {
            Some(sequential) => (sequential.successes, sequential.ends) = (0, ends),
            None if self.facts.cascade.throttled.len() >= agents => {
                self.facts.cascade.sequential = Some(Sequential { began: now, ends, successes: 0 });
                self.effects.notices.push(Notice::Sequential { on: true });
                self.set_gate();
            }
            None => {}
        }
    }

    /// Counts the success of a call that was admitted in the sequential phase.
    pub(crate) fn single_file_worked(&mut self, started: Instant) {
        let Some(sequential) = &mut self.facts.cascade.sequential else { return };
        if started < sequential.began {
            return;
        }
        sequential.successes += 1;
        if sequential.successes >= SUCCESSES {
            self.end_sequential();
            self.set_gate();
        }
    }

    pub(crate) fn end_sequential(&mut self) {
        self.facts.cascade.sequential = None;
        self.facts.cascade.throttled.clear();
        self.effects.notices.push(Notice::Sequential { on: false });
    }
}

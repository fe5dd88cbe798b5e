//! Cascades: when three agents are throttled within 30 s, one call at a time is admitted, in order,
//! until three succeed in a row or 30 s pass without a refusal.

use crate::id::AgentId;
use crate::name::AgentName;
use crate::outcome::Notice;

use crate::state::State;
use crate::time::{Instant, Span};
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

/// How many different agents.
pub(crate) const AGENTS: usize = 3;
/// Within this time. Also how long nothing may be refused before it ends.
pub(crate) const WITHIN: Span = Span::secs(30);
/// How many successes in a row end it.
const SUCCESSES: u8 = 3;

impl State {
    /// Records that an agent was throttled.
    pub(crate) fn cascade(&mut self, agent: Option<AgentName>, now: Instant) {
        if !self.facts.config.as_ref().is_some_and(|config| config.policy.cascade) {
            return;
        }
        if let Some(agent) = agent {
            let agent = self.agent_for(&agent, now);
            let refused = &mut self.facts.cascade.throttled;
            refused.retain(|(other, at)| *other != agent && *at + WITHIN > now);
            refused.push((agent, now));
            refused.drain(..refused.len().saturating_sub(AGENTS));
        }
        // Nothing can be refused during the pause, so the quiet time begins after it.
        let ends = self.facts.pause.unwrap_or(now).max(now) + WITHIN;
        match &mut self.facts.cascade.sequential {
            Some(sequential) => (sequential.successes, sequential.ends) = (0, ends),
            None if self.facts.cascade.throttled.len() >= AGENTS => {
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

//! Three different agents refused within half a minute: from then on everybody goes one at a time,
//! in order, until it works again.

use crate::name::AgentName;
use crate::outcome::Notice;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::trouble::Sequential;

/// So many different agents …
pub(crate) const AGENTS: usize = 3;
/// … within so long. Also how long nothing must be refused before it is over.
pub(crate) const WITHIN: Span = Span::secs(30);
/// So many successes in a row end it too.
const SUCCESSES: u8 = 3;

impl State {
    /// An agent was refused.
    pub(crate) fn cascade(&mut self, agent: Option<AgentName>, now: Instant) {
        if !self.facts.config.as_ref().is_some_and(|config| config.policy.cascade) {
            return;
        }
        if let Some(agent) = agent {
            let agent = self.agent_for(&agent, now);
            let refused = &mut self.facts.trouble.refused;
            refused.retain(|(other, at)| *other != agent && *at + WITHIN > now);
            refused.push((agent, now));
            refused.drain(..refused.len().saturating_sub(AGENTS));
        }
        // While everybody pauses nothing can be refused: the calm begins after it.
        let ends = self.facts.pause.unwrap_or(now).max(now) + WITHIN;
        let trouble = &mut self.facts.trouble;
        match &mut trouble.sequential {
            Some(sequential) => (sequential.successes, sequential.ends) = (0, ends),
            None if trouble.refused.len() >= AGENTS => {
                trouble.sequential = Some(Sequential { began: now, ends, successes: 0 });
                self.news.notices.push(Notice::Sequential { on: true });
                self.set_gate();
            }
            None => {}
        }
    }

    /// A call that was admitted in single file has succeeded.
    pub(crate) fn single_file_worked(&mut self, started: Instant) {
        let Some(sequential) = &mut self.facts.trouble.sequential else { return };
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
        self.facts.trouble.sequential = None;
        self.facts.trouble.refused.clear();
        self.news.notices.push(Notice::Sequential { on: false });
    }
}

//! What proxied calls used and waited for, by agent and session, since the daemon started.
//!
//! Only counts: the ledger has the truth, and `audit` has it for longer.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Caller, Session};
use crate::state::lock;

/// The most agents that are counted apart. Further ones count as `other`.
const MAX_AGENTS: usize = 1_024;
/// The most sessions that are counted apart. Beyond, the one that was used longest ago becomes part
/// of `AGENT/other`.
const MAX_SESSIONS: usize = 1_024;

/// What calls used and waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct CallTotals {
    /// Calls that were answered.
    pub(crate) calls: u64,
    /// Input tokens that counted.
    pub(crate) input_tokens: u64,
    /// Output tokens.
    pub(crate) output_tokens: u64,
    /// How long the calls waited to be admitted, all together.
    pub(crate) waited_ms: u64,
    /// Calls that the proxy tried again.
    pub(crate) retries: u64,
    /// Calls that the provider refused for a reason of quota.
    pub(crate) refused: u64,
    /// Calls that ended with an error, of the provider or of Standpipe.
    pub(crate) failed: u64,
}

/// The totals of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct AgentTotals {
    #[serde(flatten)]
    pub(crate) all: CallTotals,
    /// Why the last of the failed calls failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_failure: Option<String>,
    /// Of its sessions, sub-agents and users, by name: `AGENT/SESSION/SUB-AGENT`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) sessions: BTreeMap<String, SessionTotals>,
}

/// The totals of one session of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct SessionTotals {
    #[serde(flatten)]
    pub(crate) all: CallTotals,
    /// The sub-agent that started this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// When it was last used, as a number that grows.
    #[serde(skip)]
    used: u64,
}

/// The totals of all agents.
#[derive(Debug, Default)]
pub(crate) struct Totals(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    agents: BTreeMap<String, AgentTotals>,
    /// How many sessions all agents have together.
    sessions: usize,
    changes: u64,
}

impl Totals {
    /// Changes the totals of a caller.
    pub(crate) fn add(&self, caller: &Caller, change: impl Fn(&mut CallTotals)) {
        let mut counted = lock(&self.0);
        let agent = counted.counted_as(&caller.agent);
        change(&mut counted.agents.entry(agent.to_owned()).or_default().all);
        if let Some(session) = &caller.session {
            change(counted.session(agent, session));
        }
    }

    /// Counts a call that ended with an error.
    pub(crate) fn fail(&self, caller: &Caller, why: String) {
        self.add(caller, |own| own.failed += 1);
        let mut counted = lock(&self.0);
        let agent = counted.counted_as(&caller.agent).to_owned();
        counted.agents.entry(agent).or_default().last_failure = Some(why);
    }

    /// Returns the totals of all agents.
    pub(crate) fn all(&self) -> BTreeMap<String, AgentTotals> {
        lock(&self.0).agents.clone()
    }
}

impl Counted {
    /// The name that an agent counts under.
    fn counted_as<'a>(&self, agent: &'a str) -> &'a str {
        let is_apart = self.agents.len() < MAX_AGENTS || self.agents.contains_key(agent);
        if is_apart { agent } else { "other" }
    }

    fn session(&mut self, agent: &str, session: &Session) -> &mut CallTotals {
        self.changes += 1;
        let known = |all: &AgentTotals| all.sessions.contains_key(&session.name);
        if !self.agents.get(agent).is_some_and(known) {
            if self.sessions >= MAX_SESSIONS {
                self.merge_oldest();
            }
            self.sessions += 1;
        }
        let sessions = &mut self.agents.entry(agent.to_owned()).or_default().sessions;
        let found = sessions.entry(session.name.clone()).or_default();
        found.used = self.changes;
        found.parent.clone_from(&session.parent);
        &mut found.all
    }

    /// Adds the session that was used longest ago to `AGENT/other`.
    fn merge_oldest(&mut self) {
        let every = self.agents.iter().flat_map(|(agent, totals)| {
            let rest = other(agent);
            let own = totals.sessions.iter().filter(move |(name, _)| **name != rest);
            own.map(move |(name, session)| (session.used, agent, name))
        });
        let Some((_, agent, name)) = every.min() else { return };
        let (agent, name) = (agent.clone(), name.clone());
        let Some(sessions) = self.agents.get_mut(&agent).map(|totals| &mut totals.sessions) else {
            return;
        };
        let Some(oldest) = sessions.remove(&name) else { return };
        self.sessions -= 1;
        // One per agent, so their number is bounded too; they do not count as sessions.
        sessions.entry(other(&agent)).or_default().all.add(&oldest.all);
    }
}

/// The name of the sessions of an agent that are no longer counted apart.
fn other(agent: &str) -> String {
    format!("{agent}/other")
}

impl CallTotals {
    fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.input_tokens += more.input_tokens;
        self.output_tokens += more.output_tokens;
        self.waited_ms += more.waited_ms;
        self.retries += more.retries;
        self.refused += more.refused;
        self.failed += more.failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(agent: &str, session: Option<&str>) -> Caller {
        let named = |name| Session { name: format!("{agent}/{name}"), parent: None };
        Caller { agent: agent.to_owned(), session: session.map(named) }
    }

    #[test]
    fn agents_beyond_the_bound_count_together() {
        let totals = Totals::default();
        for number in 0..MAX_AGENTS + 10 {
            totals.add(&caller(&format!("a{number}"), None), |own| own.calls += 1);
        }
        let all = totals.all();
        assert_eq!((all.len(), all["other"].all.calls), (MAX_AGENTS + 1, 10));
    }

    #[test]
    fn sessions_beyond_the_bound_count_together_and_nothing_is_lost() {
        let totals = Totals::default();
        for number in 0..MAX_SESSIONS + 10 {
            totals.add(&caller("coder", Some(&number.to_string())), |own| own.calls += 1);
            totals.add(&caller("coder", Some("0")), |own| own.output_tokens += 1);
        }
        let coder = &totals.all()["coder"];
        assert_eq!(coder.sessions.len(), MAX_SESSIONS + 1);
        assert_eq!(coder.sessions["coder/other"].all.calls, 10);
        assert!(!coder.sessions.contains_key("coder/1"), "the one that was used longest ago");
        assert!(coder.sessions.contains_key("coder/0"));
        let calls: u64 = coder.sessions.values().map(|session| session.all.calls).sum();
        assert_eq!((calls, coder.all.calls), (MAX_SESSIONS as u64 + 10, MAX_SESSIONS as u64 + 10));
    }
}

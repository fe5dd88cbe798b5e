//! What proxied calls used and waited for, by agent, since the daemon started.
//!
//! Only counts: the ledger has the truth, and `audit` has it for longer.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;
use utoipa::ToSchema;

use crate::state::lock;

/// The most agents that are counted apart. Further ones count as `other`.
const MAX_AGENTS: usize = 1_024;

/// The totals of one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct AgentTotals {
    /// Calls that were answered.
    pub(crate) calls: u64,
    /// Input tokens that counted.
    pub(crate) input_tokens: u64,
    /// Output tokens.
    pub(crate) output_tokens: u64,
    /// How long its calls waited to be admitted, all together.
    pub(crate) waited_ms: u64,
    /// Calls that the proxy tried again.
    pub(crate) retries: u64,
    /// Calls that the provider refused for a reason of quota.
    pub(crate) refused: u64,
}

/// The totals of all agents.
#[derive(Debug, Default)]
pub(crate) struct Totals(Mutex<BTreeMap<String, AgentTotals>>);

impl Totals {
    /// Changes the totals of an agent.
    pub(crate) fn add(&self, agent: &str, change: impl FnOnce(&mut AgentTotals)) {
        let mut all = lock(&self.0);
        if let Some(totals) = all.get_mut(agent) {
            change(totals);
            return;
        }
        let name = if all.len() < MAX_AGENTS { agent } else { "other" };
        change(all.entry(name.to_owned()).or_default());
    }

    /// Returns the totals of all agents.
    pub(crate) fn all(&self) -> BTreeMap<String, AgentTotals> {
        lock(&self.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_beyond_the_bound_count_together() {
        let totals = Totals::default();
        for number in 0..MAX_AGENTS + 10 {
            totals.add(&format!("a{number}"), |own| own.calls += 1);
        }
        let all = totals.all();
        assert_eq!((all.len(), all["other"].calls), (MAX_AGENTS + 1, 10));
    }
}

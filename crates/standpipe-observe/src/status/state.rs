//! The state of a pool in one word: the worst of what holds.

use super::{AgentStatus, ConfigSource, PoolStatus};

/// The state of a pool, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PoolState {
    /// The store does not answer.
    Unavailable,
    /// The provider stopped the pool.
    Stopped,
    /// No call is admitted before an instant.
    Paused,
    /// Calls wait.
    Waiting,
    /// A limit is used up, and no call waits for it yet.
    Full,
    /// Calls are admitted, but slower than the limits allow: after a pause, in a zone, or while
    /// limits or calls in flight are unknown.
    Degraded,
    /// Calls are in flight, or an agent used the pool in the last minute.
    Active,
    /// No agent has used the pool for a minute.
    Idle,
}

/// An agent that was active so lately uses the pool: between two calls of a program no call is in
/// flight, and the state must not change with each of them.
const RECENTLY_MS: u64 = 60_000;

impl PoolState {
    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "store unavailable",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
            Self::Waiting => "waiting",
            Self::Full => "full",
            Self::Degraded => "degraded",
            Self::Active => "active",
            Self::Idle => "idle",
        }
    }

    const fn is_of_shadow_mode(self) -> bool {
        matches!(self, Self::Unavailable | Self::Active | Self::Idle)
    }
}

impl PoolStatus {
    /// Whether the pool was reset and has not been used since: its log is empty, and it has no
    /// configuration. The store keeps an empty ledger. A damaged one is not empty: its log records
    /// the loss.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        let is_empty = self.position == 0 && self.origin.source == ConfigSource::None;
        is_empty && self.unavailable.is_none()
    }

    /// Returns the worst state that holds. In shadow mode no call is held back, so the pool is only
    /// busy or idle.
    #[must_use]
    pub fn state(&self) -> PoolState {
        let trouble = &self.trouble;
        let is_slow = trouble.coming_back.is_some()
            || trouble.probe.is_some()
            || trouble.one_at_a_time.is_some()
            || trouble.speed_per_mille.is_some()
            || self.learning.is_some()
            || self.zone.as_str() != "green";
        let parents = self.parents.iter();
        let states = [
            (self.unavailable.is_some() || self.cut_off.is_some(), PoolState::Unavailable),
            (
                self.terminal.is_some() || parents.clone().any(|parent| parent.terminal.is_some()),
                PoolState::Stopped,
            ),
            (
                self.pause.is_some() || parents.clone().any(|parent| parent.pause.is_some()),
                PoolState::Paused,
            ),
            (self.waiting > 0, PoolState::Waiting),
            (self.limits.iter().any(|limit| limit.left == 0), PoolState::Full),
            (is_slow, PoolState::Degraded),
            (self.is_in_use(), PoolState::Active),
        ];
        let is_true = |state: PoolState| self.enforce || state.is_of_shadow_mode();
        let worst = states.into_iter().find(|(holds, state)| *holds && is_true(*state));
        worst.map_or(PoolState::Idle, |(_, state)| state)
    }

    /// Whether an agent uses the pool: it has a call in flight or was active a short time ago.
    fn is_in_use(&self) -> bool {
        let is_recent = |agent: &AgentStatus| !agent.never_called && agent.active_ms < RECENTLY_MS;
        self.in_flight > 0 || self.agents.iter().any(is_recent)
    }
}

#[cfg(test)]
mod tests {
    use standpipe_core::{Limit, Rule};

    use super::*;
    use crate::testing::TestPool;

    #[test]
    fn a_pool_is_idle_when_no_agent_has_used_it_for_a_minute() {
        let mut pool = TestPool::new(vec![Limit::new(Rule::Parallel { amount: 5 })]);
        assert_eq!(pool.status().state(), PoolState::Idle, "no agent has called");
        pool.admit("blog", None);
        let mut status = pool.status();
        assert_eq!(status.state(), PoolState::Active);
        status.in_flight = 0;
        for (active_ms, state) in [(59_999, PoolState::Active), (60_000, PoolState::Idle)] {
            status.agents[0].active_ms = active_ms;
            assert_eq!(status.state(), state, "{active_ms} ms");
        }
        status.agents[0].active_ms = 0;
        status.agents[0].never_called = true;
        assert_eq!(status.state(), PoolState::Idle, "only the configuration names the agent");
    }
}

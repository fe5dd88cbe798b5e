//! Pools for tests: a ledger's state without a store.

use standpipe_core::{
    Action, AgentName, Amounts, Configure, Event, Instant, Key, Limit, PoolConfig, Reserve, Source,
    Span, State,
};

use crate::status::PoolStatus;
use crate::time::Now;

/// A pool that is configured and driven by hand.
#[derive(Debug, Default)]
pub(crate) struct TestPool {
    state: State,
    number: u64,
}

impl TestPool {
    pub(crate) fn new(limits: Vec<Limit>) -> Self {
        Self::configured(PoolConfig::new(limits))
    }

    pub(crate) fn configured(config: PoolConfig) -> Self {
        let mut pool = Self::default();
        pool.apply(Action::Configure(Box::new(Configure { source: Source::Code, config })));
        pool
    }

    pub(crate) fn apply(&mut self, action: Action) {
        self.number += 1;
        let event = Event { key: Key { session: 7, number: self.number }, action };
        let _ = self.state.apply(&event, Instant(1_000_000));
    }

    /// Admits a call of an agent.
    pub(crate) fn admit(&mut self, agent: &str, ttl: Option<Span>) {
        let mut call = Reserve::new(AgentName::new(agent).unwrap(), Amounts::cost([]).unwrap());
        call.ttl = ttl;
        self.apply(Action::from(call));
    }

    pub(crate) fn status(&self) -> PoolStatus {
        let now = Now::at(Instant(1_000_000));
        PoolStatus::of(&"a/b".parse().unwrap(), &self.state, &now, &|_| None)
    }
}

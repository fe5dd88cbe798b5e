//! A pool to measure on: a ledger, sessions that number their events, and a clock that is turned by
//! hand.

use standpipe_core::{
    Action, AgentName, AgentRule, Amounts, Answer, Commit, Configure, Decision, Event, Instant,
    Key, Limit, LimitSelector, Margin, Policy, PoolConfig, Portion, Reserve, Rule, Share, Source,
    Span, State, Unit, Zones,
};

/// A ledger and what it takes to send it events.
#[derive(Clone)]
pub(crate) struct Pool {
    pub(crate) state: State,
    pub(crate) now: Instant,
    numbers: std::collections::HashMap<u64, u64>,
}

impl Pool {
    /// One window over requests, one over tokens, and calls in flight.
    pub(crate) fn new(requests: u64, parallel: u64) -> Self {
        let minute = Span::secs(60);
        let limits = vec![
            Limit::new(Rule::Window { unit: Unit::Requests, amount: requests, period: minute }),
            Limit::new(Rule::Window {
                unit: Unit::Tokens,
                amount: 1_000_000_000_000,
                period: minute,
            }),
            Limit::new(Rule::Parallel { amount: parallel }),
        ];
        let mut pool = Self {
            state: State::new(),
            now: Instant(1_000_000),
            numbers: std::collections::HashMap::new(),
        };
        let configure = Configure { source: Source::Code, config: PoolConfig::new(limits) };
        pool.send(1, Action::Configure(Box::new(configure)));
        pool
    }

    /// The same with all policies.
    pub(crate) fn with_policies(mut self) -> Self {
        if let Some(mut config) = self.state.facts().config.clone() {
            config.policy = Policy { zones: Zones::All, ..Policy::usual() };
            config.margin = Margin::Auto;
            config.prices = Amounts::new([(Unit::Tokens, 3_000_000)]).unwrap_or_default();
            config.agents = ["bench", "second", "third"].map(rule).to_vec();
            let configure = Configure { source: Source::Change, config };
            self.send(1, Action::Configure(Box::new(configure)));
        }
        self
    }

    pub(crate) fn send(&mut self, session: u64, action: Action) -> (Key, Answer) {
        let number = self.numbers.entry(session).or_default();
        *number += 1;
        let key = Key { session, number: *number };
        let outcome = self.state.apply(&Event { key, action }, self.now);
        (key, outcome.answer)
    }

    pub(crate) fn reserve(&mut self, session: u64, reserve: &Reserve) -> Option<Key> {
        let (key, answer) = self.send(session, Action::from(reserve.clone()));
        matches!(answer, Answer::Decided(Decision::Admit(_) | Decision::Wait(_))).then_some(key)
    }

    pub(crate) fn commit(&mut self, session: u64, lease: Key, used: Amounts) {
        let commit = Commit { lease, used, progress: false, refused: false };
        self.send(session, Action::Commit(commit));
    }
}

/// A tenth of everything is kept for an agent.
fn rule(name: &str) -> AgentRule {
    let floors = vec![Share { of: LimitSelector::All, portion: Portion::PerMille(100) }];
    AgentRule { name: named(name), priority: None, floors, caps: Vec::new(), weight: 1 }
}

fn named(name: &str) -> AgentName {
    AgentName::new(name).unwrap_or_else(|| unreachable!("names here are plain"))
}

/// A call of one request and some tokens.
pub(crate) fn call(agent: &str, tokens: u64) -> Reserve {
    let agent = named(agent);
    let cost = Amounts::cost([(Unit::Tokens, tokens)]).unwrap_or_default();
    Reserve::new(agent, cost)
}

//! What the behaviours of the suite have in common: a pool under a clock they own, members on it,
//! and short ways to say what is sent and what must come of it.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Commit, Configure, Count, Decision, Key, Limit, Outcome,
    PoolConfig, Reserve, Rule, Source, Span, State, Unit,
};

use super::Harness;
use crate::layout::encode_state;
use crate::log::Log;
use crate::member::Member;
use crate::replica::Replica;
use crate::trace::Time;

/// A pool under a clock of ours.
pub(super) struct World<'a, H: Harness> {
    pub(super) harness: &'a H,
    pub(super) pool: H::Pool,
    pub(super) time: Time,
    sessions: Arc<AtomicU64>,
}

impl<'a, H: Harness> World<'a, H> {
    /// A fresh pool, a second after the beginning of time.
    pub(super) fn new(harness: &'a H) -> Self {
        let time = Time::default();
        time.set(standpipe_core::Instant(1_000_000));
        let pool = harness.open(time.clock());
        Self { harness, pool, time, sessions: Arc::new(AtomicU64::new(100)) }
    }

    /// A fresh pool with these limits.
    pub(super) fn with(harness: &'a H, limits: Vec<Limit>) -> Self {
        let world = Self::new(harness);
        sent(world.member().submit(vec![configure(limits)]));
        world
    }

    pub(super) fn log(&self) -> H::Log {
        self.harness.attach(&self.pool)
    }

    /// Another process. Its sessions are numbered on.
    pub(super) fn member(&self) -> Member<H::Log> {
        self.member_on(self.log())
    }

    pub(super) fn member_on<L: Log>(&self, log: L) -> Member<L> {
        let sessions = Arc::clone(&self.sessions);
        Member::new(log, move || sessions.fetch_add(1, Ordering::SeqCst))
    }

    /// A replica that has just read everything.
    pub(super) fn replica(&self) -> Replica {
        let mut replica = Replica::new();
        let reached = replica.catch_up(&mut self.log(), |_, _, _| ());
        assert!(reached.is_ok(), "a new reader cannot read the pool: {reached:?}");
        replica
    }

    pub(super) fn pass(&self, span: Span) {
        self.time.set(self.time.now() + span);
    }
}

/// What must have worked.
#[track_caller]
pub(super) fn sent<T: Debug, E: Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        #[expect(clippy::panic, reason = "the suite asserts")]
        Err(error) => panic!("this should have worked: {error:?}"),
    }
}

/// The one outcome.
#[track_caller]
pub(super) fn only(mut outcomes: Vec<Outcome>) -> Answer {
    assert_eq!(outcomes.len(), 1, "one outcome, not {outcomes:?}");
    outcomes.remove(0).answer
}

/// The lease of an answer that admits.
#[track_caller]
pub(super) fn admitted(answer: &Answer) -> Key {
    match answer {
        Answer::Decided(Decision::Admit(grant)) => grant.lease,
        #[expect(clippy::panic, reason = "the suite asserts")]
        other => panic!("this should have been admitted: {other:?}"),
    }
}

pub(super) fn state_bytes(state: &State) -> Vec<u8> {
    encode_state(state.facts())
}

/// The units that count on a rate limit, given by its place in the configuration.
pub(super) fn used(state: &State, limit: usize) -> u64 {
    match state.facts().lanes.get(limit).map(|tally| &tally.count) {
        Some(Count::Window(window)) => window.entries().map(|entry| entry.units).sum(),
        _ => 0,
    }
}

pub(super) fn requests(amount: u64, period: Span) -> Limit {
    Limit::new(Rule::Window { unit: Unit::Requests, amount, period })
}

pub(super) fn parallel(amount: u64) -> Limit {
    Limit::new(Rule::Parallel { amount })
}

pub(super) fn configure(limits: Vec<Limit>) -> Action {
    let config = PoolConfig::new(limits);
    Action::Configure(Box::new(Configure { source: Source::Code, config }))
}

/// A call of one request that waits so long at most.
pub(super) fn call(patience: Span) -> Reserve {
    let agent = sent(AgentName::new("blog").ok_or("no name"));
    let mut reserve = Reserve::new(agent, sent(Amounts::cost([])));
    reserve.patience = patience;
    reserve
}

pub(super) fn reserve(patience: Span) -> Action {
    Action::Reserve(Box::new(call(patience)))
}

pub(super) fn commit(lease: Key) -> Action {
    let used = Amounts::default();
    Action::Commit(Commit { lease, used, progress: false, refused: false })
}

pub(super) const HOUR: Span = Span::secs(3_600);

/// How much more is done when there is time: `STANDPIPE_LONG=1` in the environment.
#[must_use]
pub fn long() -> u64 {
    if std::env::var_os("STANDPIPE_LONG").is_some() { 10 } else { 1 }
}

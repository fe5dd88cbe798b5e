//! The fixture of the suite: a pool with a manual clock, participants on it, and helpers that build
//! actions and unwrap outcomes.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Commit, Configure, Decision, Key, Limit, Outcome,
    PoolConfig, Reserve, Rule, Source, Span, State, Unit,
};

use super::Harness;
use crate::layout::encode_state;
use crate::log::Log;
use crate::participant::Participant;
use crate::replica::Replica;
use crate::trace::ManualClock;

/// A pool with a manual clock.
pub(super) struct Fixture<'a, H: Harness> {
    pub(super) harness: &'a H,
    pub(super) pool: H::Pool,
    pub(super) time: ManualClock,
    sessions: Arc<AtomicU64>,
}

impl<'a, H: Harness> Fixture<'a, H> {
    /// Creates a pool. The clock is at one second.
    pub(super) fn new(harness: &'a H) -> Self {
        let time = ManualClock::default();
        time.set(standpipe_core::Instant(1_000_000));
        let pool = harness.open(time.clock());
        Self { harness, pool, time, sessions: Arc::new(AtomicU64::new(100)) }
    }

    /// Creates a pool with these limits.
    pub(super) fn with(harness: &'a H, limits: Vec<Limit>) -> Self {
        let fixture = Self::new(harness);
        ok(fixture.participant().submit(vec![configure(limits)]));
        fixture
    }

    pub(super) fn log(&self) -> H::Log {
        self.harness.attach(&self.pool)
    }

    /// Adds another process to the pool.
    pub(super) fn participant(&self) -> Participant<H::Log> {
        self.participant_on(self.log())
    }

    pub(super) fn participant_on<L: Log>(&self, log: L) -> Participant<L> {
        let sessions = Arc::clone(&self.sessions);
        Participant::new(log, move || sessions.fetch_add(1, Ordering::SeqCst))
    }

    /// Returns a new replica at the head.
    pub(super) fn replica(&self) -> Replica {
        let mut replica = Replica::new();
        let reached = replica.catch_up(&mut self.log(), |_, _, _| ());
        assert!(reached.is_ok(), "a new reader cannot read the pool: {reached:?}");
        replica
    }

    pub(super) fn advance(&self, span: Span) {
        self.time.set(self.time.now() + span);
    }
}

/// Unwraps a result that must be `Ok`.
#[track_caller]
pub(super) fn ok<T: Debug, E: Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        #[expect(clippy::panic, reason = "the suite asserts")]
        Err(error) => panic!("unexpected error: {error:?}"),
    }
}

/// Returns the answer of the only outcome.
#[track_caller]
pub(super) fn only(mut outcomes: Vec<Outcome>) -> Answer {
    assert_eq!(outcomes.len(), 1, "one outcome, not {outcomes:?}");
    outcomes.remove(0).answer
}

/// Returns the lease of an answer that must admit.
#[track_caller]
pub(super) fn admitted(answer: &Answer) -> Key {
    match answer {
        Answer::Decided(Decision::Admit(grant)) => grant.lease,
        #[expect(clippy::panic, reason = "the suite asserts")]
        other => panic!("not admitted: {other:?}"),
    }
}

pub(super) fn state_bytes(state: &State) -> Vec<u8> {
    encode_state(state.facts())
}

/// Returns the units charged to a window limit, given by its index in the configuration.
pub(super) fn used(state: &State, limit: usize) -> u64 {
    state.figures(state.clock()).get(limit).map_or(0, |usage| usage.used)
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

/// Returns a reserve of one request that waits at most `patience`.
pub(super) fn call(patience: Span) -> Reserve {
    let agent = ok(AgentName::new("blog").ok_or("no name"));
    let mut reserve = Reserve::new(agent, ok(Amounts::cost([])));
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

/// Returns the factor for the iterations of random tests: 10 with `STANDPIPE_LONG=1`, else 1.
#[must_use]
pub fn iteration_factor() -> u64 {
    if std::env::var_os("STANDPIPE_LONG").is_some() { 10 } else { 1 }
}

//! Finds sessions and owners with leases or tickets on a pool that are dead or silent for too long.
//!
//! The ledger ends no session by itself: a process that waits, that is about to be refused or that
//! shows a pool tests the others and appends what it found. A session whose process is dead ends at
//! once; one whose liveness cannot be tested ends after [`bounds::SILENCE`]; a living one never
//! does, even while it is stopped.

use std::collections::BTreeSet;

use standpipe_core::{Action, Facts, Instant, Key, LeaseOwner, Owner, Reason, bounds};
use standpipe_store::{Liveness, Store};

use crate::client::Dispatcher;
use crate::maintenance::owner::ThisBoot;

/// How many targets are tested in one round. The next round continues behind them, so that no round
/// takes long and every target is tested.
const ROUND: usize = 1_024;

/// The sessions and owners to test, in this order.
#[derive(Default)]
pub(crate) struct LivenessCheck {
    order: Vec<CheckTarget>,
    sessions: BTreeSet<u64>,
}

enum CheckTarget {
    /// A session, and its last event.
    Session(u64, Option<Instant>),
    Owner(Key, Owner),
}

impl LivenessCheck {
    /// Collects every session and owner on the pool: first those with leases, then those with
    /// tickets.
    pub(crate) fn of(facts: &Facts) -> Self {
        let mut check = Self::default();
        for (key, lease) in &facts.leases {
            match (lease.owner, lease.call.owner) {
                (LeaseOwner::Session(session), _) => check.add(facts, session),
                (LeaseOwner::Ttl { .. }, Some(owner)) => {
                    check.order.push(CheckTarget::Owner(*key, owner));
                }
                (LeaseOwner::Ttl { .. }, None) => {}
            }
        }
        for session in facts.tickets.values().filter_map(|ticket| ticket.session) {
            check.add(facts, session);
        }
        check
    }

    fn add(&mut self, facts: &Facts, session: u64) {
        if self.sessions.insert(session) {
            let last_seen = facts.sessions.get(&session).map(|known| known.last_seen);
            self.order.push(CheckTarget::Session(session, last_seen));
        }
    }

    /// Reduces the targets to those of this round. `behind` is where the last round ended.
    pub(crate) fn in_round(mut self, behind: &mut usize) -> Self {
        if self.order.len() > ROUND {
            let begin = *behind % self.order.len();
            self.order.rotate_left(begin);
            self.order.truncate(ROUND);
            *behind = begin + ROUND;
        }
        self
    }

    /// Returns the actions that report which targets are dead or were silent for too long.
    pub(crate) fn dead(self, store: &dyn Store, now: Instant) -> Vec<Action> {
        let here = ThisBoot::read();
        let ended = |target: CheckTarget| match target {
            CheckTarget::Session(session, last_seen) => {
                let silent = last_seen.is_some_and(|last_seen| now >= last_seen + bounds::SILENCE);
                let ended = match store.liveness(session) {
                    Liveness::Alive => false,
                    Liveness::Dead => true,
                    Liveness::Unknown => silent,
                };
                ended.then_some(Action::SessionEnded { session })
            }
            CheckTarget::Owner(lease, owner) => {
                here.is_gone(owner).then_some(Action::OwnerEnded { lease })
            }
        };
        self.order.into_iter().filter_map(ended).collect()
    }
}

/// Tests all targets on the pool and reports the dead ones to the ledger. Returns whether there
/// were any. The replica must have been read just now.
pub(crate) fn report_dead(dispatcher: &mut Dispatcher, store: &dyn Store) -> bool {
    let now = dispatcher.now();
    let state = dispatcher.participant.replica().state().at(now.store);
    let actions = LivenessCheck::of(state.facts()).dead(store, now.store);
    drop(state);
    !actions.is_empty() && dispatcher.send_or_keep_all(actions)
}

/// Returns a few of the stopped processes that hold leases, for the error of a call that waited for
/// them.
pub(crate) fn stopped_holders(facts: &Facts, store: &dyn Store) -> Vec<u32> {
    let held = facts.leases.values().filter_map(|lease| match lease.owner {
        LeaseOwner::Session(session) => Some(session),
        LeaseOwner::Ttl { .. } => None,
    });
    let sessions: BTreeSet<u64> = held.collect();
    let processes =
        sessions.into_iter().take(MAX_CHECKED).filter_map(|each| store.process_of(each));
    let stopped: BTreeSet<u32> =
        processes.filter(|process| process.stopped).map(|process| process.pid).collect();
    stopped.into_iter().take(MAX_NAMED).collect()
}

/// Returns whether the end of another session could admit a call that was refused for this reason.
pub(crate) const fn may_free_units(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Cap
            | Reason::Order
            | Reason::Limit
            | Reason::Floor
            | Reason::Probe
            | Reason::Sequential
            | Reason::Learning
            | Reason::QueueFull
            | Reason::Deadline
    )
}

/// How many sessions are checked to find stopped ones, and how many of those are named.
const MAX_CHECKED: usize = 64;
const MAX_NAMED: usize = 4;

#[cfg(test)]
mod tests {
    use standpipe_core::{
        AgentName, Amounts, Configure, Event, Limit, PoolConfig, Reserve, Rule, Source, Span, State,
    };
    use standpipe_store::{Log, MemoryStore, PoolName, Process, StoreError};
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    /// A store that reports the same liveness for every session.
    #[derive(Debug)]
    struct FixedLiveness(MemoryStore, Liveness);

    impl Store for FixedLiveness {
        fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
            self.0.log(pool)
        }

        fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
            self.0.pools()
        }

        fn begin_session(&self) -> Result<u64, StoreError> {
            self.0.begin_session()
        }

        fn end_session(&self, session: u64) {
            self.0.end_session(session);
        }

        fn liveness(&self, _session: u64) -> Liveness {
            self.1
        }

        fn process_of(&self, session: u64) -> Option<Process> {
            let pid = u32::try_from(session).unwrap();
            Some(Process { pid, stopped: session == 2 })
        }

        fn wait_for_wake(&self, at_most: Duration) {
            self.0.wait_for_wake(at_most);
        }

        fn interrupt(&self) {
            self.0.interrupt();
        }

        fn location(&self) -> String {
            self.0.location()
        }
    }

    const BEGAN: Instant = Instant(bounds::SPAN.0);

    /// Returns a pool on which each of these sessions has a lease.
    fn held_by(sessions: impl IntoIterator<Item = u64>) -> State {
        let mut state = State::new();
        let config = PoolConfig::new(vec![Limit::new(Rule::Parallel { amount: 4_000 })]);
        let configure = Configure { source: Source::Code, config };
        let mut apply = |session, action| {
            let _ = state.apply(&Event { key: Key { session, number: 1 }, action }, BEGAN);
        };
        apply(1_000_000, Action::Configure(Box::new(configure)));
        let agent = AgentName::new("holder").unwrap();
        for session in sessions {
            let reserve = Reserve::new(agent.clone(), Amounts::cost([]).unwrap());
            apply(session, Action::from(reserve));
        }
        state
    }

    fn ended(state: &State, liveness: Liveness, after: Span) -> usize {
        let store = FixedLiveness(MemoryStore::new(Arc::new(|| BEGAN)), liveness);
        LivenessCheck::of(state.facts()).dead(&store, BEGAN + after).len()
    }

    #[test]
    fn only_a_session_whose_liveness_cannot_be_tested_ends_by_silence() {
        let state = held_by([1]);
        let (brief, long) = (Span(bounds::SILENCE.0 - 1), bounds::SILENCE);
        assert_eq!(ended(&state, Liveness::Dead, Span::ZERO), 1, "at once");
        assert_eq!(ended(&state, Liveness::Unknown, brief), 0);
        assert_eq!(ended(&state, Liveness::Unknown, long), 1);
        let stopped_for_a_day = Span::secs(86_400);
        assert_eq!(ended(&state, Liveness::Alive, stopped_for_a_day), 0, "it lives");
    }

    #[test]
    fn a_few_rounds_test_every_session() {
        let state = held_by(1..=3_000);
        let (mut behind, mut tested) = (0, BTreeSet::new());
        let store = FixedLiveness(MemoryStore::new(Arc::new(|| BEGAN)), Liveness::Dead);
        for _ in 0..3 {
            let round = LivenessCheck::of(state.facts()).in_round(&mut behind);
            let dead = round.dead(&store, BEGAN);
            assert!(dead.len() <= ROUND);
            tested.extend(dead.into_iter().map(|action| match action {
                Action::SessionEnded { session } => session,
                other => panic!("{other:?}"),
            }));
        }
        assert_eq!(tested.len(), 3_000);
    }

    #[test]
    fn stopped_holders_are_named() {
        let store = FixedLiveness(MemoryStore::new(Arc::new(|| BEGAN)), Liveness::Alive);
        assert_eq!(stopped_holders(held_by([1, 2, 3]).facts(), &store), [2]);
    }
}

//! When queued calls are admitted if nothing else happens: the queue replayed on a copy of the
//! ledger.
//!
//! In the replay calls are admitted in their order and use what they reserved. No call comes, none
//! is cancelled, and no call in flight ends, so a call that needs a slot has no forecast. What
//! happens meanwhile can make an admission earlier or later: a forecast is no bound.

use std::collections::BTreeMap;

use standpipe_core::{
    Action, Answer, Decision, Event, Instant, Key, Outcome, Probe, Queued, Reserve, Span, State,
};

use super::claim_of;

/// The most calls whose admission is forecast.
const MAX_CALLS: usize = 64;
/// A longer queue is not replayed, because a view must be cheap.
const MAX_TICKETS: usize = 256;
/// The most instants that a replay visits.
const MAX_STEPS: usize = 512;
/// An event that only lets time pass.
const PASS: Action = Action::Heartbeat { lease: None, ttl: None };
/// A new call is replayed with this timeout.
const PATIENCE: Span = Span::secs(86_400);

/// Returns when each queued call will be admitted; calls without a forecast are left out.
pub(crate) fn admissions(state: &State, now: Instant) -> BTreeMap<Key, Instant> {
    Replay::of(state, now).map(Replay::run).unwrap_or_default()
}

/// Returns when a new call would be admitted behind those that wait already.
pub(crate) fn admission_of(state: &State, reserve: &Reserve, now: Instant) -> Option<Instant> {
    let mut replay = Replay::of(state, now)?;
    let call = Reserve { patience: PATIENCE, id: None, ticket: None, ..reserve.clone() };
    let outcome = replay.apply(Action::from(call));
    let Answer::Decided(Decision::Wait(Queued { ticket, .. })) = outcome.answer else {
        return None;
    };
    replay.last = Some(ticket);
    replay.run().get(&ticket).copied()
}

struct Replay {
    state: State,
    at: Instant,
    /// The session of the replay's own events, which no process has.
    session: u64,
    number: u64,
    /// The call whose admission ends the replay.
    last: Option<Key>,
    admitted: BTreeMap<Key, Instant>,
}

impl Replay {
    fn of(state: &State, at: Instant) -> Option<Self> {
        let facts = state.facts();
        let session = (0..u64::MAX).rev().find(|id| !facts.sessions.contains_key(id))?;
        let is_short = facts.tickets.len() <= MAX_TICKETS;
        let admitted = BTreeMap::new();
        let state = is_short.then(|| state.clone())?;
        Some(Self { state, at, session, number: 0, last: None, admitted })
    }

    fn apply(&mut self, action: Action) -> Outcome {
        self.number += 1;
        let key = Key { session: self.session, number: self.number };
        self.state.apply(&Event { key, action }, self.at)
    }

    fn run(mut self) -> BTreeMap<Key, Instant> {
        let mut due: Vec<Key> = self.state.facts().tickets.values().map(|t| t.key).collect();
        for _ in 0..MAX_STEPS {
            self.admit(due);
            let leases = self.state.facts().leases.len();
            let now = self.apply(PASS);
            let Some(next) = now.next.filter(|_| !self.is_done() && !self.is_gated()) else {
                break;
            };
            self.at = next;
            let then = self.apply(PASS);
            // A lease that expires ends a call, and when calls end is not known.
            if self.state.facts().leases.len() < leases {
                break;
            }
            due = now.wake;
            due.extend(then.wake);
        }
        self.admitted
    }

    fn is_done(&self) -> bool {
        let is_last = |last: Key| self.admitted.contains_key(&last);
        let is_empty = self.state.facts().tickets.is_empty();
        is_empty || self.admitted.len() >= MAX_CALLS || self.last.is_some_and(is_last)
    }

    /// Whether calls wait for the answers of others, which have no known instant.
    fn is_gated(&self) -> bool {
        let facts = self.state.facts();
        let is_probed = matches!(facts.returning.probe, Probe::Sent { .. });
        is_probed || facts.cascade.sequential.is_some() || self.state.cautious().is_some()
    }

    /// Claims the tickets that are due, and those that become due by that.
    fn admit(&mut self, mut tickets: Vec<Key>) {
        let mut at = 0;
        while let Some(ticket) = tickets.get(at).copied() {
            at += 1;
            let Some(claim) = self.claim(ticket) else { continue };
            if let Decision::Admit(_) = self.state.peek(&claim, self.at) {
                self.admitted.insert(ticket, self.at);
                tickets.extend(self.apply(Action::from(claim)).wake);
            }
        }
    }

    fn claim(&self, key: Key) -> Option<Reserve> {
        let mut tickets = self.state.facts().tickets.values();
        claim_of(&self.state, tickets.find(|ticket| ticket.key == key)?)
    }
}

#[cfg(test)]
mod tests {
    use standpipe_core::{
        AgentName, Amounts, Configure, Limit, PoolConfig, ReturnWindows, Rule, Source,
        ThrottleKind, Throttled, Unit,
    };

    use super::*;

    const SECOND: u64 = 1_000_000;

    struct Queue {
        state: State,
        number: u64,
    }

    impl Queue {
        /// Two requests per 10 s, and slots if a number is given.
        fn new(slots: Option<u64>) -> Self {
            let rule = Rule::Window { unit: Unit::Requests, amount: 2, period: Span::secs(10) };
            let slots = slots.map(|amount| Rule::Parallel { amount });
            let limits = [rule].into_iter().chain(slots).map(Limit::new).collect();
            let mut queue = Self { state: State::new(), number: 0 };
            let (source, mut config) = (Source::Code, PoolConfig::new(limits));
            config.policy.comeback = Some(ReturnWindows::USUAL);
            let _ = queue.apply(Action::Configure(Box::new(Configure { source, config })));
            queue
        }

        fn apply(&mut self, action: Action) -> Outcome {
            self.number += 1;
            let key = Key { session: u64::MAX - 1, number: self.number };
            self.state.apply(&Event { key, action }, Instant(0))
        }

        fn call(timeout: u64) -> Reserve {
            let cost = Amounts::cost([]).unwrap();
            let call = Reserve::new(AgentName::new("blog").unwrap(), cost);
            Reserve { patience: Span::secs(timeout), ..call }
        }

        fn reserve(&mut self, calls: usize, timeout: u64) {
            for _ in 0..calls {
                let _ = self.apply(Action::from(Self::call(timeout)));
            }
        }

        /// The forecasts in the order of arrival, in seconds.
        fn expected(&self) -> Vec<u64> {
            admissions(&self.state, Instant(0)).values().map(|at| at.0 / SECOND).collect()
        }
    }

    #[test]
    fn calls_are_expected_one_period_after_those_ahead_of_them() {
        let mut queue = Queue::new(None);
        queue.reserve(7, 600);
        assert_eq!(queue.expected(), [10, 10, 20, 20, 30]);
        let new = admission_of(&queue.state, &Queue::call(0), Instant(0));
        assert_eq!(new, Some(Instant(30 * SECOND)));
        // Nothing of it happened.
        assert_eq!(queue.state.facts().tickets.len(), 5);
    }

    #[test]
    fn a_call_that_times_out_first_lets_those_behind_it_pass() {
        let mut queue = Queue::new(None);
        queue.reserve(4, 600);
        queue.reserve(2, 15);
        queue.reserve(1, 600);
        assert_eq!(queue.expected(), [10, 10, 20]);
    }

    #[test]
    fn what_waits_for_an_answer_or_a_slot_has_no_forecast() {
        let mut queue = Queue::new(Some(2));
        queue.reserve(3, 600);
        assert!(queue.expected().is_empty(), "both slots are in use");
        let mut queue = Queue::new(None);
        let kind = ThrottleKind::Quota;
        let retry_after = Some(Span::secs(5));
        let refused = Throttled { lease: None, agent: None, kind, retry_after, hit: None };
        let _ = queue.apply(Action::Throttled(refused));
        queue.reserve(2, 600);
        assert_eq!(queue.expected().len(), 1, "the second waits for the answer to the probe");
    }

    #[test]
    fn a_long_queue_is_not_replayed() {
        let mut queue = Queue::new(None);
        queue.reserve(2 + MAX_TICKETS, 86_400);
        assert_eq!(queue.expected().len(), MAX_CALLS);
        queue.reserve(1, 86_400);
        assert!(queue.expected().is_empty());
    }
}

//! The ledger that all coordinated agents share: one `State` per pool, advanced in virtual time.
//!
//! It does what a store and the maintenance thread do in a real process: it numbers events, applies
//! them in order, sends heartbeats for sessions that hold something, and collects wake-ups.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use standpipe_core::{
    Action, Answer, Configure, Decision, Event, Instant, Key, Notice, Outcome, PoolConfig, Source,
    Span, State, bounds,
};
use standpipe_dialect::Dialect;

/// The ledger's instant at which the world begins. No span reaches back before the ledger's zero.
const BEGINNING: u64 = bounds::SPAN.0;

/// The interval of heartbeats of sessions that hold something.
const HEARTBEAT: Span = Span::secs(30);

/// A ledger for each pool. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SharedLedger(Rc<RefCell<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    pools: Vec<Pool>,
    /// By agent: whether it lives.
    living: Vec<bool>,
    /// Calls to wake, by their numbers in the world.
    wakeups: Vec<usize>,
    /// The number of sessions so far.
    sessions: u64,
}

#[derive(Debug)]
struct Pool {
    dialect: Dialect,
    state: State,
    /// By agent.
    sessions_by_agent: BTreeMap<usize, AgentSession>,
    /// The call that waits with each ticket.
    waiting: BTreeMap<Key, usize>,
    notices: Vec<(u64, Notice)>,
    decisions: Vec<DecisionRecord>,
}

/// An agent's session on a pool.
#[derive(Clone, Copy, Debug)]
struct AgentSession {
    session: u64,
    number: u64,
    last_event: Instant,
}

/// The answer to one reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRecord {
    /// The instant of the reserve.
    pub at: u64,
    /// The agent, by the order of registration.
    pub agent: usize,
    /// The call's number in the world.
    pub call: usize,
    /// Whether the provider refused the call before.
    pub retry: bool,
    /// The decision of the ledger.
    pub decision: Decision,
}

impl SharedLedger {
    /// Creates a ledger with these pools, in the order of the world's.
    #[must_use]
    pub fn new(pools: Vec<(Dialect, PoolConfig)>) -> Self {
        let ledger = Self::default();
        for (dialect, config) in pools {
            let pool = Pool {
                dialect,
                state: State::new(),
                sessions_by_agent: BTreeMap::new(),
                waiting: BTreeMap::new(),
                notices: Vec::new(),
                decisions: Vec::new(),
            };
            let mut shared = ledger.0.borrow_mut();
            shared.pools.push(pool);
            let (at, configure) =
                (shared.pools.len() - 1, Configure { source: Source::Code, config });
            shared.send_from_outside(at, Action::Configure(Box::new(configure)), 0);
        }
        ledger
    }

    /// Reads the state of a pool.
    pub fn look<T>(&self, pool: usize, at: impl FnOnce(&State) -> T) -> T {
        at(&self.0.borrow().pools[pool].state)
    }

    /// Returns the notices of a pool with their instants.
    #[must_use]
    pub fn notices(&self, pool: usize) -> Vec<(u64, Notice)> {
        self.0.borrow().pools[pool].notices.clone()
    }

    /// Returns the answers to all reserves on a pool, in order.
    #[must_use]
    pub fn decisions(&self, pool: usize) -> Vec<DecisionRecord> {
        self.0.borrow().pools[pool].decisions.clone()
    }

    /// Sends an event that belongs to no agent, for example a pause by hand.
    pub fn happens(&self, pool: usize, action: Action, now: u64) {
        self.0.borrow_mut().send_from_outside(pool, action, now);
    }

    /// Converts an instant of the world to the ledger's clock.
    #[must_use]
    pub const fn instant(now: u64) -> Instant {
        Instant(BEGINNING.saturating_add(now))
    }

    /// Converts an instant of the ledger's clock to the world.
    #[must_use]
    pub const fn moment(instant: Instant) -> u64 {
        instant.0.saturating_sub(BEGINNING)
    }

    /// Registers an agent and returns its number.
    pub(crate) fn register(&self) -> usize {
        let mut shared = self.0.borrow_mut();
        shared.living.push(true);
        shared.living.len() - 1
    }

    pub(crate) fn dialect(&self, pool: usize) -> Dialect {
        self.0.borrow().pools[pool].dialect
    }

    /// Sends an agent's event and returns the answer.
    pub(crate) fn send(&self, pool: usize, agent: usize, action: Action, now: u64) -> Answer {
        self.0.borrow_mut().send(pool, agent, &action, now).answer
    }

    /// Sends the reserve of a call and records the decision.
    pub(crate) fn reserve(&self, pool: usize, asks: &ReserveCall, now: u64) -> Option<Decision> {
        let mut shared = self.0.borrow_mut();
        let before = shared.wakeups.len();
        let outcome = shared.send(pool, asks.agent, &asks.action, now);
        // The call has its answer, so its own wake-up is dropped.
        let others = shared.wakeups.split_off(before).into_iter().filter(|call| *call != asks.call);
        shared.wakeups.extend(others);
        let Answer::Decided(decision) = outcome.answer else { return None };
        let ReserveCall { agent, call, retry, .. } = *asks;
        let of = &mut shared.pools[pool];
        of.waiting.retain(|_, waiting| *waiting != call);
        if let Decision::Wait(hold) = &decision {
            of.waiting.insert(hold.ticket, call);
        }
        of.decisions.push(DecisionRecord {
            at: now,
            agent,
            call,
            retry,
            decision: decision.clone(),
        });
        Some(decision)
    }

    /// Ends the sessions of a killed agent, as a store does that sees the death.
    pub(crate) fn killed(&self, agent: usize, now: u64) {
        let mut shared = self.0.borrow_mut();
        shared.living[agent] = false;
        for pool in 0..shared.pools.len() {
            if let Some(AgentSession { session, .. }) =
                shared.pools[pool].sessions_by_agent.get(&agent).copied()
            {
                shared.send_from_outside(pool, Action::SessionEnded { session }, now);
            }
        }
    }

    /// Takes the calls to wake, by their numbers in the world.
    pub(crate) fn take_wakeups(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.borrow_mut().wakeups)
    }
}

/// A reserve and the call it belongs to.
#[derive(Debug)]
pub(crate) struct ReserveCall {
    pub(crate) agent: usize,
    pub(crate) call: usize,
    pub(crate) retry: bool,
    pub(crate) action: Action,
}

impl Shared {
    /// Applies an event in a session of its own.
    fn send_from_outside(&mut self, pool: usize, action: Action, now: u64) {
        self.send_heartbeats(pool, SharedLedger::instant(now));
        let key = Key { session: self.next_session(), number: 1 };
        let _ = self.apply(pool, &Event { key, action }, SharedLedger::instant(now));
    }

    fn send(&mut self, pool: usize, agent: usize, action: &Action, now: u64) -> Outcome {
        let now = SharedLedger::instant(now);
        self.send_heartbeats(pool, now);
        let session = self.session_of(pool, agent, now);
        let outcome = self.apply_as(pool, agent, session, action, now);
        if outcome.answer != Answer::SessionEnded {
            return outcome;
        }
        // A session that is silent for long and holds nothing ends. The agent opens a new one.
        let session = AgentSession { session: self.next_session(), number: 0, last_event: now };
        self.apply_as(pool, agent, session, action, now)
    }

    fn apply_as(
        &mut self,
        pool: usize,
        agent: usize,
        mut session: AgentSession,
        action: &Action,
        now: Instant,
    ) -> Outcome {
        session.number += 1;
        session.last_event = now;
        self.pools[pool].sessions_by_agent.insert(agent, session);
        let key = Key { session: session.session, number: session.number };
        self.apply(pool, &Event { key, action: action.clone() }, now)
    }

    fn apply(&mut self, pool: usize, event: &Event, now: Instant) -> Outcome {
        let of = &mut self.pools[pool];
        let outcome = of.state.apply(event, now);
        let at = SharedLedger::moment(now);
        of.notices.extend(outcome.notices.iter().map(|notice| (at, notice.clone())));
        self.wakeups.extend(outcome.wake.iter().filter_map(|ticket| of.waiting.get(ticket)));
        outcome
    }

    fn session_of(&mut self, pool: usize, agent: usize, now: Instant) -> AgentSession {
        if let Some(session) = self.pools[pool].sessions_by_agent.get(&agent) {
            return *session;
        }
        AgentSession { session: self.next_session(), number: 0, last_event: now }
    }

    const fn next_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    /// Sends the heartbeats that are due, each at its own instant. No other event was applied
    /// since, so sending them late gives the same state.
    fn send_heartbeats(&mut self, pool: usize, now: Instant) {
        loop {
            let of = &self.pools[pool];
            let holds = |session: &AgentSession| {
                let facts = of.state.facts();
                let leases = facts.leases.keys().any(|lease| lease.session == session.session);
                leases
                    || facts.tickets.values().any(|ticket| ticket.session == Some(session.session))
            };
            let due = |(agent, session): &(&usize, &AgentSession)| {
                self.living[**agent] && session.last_event + HEARTBEAT <= now && holds(session)
            };
            let first = of
                .sessions_by_agent
                .iter()
                .filter(due)
                .min_by_key(|(agent, session)| (session.last_event, **agent));
            let Some((agent, session)) = first.map(|(agent, session)| (*agent, *session)) else {
                return;
            };
            let action = Action::Heartbeat { lease: None, ttl: None };
            let _ = self.apply_as(pool, agent, session, &action, session.last_event + HEARTBEAT);
        }
    }
}

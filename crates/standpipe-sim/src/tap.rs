//! The one ledger that everybody asks: a state for each pool, brought forward in virtual time.
//!
//! What a store and a keeper do in a real process is done here in the simplest way: events are
//! numbered and applied in order, who holds something is heard from every half minute, and whose
//! turn has come is rung.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use standpipe_core::{
    Action, Answer, Configure, Decision, Event, Instant, Key, Notice, Outcome, PoolConfig, Source,
    Span, State, bounds,
};
use standpipe_dialect::Dialect;

/// The world begins at this instant of the ledger: from here on, every span reaches back to an
/// instant there is.
const BEGINNING: u64 = bounds::SPAN.0;

/// Who holds something is heard from so often.
const BEAT: Span = Span::secs(30);

/// A ledger for each pool, shared by all who hold a copy of this.
#[derive(Clone, Debug, Default)]
pub struct Tap(Rc<RefCell<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    pools: Vec<Pool>,
    /// Who has a session, by agent: whether it lives.
    living: Vec<bool>,
    /// Calls, by their numbers in the world, that should look.
    rings: Vec<usize>,
    /// For the names of sessions.
    sessions: u64,
}

#[derive(Debug)]
struct Pool {
    dialect: Dialect,
    state: State,
    /// By agent.
    desks: BTreeMap<usize, Desk>,
    /// The call that waits with a ticket.
    waiting: BTreeMap<Key, usize>,
    notices: Vec<(u64, Notice)>,
    decisions: Vec<Decided>,
}

/// An agent's session on a pool.
#[derive(Clone, Copy, Debug)]
struct Desk {
    session: u64,
    number: u64,
    heard: Instant,
}

/// What a call was told when it asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// When.
    pub at: u64,
    /// The agent, in the order in which they came to the tap.
    pub agent: usize,
    /// The call's number in the world.
    pub call: usize,
    /// Whether it had been refused by the provider before.
    pub retry: bool,
    /// What it was told.
    pub decision: Decision,
}

impl Tap {
    /// A tap with these pools, in the order of the world's.
    #[must_use]
    pub fn new(pools: Vec<(Dialect, PoolConfig)>) -> Self {
        let tap = Self::default();
        for (dialect, config) in pools {
            let pool = Pool {
                dialect,
                state: State::new(),
                desks: BTreeMap::new(),
                waiting: BTreeMap::new(),
                notices: Vec::new(),
                decisions: Vec::new(),
            };
            let mut shared = tap.0.borrow_mut();
            shared.pools.push(pool);
            let (at, configure) =
                (shared.pools.len() - 1, Configure { source: Source::Code, config });
            shared.say(at, Action::Configure(Box::new(configure)), 0);
        }
        tap
    }

    /// What the ledger of a pool knows.
    pub fn look<T>(&self, pool: usize, at: impl FnOnce(&State) -> T) -> T {
        at(&self.0.borrow().pools[pool].state)
    }

    /// What happened on a pool besides, and when.
    #[must_use]
    pub fn notices(&self, pool: usize) -> Vec<(u64, Notice)> {
        self.0.borrow().pools[pool].notices.clone()
    }

    /// What calls on a pool were told, in order.
    #[must_use]
    pub fn decisions(&self, pool: usize) -> Vec<Decided> {
        self.0.borrow().pools[pool].decisions.clone()
    }

    /// Something happens to a pool that is no agent's doing: somebody pauses it, or resumes it.
    pub fn happens(&self, pool: usize, action: Action, now: u64) {
        self.0.borrow_mut().say(pool, action, now);
    }

    /// An instant of the world, by the ledger's clock.
    #[must_use]
    pub const fn instant(now: u64) -> Instant {
        Instant(BEGINNING.saturating_add(now))
    }

    /// An instant of the ledger's clock, in the world.
    #[must_use]
    pub const fn moment(instant: Instant) -> u64 {
        instant.0.saturating_sub(BEGINNING)
    }

    /// Somebody new comes to the tap.
    pub(crate) fn enter(&self) -> usize {
        let mut shared = self.0.borrow_mut();
        shared.living.push(true);
        shared.living.len() - 1
    }

    pub(crate) fn dialect(&self, pool: usize) -> Dialect {
        self.0.borrow().pools[pool].dialect
    }

    /// An agent's event; the answer to it.
    pub(crate) fn send(&self, pool: usize, agent: usize, action: Action, now: u64) -> Answer {
        self.0.borrow_mut().send(pool, agent, &action, now).answer
    }

    /// A call asks.
    pub(crate) fn reserve(&self, pool: usize, asks: &Asks, now: u64) -> Option<Decision> {
        let mut shared = self.0.borrow_mut();
        let before = shared.rings.len();
        let outcome = shared.send(pool, asks.agent, &asks.action, now);
        // It has its answer; it need not look again.
        let others = shared.rings.split_off(before).into_iter().filter(|call| *call != asks.call);
        shared.rings.extend(others);
        let Answer::Decided(decision) = outcome.answer else { return None };
        let Asks { agent, call, retry, .. } = *asks;
        let of = &mut shared.pools[pool];
        of.waiting.retain(|_, waiting| *waiting != call);
        if let Decision::Wait(hold) = &decision {
            of.waiting.insert(hold.ticket, call);
        }
        of.decisions.push(Decided { at: now, agent, call, retry, decision: decision.clone() });
        Some(decision)
    }

    /// Somebody was killed, and the store has seen it.
    pub(crate) fn killed(&self, agent: usize, now: u64) {
        let mut shared = self.0.borrow_mut();
        shared.living[agent] = false;
        for pool in 0..shared.pools.len() {
            if let Some(Desk { session, .. }) = shared.pools[pool].desks.get(&agent).copied() {
                shared.say(pool, Action::SessionEnded { session }, now);
            }
        }
    }

    /// Who should look, by the call's number.
    pub(crate) fn rings(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.borrow_mut().rings)
    }
}

/// A call that asks.
#[derive(Debug)]
pub(crate) struct Asks {
    pub(crate) agent: usize,
    pub(crate) call: usize,
    pub(crate) retry: bool,
    pub(crate) action: Action,
}

impl Shared {
    /// An event of nobody's session.
    fn say(&mut self, pool: usize, action: Action, now: u64) {
        self.beat(pool, Tap::instant(now));
        let key = Key { session: self.session(), number: 1 };
        let _ = self.apply(pool, &Event { key, action }, Tap::instant(now));
    }

    fn send(&mut self, pool: usize, agent: usize, action: &Action, now: u64) -> Outcome {
        let now = Tap::instant(now);
        self.beat(pool, now);
        let desk = self.desk(pool, agent, now);
        let outcome = self.apply_as(pool, agent, desk, action, now);
        if outcome.answer != Answer::SessionEnded {
            return outcome;
        }
        // It was silent for too long while it held nothing: it goes on under a new name.
        let desk = Desk { session: self.session(), number: 0, heard: now };
        self.apply_as(pool, agent, desk, action, now)
    }

    fn apply_as(
        &mut self,
        pool: usize,
        agent: usize,
        mut desk: Desk,
        action: &Action,
        now: Instant,
    ) -> Outcome {
        desk.number += 1;
        desk.heard = now;
        self.pools[pool].desks.insert(agent, desk);
        let key = Key { session: desk.session, number: desk.number };
        self.apply(pool, &Event { key, action: action.clone() }, now)
    }

    fn apply(&mut self, pool: usize, event: &Event, now: Instant) -> Outcome {
        let of = &mut self.pools[pool];
        let outcome = of.state.apply(event, now);
        let at = Tap::moment(now);
        of.notices.extend(outcome.notices.iter().map(|notice| (at, notice.clone())));
        self.rings.extend(outcome.wake.iter().filter_map(|ticket| of.waiting.get(ticket)));
        outcome
    }

    fn desk(&mut self, pool: usize, agent: usize, now: Instant) -> Desk {
        if let Some(desk) = self.pools[pool].desks.get(&agent) {
            return *desk;
        }
        Desk { session: self.session(), number: 0, heard: now }
    }

    const fn session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    /// Lets everybody be heard who holds something, at the instants at which a keeper would have
    /// said so. Nothing else has happened since, so that it does not matter that it is said now.
    fn beat(&mut self, pool: usize, now: Instant) {
        loop {
            let of = &self.pools[pool];
            let holds = |desk: &Desk| {
                let facts = of.state.facts();
                let leases = facts.leases.keys().any(|lease| lease.session == desk.session);
                leases || facts.tickets.values().any(|ticket| ticket.session == Some(desk.session))
            };
            let due = |(agent, desk): &(&usize, &Desk)| {
                self.living[**agent] && desk.heard + BEAT <= now && holds(desk)
            };
            let first =
                of.desks.iter().filter(due).min_by_key(|(agent, desk)| (desk.heard, **agent));
            let Some((agent, desk)) = first.map(|(agent, desk)| (*agent, *desk)) else { return };
            let action = Action::Heartbeat { lease: None, ttl: None };
            let _ = self.apply_as(pool, agent, desk, &action, desk.heard + BEAT);
        }
    }
}

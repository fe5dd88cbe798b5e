//! A pool, a clock that the test owns, and processes with names: how a scene is acted out.
//!
//! Numbers the events of each session, opens a new session when the ledger says that one has ended,
//! and asks the state to check itself after every event. Judges nothing else.

use std::collections::BTreeMap;

use standpipe_core::{
    Action, Amounts, Answer, Commit, Configure, Configured, Decision, Event, Grant, Instant, Key,
    LeaseAnswer, Notice, Outcome, Owner, PoolConfig, Priority, Queued, Refusal, Reserve, Source,
    Span, State, ThrottleKind, Throttled, Unit,
};

use super::words::{agent, cost, requests_of, secs, text, used};

/// Not zero, so that a scene may look back; odd, so that it lies on no grid by accident.
pub(crate) const BEGINNING: Instant = Instant(7_000_000_003);

/// A pool and everybody on it.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) now: Instant,
    /// All that was applied, unless there is too much of it.
    pub(crate) log: Vec<(Event, Instant, Outcome)>,
    /// Many thousand events: they are not kept, and the state is not checked after each.
    pub(crate) bulk: bool,
    sessions: BTreeMap<String, Key>,
    asks: BTreeMap<Key, (String, Reserve)>,
    opened: u64,
}

impl World {
    /// A pool with this configuration.
    pub(crate) fn new(config: PoolConfig) -> Self {
        let mut world = Self {
            state: State::new(),
            now: BEGINNING,
            log: Vec::new(),
            bulk: false,
            sessions: BTreeMap::new(),
            asks: BTreeMap::new(),
            opened: 0,
        };
        assert_eq!(world.tell(Source::Code, config), Configured::Applied);
        world
    }

    /// Lets time pass.
    pub(crate) fn after(&mut self, span: Span) -> &mut Self {
        self.now = self.now + span;
        self
    }

    /// Moves to an instant.
    pub(crate) fn at(&mut self, instant: Instant) -> &mut Self {
        self.now = instant;
        self
    }

    /// Lets time pass while every process beats, so that nobody falls silent.
    pub(crate) fn live(&mut self, span: Span) -> &mut Self {
        let end = self.now + span;
        while self.now < end {
            self.now = end.min(self.now + secs(30));
            for session in self.sessions.keys().cloned().collect::<Vec<_>>() {
                let _ = self.heartbeat(&session);
            }
        }
        self
    }

    /// The next event of a session.
    pub(crate) fn event(&mut self, session: &str, action: Action) -> Event {
        let opened = &mut self.opened;
        let last = self.sessions.entry(session.to_owned()).or_insert_with(|| {
            *opened += 1;
            Key { session: *opened, number: 0 }
        });
        last.number += 1;
        Event { key: *last, action }
    }

    /// The id a session has now.
    pub(crate) fn session(&self, session: &str) -> u64 {
        self.sessions.get(session).map_or(0, |last| last.session)
    }

    /// Applies an event now.
    pub(crate) fn apply(&mut self, event: &Event) -> Outcome {
        let outcome = self.state.apply(event, self.now);
        if !self.bulk {
            self.log.push((event.clone(), self.now, outcome.clone()));
            self.check();
        }
        outcome
    }

    /// The state agrees with itself.
    pub(crate) fn check(&self) {
        if let Err(broken) = self.state.check() {
            panic!("at {:?} after {:?}: {broken}", self.now, self.log.last());
        }
    }

    /// Sends an action; a process whose session has ended goes on under a new one.
    pub(crate) fn send(&mut self, session: &str, action: Action) -> Outcome {
        let event = self.event(session, action);
        let outcome = self.apply(&event);
        if outcome.answer != Answer::SessionEnded {
            return outcome;
        }
        self.forget_session(session);
        let event = self.event(session, event.action);
        self.apply(&event)
    }

    /// From now on this name is a process that was never seen before.
    pub(crate) fn forget_session(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Somebody asks to be admitted.
    pub(crate) fn reserve(&mut self, session: &str, who: &str) -> Ask<'_> {
        let reserve = Reserve::new(agent(who), requests_of(1));
        Ask { world: self, session: session.to_owned(), reserve }
    }

    /// The reserve that claims this ticket, as it was first asked.
    pub(crate) fn claim(&mut self, ticket: Key) -> Ask<'_> {
        let (session, mut reserve) = self.asks[&ticket].clone();
        reserve.ticket = Some(ticket);
        Ask { world: self, session, reserve }
    }

    /// Remembers how a ticket was asked for, to claim it with.
    pub(crate) fn remember(&mut self, ticket: Key, session: &str, reserve: Reserve) {
        self.asks.insert(ticket, (session.to_owned(), reserve));
    }

    /// A call says what it used.
    pub(crate) fn commit(&mut self, lease: Key) -> Settle<'_> {
        let commit = Commit { lease, used: used(&[]), progress: false, refused: false };
        Settle { world: self, commit }
    }

    /// A call was never sent, or a ticket is no longer waited for.
    pub(crate) fn cancel(&mut self, lease: Key) -> LeaseAnswer {
        let sender = self.owner_of(lease);
        lease_answer(&self.send(&sender, Action::Cancel { lease }))
    }

    /// The provider refused a call.
    pub(crate) fn throttled(&mut self, lease: Option<Key>, retry_after: Option<Span>) -> Outcome {
        let kind = ThrottleKind::Quota;
        let sender = lease.map_or("reporter".to_owned(), |lease| self.owner_of(lease));
        let throttled = Throttled { lease, agent: None, kind, retry_after, hit: None };
        self.send(&sender, Action::Throttled(throttled))
    }

    pub(crate) fn heartbeat(&mut self, session: &str) -> Outcome {
        self.send(session, Action::Heartbeat { lease: None, ttl: None })
    }

    /// A process was seen to be dead. Its name may be used again, for another process.
    pub(crate) fn kill(&mut self, session: &str) -> Outcome {
        let dead = self.session(session);
        self.forget_session(session);
        self.send("undertaker", Action::SessionEnded { session: dead })
    }

    pub(crate) fn pause(&mut self, length: Span) -> Outcome {
        self.send("operator", Action::Pause { length, by: None })
    }

    pub(crate) fn resume(&mut self) -> Outcome {
        self.send("operator", Action::Resume { by: None })
    }

    /// The pool is told about itself at run time.
    pub(crate) fn change(&mut self, config: PoolConfig) -> Configured {
        self.tell(Source::Change, config)
    }

    fn tell(&mut self, source: Source, config: PoolConfig) -> Configured {
        let configure = Action::Configure(Box::new(Configure { source, config }));
        match self.send("operator", configure).answer {
            Answer::Configured(how) => how,
            other => panic!("a configuration was answered with {other:?}"),
        }
    }

    /// All notices so far.
    pub(crate) fn notices(&self) -> impl Iterator<Item = &Notice> {
        self.log.iter().flat_map(|(_, _, outcome)| &outcome.notices)
    }

    /// The name of the process that a lease or ticket came from; a stranger's if there is none.
    fn owner_of(&self, key: Key) -> String {
        let owner = self.sessions.iter().find(|(_, last)| last.session == key.session);
        owner.map_or("stranger".to_owned(), |(name, _)| name.clone())
    }
}

/// A reserve in the making.
pub(crate) struct Ask<'w> {
    world: &'w mut World,
    session: String,
    pub(crate) reserve: Reserve,
}

impl Ask<'_> {
    pub(crate) fn cost(mut self, figures: &[(Unit, u64)]) -> Self {
        self.reserve.cost = cost(figures);
        self
    }

    pub(crate) fn amounts(mut self, cost: Amounts) -> Self {
        self.reserve.cost = cost;
        self
    }

    pub(crate) fn requests(self, count: u64) -> Self {
        self.amounts(requests_of(count))
    }

    pub(crate) fn patience(mut self, patience: Span) -> Self {
        self.reserve.patience = patience;
        self
    }

    pub(crate) fn tier(mut self, tier: Priority) -> Self {
        self.reserve.priority = Some(tier);
        self
    }

    pub(crate) fn ttl(mut self, ttl: Span) -> Self {
        self.reserve.ttl = Some(ttl);
        self
    }

    pub(crate) fn owner(mut self, pid: u32) -> Self {
        self.reserve.owner = Some(Owner { pid, started: 1 });
        self
    }

    pub(crate) fn id(mut self, id: &str) -> Self {
        self.reserve.id = Some(text(id));
        self
    }

    /// What would be said, with nothing happening.
    pub(crate) fn peek(self) -> Decision {
        self.world.state.peek(&self.reserve, self.world.now)
    }

    /// What would be said at another instant.
    pub(crate) fn peek_at(self, instant: Instant) -> Decision {
        self.world.state.peek(&self.reserve, instant)
    }

    /// Asks.
    pub(crate) fn send(self) -> Decision {
        let action = Action::Reserve(Box::new(self.reserve.clone()));
        match self.world.send(&self.session, action).answer {
            Answer::Decided(decision) => {
                if let Decision::Wait(hold) = &decision {
                    self.world.remember(hold.ticket, &self.session, self.reserve);
                }
                decision
            }
            other => panic!("a reserve was answered with {other:?}"),
        }
    }

    /// Asks, and must be admitted.
    pub(crate) fn granted(self) -> Grant {
        match self.send() {
            Decision::Admit(grant) => grant,
            other => panic!("should have been admitted: {other:?}"),
        }
    }

    /// Asks, and must be admitted: the lease.
    pub(crate) fn admitted(self) -> Key {
        self.granted().lease
    }

    /// Asks, and must be refused.
    pub(crate) fn refused(self) -> Refusal {
        match self.send() {
            Decision::Refuse(refusal) => refusal,
            other => panic!("should have been refused: {other:?}"),
        }
    }

    /// Asks, and must wait.
    pub(crate) fn waits(self) -> Queued {
        match self.send() {
            Decision::Wait(hold) => hold,
            other => panic!("should wait: {other:?}"),
        }
    }
}

/// A commit in the making.
pub(crate) struct Settle<'w> {
    world: &'w mut World,
    commit: Commit,
}

impl Settle<'_> {
    pub(crate) fn used(mut self, figures: &[(Unit, u64)]) -> Self {
        self.commit.used = used(figures);
        self
    }

    pub(crate) fn progress(mut self) -> Self {
        self.commit.progress = true;
        self
    }

    pub(crate) fn send(self) -> LeaseAnswer {
        let sender = self.world.owner_of(self.commit.lease);
        lease_answer(&self.world.send(&sender, Action::Commit(self.commit)))
    }
}

/// The answer to an event about a lease.
pub(crate) fn lease_answer(outcome: &Outcome) -> LeaseAnswer {
    match &outcome.answer {
        Answer::Lease(answer) => *answer,
        other => panic!("an event about a lease was answered with {other:?}"),
    }
}

pub(crate) const fn is_admitted(decision: &Decision) -> bool {
    matches!(decision, Decision::Admit(_))
}

/// Why not now, whether it waits or was refused.
pub(crate) const fn why(decision: &Decision) -> Option<&Refusal> {
    match decision {
        Decision::Admit(_) => None,
        Decision::Wait(hold) => Some(&hold.refusal),
        Decision::Refuse(refusal) => Some(refusal),
    }
}

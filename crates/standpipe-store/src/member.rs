//! A member: a living process on one pool.
//!
//! It numbers its events, appends them, and learns their outcomes from its own replica. After a
//! lost answer it sends the same events again; after a fork it brings back what the store forgot of
//! it. It does not wait, retry or beat by itself: it has no clock and no thread.
//!
//! Invariant: an event whose outcome is not known is in `queue`, in the order of numbers, and no
//! event with a greater number is sent before it.

mod journal;
mod resolve;

use std::fmt;
use std::mem;

use standpipe_core::{Action, Answer, Decision, Event, Instant, Key, Outcome, Reserve};

use self::journal::Journal;
use crate::entry;
use crate::error::StoreError;
use crate::log::{Log, Since};
use crate::replica::{Reached, Replica};

/// A living process on one pool.
pub struct Member<L> {
    log: L,
    replica: Replica,
    /// Gives a new session its id.
    sessions: Box<dyn FnMut() -> u64 + Send>,
    session: u64,
    /// The number of the last event, sent or not.
    number: u64,
    queue: Vec<Sent>,
    /// Leases and tickets of callers that gave up.
    abandoned: Vec<Key>,
    /// What came of the last events that nobody awaited.
    unheard: Vec<Outcome>,
    journal: Journal,
}

/// An event that is under way, or was until just now.
struct Sent {
    event: Event,
    body: Vec<u8>,
    /// Somebody wants to know its outcome.
    awaited: bool,
    outcome: Option<Outcome>,
}

impl<L: Log> Member<L> {
    /// A process that joins a pool. `sessions` gives it an id that no other process has; it is
    /// asked again when the session ended while the process lived on.
    pub fn new(log: L, mut sessions: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self {
            log,
            replica: Replica::new(),
            session: sessions(),
            sessions: Box::new(sessions),
            number: 0,
            queue: Vec::new(),
            abandoned: Vec::new(),
            unheard: Vec::new(),
            journal: Journal::default(),
        }
    }

    /// Appends these actions in one step and answers their outcomes in order. Reserves that would
    /// be refused, and a configuration that the pool has, are answered without leaving a trace when
    /// nothing else is to be appended.
    ///
    /// # Errors
    /// After a transient error call [`Member::resend`] or [`Member::give_up`], then go on.
    pub fn submit(&mut self, actions: Vec<Action>) -> Result<Vec<Outcome>, StoreError> {
        if self.queue.iter().any(|sent| sent.awaited) {
            return Err(StoreError::unusable(
                "an earlier answer is still awaited; resend it or give it up first",
            ));
        }
        let nothing_owed = self.queue.is_empty() && self.abandoned.is_empty();
        if nothing_owed && let Some(outcomes) = self.answer_without_trace(&actions)? {
            return Ok(outcomes);
        }
        let (owed, number) = (self.queue.len(), self.number);
        for lease in self.abandoned.clone() {
            self.enqueue(Action::Cancel { lease }, false);
        }
        for action in actions {
            self.enqueue(action, true);
        }
        let largest = self.queue.iter().map(|sent| sent.body.len()).max();
        if let Some(length) = largest.filter(|length| *length > entry::LARGEST_BODY) {
            self.queue.truncate(owed);
            self.number = number;
            return Err(too_large(length));
        }
        self.abandoned.clear();
        self.resend()
    }

    /// Sends again what has no answer yet. The outcome of an event is that of its first occurrence,
    /// so this is safe whatever became of the last attempt.
    ///
    /// # Errors
    /// As [`Member::submit`].
    pub fn resend(&mut self) -> Result<Vec<Outcome>, StoreError> {
        self.push()?;
        let (awaited, unheard): (Vec<Sent>, _) =
            mem::take(&mut self.queue).into_iter().partition(|sent| sent.awaited);
        self.unheard = unheard.into_iter().filter_map(|sent| sent.outcome).collect();
        Ok(awaited.into_iter().filter_map(|sent| sent.outcome).collect())
    }

    /// What came of the events that went with the last append although nobody awaits them: their
    /// notices, and whom in this process they should wake.
    pub fn take_unheard(&mut self) -> Vec<Outcome> {
        mem::take(&mut self.unheard)
    }

    /// Whether there is something to be sent that nobody awaits: it goes with the next append, or
    /// with a [`Member::submit`] of nothing.
    pub fn is_owing(&self) -> bool {
        !self.abandoned.is_empty() || self.queue.iter().any(|sent| !sent.awaited)
    }

    /// Nobody waits for the answers any more. Reserves that may have been admitted are cancelled
    /// with the next append; everything else is still sent then.
    pub fn give_up(&mut self) {
        for mut sent in mem::take(&mut self.queue) {
            if let (true, Action::Reserve(reserve)) = (sent.awaited, &sent.event.action) {
                self.abandoned.push(sent.event.key);
                self.abandoned.extend(reserve.ticket);
            } else {
                sent.awaited = false;
                self.queue.push(sent);
            }
        }
    }

    /// Whoever held or waited for this no longer does: it is cancelled with the next append.
    pub fn abandon(&mut self, lease: Key) {
        self.abandoned.push(lease);
    }

    /// Reads what others did.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        let since = self.log.read(self.replica.position())?;
        if self.take(since)? == Reached::Forked {
            self.recover()?;
            self.push()?;
        }
        Ok(())
    }

    /// Whether its log is still the pool's; see [`Log::is_current`]. When it is not,
    /// [`Member::refresh`] puts back what this process has.
    pub fn is_current(&self) -> Option<bool> {
        self.log.is_current()
    }

    /// What a reserve would be answered now. Changes nothing.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn peek(&mut self, reserve: &Reserve) -> Result<Decision, StoreError> {
        self.refresh()?;
        Ok(self.replica.state().peek(reserve, self.replica.now()))
    }

    /// Its replica of the pool.
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The id of its present session.
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Events whose outcome is not known yet.
    pub fn under_way(&self) -> impl Iterator<Item = &Event> {
        self.queue.iter().filter(|sent| sent.outcome.is_none()).map(|sent| &sent.event)
    }

    fn enqueue(&mut self, action: Action, awaited: bool) {
        self.number += 1;
        let key = Key { session: self.session, number: self.number };
        let event = Event { key, action };
        let body = entry::body(&event);
        self.queue.push(Sent { event, body, awaited, outcome: None });
    }

    /// Appends until everything in the queue has its outcome.
    fn push(&mut self) -> Result<(), StoreError> {
        let mut setbacks = 0;
        loop {
            let (bodies, upto) = self.next_bodies();
            if bodies.is_empty() {
                return Ok(());
            }
            let since = self.log.append(self.replica.position(), &bodies)?;
            let due = matches!(&since, Since::Tail(tail) if tail.snapshot_due);
            if self.take(since)? == Reached::Forked {
                self.recover()?;
                setbacks += 1;
            } else {
                self.answer_copies(upto);
                setbacks += usize::from(self.go_on_if_session_ended());
                self.keep_short(due);
            }
            if setbacks > SETBACKS {
                return Err(StoreError::transient(
                    "the store forks or ends this session over and over; see that its server keeps \
                     what it acknowledged",
                ));
            }
        }
    }

    /// As much of what is unanswered as one call may carry, and the number of the last of it.
    fn next_bodies(&self) -> (Vec<Vec<u8>>, u64) {
        let mut left = entry::LARGEST_BODY;
        let (mut bodies, mut upto) = (Vec::new(), 0);
        for sent in self.queue.iter().filter(|sent| sent.outcome.is_none()) {
            if sent.body.len() > left {
                break;
            }
            left -= sent.body.len();
            bodies.push(sent.body.clone());
            upto = sent.event.key.number;
        }
        (bodies, upto)
    }

    /// Applies what the log answered, and finds the outcomes of its own events in it.
    fn take(&mut self, since: Since) -> Result<Reached, StoreError> {
        let (queue, journal, session) = (&mut self.queue, &mut self.journal, self.session);
        let mut wake = Vec::new();
        let see = |event: &Event, stamp: Instant, outcome: Outcome| {
            journal.see(&outcome.notices, stamp);
            if event.key.session != session || outcome.answer == Answer::Copy {
                return;
            }
            let waiting = |sent: &&mut Sent| sent.outcome.is_none() && sent.event.key == event.key;
            if let Some(sent) = queue.iter_mut().find(waiting) {
                wake.extend(outcome.wake.iter().map(|ticket| ticket.session));
                journal.note(event, stamp, &outcome.answer);
                sent.outcome = Some(outcome);
            }
        };
        let reached = match self.replica.take(&mut self.log, since, see) {
            // What was kept of it elsewhere is recovered.
            Err(error) if error.is_damaged() && self.log.set_aside()? => Reached::Forked,
            taken => taken?,
        };
        wake.sort_unstable();
        wake.dedup();
        wake.retain(|woken| *woken != session);
        if !wake.is_empty() {
            self.log.wake(&wake);
        }
        if reached == Reached::Jump && self.journal.lost(self.replica.state(), session) {
            return Ok(Reached::Forked);
        }
        if reached == Reached::Jump {
            self.journal.find_ended(self.replica.state(), &|_| false, self.replica.now());
        }
        self.journal.prune(self.replica.now());
        Ok(reached)
    }

    /// What was just sent and has no outcome was a copy of something jumped over: the state knows
    /// what became of it.
    fn answer_copies(&mut self, upto: u64) {
        let unanswered = self.queue.iter_mut().filter(|sent| sent.outcome.is_none());
        for copy in unanswered.take_while(|sent| sent.event.key.number <= upto) {
            let outcome = resolve::outcome(&self.replica, &copy.event);
            self.journal.note(&copy.event, self.replica.now(), &outcome.answer);
            copy.outcome = Some(outcome);
        }
    }

    /// An event of an ended session was ignored: it and all behind it are sent under a new one.
    fn go_on_if_session_ended(&mut self) -> bool {
        let ended = |sent: &Sent| {
            sent.outcome.as_ref().is_some_and(|outcome| outcome.answer == Answer::SessionEnded)
        };
        if !self.queue.iter().any(ended) {
            return false;
        }
        self.begin_session();
        for sent in mem::take(&mut self.queue) {
            if sent.outcome.is_none() || ended(&sent) {
                self.enqueue(sent.event.action, sent.awaited);
            } else {
                self.queue.push(sent);
            }
        }
        true
    }

    fn begin_session(&mut self) {
        self.session = (self.sessions)();
        self.number = 0;
    }

    /// Loads the present log and puts into the queue what it lacks of this process's.
    fn recover(&mut self) -> Result<(), StoreError> {
        self.replica.reset();
        let since = self.log.read(self.replica.position())?;
        self.take(since)?;
        let (state, now, session) = (self.replica.state(), self.replica.now(), self.session);
        let present =
            |key: Key| state.last_number(key.session).is_some_and(|last| key.number <= last);
        // Of earlier sessions nothing is in flight, and they may have been forgotten rightly.
        let lacks = |key: Key| key.session == session && !present(key);
        let missing = self.journal.missing(&lacks, now);
        self.journal.find_ended(state, &lacks, now);
        for sent in self.queue.iter_mut().filter(|sent| sent.outcome.is_none()) {
            if present(sent.event.key) {
                sent.outcome = Some(resolve::outcome(&self.replica, &sent.event));
            }
        }
        if state.last_number(session).is_none() {
            self.begin_session();
        }
        let waiting = mem::take(&mut self.queue);
        for action in missing {
            self.enqueue(action, false);
        }
        for sent in waiting {
            if sent.outcome.is_none() {
                self.enqueue(sent.event.action, sent.awaited);
            } else {
                self.queue.push(sent);
            }
        }
        Ok(())
    }

    /// Writes a snapshot when one is due. If that fails, the next appender will do it.
    fn keep_short(&mut self, due: bool) {
        if due {
            let _ = self.log.write_snapshot(&self.replica.snapshot());
        }
    }

    /// The outcomes, if none of the actions would change anything.
    fn answer_without_trace(
        &mut self,
        actions: &[Action],
    ) -> Result<Option<Vec<Outcome>>, StoreError> {
        let all = |replica: &Replica| -> Option<Vec<Outcome>> {
            actions.iter().map(|action| resolve::without_trace(replica, action)).collect()
        };
        // A process that has just come does not know that the pool is configured.
        let configures = actions.iter().any(|action| matches!(action, Action::Configure(_)));
        if !configures && all(&self.replica).is_none() {
            return Ok(None);
        }
        match self.refresh() {
            Ok(()) => Ok(all(&self.replica)),
            // It is appended then, and if that fails too it can be sent again.
            Err(error) if error.is_transient() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<L> fmt::Debug for Member<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("session", &self.session)
            .field("number", &self.number)
            .field("position", &self.replica.position())
            .field("under_way", &self.queue.len())
            .finish_non_exhaustive()
    }
}

/// A session id that no other process will have: 56 random bits.
#[must_use]
pub fn random_session() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((std::process::id(), std::thread::current().id())) >> 8
}

fn too_large(length: usize) -> StoreError {
    let most = entry::LARGEST_BODY;
    StoreError::unusable(format!("an event of {length} bytes; at most {most} are taken"))
}

/// How often in a row a store may fork or end the session before the caller hears of it.
const SETBACKS: usize = 4;

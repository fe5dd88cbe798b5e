//! A member: a living process on one pool.
//!
//! It numbers its events, appends them, and learns their outcomes from its own replica. After a
//! lost answer it sends the same events again; after a fork it brings back what the store forgot of
//! it. It does not wait, retry or beat by itself: it has no clock and no thread.
//!
//! Invariant: an event whose outcome is not known is in `queue`, in the order of numbers, and no
//! event with a greater number is sent before it.

mod journal;
mod lifetime;
mod quiet;
mod resolve;
mod sent;

use std::fmt;
use std::mem;

use standpipe_core::{Action, Answer, Decision, Event, Instant, Key, Outcome, Reserve, Span};

use self::journal::Journal;
use self::sent::{Awaited, Sent};
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
    /// How many were asked so far: answers go back in this order.
    asked: u64,
    /// Leases and tickets of callers that gave up.
    abandoned: Vec<Key>,
    /// What came of the last events that nobody awaited.
    unheard: Vec<Outcome>,
    journal: Journal,
    /// How much was put back because the store had lost it, since this was last asked.
    put_back: Option<usize>,
}

/// Whom an answer is for, as whoever uses a member tells its callers apart.
pub type Asker = u64;

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
            asked: 0,
            abandoned: Vec::new(),
            unheard: Vec::new(),
            journal: Journal::default(),
            put_back: None,
        }
    }

    /// Appends these actions in one step and answers their outcomes in order. Reserves that would
    /// be refused, and a configuration that the pool has, are answered without leaving a trace.
    ///
    /// # Errors
    /// After a transient error call [`Member::resend`] or [`Member::give_up`], then go on.
    pub fn submit(&mut self, actions: Vec<Action>) -> Result<Vec<Outcome>, StoreError> {
        if self.queue.iter().any(|sent| sent.awaited.is_some()) {
            return Err(StoreError::unusable(
                "an earlier answer is still awaited; resend it or give it up first",
            ));
        }
        let asked = actions.into_iter().map(|action| (ALONE, action)).collect();
        Ok(outcomes(self.submit_for(asked)?))
    }

    /// The same for several askers at once; what an earlier attempt left unanswered goes with it.
    /// Outcomes come in the order in which they were asked for.
    ///
    /// # Errors
    /// After a transient error everything is under way: see [`Member::resend_for`] and
    /// [`Member::give_up_on`]. After another one nothing of this is.
    pub fn submit_for(
        &mut self,
        asked: Vec<(Asker, Action)>,
    ) -> Result<Vec<(Asker, Outcome)>, StoreError> {
        let (owed, number) = (self.queue.len(), self.number);
        if owed + asked.len() > MOST_OWED {
            return Err(StoreError::transient(
                "too much waits to be sent to the store; see that it answers",
            ));
        }
        for lease in self.abandoned.clone() {
            self.enqueue(Action::Cancel { lease }, None);
        }
        let mut quiet = Vec::new();
        for (asker, action) in asked {
            self.asked += 1;
            let awaited = Awaited { asker, turn: self.asked };
            match self.may_leave_no_trace(&action) {
                true => quiet.push((awaited, action)),
                false => self.enqueue(action, Some(awaited)),
            }
        }
        let largest = self.queue.iter().map(|sent| sent.body.len()).max();
        if let Some(length) = largest.filter(|length| *length > entry::LARGEST_BODY) {
            self.queue.truncate(owed);
            self.number = number;
            return Err(too_large(length));
        }
        self.abandoned.clear();
        self.answer_quietly(quiet)?;
        self.resend_for()
    }

    /// Sends again what has no answer yet. The outcome of an event is that of its first occurrence,
    /// so this is safe whatever became of the last attempt.
    ///
    /// # Errors
    /// As [`Member::submit`].
    pub fn resend(&mut self) -> Result<Vec<Outcome>, StoreError> {
        self.resend_for().map(outcomes)
    }

    /// The same, with whom each answer is for.
    ///
    /// # Errors
    /// As [`Member::submit_for`].
    pub fn resend_for(&mut self) -> Result<Vec<(Asker, Outcome)>, StoreError> {
        self.push()?;
        self.unheard.clear();
        let mut answered = Vec::new();
        for Sent { awaited, outcome, .. } in mem::take(&mut self.queue) {
            match (awaited, outcome) {
                (Some(awaited), Some(outcome)) => answered.push((awaited, outcome)),
                (None, Some(outcome)) => self.unheard.push(outcome),
                (_, None) => {}
            }
        }
        answered.sort_by_key(|(awaited, _)| awaited.turn);
        Ok(answered.into_iter().map(|(awaited, outcome)| (awaited.asker, outcome)).collect())
    }

    /// What came of the events that went with the last append although nobody awaits them: their
    /// notices, and whom in this process they should wake.
    pub fn take_unheard(&mut self) -> Vec<Outcome> {
        mem::take(&mut self.unheard)
    }

    /// How much of this process's doings was put back since this was last asked, because the store
    /// had lost its latest entries and went on without them; none if it had not.
    pub fn take_put_back(&mut self) -> Option<usize> {
        self.put_back.take()
    }

    /// Whether there is something to be sent that nobody awaits: it goes with the next append, or
    /// with a [`Member::submit`] of nothing.
    pub fn is_owing(&self) -> bool {
        !self.abandoned.is_empty() || self.queue.iter().any(|sent| sent.awaited.is_none())
    }

    /// Whose answers are still to come.
    pub fn askers(&self) -> impl Iterator<Item = Asker> {
        self.queue.iter().filter_map(|sent| Some(sent.awaited?.asker))
    }

    /// Nobody waits for the answers any more. Reserves that may have been admitted are cancelled
    /// with the next append; everything else is still sent then.
    pub fn give_up(&mut self) {
        self.forget_askers(&|_| true);
    }

    /// One asker no longer waits for its answers, as in [`Member::give_up`].
    pub fn give_up_on(&mut self, asker: Asker) {
        self.forget_askers(&|awaited| awaited == asker);
    }

    fn forget_askers(&mut self, gone: &dyn Fn(Asker) -> bool) {
        for mut sent in mem::take(&mut self.queue) {
            let forgotten = sent.awaited.is_some_and(|awaited| gone(awaited.asker));
            match &sent.event.action {
                Action::Reserve(reserve) if forgotten => {
                    // One that never left need not be called back.
                    self.abandoned.extend(Some(sent.event.key).filter(|_| sent.left));
                    self.abandoned.extend(reserve.ticket);
                    continue;
                }
                _ if forgotten => sent.awaited = None,
                _ => {}
            }
            self.queue.push(sent);
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
        let read = self.log.read(self.replica.position());
        let since = self.mended(read)?;
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

    /// What another log has to be told of this process's doings: its leases in flight, what it
    /// settled lately, and the refusals it reported. For a ledger that only stood in for another.
    pub fn recollect(&self) -> Vec<Action> {
        self.journal.missing(self.replica.state(), &|_| true, self.replica.now())
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

    fn enqueue(&mut self, action: Action, awaited: Option<Awaited>) {
        self.number += 1;
        let key = Key { session: self.session, number: self.number };
        let event = Event { key, action };
        let body = entry::body(&event);
        self.queue.push(Sent { event, body, left: false, awaited, outcome: None });
    }

    /// Appends until everything in the queue has its outcome.
    fn push(&mut self) -> Result<(), StoreError> {
        let mut setbacks = 0;
        loop {
            let (bodies, upto) = self.next_bodies();
            if bodies.is_empty() {
                return Ok(());
            }
            self.log.lasts(self.lifetime());
            let appended = self.log.append(self.replica.position(), &bodies);
            if !appended.as_ref().is_err_and(StoreError::is_unsent) {
                let gone = self.queue.iter_mut().filter(|sent| sent.event.key.number <= upto);
                gone.for_each(|sent| sent.left = true);
            }
            let since = self.mended(appended)?;
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
            let length = sent.body.len() + entry::AROUND_BODY;
            if length > left && !bodies.is_empty() {
                break;
            }
            left = left.saturating_sub(length);
            bodies.push(sent.body.clone());
            upto = sent.event.key.number;
        }
        (bodies, upto)
    }

    /// What the log answered. A damaged one is set aside; what was kept of it elsewhere is
    /// recovered.
    fn mended(&mut self, answered: Result<Since, StoreError>) -> Result<Since, StoreError> {
        match answered {
            Err(error) if error.is_damaged() && self.log.set_aside()? => Ok(Since::Forked),
            answered => answered,
        }
    }

    /// How long the log has to be kept after what is sent now, if nothing follows.
    fn lifetime(&self) -> Span {
        let unanswered = self.queue.iter().filter(|sent| sent.outcome.is_none());
        let actions = unanswered.map(|sent| &sent.event.action);
        lifetime::after(self.replica.state(), actions)
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
        if !self.queue.iter().any(Sent::was_ignored) {
            return false;
        }
        self.begin_session();
        for sent in mem::take(&mut self.queue) {
            if sent.outcome.is_none() || sent.was_ignored() {
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
        let missing = self.journal.missing(state, &lacks, now);
        self.put_back = Some(self.put_back.unwrap_or_default() + missing.len());
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
            self.enqueue(action, None);
        }
        for sent in waiting {
            // Ignored is not answered: it goes on under the session that is begun here or next.
            if sent.outcome.is_none() || sent.was_ignored() {
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

fn outcomes(answered: Vec<(Asker, Outcome)>) -> Vec<Outcome> {
    answered.into_iter().map(|(_, outcome)| outcome).collect()
}

/// How many events may wait to be sent: more than a ledger has leases and tickets.
const MOST_OWED: usize = 32_768;

/// Stands for the only asker there is.
const ALONE: Asker = 0;

fn too_large(length: usize) -> StoreError {
    let most = entry::LARGEST_BODY;
    StoreError::unusable(format!("an event of {length} bytes; at most {most} are taken"))
}

/// How often in a row a store may fork or end the session before the caller hears of it.
const SETBACKS: usize = 4;

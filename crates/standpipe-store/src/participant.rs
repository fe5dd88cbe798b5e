//! A participant: one process that appends to and reads one pool's log.
//!
//! A participant numbers its events, appends them and derives their outcomes from its own replica.
//! It has no clock and no thread: it does not wait, send heartbeats or retry a failed call by
//! itself.
//!
//! # Protocol
//!
//! **Numbering.** Every event carries a key: the session and a number that grows by one per event.
//! The state ignores a key whose number is not greater than the session's last one. A lease or a
//! ticket is named by the key of the reserve that created it.
//!
//! **One append at a time.** Events wait in a queue until their outcome is known. An append carries
//! as many of them as fit, in the order of their numbers, and returns what others appended since.
//! The replica applies those entries, then its own; applying its own yields the outcomes. Own
//! events are encoded once and applied as they are where the engine does not return them; every
//! engine does after a lost answer.
//!
//! **Resending after a lost answer.** After a transient error an event may or may not be in the
//! log. It keeps its key and stays in the queue, and [`Participant::resend`] appends it again. If
//! the first copy had arrived, the state ignores the second, so an event takes effect once and its
//! outcome is that of its first occurrence.
//!
//! **Callers that give up.** A reserve whose caller no longer waits may already hold a lease. If it
//! may have reached the store, the next append carries a cancel for it; if not, it is dropped. All
//! other events are still sent.
//!
//! **Jumping over own entries.** A replica that loads a snapshot skips the entries before it, and
//! with them perhaps the first copy of an event in the queue. The participant then looks up its
//! keys in the state: a lease means admitted, a ticket means queued, neither means refused.
//!
//! **Forks.** A position is a number and a hash chain over all entries, so a store that lost
//! entries and continued reports [`LogRead::Forked`](crate::LogRead::Forked). If the lost position
//! was already trimmed, the participant finds after the jump that the state lacks one of its own
//! numbers. A quarantined log is handled as a fork.
//!
//! **Recovery.** The participant loads the present log from its start and appends what the log
//! lacks of its own events, from the record it keeps of leases in flight, leases and throttles of
//! the last ten minutes, the configuration and the pause. The record takes at most 8 MB per pool:
//! beyond that it drops the oldest, but never a lease in flight. A recovered reserve puts its lease
//! back in flight, above the limit if need be. A recovered commit ends the lease without a refund.
//! A recovered throttle pauses the pool. Unanswered events follow under new numbers, and under a
//! new session if the log does not know the present one.
//!
//! **Ended sessions.** A session can be declared dead while its process lives, for example after a
//! long suspension. Events then answer [`SessionEnded`](standpipe_core::Answer::SessionEnded),
//! which is not an outcome: the participant begins a new session and sends them again.
//!
//! **No-ops.** A reserve that would be refused and a configuration that the pool already has do not
//! change the state. The participant answers them from a replica that has just read to the head and
//! appends nothing. It asks its replica first only where a refusal is likely: for a reserve that
//! does not wait and for which the limits show no room, and for any reserve after a refusal. So a
//! reserve that is admitted is judged once, and a process whose reserves can never be admitted
//! leaves one entry and not one for each.
//!
//! # Invariant
//!
//! Every numbered event without a known outcome is in the queue, in the order of numbers, and no
//! event is sent before one with a smaller number.
//!
//! # Reading order
//!
//! This file is the interface. `append.rs` is the append loop, `recover.rs` handles forks,
//! `own_events.rs` is the record of own events, `resolve.rs` reads outcomes off a state, `no_op.rs`
//! answers without appending.

mod append;
mod debug;
mod lifetime;
mod no_op;
mod observer;
mod own_events;
mod pending;
mod recover;
mod resolve;

use std::mem;

use standpipe_core::{Action, Answer, Decision, Event, Key, Outcome, Reserve};

pub use self::observer::Observer;
use self::own_events::OwnEvents;
use self::pending::{PendingEvent, Waiter};
use crate::entry;
use crate::error::StoreError;
use crate::log::Log;
use crate::replica::{CaughtUp, Replica};

/// One process on one pool.
pub struct Participant<L> {
    log: L,
    replica: Replica,
    /// Allocates the id of a new session.
    sessions: Box<dyn FnMut() -> u64 + Send>,
    session: u64,
    /// The number of the last event, whether sent or not.
    number: u64,
    /// Events without a known outcome, and answered ones that are not handed out yet.
    queue: Vec<PendingEvent>,
    /// The bodies of the present append, moved out of the queue and back.
    batch: Vec<Vec<u8>>,
    /// The number of actions submitted so far. Outcomes are returned in this order.
    submitted: u64,
    /// Leases and tickets to cancel with the next append: their callers gave up.
    pending_cancels: Vec<Key>,
    /// Outcomes of the last append that no caller waits for.
    unclaimed: Vec<Outcome>,
    own_events: OwnEvents,
    /// Whether a fork was found and [`Participant::recover`] has not completed since. Loading the
    /// present log can fail, and the replica alone then no longer shows that there was a fork.
    forked: bool,
    /// Whether the last reserve of this process was refused.
    last_refused: bool,
    /// How many actions recovery has appended again; `None` without a recovery since the last
    /// [`Participant::take_restored`].
    restored: Option<usize>,
    observer: Option<Box<dyn Observer>>,
}

/// The caller that an outcome belongs to. The user of a participant assigns the ids.
pub type CallerId = u64;

impl<L: Log> Participant<L> {
    /// Creates a participant of a pool.
    ///
    /// `sessions` returns a session id that no other process has. The participant calls it again
    /// when its session ended while the process is still alive.
    pub fn new(log: L, mut sessions: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self {
            log,
            replica: Replica::new(),
            session: sessions(),
            sessions: Box::new(sessions),
            number: 0,
            queue: Vec::new(),
            batch: Vec::new(),
            submitted: 0,
            pending_cancels: Vec::new(),
            unclaimed: Vec::new(),
            own_events: OwnEvents::default(),
            forked: false,
            last_refused: false,
            restored: None,
            observer: None,
        }
    }

    /// Calls `observer` for every event of the log that the replica applies from now on.
    pub fn observe_with(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// Bounds every step that follows, see [`Log::set_deadline`].
    pub fn set_deadline(&mut self, deadline: Option<std::time::Instant>) {
        self.log.set_deadline(deadline);
    }

    /// Returns the key of the last own event that is known to be in the log. It changes whenever a
    /// write succeeds.
    pub fn last_written(&self) -> Option<Key> {
        self.own_events.last_written()
    }

    /// Appends actions in one step and returns their outcomes in order.
    ///
    /// Reserves that would be refused and a configuration that the pool already has are answered
    /// without an entry in the log.
    ///
    /// # Errors
    /// As [`Participant::submit_for`]. After an error of the store call [`Participant::resend`] or
    /// [`Participant::give_up`] before the next submit.
    pub fn submit(&mut self, actions: Vec<Action>) -> Result<Vec<Outcome>, StoreError> {
        if self.queue.iter().any(|pending| pending.waiter.is_some()) {
            return Err(StoreError::unusable(
                "an earlier submit has no answer yet; resend it or give it up first",
            ));
        }
        self.send(actions.into_iter().map(|action| (SINGLE_CALLER, action)))?;
        Ok(self.take_answered(|_, outcome| outcome))
    }

    /// Appends the actions of several callers in one step, together with everything still queued,
    /// or reads if there is nothing to append. Outcomes are returned in the order of submission,
    /// with those that a [`Participant::refresh`] found meanwhile.
    ///
    /// # Errors
    /// When the queue is full or an event is too large; then nothing of `submitted` is queued.
    /// After an error of the store everything stays queued: see [`Participant::resend_for`] and
    /// [`Participant::give_up_on`].
    pub fn submit_for(
        &mut self,
        submitted: Vec<(CallerId, Action)>,
    ) -> Result<Vec<(CallerId, Outcome)>, StoreError> {
        self.send(submitted.into_iter())?;
        Ok(self.take_answered(|waiter, outcome| (waiter.caller, outcome)))
    }

    /// Queues actions and appends until everything in the queue has an outcome.
    fn send(
        &mut self,
        submitted: impl ExactSizeIterator<Item = (CallerId, Action)>,
    ) -> Result<(), StoreError> {
        let (queued_before, number) = (self.queue.len(), self.number);
        // A submit of nothing is a resend, which is never rejected: it is how the queue drains.
        if submitted.len() > 0 && queued_before + submitted.len() > MAX_QUEUE {
            return Err(StoreError::transient(
                "too many events wait to be sent to the store; check that the store answers",
            ));
        }
        for lease in self.pending_cancels.clone() {
            self.enqueue(Action::Cancel { lease }, None);
        }
        let mut candidates = Vec::new();
        for (caller, action) in submitted {
            self.submitted += 1;
            let waiter = Waiter { caller, submission_index: self.submitted };
            // Actions of one caller keep their order: a reserve must not overtake the configuration
            // that its caller submitted with it.
            let follows =
                candidates.iter().any(|(known, _): &(Waiter, Action)| known.caller == caller);
            match follows || self.may_be_no_op(&action) {
                true => candidates.push((waiter, action)),
                false => self.enqueue(action, Some(waiter)),
            }
        }
        let largest = self.queue.iter_mut().map(|pending| pending.body.get_mut().len()).max();
        if let Some(length) = largest.filter(|length| *length > entry::MAX_BODY_LEN) {
            self.queue.truncate(queued_before);
            self.number = number;
            return Err(too_large(length));
        }
        self.pending_cancels.clear();
        if candidates.is_empty() {
            return self.flush_or_read();
        }
        self.answer_no_ops(candidates)?;
        self.flush()
    }

    /// Appends what has no outcome yet, or reads if everything has one. Either way the replica is
    /// at the head afterwards.
    fn flush_or_read(&mut self) -> Result<(), StoreError> {
        // A read may have answered what was queued, so a queue that is not empty is no reason to
        // append.
        let answered = self.unanswered().next().is_none();
        if answered { self.refresh() } else { self.flush() }
    }

    /// Appends again everything without an outcome.
    ///
    /// This is safe whether or not the last attempt reached the store: the outcome of an event is
    /// that of its first occurrence.
    ///
    /// # Errors
    /// As [`Participant::submit`].
    pub fn resend(&mut self) -> Result<Vec<Outcome>, StoreError> {
        self.flush()?;
        Ok(self.take_answered(|_, outcome| outcome))
    }

    /// As [`Participant::resend`], with the caller of each outcome.
    ///
    /// # Errors
    /// As [`Participant::submit_for`].
    pub fn resend_for(&mut self) -> Result<Vec<(CallerId, Outcome)>, StoreError> {
        self.flush()?;
        Ok(self.take_answered(|waiter, outcome| (waiter.caller, outcome)))
    }

    /// Empties the queue, in which everything has an outcome, and returns what callers wait for in
    /// the order of submission.
    fn take_answered<T>(&mut self, mut returned: impl FnMut(Waiter, Outcome) -> T) -> Vec<T> {
        self.unclaimed.clear();
        self.queue.sort_by_key(|pending| pending.waiter.map(|waiter| waiter.submission_index));
        let mut answered = Vec::with_capacity(self.queue.len());
        // Draining keeps the queue's memory for the next call.
        for PendingEvent { waiter, outcome, .. } in self.queue.drain(..) {
            match (waiter, outcome.into_inner()) {
                (Some(waiter), Some(outcome)) => {
                    if let Answer::Decided(decision) = &outcome.answer {
                        self.last_refused = matches!(decision, Decision::Refuse(_));
                    }
                    answered.push(returned(waiter, outcome));
                }
                (None, Some(outcome)) => self.unclaimed.push(outcome),
                (_, None) => {}
            }
        }
        answered
    }

    /// Returns the outcomes of the last append that no caller waits for.
    ///
    /// They carry notices and the tickets of this process to wake.
    pub fn take_unclaimed_outcomes(&mut self) -> Vec<Outcome> {
        mem::take(&mut self.unclaimed)
    }

    /// Returns `true` once per lease that an event of this process created, and `false` for a lease
    /// that it found under the same call id.
    ///
    /// So of all callers in all processes that share a call id, exactly one learns that its call
    /// created the lease.
    pub fn take_created(&mut self, lease: Key) -> bool {
        self.own_events.take_created(lease)
    }

    /// Returns how many actions recovery appended again since the last call because the store had
    /// lost entries, or `None` if it had lost none.
    pub fn take_restored(&mut self) -> Option<usize> {
        self.restored.take()
    }

    /// Returns whether something waits to be sent that no caller waits for. The next append carries
    /// it, or a [`Participant::submit`] of nothing.
    pub fn has_pending(&self) -> bool {
        !self.pending_cancels.is_empty()
            || self.queue.iter().any(|pending| pending.waiter.is_none())
    }

    /// Returns the callers that still wait for an outcome.
    pub fn callers(&self) -> impl Iterator<Item = CallerId> {
        self.queue.iter().filter_map(|pending| Some(pending.waiter?.caller))
    }

    /// Stops waiting for all outcomes.
    ///
    /// The next append cancels reserves that the store may have admitted, and still carries all
    /// other events.
    pub fn give_up(&mut self) {
        self.detach_callers(&|_| true);
    }

    /// Stops waiting for the outcomes of one caller, as [`Participant::give_up`] does for all.
    pub fn give_up_on(&mut self, caller: CallerId) {
        self.detach_callers(&|waiting| waiting == caller);
    }

    fn detach_callers(&mut self, detached: &dyn Fn(CallerId) -> bool) {
        for mut pending in mem::take(&mut self.queue) {
            let detach = pending.waiter.is_some_and(|waiter| detached(waiter.caller));
            match &pending.event.action {
                Action::Reserve(reserve) if detach => {
                    // A reserve that never reached the store created nothing to cancel.
                    let key = Some(pending.event.key).filter(|_| pending.maybe_stored);
                    self.pending_cancels.extend(key);
                    self.pending_cancels.extend(reserve.ticket);
                    continue;
                }
                _ if detach => pending.waiter = None,
                _ => {}
            }
            self.queue.push(pending);
        }
    }

    /// Cancels a lease or a ticket with the next append.
    pub fn cancel_later(&mut self, lease: Key) {
        self.pending_cancels.push(lease);
    }

    /// Reads what others appended. After a fork this also recovers own events.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        if !self.forked {
            let read = self.log.read(self.replica.position());
            let read = self.recover_if_damaged(read)?;
            if self.apply_read(read)? != CaughtUp::Forked {
                return Ok(());
            }
        }
        self.recover()?;
        self.flush()
    }

    /// Returns whether the log is still the pool's current one; see [`Log::is_current`]. If not,
    /// [`Participant::refresh`] recovers what this process has.
    pub fn is_current(&self) -> Option<bool> {
        self.log.is_current()
    }

    /// Returns what a reserve would be answered now. This changes nothing.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn peek(&mut self, reserve: &Reserve) -> Result<Decision, StoreError> {
        self.refresh()?;
        Ok(self.replica.state().peek(reserve, self.replica.now()))
    }

    /// Returns the replica of the pool.
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Returns the id of the current session.
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Returns the events without a known outcome.
    pub fn unanswered_events(&self) -> impl Iterator<Item = &Event> {
        self.unanswered().map(|pending| &pending.event)
    }

    fn unanswered(&self) -> impl Iterator<Item = &PendingEvent> {
        self.queue.iter().filter(|pending| pending.is_unanswered())
    }

    /// Gives an action the next number and queues it.
    fn enqueue(&mut self, action: Action, waiter: Option<Waiter>) {
        self.number += 1;
        let key = Key { session: self.session, number: self.number };
        let event = Event { key, action };
        let body = entry::body(&event);
        self.queue.push(PendingEvent::new(event, body, waiter));
    }
}

/// Returns a random session id of 56 bits, so that two processes practically never share one.
#[must_use]
pub fn random_session() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((std::process::id(), std::thread::current().id())) >> 8
}

fn too_large(length: usize) -> StoreError {
    let most = entry::MAX_BODY_LEN;
    StoreError::unusable(format!("an event of {length} bytes is too large; at most {most}"))
}

/// The most events in the queue: more than a ledger has leases and tickets.
const MAX_QUEUE: usize = 32_768;

/// The caller of [`Participant::submit`], which has only one.
const SINGLE_CALLER: CallerId = 0;

//! What callers of one pool take turns at: the participant, and the outcomes that wait for callers.
//!
//! The caller that holds the dispatcher sends everything in the submit queue in one step, also what
//! an earlier attempt left without an answer, and stores the outcomes for the other callers. So a
//! crowd of callers costs the store one call, and every outcome reaches the caller it belongs to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant as Local, SystemTime, UNIX_EPOCH};

use standpipe_core::{Action, Answer, Decision, Found, Key, Notice, Outcome};
use standpipe_store::{Log, Participant, PoolName, StoreError};

use super::calendar::CalendarClock;
use super::contact::Contact;
use super::notify::Notify;
use super::submit_queue::{LeftCaller, Submission, SubmitQueue};
use super::{CallerId, NO_CALLER, Uptime};
use crate::journal::{EventData, Writer};
use crate::moment::{Now, Timestamp};
use crate::offline::Sharing;
use standpipe_observe::journal::{event_of_notice, instant_of_notice};

/// What callers of a pool take turns at.
pub(crate) struct Dispatcher {
    pool: PoolName,
    /// Whether the store is across a network.
    remote: bool,
    journal: Arc<Writer>,
    pub(crate) participant: Participant<Box<dyn Log + Send>>,
    /// By ticket and caller: two callers may wait for one ticket, with the same id.
    waiters: BTreeMap<(Key, CallerId), Arc<Notify>>,
    queue: Arc<SubmitQueue>,
    /// Outcomes that their callers have not taken yet.
    answered: BTreeMap<CallerId, Result<Vec<Outcome>, StoreError>>,
    /// The waiters to notify when this turn ends.
    notifications: Vec<Arc<Notify>>,
    /// Actions without a waiting caller that were not sent yet.
    unattended: Vec<Action>,
    turn: Turn,
    /// When this turn began, while the store fails.
    turn_began: Option<Local>,
    /// Whether a step of this turn would have had to wait.
    blocked: bool,
    /// The last failure to reach the store, until a step succeeds.
    last_failure: Option<(Local, StoreError)>,
    /// When the store last took a write.
    pub(crate) contact: Contact,
    /// What a share of the limits is computed from, if the pool falls back to one.
    pub(crate) sharing: Option<Sharing>,
    calendar: CalendarClock,
    active_at: Option<Local>,
    read_at: Option<Local>,
    /// When maintenance looks at the tickets again.
    pub(crate) look_at: Option<Local>,
    /// When maintenance last tested which sessions are alive, and where it stopped.
    pub(crate) tested: Option<Local>,
    pub(crate) tested_up_to: usize,
    /// When maintenance sends the next heartbeat.
    pub(crate) beat_at: Option<Local>,
}

/// How the holder of the dispatcher may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Steps may wait. `queued_at` is when the caller began to wait for the dispatcher, if it had
    /// to.
    Blocking { queued_at: Option<Local> },
    /// Steps must not wait.
    NonBlocking,
}

impl Dispatcher {
    pub(super) fn new(
        pool: PoolName,
        participant: Participant<Box<dyn Log + Send>>,
        journal: Arc<Writer>,
        queue: Arc<SubmitQueue>,
        uptime: Uptime,
        remote: bool,
    ) -> Self {
        Self {
            pool,
            remote,
            journal,
            participant,
            waiters: BTreeMap::new(),
            queue,
            answered: BTreeMap::new(),
            notifications: Vec::new(),
            unattended: Vec::new(),
            turn: Turn::Blocking { queued_at: None },
            turn_began: None,
            blocked: false,
            last_failure: None,
            contact: Contact::new(uptime),
            sharing: None,
            calendar: CalendarClock::default(),
            active_at: None,
            read_at: None,
            look_at: None,
            tested: None,
            tested_up_to: 0,
            beat_at: None,
        }
    }

    pub(super) fn begin_turn(&mut self, turn: Turn) {
        self.turn = turn;
        self.blocked = false;
        let deadline = match turn {
            Turn::NonBlocking => Some(Local::now()),
            Turn::Blocking { .. } if !self.remote => Some(Local::now() + LOCAL_TURN),
            Turn::Blocking { .. } => None,
        };
        self.participant.set_deadline(deadline);
        // Only a store that failed lately makes the beginning of the turn matter.
        self.turn_began = self.last_failure.as_ref().map(|_| Local::now());
    }

    /// Ends the turn and returns the waiters to notify.
    pub(super) fn end_turn(&mut self) -> Vec<Arc<Notify>> {
        std::mem::take(&mut self.notifications)
    }

    /// Returns whether a step of this turn would have had to wait and was not taken.
    pub(crate) const fn was_blocked(&self) -> bool {
        self.blocked
    }

    /// Returns the clocks of the store and of this process, as of the last answer.
    pub(crate) fn now(&self) -> Now {
        Now::at(self.participant.replica().now())
    }

    /// Returns the outcomes of what a caller submitted, and sends it first if need be. After a
    /// transient error it is still pending: the caller tries again or calls
    /// [`Dispatcher::give_up`].
    pub(crate) fn answer(&mut self, caller: CallerId) -> Result<Vec<Outcome>, StoreError> {
        let sent = match self.answered.contains_key(&caller) {
            true => Ok(()),
            false => self.send(),
        };
        match self.answered.remove(&caller) {
            Some(answer) => answer,
            // The caller wants a read, and an earlier attempt to send its submission failed.
            None => sent.and_then(|()| self.refresh()).map(|()| Vec::new()),
        }
    }

    /// Sends an action, or keeps it to be sent later. Returns whether it was sent.
    pub(crate) fn send_or_keep(&mut self, action: Action) -> bool {
        self.send_or_keep_all([action])
    }

    /// Does the same for several actions, in one step.
    pub(crate) fn send_or_keep_all(&mut self, actions: impl IntoIterator<Item = Action>) -> bool {
        self.unattended.extend(actions);
        self.flush().is_ok()
    }

    /// Keeps an action to be sent with the next step.
    pub(crate) fn keep(&mut self, action: Action) {
        self.unattended.push(action);
    }

    /// Returns whether there is something to send that no caller is about to send.
    pub(crate) fn has_pending(&self) -> bool {
        let unattended = |submission: &Submission| submission.caller == NO_CALLER;
        !self.unattended.is_empty()
            || self.queue.has_left()
            || self.participant.has_pending()
            || self.queue.lock().iter().any(unattended)
    }

    /// Returns whether [`Dispatcher::flush`] would send something.
    pub(crate) fn has_unsent(&self) -> bool {
        self.has_pending() || self.participant.unanswered_events().next().is_some()
    }

    /// Sends everything that is pending, if something is.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        if self.has_unsent() { self.send() } else { Ok(()) }
    }

    /// Detaches a caller that no longer waits. What it submitted is sent all the same.
    pub(crate) fn detach(&mut self, caller: CallerId) {
        let unsent = self.queue.withdraw(caller);
        self.give_up(caller);
        self.unattended.extend(unsent);
    }

    /// Detaches a caller that no longer waits, and returns to the pool what it was granted. Its
    /// other actions are still sent.
    pub(crate) fn give_up(&mut self, caller: CallerId) {
        self.queue.withdraw(caller);
        self.participant.give_up_on(caller);
        for outcome in self.answered.remove(&caller).and_then(Result::ok).into_iter().flatten() {
            match outcome.answer {
                Answer::Decided(Decision::Admit(grant)) if !grant.settled => {
                    self.participant.cancel_later(grant.lease);
                }
                Answer::Decided(Decision::Wait(queued)) => {
                    self.participant.cancel_later(queued.ticket);
                }
                _ => {}
            }
        }
    }

    /// Registers a caller that waits for a ticket.
    pub(crate) fn wait(&mut self, ticket: Key, caller: CallerId, notify: &Arc<Notify>) {
        self.waiters.insert((ticket, caller), Arc::clone(notify));
    }

    /// Removes a caller that no longer waits for a ticket.
    pub(crate) fn leave(&mut self, ticket: Key, caller: CallerId) {
        self.waiters.remove(&(ticket, caller));
    }

    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Returns whether another caller than this one waits here.
    pub(crate) fn has_others(&self, caller: CallerId) -> bool {
        self.waiters.keys().any(|(_, waiter)| *waiter != caller)
    }

    /// Returns the tickets that callers wait for here.
    pub(crate) fn tickets(&self) -> impl Iterator<Item = Key> {
        self.waiters.keys().map(|(ticket, _)| *ticket)
    }

    /// Notifies those who wait for a ticket, at the end of this turn.
    pub(crate) fn notify_ticket(&mut self, ticket: Key) {
        let callers = (ticket, CallerId::MIN)..=(ticket, CallerId::MAX);
        let waiters = self.waiters.range(callers).map(|(_, notify)| Arc::clone(notify));
        self.notifications.extend(waiters);
    }

    /// Notifies everyone who waits here, at the end of this turn.
    pub(crate) fn notify_all(&mut self) {
        self.notifications.extend(self.waiters.values().cloned());
    }

    /// Returns whether this process may cancel a ticket. Another process may have taken over one
    /// that has an id.
    pub(crate) fn is_ours(&self, ticket: Key) -> bool {
        let state = self.participant.replica().state();
        if state.find(ticket) != Found::Ticket {
            return true;
        }
        let mut tickets = state.facts().tickets.values();
        let found = tickets.find(|known| known.key == ticket);
        found.is_none_or(|found| found.session.is_none_or(|own| own == self.participant.session()))
    }

    /// Detaches callers that left without the dispatcher.
    fn detach_left(&mut self) {
        for LeftCaller { caller, ticket } in self.queue.take_left() {
            if let Some(ticket) = ticket {
                self.leave(ticket, caller);
            }
            self.give_up(caller);
            if let Some(ticket) = ticket.filter(|ticket| self.is_ours(*ticket)) {
                self.unattended.push(Action::Cancel { lease: ticket });
            }
        }
    }

    /// Reads what other processes appended.
    pub(crate) fn refresh(&mut self) -> Result<(), StoreError> {
        // What is pending goes with the read, so that a reader sees what was dropped before.
        if let Some(error) = self.shared_failure() {
            return Err(error);
        }
        let available = self.contact.silent_since().is_none();
        if available && self.has_pending() && self.send().is_ok() {
            return Ok(());
        }
        let read = self.participant.refresh();
        if let Err(error) = &read {
            self.note_blocked(error);
        }
        read?;
        self.read_at = Some(Local::now());
        self.journal_restored();
        Ok(())
    }

    /// Returns when the store was last read.
    pub(crate) const fn read_at(&self) -> Option<Local> {
        self.read_at
    }

    /// Returns when a step last succeeded.
    pub(crate) const fn active_at(&self) -> Option<Local> {
        self.active_at
    }

    /// Returns whether the outcome of what a caller submitted is known.
    pub(crate) fn has_answer(&self, caller: CallerId) -> bool {
        self.answered.contains_key(&caller)
    }

    /// Sends what is pending, or else a heartbeat. Returns whether the store takes writes.
    pub(crate) fn probe_write(&mut self) -> bool {
        // After minutes of silence the ledger no longer knows this session and would take an event
        // that it has for a new one. So the participant reads first what of it arrived.
        let under_way = self.participant.unanswered_events().next().is_some();
        if under_way && self.participant.refresh().is_err() {
            return false;
        }
        let unsent =
            !self.unattended.is_empty() || self.participant.unanswered_events().next().is_some();
        if unsent {
            return self.flush().is_ok();
        }
        self.send_or_keep(Action::Heartbeat { lease: None, ttl: None })
    }

    fn journal_restored(&mut self) {
        if let Some(count) = self.participant.take_restored() {
            let what = format!(
                "the store lost its latest entries; {count} of this process's were put back"
            );
            tracing::warn!(pool = %self.pool, count, "the store lost entries; own ones restored");
            self.journal.note(&self.pool, EventData::Store { what });
        }
    }

    /// Sends everything that was submitted, and keeps the outcomes for their callers. Unattended
    /// actions go in bounded batches: after an outage there may be many.
    fn send(&mut self) -> Result<(), StoreError> {
        self.detach_left();
        if let Some(error) = self.shared_failure() {
            return Err(error);
        }
        loop {
            self.send_batch()?;
            if self.unattended.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the failure of a step in this turn, or of one that ended while this caller waited
    /// for the dispatcher.
    ///
    /// Its submission was pending during that step, so the failure is its own as well. If each
    /// caller tried by itself, the last of a crowd would wait for as many timeouts as there are
    /// callers.
    fn shared_failure(&self) -> Option<StoreError> {
        let Turn::Blocking { queued_at } = self.turn else { return None };
        let since = queued_at.or(self.turn_began)?;
        if !self.has_failed_since(since) {
            return None;
        }
        self.last_failure.as_ref().map(|(_, error)| error.clone())
    }

    /// Returns whether a step has failed since then and none has succeeded after it.
    pub(super) fn has_failed_since(&self, since: Local) -> bool {
        self.last_failure.as_ref().is_some_and(|(failed_at, _)| since < *failed_at)
    }

    fn send_batch(&mut self) -> Result<(), StoreError> {
        // What earlier attempts left without an answer goes first, alone if there is much of it.
        if self.participant.unanswered_events().count() > MAX_UNATTENDED {
            let sent = self.participant.submit_for(Vec::new());
            self.receive(&[], sent)?;
        }
        self.announce_resets();
        let submissions = std::mem::take(&mut *self.queue.lock());
        let callers: Vec<CallerId> = submissions.iter().map(|each| each.caller).collect();
        let batch = MAX_UNATTENDED.min(self.unattended.len());
        let unattended = self.unattended.drain(..batch).map(|action| (NO_CALLER, action));
        let mut events: Vec<(CallerId, Action)> = unattended.collect();
        for Submission { caller, actions } in submissions {
            events.extend(actions.into_iter().map(|action| (caller, action)));
        }
        let sent = self.participant.submit_for(events);
        self.receive(&callers, sent)
    }

    /// Adds what the ledger needs to know of resets at a time of day, before the calls that count.
    fn announce_resets(&mut self) {
        let (state, now) = (self.participant.replica().state(), self.participant.replica().now());
        let announcement = self.calendar.announcement(state, now, wall_micros);
        self.unattended.extend(announcement);
    }

    /// Distributes the result of a step to the callers.
    fn receive(
        &mut self,
        callers: &[CallerId],
        sent: Result<Vec<(CallerId, Outcome)>, StoreError>,
    ) -> Result<(), StoreError> {
        let error = sent.as_ref().err();
        if error.is_some_and(|error| self.note_blocked(error)) {
            return sent.map(drop);
        }
        let store = self.participant.replica().now();
        self.contact.note(self.participant.last_written(), store, sent.as_ref().err());
        match sent {
            Ok(answers) => {
                self.last_failure = None;
                self.active_at = Some(Local::now());
                self.read_at = self.active_at;
                self.journal_restored();
                let unclaimed = self.participant.take_unclaimed_outcomes();
                self.publish(unclaimed.iter().chain(answers.iter().map(|(_, outcome)| outcome)));
                // Callers that wanted a read have no outcomes.
                for caller in callers {
                    self.answered.entry(*caller).or_insert_with(|| Ok(Vec::new()));
                }
                for (caller, outcome) in answers {
                    let answer = self.answered.entry(caller).or_insert_with(|| Ok(Vec::new()));
                    if let Ok(outcomes) = answer {
                        outcomes.push(outcome);
                    }
                }
                self.answered.remove(&NO_CALLER);
                Ok(())
            }
            Err(error) if error.is_transient() => {
                let now = Local::now();
                self.last_failure = Some((now, error.clone()));
                self.turn_began
                    .get_or_insert(now.checked_sub(Duration::from_nanos(1)).unwrap_or(now));
                self.participant.give_up_on(NO_CALLER);
                Err(error)
            }
            Err(error) => {
                let waiting: Vec<CallerId> = self.participant.callers().collect();
                for caller in waiting.iter().chain(callers) {
                    self.answered.insert(*caller, Err(error.clone()));
                }
                self.answered.remove(&NO_CALLER);
                self.participant.give_up();
                Err(error)
            }
        }
    }

    /// Notes that a step was not taken because it would have had to wait, if `error` says so. That
    /// is no failure of the store.
    fn note_blocked(&mut self, error: &StoreError) -> bool {
        let blocked = self.turn == Turn::NonBlocking && error.is_transient() && error.is_unsent();
        self.blocked |= blocked;
        blocked
    }

    /// Notifies the waiters that outcomes name, and writes notices to the journal.
    fn publish<'a>(&mut self, outcomes: impl Iterator<Item = &'a Outcome>) {
        let mut now = None;
        for outcome in outcomes {
            for ticket in &outcome.wake {
                self.notify_ticket(*ticket);
            }
            for notice in &outcome.notices {
                trace_notice(&self.pool, notice);
                let now = now.get_or_insert_with(|| Now::at(self.participant.replica().now()));
                if let Some(what) = event_of_notice(&self.pool, notice, now) {
                    let at = instant_of_notice(notice, now).unwrap_or_else(Timestamp::now);
                    self.journal.note_at(at, &self.pool, what);
                }
            }
        }
    }
}

fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Logs what an operator wants to see at once. The journal has everything.
fn trace_notice(pool: &PoolName, notice: &Notice) {
    match notice {
        Notice::Paused { .. } => tracing::info!(%pool, "paused"),
        Notice::Resumed { .. } => tracing::info!(%pool, "resumed"),
        Notice::Stopped { .. } => tracing::warn!(%pool, "the provider stopped every call"),
        Notice::Sequential { on } => tracing::info!(%pool, on, "sequential"),
        Notice::Reclaimed { agent, why, .. } => {
            tracing::info!(%pool, %agent, ?why, "lease reclaimed");
        }
        _ => {}
    }
}

/// How long a turn on a local store may wait for the pool's lock. Another caller may wait for the
/// dispatcher on an executor's thread, for example to drop a lease, so a turn must be short
/// although a stopped process holds the lock. Callers retry.
const LOCAL_TURN: Duration = Duration::from_millis(20);

/// How many actions without a waiting caller are sent in one step.
const MAX_UNATTENDED: usize = 1_024;

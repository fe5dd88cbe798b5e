//! The append loop: sends the queue until every event in it has an outcome.
//!
//! A fork or an ended session restarts the loop with renumbered events; see the protocol in
//! [`crate::participant`]. The loop bounds those restarts and never waits.

use std::mem;

use standpipe_core::{Answer, Event, Instant, Outcome, Span};

use super::pending::PendingEvent;
use super::{Participant, lifetime, resolve};
use crate::entry;
use crate::error::StoreError;
use crate::log::{Log, LogRead};
use crate::replica::CaughtUp;

impl<L: Log> Participant<L> {
    /// Appends until everything in the queue has an outcome.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        // Whether an append of this call may have reached the store.
        let (mut restarts, mut sent) = (0, false);
        if self.forked {
            // An earlier recovery failed. An event appended before it is repeated would make the
            // lost events with smaller numbers look present.
            self.recover()?;
        }
        loop {
            let last = self.take_batch();
            if self.batch.is_empty() {
                return Ok(());
            }
            self.log.set_lifetime(self.lifetime());
            let appended = self.log.append(self.replica.position(), &self.batch);
            self.put_batch_back(appended.as_ref().err());
            let read = match appended {
                Err(error) if !sent && error.is_unsent() => return Err(error),
                appended => self.recover_if_damaged(appended).map_err(StoreError::maybe_sent)?,
            };
            sent = true;
            let due = matches!(&read, LogRead::Tail(tail) if tail.snapshot_due);
            if self.apply_read(read).map_err(StoreError::maybe_sent)? == CaughtUp::Forked {
                self.recover().map_err(StoreError::maybe_sent)?;
                restarts += 1;
            } else {
                self.resolve_duplicates(last);
                restarts += usize::from(self.restart_session_if_ended());
                self.snapshot_if_due(due);
            }
            if restarts > MAX_RESTARTS {
                return Err(StoreError::transient(
                    "the store repeatedly forks or ends this session; check that its server keeps \
                     the writes that it acknowledged",
                ));
            }
        }
    }

    /// Moves the bodies of as many unanswered events as one call may carry into the batch, and
    /// returns the number of the last one.
    fn take_batch(&mut self) -> u64 {
        let (mut room, mut last) = (entry::MAX_BODY_LEN, 0);
        for pending in self.queue.iter_mut().filter(|pending| pending.is_unanswered()) {
            let length = pending.body.get_mut().len() + entry::BODY_OVERHEAD;
            if length > room && !self.batch.is_empty() {
                break;
            }
            room = room.saturating_sub(length);
            self.batch.push(pending.body.take());
            (pending.in_append, last) = (true, pending.event.key.number);
        }
        last
    }

    /// Moves the bodies back: an event whose answer is lost is sent again.
    fn put_batch_back(&mut self, failed: Option<&StoreError>) {
        let unsent = failed.is_some_and(StoreError::is_unsent);
        let sent = self.queue.iter_mut().filter(|pending| pending.in_append);
        for (pending, body) in sent.zip(self.batch.drain(..)) {
            pending.body.set(body);
            pending.maybe_stored |= !unsent;
            pending.in_append = failed.is_none();
        }
    }

    /// Returns how long the log matters after this append if nothing follows it.
    fn lifetime(&self) -> Span {
        let actions = self.unanswered().map(|pending| &pending.event.action);
        lifetime::required(self.replica.state(), actions)
    }

    /// Applies a read, assigns the outcomes of own events and wakes sessions that became due.
    pub(super) fn apply_read(&mut self, read: LogRead) -> Result<CaughtUp, StoreError> {
        let (queue, own_events, session) = (&self.queue, &mut self.own_events, self.session);
        let observer = &mut self.observer;
        let mut to_wake = Vec::new();
        let on_entry = |event: &Event, stamp: Instant, outcome: Outcome| {
            own_events.record_reclaims(&outcome.notices, stamp);
            if let Some(observer) = observer {
                observer.on_event(event, event.key.session == session, stamp, &outcome);
            }
            if event.key.session != session || outcome.answer == Answer::Duplicate {
                return;
            }
            let unanswered =
                |own: &&PendingEvent| own.is_unanswered() && own.event.key == event.key;
            if let Some(own) = queue.iter().find(unanswered) {
                to_wake.extend(outcome.wake.iter().map(|ticket| ticket.session));
                let created = resolve::created(event.key, &outcome);
                own_events.record(event, own.body.take(), stamp, &outcome.answer, created);
                own.answer(outcome);
            }
        };
        let own = queue.iter().filter(|pending| pending.in_append).map(|pending| &pending.event);
        let applied = self.replica.apply_append(&mut self.log, read, own, on_entry);
        self.queue.iter_mut().for_each(|pending| pending.in_append = false);
        let reached = match applied {
            // The log is empty now: recover as after a fork.
            Err(error) if error.is_damaged() && self.log.quarantine()? => CaughtUp::Forked,
            applied => applied?,
        };
        to_wake.sort_unstable();
        to_wake.dedup();
        to_wake.retain(|woken| *woken != session);
        if !to_wake.is_empty() {
            self.log.wake_sessions(&to_wake);
        }
        if reached == CaughtUp::BySnapshot {
            // An engine that trimmed this position cannot tell that it was on a lost branch.
            if self.own_events.lost_by(self.replica.state(), session) {
                return Ok(CaughtUp::Forked);
            }
            let now = self.replica.now();
            self.own_events.detect_reclaims(self.replica.state(), &|_| false, now);
        }
        self.own_events.prune(self.replica.now());
        Ok(reached)
    }

    /// Looks up the outcomes of events up to the number `last` that were just sent and have none.
    ///
    /// The state ignored them as duplicates of entries that the replica jumped over.
    fn resolve_duplicates(&mut self, last: u64) {
        let unanswered = self.queue.iter().filter(|pending| pending.is_unanswered());
        for duplicate in unanswered.take_while(|event| event.event.key.number <= last) {
            let outcome = resolve::outcome(&self.replica, &duplicate.event);
            resolve::record(&mut self.own_events, &self.replica, duplicate, &outcome);
            if let Some(observer) = &mut self.observer {
                observer.on_event(&duplicate.event, true, self.replica.now(), &outcome);
            }
            duplicate.answer(outcome);
        }
    }

    /// If the session had ended, begins a new one and renumbers everything it ignored.
    fn restart_session_if_ended(&mut self) -> bool {
        if !self.queue.iter().any(PendingEvent::hit_ended_session) {
            return false;
        }
        self.begin_session();
        let queue = mem::take(&mut self.queue);
        self.requeue(queue);
        true
    }

    /// Queues events again under new keys, and keeps those that have a real outcome.
    pub(super) fn requeue(&mut self, events: Vec<PendingEvent>) {
        for pending in events {
            if pending.is_unanswered() || pending.hit_ended_session() {
                self.enqueue(pending.event.action, pending.waiter);
            } else {
                self.queue.push(pending);
            }
        }
    }

    /// Begins a new session.
    ///
    /// A store that cannot allocate one returns the same id. Numbers then continue, because keys
    /// name leases and must not repeat.
    pub(super) fn begin_session(&mut self) {
        let ended = mem::replace(&mut self.session, (self.sessions)());
        self.number = if self.session == ended { self.number } else { 0 };
    }

    /// Writes a snapshot if one is due. A failure is harmless: the next appender tries again.
    fn snapshot_if_due(&mut self, due: bool) {
        if due {
            let _ = self.log.write_snapshot(&self.replica.snapshot());
        }
    }
}

/// How many forks and ended sessions in a row [`Participant::flush`] tolerates.
const MAX_RESTARTS: usize = 4;

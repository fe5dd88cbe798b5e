//! Recovery after the store lost entries: loads the present log and queues what it lacks.
//!
//! Guarantees that an event of this process takes effect once, whether or not the store kept it.
//! `own_events.rs` decides which actions to append again.

use std::mem;

use standpipe_core::Key;

use super::{Participant, resolve};
use crate::error::StoreError;
use crate::log::{Log, LogRead};

impl<L: Log> Participant<L> {
    /// Quarantines a log that the engine reports as damaged, and returns a fork in its place.
    pub(super) fn recover_if_damaged(
        &mut self,
        read: Result<LogRead, StoreError>,
    ) -> Result<LogRead, StoreError> {
        match read {
            Err(error) if error.is_damaged() && self.log.quarantine()? => Ok(LogRead::Forked),
            read => read,
        }
    }

    /// Loads the present log from its start and queues the own events that it lacks.
    ///
    /// After an error nothing is queued, and the next append or read begins with another recovery.
    pub(super) fn recover(&mut self) -> Result<(), StoreError> {
        self.forked = true;
        self.replica.reset();
        let read = self.log.read(self.replica.position());
        let read = match self.recover_if_damaged(read)? {
            // The log was quarantined just now. The start is on every log, so this read succeeds.
            LogRead::Forked => self.log.read(self.replica.position())?,
            tail => tail,
        };
        self.apply_read(read)?;
        let (state, now, session) = (self.replica.state(), self.replica.now(), self.session);
        let present =
            |key: Key| state.last_number(key.session).is_some_and(|last| key.number <= last);
        // Earlier sessions hold no leases, and the state may have dropped them for their silence.
        let is_lost = |key: Key| key.session == session && !present(key);
        let missing = self.own_events.actions_to_recover(state, &is_lost, now);
        self.restored = Some(self.restored.unwrap_or_default() + missing.len());
        self.own_events.detect_reclaims(state, &is_lost, now);
        for pending in self.queue.iter().filter(|pending| pending.is_unanswered()) {
            if present(pending.event.key) {
                let outcome = resolve::outcome(&self.replica, &pending.event);
                resolve::record(&mut self.own_events, &self.replica, pending, &outcome);
                pending.answer(outcome);
            }
        }
        if state.last_number(session).is_none() {
            self.begin_session();
        }
        let queue = mem::take(&mut self.queue);
        for action in missing {
            self.enqueue(action, None);
        }
        self.requeue(queue);
        self.forked = false;
        Ok(())
    }
}

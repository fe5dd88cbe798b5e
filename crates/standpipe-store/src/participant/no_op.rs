//! Answers without an entry in the log: reserves that are refused, and a configuration that the
//! pool already has.
//!
//! Guarantees that such an answer comes from a replica that has just read to the head, and that
//! everything which does change the state is appended.

use standpipe_core::{Action, Event, Key, Reserve, Span};

use super::pending::{PendingEvent, Waiter};
use super::{Participant, resolve};
use crate::error::StoreError;
use crate::log::Log;

impl<L: Log> Participant<L> {
    /// Returns whether an action may turn out to change nothing, judged by the replica as it is.
    ///
    /// A configuration always may: a new process has not read yet whether the pool has one. A
    /// reserve is judged here only where a refusal is likely, because an append judges it anyway:
    /// after a refusal, or without patience where the limits show no room. One that waits is
    /// refused only when waiting is of no use, and such refusals come in rows.
    pub(super) fn may_be_no_op(&self, action: &Action) -> bool {
        match action {
            Action::Configure(_) => true,
            Action::Reserve(reserve) if !self.last_refused && self.is_likely_accepted(reserve) => {
                false
            }
            _ => resolve::no_op_outcome(&self.replica, action).is_some(),
        }
    }

    /// Returns whether a reserve is likely to be admitted or queued.
    fn is_likely_accepted(&self, reserve: &Reserve) -> bool {
        let (state, now) = (self.replica.state(), self.replica.now());
        reserve.patience > Span::ZERO || state.is_likely_admitted(reserve, now)
    }

    /// Reads to the head, answers the candidates that change nothing and queues the others.
    pub(super) fn answer_no_ops(
        &mut self,
        candidates: Vec<(Waiter, Action)>,
    ) -> Result<(), StoreError> {
        if candidates.is_empty() {
            return Ok(());
        }
        let fresh = match self.flush_or_read() {
            Ok(()) => true,
            // Without a fresh replica every candidate is appended.
            Err(error) if error.is_transient() => false,
            Err(error) => return Err(error),
        };
        let mut reconfigures = false;
        for (waiter, action) in candidates {
            // A queued configuration may change the answer to what follows it.
            let reliable = fresh && !reconfigures;
            match resolve::no_op_outcome(&self.replica, &action).filter(|_| reliable) {
                Some(outcome) => {
                    if let Action::Configure(configure) = &action {
                        let now = self.replica.now();
                        self.own_events.record_known_config(self.session, configure, now);
                    }
                    // Number 0: the event is never sent and takes no number of the session.
                    let event = Event { key: Key { session: self.session, number: 0 }, action };
                    let pending = PendingEvent::new(event, Vec::new(), Some(waiter));
                    pending.answer(outcome);
                    self.queue.push(pending);
                }
                None => {
                    reconfigures |= matches!(action, Action::Configure(_));
                    self.enqueue(action, Some(waiter));
                }
            }
        }
        Ok(())
    }
}

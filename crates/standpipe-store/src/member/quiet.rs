//! What is answered without leaving a trace in the log: reserves that are refused, and a
//! configuration that the pool has.

use standpipe_core::{Action, Event, Key};

use super::sent::{Awaited, Sent};
use super::{Member, resolve};
use crate::error::StoreError;
use crate::log::Log;

impl<L: Log> Member<L> {
    /// Whether it looks as if an action would change nothing. A process that has just come does not
    /// know that the pool is configured.
    pub(super) fn may_leave_no_trace(&self, action: &Action) -> bool {
        matches!(action, Action::Configure(_))
            || resolve::without_trace(&self.replica, action).is_some()
    }

    /// Answers what leaves no trace from a replica that has just read everything; what would leave
    /// one is put into the queue.
    pub(super) fn answer_quietly(
        &mut self,
        quiet: Vec<(Awaited, Action)>,
    ) -> Result<(), StoreError> {
        if quiet.is_empty() {
            return Ok(());
        }
        let read = if self.queue.is_empty() { self.refresh() } else { self.push() };
        let fresh = match read {
            Ok(()) => true,
            Err(error) if error.is_transient() => false,
            Err(error) => return Err(error),
        };
        let mut configures = false;
        for (awaited, action) in quiet {
            let still = fresh && !configures;
            match resolve::without_trace(&self.replica, &action).filter(|_| still) {
                Some(outcome) => {
                    if let Action::Configure(configure) = &action {
                        let now = self.replica.now();
                        self.journal.note_configured(self.session, configure, now);
                    }
                    let event = Event { key: Key { session: self.session, number: 0 }, action };
                    let (body, left, outcome) = (Vec::new(), false, Some(outcome));
                    self.queue.push(Sent { event, body, left, awaited: Some(awaited), outcome });
                }
                None => {
                    configures |= matches!(action, Action::Configure(_));
                    self.enqueue(action, Some(awaited));
                }
            }
        }
        Ok(())
    }
}

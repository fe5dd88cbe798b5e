//! An event in the queue, and the caller that waits for its outcome.

use std::cell::{Cell, OnceCell};

use standpipe_core::{Answer, Event, Outcome};

use super::CallerId;

/// An event in the queue of a participant.
pub(super) struct PendingEvent {
    pub(super) event: Event,
    /// The encoded event. Empty while an append carries it, and once the event is answered: the
    /// record of own events takes it.
    pub(super) body: Cell<Vec<u8>>,
    /// Whether the present append carries the event.
    pub(super) in_append: bool,
    /// Whether an append with this event may have reached the store.
    pub(super) maybe_stored: bool,
    /// The caller that waits for the outcome, if any.
    pub(super) waiter: Option<Waiter>,
    /// Set once. A cell, because the replica applies the events of the queue while their outcomes
    /// are assigned.
    pub(super) outcome: OnceCell<Outcome>,
}

/// A caller that waits for an outcome, and its place in the order of submission.
#[derive(Clone, Copy)]
pub(super) struct Waiter {
    pub(super) caller: CallerId,
    pub(super) submission_index: u64,
}

impl PendingEvent {
    /// Returns an event that is not sent yet.
    pub(super) fn new(event: Event, body: Vec<u8>, waiter: Option<Waiter>) -> Self {
        let (body, outcome) = (Cell::new(body), OnceCell::new());
        Self { event, body, in_append: false, maybe_stored: false, waiter, outcome }
    }

    /// Returns whether the outcome is not known yet.
    pub(super) fn is_unanswered(&self) -> bool {
        self.outcome.get().is_none()
    }

    /// Assigns the outcome. Only the first one counts.
    pub(super) fn answer(&self, outcome: Outcome) {
        let _ = self.outcome.set(outcome);
    }

    /// Returns whether the state ignored the event because its session had ended. That is no
    /// outcome for a caller: the event is sent again under a new session.
    pub(super) fn hit_ended_session(&self) -> bool {
        self.outcome.get().is_some_and(|outcome| outcome.answer == Answer::SessionEnded)
    }
}

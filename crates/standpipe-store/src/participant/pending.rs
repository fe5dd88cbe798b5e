//! An event in the queue, and the caller that waits for its outcome.

use standpipe_core::{Answer, Event, Outcome};

use super::CallerId;

/// An event in the queue of a participant.
pub(super) struct PendingEvent {
    pub(super) event: Event,
    /// The encoded event.
    pub(super) body: Vec<u8>,
    /// Whether an append with this event may have reached the store.
    pub(super) maybe_stored: bool,
    /// The caller that waits for the outcome, if any.
    pub(super) waiter: Option<Waiter>,
    pub(super) outcome: Option<Outcome>,
}

/// A caller that waits for an outcome, and its place in the order of submission.
#[derive(Clone, Copy)]
pub(super) struct Waiter {
    pub(super) caller: CallerId,
    pub(super) submission_index: u64,
}

impl PendingEvent {
    /// Returns whether the state ignored the event because its session had ended. That is no
    /// outcome for a caller: the event is sent again under a new session.
    pub(super) fn hit_ended_session(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.answer == Answer::SessionEnded)
    }
}

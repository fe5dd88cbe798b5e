//! An event that is under way, and who waits for what comes of it.

use standpipe_core::{Answer, Event, Outcome};

use super::Asker;

/// An event that is under way, or was until just now.
pub(super) struct Sent {
    pub(super) event: Event,
    pub(super) body: Vec<u8>,
    /// It may have reached the store.
    pub(super) left: bool,
    /// Who wants to know its outcome, if anybody does.
    pub(super) awaited: Option<Awaited>,
    pub(super) outcome: Option<Outcome>,
}

/// Somebody who waits for an outcome, and as the how manyth it was asked.
#[derive(Clone, Copy)]
pub(super) struct Awaited {
    pub(super) asker: Asker,
    pub(super) turn: u64,
}

impl Sent {
    /// Its session had ended: that is no outcome to tell, but a reason to begin another.
    pub(super) fn was_ignored(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.answer == Answer::SessionEnded)
    }
}

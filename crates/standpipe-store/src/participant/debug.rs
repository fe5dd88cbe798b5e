//! The debug output of a participant: its position in the log, without the state.

use std::fmt;

use super::Participant;

impl<L> fmt::Debug for Participant<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant")
            .field("session", &self.session)
            .field("number", &self.number)
            .field("position", &self.replica.position())
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}

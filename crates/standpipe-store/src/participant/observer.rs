//! A hook for code that needs the events of a pool's log, not only its present state.

use standpipe_core::{Event, Instant, Outcome};

/// Receives the events of a pool's log as the replica applies them.
///
/// An event can arrive twice, when the log is read again from its start, or never, when a snapshot
/// replaces its entry. Numbers ascend within a session, so a receiver can detect a repetition.
pub trait Observer: Send {
    /// Called for an event in the log. `own` is set if the current session of this process sent it.
    fn on_event(&mut self, event: &Event, own: bool, at: Instant, outcome: &Outcome);
}

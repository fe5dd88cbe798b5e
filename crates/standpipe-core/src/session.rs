//! Sessions: the living processes that leases and tickets belong to.

use crate::time::Instant;

/// What is known of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The number of its last event.
    pub last: u64,
    /// When that was.
    pub heard: Instant,
    /// It was seen to be dead. Kept for a while so that late copies of its events are recognised.
    pub ended: bool,
}

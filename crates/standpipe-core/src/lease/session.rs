//! The record of a session: a living process that owns leases and tickets.
//!
//! `sessions.rs` ends and forgets sessions.

use crate::time::Instant;

/// The record of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The number of its last event.
    pub last: u64,
    /// The instant of its last event.
    pub last_seen: Instant,
    /// Whether the session ended. The record is kept for a while, so that late duplicates of its
    /// events are recognised.
    pub ended: bool,
}

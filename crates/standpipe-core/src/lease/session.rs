//! The record of a session: a living process that owns leases and tickets.
//!
//! `sessions.rs` ends and forgets sessions.

use alloc::vec::Vec;

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
    /// The number of its tickets that became due since its last event and were not claimed.
    pub missed: u32,
}

/// Which silent sessions were already looked at.
///
/// A session that is silent and has something in flight is not forgotten, so without this every
/// event would look at all of them again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence {
    /// The last session that was looked at, in the order of `last_seen`.
    pub(crate) checked: Option<(Instant, u64)>,
    /// No session behind `checked` is silent before this instant.
    pub(crate) next: Instant,
    /// The sessions that since then no longer have anything in flight.
    pub(crate) released: Vec<u64>,
}

/// It only saves looks: an index with another one, or with none, forgets the same sessions at the
/// same events.
impl PartialEq for Silence {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Silence {}

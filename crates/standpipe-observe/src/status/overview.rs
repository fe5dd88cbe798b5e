//! A pool as doctor and audit see it, without changing it.

use standpipe_core::PoolConfig;

use crate::status::PoolStatus;
use crate::time::Timestamp;

/// A pool as it is.
#[derive(Clone, Debug)]
pub struct PoolOverview {
    /// Its status.
    pub status: PoolStatus,
    /// The configuration in force; none if it has none.
    pub config: Option<PoolConfig>,
    /// How long ago it was last used or configured; none if it never was.
    pub unused_ms: Option<u64>,
    /// How many sessions and owners of leases have ended without being cleaned up.
    pub dead: usize,
    /// How many living processes were active on it in the last two minutes, or hold something.
    pub processes: usize,
    /// The store's clock, where it began near the calendar.
    pub clock: Timestamp,
}

//! The status of all pools at once: what `status --json`, the daemon and the terminal view show.

use serde::{Deserialize, Serialize};
use standpipe_store::PoolName;

use crate::status::{Backpressure, LostLedger, PoolStatus};
use crate::time::Timestamp;

/// The status of several pools.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What a person would call the store: a path, an address without secrets.
    pub store: String,
    /// The pools that could be read.
    pub pools: Vec<PoolStatus>,
    /// The throttled agents that other agents depend on.
    pub backpressure: Vec<Backpressure>,
    /// The pools that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// The pools whose ledger is gone, before a call makes a new one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub lost: Vec<LostLedger>,
    /// Set by a daemon whose configuration file was rejected at the last reload.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub config_rejected: Option<ConfigRejected>,
}

/// A configuration file that was rejected; the previous configuration stays active.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigRejected {
    /// When the daemon first rejected it.
    pub at: Timestamp,
    /// The file; none if it could not be found.
    pub file: Option<String>,
    /// What is wrong and what to do, in the order of the file.
    pub errors: Vec<String>,
}

impl ConfigRejected {
    /// Returns what to do. A file that only needs a restart has nothing to correct.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self.errors.iter().all(|error| error.contains("needs a restart")) {
            true => "restart the daemon; until then the previous configuration stays active",
            false => "correct the file; the previous configuration stays active",
        }
    }
}

/// A pool that cannot be read.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pool: PoolName,
    /// The error.
    pub detail: String,
}

impl Snapshot {
    /// Whether it has no pool, readable or not, and none that was lost.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.unreadable.is_empty() && self.lost.is_empty()
    }

    /// Marks the calls that a process holds or makes as those of the daemon's clients.
    pub fn mark_daemon(&mut self, pid: u32) {
        for pool in &mut self.pools {
            let is_its = |own: Option<u32>| own == Some(pid);
            pool.leases.iter_mut().for_each(|lease| lease.daemon = is_its(lease.pid));
            pool.tickets.iter_mut().for_each(|ticket| ticket.daemon = is_its(ticket.pid));
        }
    }

    /// Truncates the calls and agents of each pool to so many rows. The counts of each pool still
    /// include all of them.
    #[must_use]
    pub fn at_most(mut self, rows: usize) -> Self {
        for pool in &mut self.pools {
            pool.leases.truncate(rows);
            pool.tickets.truncate(rows);
            pool.agents.truncate(rows);
        }
        self
    }
}

//! The body of `GET /metrics`: Prometheus text format 0.0.4.
//!
//! However many pools, agents, limits and unknown labels there are, the text is bounded. Gauges
//! come from a [`standpipe::Snapshot`]. Counters come from the machine's journal, which every
//! process writes, so they include callers that do not use HTTP; they start at 0 with the daemon.
//! Nothing here asks the store or reads a file.

mod agents;
mod counters;
mod daemon;
mod exposition;
mod journal;
mod labels;
mod pools;
pub(crate) mod proxied;
mod reference;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use standpipe::{PoolStatus, Snapshot};

pub use self::counters::JournalCounters;
use self::counters::{MAX_POOLS, PoolCounters};
use self::daemon::PoolCounts;
use self::exposition::Exposition;
pub use self::reference::reference;
pub use self::store::StoreLatency;

/// The media type of [`text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The daemon itself.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// Its version.
    pub version: &'static str,
    /// When it started.
    pub started: SystemTime,
    /// Open HTTP connections.
    pub connections: usize,
    /// Open event streams.
    pub streams: usize,
    /// Waiting calls over HTTP.
    pub waiting_http: usize,
    /// Whether the store is available.
    pub store_up: bool,
    /// How old the state of the pools is: 0 unless the store is unavailable.
    pub snapshot_age: Duration,
}

/// The whole text.
#[must_use]
pub fn text(
    snapshot: &Snapshot,
    counters: &JournalCounters,
    store: &StoreLatency,
    process: &ProcessInfo,
) -> String {
    let pools = joined(snapshot, counters);
    let counts = PoolCounts {
        readable: snapshot.pools.len(),
        unreadable: snapshot.unreadable.len() + snapshot.lost.len(),
        shown: pools.values().filter(|pool| pool.status.is_some()).count(),
    };
    page(&pools, counts, counters, store, process).into_text()
}

fn page(
    pools: &BTreeMap<&str, PoolMetrics<'_>>,
    counts: PoolCounts,
    counters: &JournalCounters,
    store: &StoreLatency,
    process: &ProcessInfo,
) -> Exposition {
    let mut page = Exposition::default();
    daemon::write(&mut page, process, counts);
    store.write(&mut page);
    journal::write(&mut page, counters, pools);
    pools::write(&mut page, pools);
    agents::write(&mut page, pools);
    page
}

/// One pool: its state and its counters.
#[derive(Clone, Copy, Debug, Default)]
struct PoolMetrics<'a> {
    status: Option<&'a PoolStatus>,
    counters: Option<&'a PoolCounters>,
}

/// Pools by name. Pools with counters take precedence, so that a series disappears only when its
/// pool is reset.
fn joined<'a>(
    snapshot: &'a Snapshot,
    counters: &'a JournalCounters,
) -> BTreeMap<&'a str, PoolMetrics<'a>> {
    let counted = counters
        .pools()
        .map(|(name, counters)| (name, PoolMetrics { status: None, counters: Some(counters) }));
    let mut pools: BTreeMap<&str, PoolMetrics<'_>> = counted.collect();
    for status in &snapshot.pools {
        let name = status.pool.as_str();
        if pools.contains_key(name) || pools.len() < MAX_POOLS {
            pools.entry(name).or_default().status = Some(status);
        }
    }
    pools
}

/// The unit in the name of a limit: `requests per 1min` counts requests.
fn unit_of(limit: &str) -> &str {
    limit.split(' ').next().unwrap_or_default()
}

//! What `GET /metrics` answers: Prometheus text, format 0.0.4.
//!
//! Gauges are how the pools stand ([`standpipe::Snapshot`]). Counters are added up from the
//! machine's journal, which every process writes, so they count everybody and not only those who
//! come over HTTP; they begin at nothing when the daemon does. Nothing here asks the store or reads
//! a file.
//!
//! Invariant: however many pools, agents, limits and odd words there are, the text is bounded.

mod agents;
mod daemon;
mod journal;
mod page;
mod pools;
mod store;
mod tally;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::time::SystemTime;

use standpipe::{PoolStatus, Snapshot};

use self::page::Page;
pub use self::store::StoreTimes;
pub use self::tally::Tally;
use self::tally::{MOST_POOLS, PoolTally};

/// The media type of [`text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the daemon says of itself.
#[derive(Clone, Debug)]
pub struct About {
    /// Its version.
    pub version: &'static str,
    /// When it began.
    pub started: SystemTime,
    /// HTTP connections that are open.
    pub connections: usize,
    /// Event streams that are open.
    pub streams: usize,
    /// Calls over HTTP that wait to be admitted.
    pub waiting_http: usize,
}

/// All of it as Prometheus reads it.
#[must_use]
pub fn text(snapshot: &Snapshot, tally: &Tally, store: &StoreTimes, about: &About) -> String {
    let pools = joined(snapshot, tally);
    let mut page = Page::default();
    let shown = pools.values().filter(|both| both.status.is_some()).count();
    daemon::write(&mut page, about, snapshot, shown);
    store.write(&mut page);
    journal::write(&mut page, tally, &pools);
    pools::write(&mut page, &pools);
    agents::write(&mut page, &pools);
    page.into_text()
}

/// One pool: how it stands, and what was counted of it.
#[derive(Clone, Copy, Debug, Default)]
struct Both<'a> {
    status: Option<&'a PoolStatus>,
    tally: Option<&'a PoolTally>,
}

/// By name. Those with a count come first, so that a series that was shown stays.
fn joined<'a>(snapshot: &'a Snapshot, tally: &'a Tally) -> BTreeMap<&'a str, Both<'a>> {
    let counted =
        tally.pools().map(|(name, tally)| (name, Both { status: None, tally: Some(tally) }));
    let mut pools: BTreeMap<&str, Both<'_>> = counted.collect();
    for status in &snapshot.pools {
        let name = status.pool.as_str();
        if pools.contains_key(name) || pools.len() < MOST_POOLS {
            pools.entry(name).or_default().status = Some(status);
        }
    }
    pools
}

/// What a limit counts, by its name: `requests per 1min` counts requests.
fn unit_of(limit: &str) -> &str {
    limit.split(' ').next().unwrap_or_default()
}

//! Figures for Prometheus.

use std::time::{Duration, SystemTime};

use standpipe::Snapshot;
use standpipe::journal::Event;

/// Counters since the daemon began.
#[derive(Debug, Default)]
pub struct Tally;

impl Tally {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Another event.
    pub fn add(&mut self, _event: &Event) {}
}

/// How long steps on the store took.
#[derive(Debug, Default)]
pub struct StoreTimes;

impl StoreTimes {
    /// One took so long.
    pub fn took(&self, _length: Duration) {}

    /// One failed.
    pub fn failed(&self) {}
}

/// What the daemon says of itself.
#[derive(Debug)]
pub struct About {
    /// Its version.
    pub version: String,
    /// Since when it runs.
    pub started: SystemTime,
    /// Its connections.
    pub connections: u64,
    /// Its streams.
    pub streams: u64,
    /// The calls that wait here.
    pub waiting_http: u64,
}

/// All of it.
#[must_use]
pub fn text(_: &Snapshot, _: &Tally, _: &StoreTimes, about: &About) -> String {
    format!("standpipe_connections {}\n", about.connections)
}

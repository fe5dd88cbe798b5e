//! When a pool's store last took a write of this process.
//!
//! A store can answer reads and refuse writes (no memory left, a replica, a full disk). Then
//! nothing can be decided on it, so only a write ends an outage. `offline.rs` uses this.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use standpipe_core::{Instant, Key};
use standpipe_store::StoreError;

use crate::moment::span;

/// The clock of this process, see [`standpipe_store::Store::uptime`].
pub(crate) type Uptime = Arc<dyn Fn() -> Duration + Send + Sync>;

/// When the store last took a write.
pub(crate) struct Contact {
    uptime: Uptime,
    opened: Duration,
    last_written: Option<Key>,
    written_at: Option<Duration>,
    silent_since: Option<Duration>,
    /// The store's clock as it was known at `silent_since`.
    store_then: Instant,
}

impl Contact {
    pub(super) fn new(uptime: Uptime) -> Self {
        let opened = uptime();
        Self {
            uptime,
            opened,
            last_written: None,
            written_at: None,
            silent_since: None,
            store_then: Instant(0),
        }
    }

    /// Records the result of an attempt to send. `last_written` is the last event known to be in
    /// the log, `store` the store's clock at its last answer.
    pub(super) fn note(
        &mut self,
        last_written: Option<Key>,
        store: Instant,
        error: Option<&StoreError>,
    ) {
        if last_written != self.last_written {
            (self.last_written, self.written_at) = (last_written, Some(self.now()));
            self.silent_since = None;
        }
        if error.is_some_and(StoreError::is_transient) && self.silent_since.is_none() {
            (self.silent_since, self.store_then) = (Some(self.now()), store);
        }
    }

    /// Returns the clock of this process.
    pub(crate) fn now(&self) -> Duration {
        (self.uptime)()
    }

    pub(crate) fn uptime(&self) -> Uptime {
        Arc::clone(&self.uptime)
    }

    /// Returns since when the store takes no writes, if it takes none.
    pub(crate) const fn silent_since(&self) -> Option<Duration> {
        self.silent_since
    }

    /// Returns a lower bound of the store's clock.
    pub(crate) fn store_clock(&self, last_read: Instant) -> Instant {
        let silent = self.silent_since.map(|since| self.now().saturating_sub(since));
        silent.map_or(last_read, |silent| last_read.max(self.store_then + span(silent)))
    }

    /// Returns when the store last took a write.
    pub(crate) const fn written_at(&self) -> Option<Duration> {
        self.written_at
    }

    /// Returns how much of `length` is left since the last write, or since the pool was opened if
    /// there was none.
    pub(crate) fn left_of(&self, length: Duration) -> Duration {
        let last = self.written_at.unwrap_or(self.opened);
        (last + length).saturating_sub(self.now())
    }
}

impl fmt::Debug for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contact").field("silent_since", &self.silent_since).finish_non_exhaustive()
    }
}

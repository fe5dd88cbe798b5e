//! A clock for tests, which stands still until it is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use standpipe::{MemoryStore, Store};
use standpipe_core::{Instant, Span, bounds};

/// A clock that stands still until it is moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoppedClock(Arc<AtomicU64>);

impl StoppedClock {
    /// Returns an empty store in memory with this clock.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        let moved = Arc::clone(&self.0);
        // The first instant leaves room for the longest period before it.
        let clock = move || Instant(bounds::SPAN.0) + Span(moved.load(Ordering::SeqCst));
        Arc::new(MemoryStore::new(Arc::new(clock)))
    }

    /// Moves the clock.
    pub(crate) fn advance(&self, length: Duration) {
        let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(micros, Ordering::SeqCst);
    }

    /// Returns how far the clock was moved.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::SeqCst))
    }
}

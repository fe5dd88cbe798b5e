//! How a store's clock maps to the clocks of this process.
//!
//! A store's clock is comparable only with itself. An instant of it is converted with readings of
//! all clocks that were taken together, and never to an earlier instant than meant.

use std::time::{Duration, Instant as Local, SystemTime, UNIX_EPOCH};

use standpipe_core::Instant;

use super::{Timestamp, micros};

/// The clocks of this process and a store's, read together.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The store's clock.
    pub store: Instant,
    /// The steady clock of this process.
    pub local: Local,
    /// The wall clock of this machine.
    pub system: SystemTime,
}

impl Now {
    /// Reads the clocks of this process for an instant that the store has just returned.
    pub fn at(store: Instant) -> Self {
        Self { store, local: Local::now(), system: SystemTime::now() }
    }

    /// Converts an instant of the store to the steady clock.
    pub fn local(&self, at: Instant) -> Local {
        self.local + micros(at.since(self.store))
    }

    /// Converts an instant of the store to the wall clock.
    pub fn system(&self, at: Instant) -> SystemTime {
        let ahead = micros(at.since(self.store));
        let behind = micros(self.store.since(at));
        let then = self.system.checked_add(ahead).unwrap_or(self.system);
        then.checked_sub(behind).unwrap_or(UNIX_EPOCH)
    }

    /// Returns the time until an instant of the store, rounded up to a millisecond.
    pub fn until(&self, at: Instant) -> Duration {
        Duration::from_millis(at.since(self.store).0.div_ceil(1_000))
    }

    /// Returns the milliseconds until an instant of the store, rounded up.
    pub fn millis_until(&self, at: Instant) -> u64 {
        at.since(self.store).0.div_ceil(1_000)
    }

    /// Returns the milliseconds since an instant of the store.
    pub fn millis_since(&self, at: Instant) -> u64 {
        self.store.since(at).0 / 1_000
    }

    /// Converts a past instant of the store.
    pub fn past(&self, at: Instant) -> Timestamp {
        Timestamp::of(self.system(at))
    }

    /// Converts a future instant of the store, rounded up, so that it is never too early.
    pub fn ahead(&self, at: Instant) -> Timestamp {
        Timestamp::not_before(self.system(at))
    }
}

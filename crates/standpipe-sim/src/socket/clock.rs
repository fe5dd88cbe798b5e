//! What time it is for a server: the machine's monotonic clock, or one that a test moves.

use std::fmt::Debug;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{ignore_poison, micros};

/// A clock that counts microseconds from 0 and never goes back.
pub trait Clock: Debug + Send + Sync {
    /// The present instant.
    fn now(&self) -> u64;

    /// Blocks until that instant. Returns `false` if the clock was stopped first.
    fn wait_until(&self, at: u64) -> bool;

    /// Ends every wait, and those to come.
    fn stop(&self);
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
    origin: u64,
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl RealClock {
    /// One that starts now.
    #[must_use]
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            start: Instant::now(),
            origin: micros(since),
            stopped: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Its start on the calendar, in microseconds since 1970.
    #[must_use]
    pub const fn origin(&self) -> u64 {
        self.origin
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> u64 {
        micros(self.start.elapsed())
    }

    fn wait_until(&self, at: u64) -> bool {
        let mut stopped = ignore_poison(self.stopped.lock());
        loop {
            let left = at.saturating_sub(self.now());
            if *stopped || left == 0 {
                return !*stopped;
            }
            let waited = self.changed.wait_timeout(stopped, Duration::from_micros(left));
            stopped = ignore_poison(waited).0;
        }
    }

    fn stop(&self) {
        *ignore_poison(self.stopped.lock()) = true;
        self.changed.notify_all();
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    now: u64,
    stopped: bool,
}

impl ManualClock {
    /// One that stands at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves it to an instant; an earlier one changes nothing.
    pub fn advance_to(&self, at: u64) {
        let mut state = ignore_poison(self.state.lock());
        state.now = state.now.max(at);
        drop(state);
        self.changed.notify_all();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        ignore_poison(self.state.lock()).now
    }

    fn wait_until(&self, at: u64) -> bool {
        let mut state = ignore_poison(self.state.lock());
        while state.now < at && !state.stopped {
            state = ignore_poison(self.changed.wait(state));
        }
        !state.stopped
    }

    fn stop(&self) {
        ignore_poison(self.state.lock()).stopped = true;
        self.changed.notify_all();
    }
}

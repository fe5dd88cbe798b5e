//! A wake-up flag: set by any thread, waited for by one.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A wake-up flag. A wake-up that comes while nobody waits ends the next wait.
#[derive(Debug, Default)]
pub struct WakeFlag {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl WakeFlag {
    /// Ends the present wait, or else the next one.
    pub fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until the flag is set or `at_most` has passed, and clears the flag.
    pub fn wait(&self, at_most: Duration) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_set, at_most, |is_set| !*is_set);
        let (mut is_set, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *is_set = false;
    }
}

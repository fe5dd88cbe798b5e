//! What a call does when the store did not answer: it retries until its time is up.

use std::time::{Duration, Instant as Local};

use standpipe_store::StoreError;

use super::{Step, WaitState, done};
use crate::client::Dispatcher;
use crate::client::store_client::LAST_RETRY;

/// How long a call waits for the lock of a pool, however short its timeout is.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The longest pause between two attempts of that time: the lock is free most of it.
const LOCK_RETRY: Duration = Duration::from_millis(40);

impl WaitState {
    /// Retries after the store did not answer, until the caller's time is up.
    pub(super) fn store_failed(&mut self, dispatcher: &mut Dispatcher, error: StoreError) -> Step {
        let now = Local::now();
        if let Some(step) = self.go_offline(dispatcher) {
            return step;
        }
        if self.client.has_fallback() {
            // The maintenance thread finds out whether the store takes writes.
            self.handle.store_client().schedule_resend();
        }
        let patience = self.patience(&error, now);
        let deadline = self.deadline.max(patience);
        if now >= deadline {
            self.leave(dispatcher);
            return done(Err(error.into()));
        }
        let longest = if now < patience { LOCK_RETRY } else { LAST_RETRY };
        let at = (now + self.retry).min(deadline);
        self.retry = (self.retry * 2).min(longest);
        Step::Sleep(at)
    }

    /// Returns until when a call waits for the lock of its pool, whatever its timeout is.
    ///
    /// A timeout limits the wait for quota. The lock of a busy pool changes hands all the time, so
    /// a call that never waits for quota still gets a decision.
    fn patience(&mut self, error: &StoreError, now: Local) -> Local {
        let is_local = !self.handle.store_client().store().is_remote();
        if !is_local || !error.is_unsent() {
            return now;
        }
        *self.failing_since.get_or_insert(now) + LOCK_PATIENCE
    }
}

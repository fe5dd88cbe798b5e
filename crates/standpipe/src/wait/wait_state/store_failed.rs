//! What a call does when the store did not answer: it retries until its time is up.

use std::time::{Duration, Instant as Local};

use standpipe_store::StoreError;

use super::{Step, WaitState, done};
use crate::client::Dispatcher;
use crate::client::store_client::LAST_RETRY;

/// How long a call waits for the lock of a pool, however short its timeout is.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

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
        let deadline = self.store_deadline(&error, now);
        if now >= deadline {
            self.leave(dispatcher);
            return done(Err(error.into()));
        }
        let at = (now + self.retry).min(deadline);
        self.retry = (self.retry * 2).min(LAST_RETRY);
        Step::Sleep(at)
    }

    /// Returns until when to retry after the store did not answer.
    ///
    /// A timeout limits the wait for quota. The lock of a busy pool changes hands all the time, so
    /// a call that never waits for quota still gets a decision.
    fn store_deadline(&mut self, error: &StoreError, now: Local) -> Local {
        let is_local = !self.handle.store_client().store().is_remote();
        if !is_local || !error.is_unsent() {
            return self.deadline;
        }
        let since = *self.failing_since.get_or_insert(now);
        self.deadline.max(since + LOCK_PATIENCE)
    }
}

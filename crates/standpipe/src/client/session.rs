//! The session of this process on a store.
//!
//! All pools share one session. If it ends while the process lives on, all pools continue with the
//! same next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standpipe_store::{Store, StoreError};

/// The sessions of this process on a store. The last one is current.
#[derive(Debug)]
pub(crate) struct Sessions {
    store: Arc<dyn Store>,
    begun: Mutex<Vec<u64>>,
}

impl Sessions {
    pub(crate) const fn new(store: Arc<dyn Store>) -> Self {
        Self { store, begun: Mutex::new(Vec::new()) }
    }

    /// Returns the current session, and begins one if there is none yet.
    pub(crate) fn present(&self) -> Result<u64, StoreError> {
        let mut begun = self.lock();
        match begun.last() {
            Some(session) => Ok(*session),
            None => self.begin(&mut begun),
        }
    }

    /// Returns the session after one that ended. If the store cannot begin one, it is the same
    /// again: the ledger ignores its events, so the caller gets a store error.
    pub(crate) fn after(&self, ended: u64) -> u64 {
        let mut begun = self.lock();
        match begun.last().copied() {
            Some(session) if session != ended => session,
            _ => self.begin(&mut begun).unwrap_or(ended),
        }
    }

    /// Ends all sessions. The process must have no lease and no ticket on the store.
    pub(crate) fn end(&self) {
        for session in self.lock().drain(..) {
            self.store.end_session(session);
        }
    }

    fn begin(&self, begun: &mut Vec<u64>) -> Result<u64, StoreError> {
        let session = self.store.begin_session()?;
        begun.push(session);
        Ok(session)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The session of this process on a store: one for all its pools, and another when it ended while
//! the process lived on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standpipe_store::{Store, StoreError};

/// The sessions of this process on a store, the last being the present one.
#[derive(Debug)]
pub(crate) struct Sessions {
    store: Arc<dyn Store>,
    begun: Mutex<Vec<u64>>,
}

impl Sessions {
    pub(crate) const fn new(store: Arc<dyn Store>) -> Self {
        Self { store, begun: Mutex::new(Vec::new()) }
    }

    /// The present session; one is begun when there is none yet.
    pub(crate) fn present(&self) -> Result<u64, StoreError> {
        let mut begun = self.lock();
        match begun.last() {
            Some(session) => Ok(*session),
            None => self.begin(&mut begun),
        }
    }

    /// What comes after a session that ended. When the store cannot begin one it is the same again:
    /// the ledger ignores its events, and so the caller hears that the store is in trouble.
    pub(crate) fn after(&self, ended: u64) -> u64 {
        let mut begun = self.lock();
        match begun.last().copied() {
            Some(session) if session != ended => session,
            _ => self.begin(&mut begun).unwrap_or(ended),
        }
    }

    /// Ends all of them: the process is done with the store, and has nothing there.
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

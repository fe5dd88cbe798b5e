//! The pool client of an offline ledger, which replaces the pool's own client while the store is
//! unavailable, and how both find each other.
//!
//! Once [`PoolClient::resumed`] returns the own client, the offline one decides nothing any more.
//! The ledger itself is in `offline.rs`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use standpipe_core::Key;
use standpipe_store::{Log, Participant};

use super::{NO_CALLER, PoolClient, Uptime};
use crate::config::StoreFailure;
use crate::journal::Writer;
use crate::offline::OfflineFallback;

impl PoolClient {
    /// Creates the client of an offline ledger, which replaces `home` while the store is
    /// unavailable.
    pub(crate) fn new_offline(
        home: &Arc<Self>,
        participant: Participant<Box<dyn Log + Send>>,
        journal: Arc<Writer>,
        uptime: Uptime,
    ) -> Self {
        let client = Self::new(home.pool.clone(), participant, journal, uptime, false);
        Self { home: Some(Arc::clone(home)), ..client }
    }

    /// Returns whether this is the client of an offline ledger.
    pub(crate) const fn is_offline(&self) -> bool {
        self.home.is_some()
    }

    /// Returns the fallback that this client belongs to, if it is the client of an offline ledger.
    pub(crate) fn enclosing_fallback(&self) -> Option<Arc<OfflineFallback>> {
        self.home.as_ref().and_then(|home| home.offline())
    }

    /// Returns the client that this one replaced, once that one is in use again.
    pub(crate) fn resumed(&self) -> Option<Arc<Self>> {
        self.home.clone().filter(|_| self.moved.load(Ordering::Acquire))
    }

    /// Moves leases and unattended actions to the home client, because the store takes writes
    /// again. The caller holds the dispatcher of this client, so no other caller gets an answer
    /// from it afterwards.
    pub(crate) fn switch_home(&self) {
        self.moved.store(true, Ordering::Release);
        if let Some(home) = &self.home {
            home.leases.fetch_add(self.leases.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            self.forward_unattended(home);
        }
    }

    /// Moves unattended actions that were submitted here to the home client.
    pub(crate) fn forward_unattended(&self, home: &Self) {
        for action in self.queue.withdraw(NO_CALLER) {
            home.submit_unattended(action);
        }
    }

    /// Sets what a configuration of the pool states for an unavailable store. Returns whether it
    /// states `share` for the first time.
    pub(crate) fn set_fallback(&self, mode: StoreFailure) -> bool {
        match mode {
            StoreFailure::Closed => false,
            StoreFailure::Open => {
                self.opens.store(true, Ordering::Relaxed);
                false
            }
            StoreFailure::Share => !self.shares.swap(true, Ordering::Relaxed),
        }
    }

    /// Returns what happens while the store is unavailable; the stricter, if handles of this
    /// process differ.
    pub(crate) fn fallback(&self) -> StoreFailure {
        match (self.shares(), self.opens.load(Ordering::Relaxed)) {
            (true, _) => StoreFailure::Share,
            (false, true) => StoreFailure::Open,
            (false, false) => StoreFailure::Closed,
        }
    }

    /// Returns whether calls are decided while the store is unavailable.
    pub(crate) fn has_fallback(&self) -> bool {
        self.fallback() != StoreFailure::Closed
    }

    /// Returns whether the fallback is a share of the limits. Then this process sends heartbeats
    /// even while it is idle.
    pub(crate) fn shares(&self) -> bool {
        self.shares.load(Ordering::Relaxed)
    }

    /// Returns the ledger that decides while the store is unavailable.
    pub(crate) fn offline(&self) -> Option<Arc<OfflineFallback>> {
        self.lock_offline().clone()
    }

    /// Returns the client that answers for the pool now.
    pub(crate) fn present(self: &Arc<Self>) -> Arc<Self> {
        self.offline().map_or_else(|| Arc::clone(self), |fallback| Arc::clone(&fallback.client))
    }

    /// Returns the client that has a lease of this pool. A lease that the offline ledger granted is
    /// there until it is handed over.
    pub(crate) fn of_lease(self: &Arc<Self>, lease: Key) -> Arc<Self> {
        let fallback = self.offline().filter(|fallback| fallback.granted(lease));
        fallback.map_or_else(|| Arc::clone(self), |fallback| Arc::clone(&fallback.client))
    }

    pub(crate) fn lock_offline(&self) -> MutexGuard<'_, Option<Arc<OfflineFallback>>> {
        self.offline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

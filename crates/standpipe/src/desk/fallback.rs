//! The desk that stands in for another one while the store is unavailable, and how both find each
//! other. What it decides with is in `offline.rs`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use standpipe_core::Key;
use standpipe_store::{Log, Participant};

use super::{Desk, NOBODY, Uptime};
use crate::config::StoreFailure;
use crate::journal::Writer;
use crate::offline::OfflineFallback;

impl Desk {
    /// A desk that stands in for another one, whose store is away.
    pub(crate) fn standing_in(
        home: &Arc<Self>,
        member: Participant<Box<dyn Log + Send>>,
        journal: Arc<Writer>,
        uptime: Uptime,
    ) -> Self {
        let desk = Self::new(home.pool.clone(), member, journal, uptime);
        Self { stands_in_for: Some(Arc::clone(home)), ..desk }
    }

    /// Whether it stands in for another one.
    pub(crate) const fn is_substitute(&self) -> bool {
        self.stands_in_for.is_some()
    }

    /// What it is part of, if it stands in for another one.
    pub(crate) fn stands_in(&self) -> Option<Arc<OfflineFallback>> {
        self.stands_in_for.as_ref().and_then(|home| home.cut_off())
    }

    /// The desk it stood in for, since that one is served again.
    pub(crate) fn moved_to(&self) -> Option<Arc<Self>> {
        self.stands_in_for.clone().filter(|_| self.moved.load(Ordering::Acquire))
    }

    /// The store takes writes again: what is held here is held there from now on, and what was
    /// left in the inbox goes there. The caller holds the counter of this desk, so no caller gets
    /// an answer from it afterwards.
    pub(crate) fn moves(&self) {
        self.moved.store(true, Ordering::Release);
        if let Some(home) = &self.stands_in_for {
            home.held.fetch_add(self.held.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            self.forward_words(home);
        }
    }

    /// What was left here after the move goes to the desk that this one stood in for.
    pub(crate) fn forward_words(&self, home: &Self) {
        for action in self.inbox.take_back(NOBODY) {
            home.leave_word(action);
        }
    }

    /// What a configuration of the pool says about an unavailable store. Returns whether this is
    /// the first time that it says `share`.
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

    /// What is done while the store is unavailable; the stricter, if handles of this process
    /// differ.
    pub(crate) fn fallback(&self) -> StoreFailure {
        match (self.shares(), self.opens.load(Ordering::Relaxed)) {
            (true, _) => StoreFailure::Share,
            (false, true) => StoreFailure::Open,
            (false, false) => StoreFailure::Closed,
        }
    }

    /// Whether that is more than to wait.
    pub(crate) fn falls_back(&self) -> bool {
        self.fallback() != StoreFailure::Closed
    }

    /// Whether that is a share of the limits: then this process beats although it is idle.
    pub(crate) fn shares(&self) -> bool {
        self.shares.load(Ordering::Relaxed)
    }

    /// Where calls are decided on while the store is away.
    pub(crate) fn cut_off(&self) -> Option<Arc<OfflineFallback>> {
        self.lock_cut_off().clone()
    }

    /// Where questions about the pool are answered now.
    pub(crate) fn present(self: &Arc<Self>) -> Arc<Self> {
        self.cut_off().map_or_else(|| Arc::clone(self), |place| Arc::clone(&place.desk))
    }

    /// Where a lease of this pool lives: in the ledger of this process, if that granted it while
    /// the store was unavailable, until it is handed over.
    pub(crate) fn of_lease(self: &Arc<Self>, lease: Key) -> Arc<Self> {
        let place = self.cut_off().filter(|place| place.granted(lease));
        place.map_or_else(|| Arc::clone(self), |place| Arc::clone(&place.desk))
    }

    pub(crate) fn lock_cut_off(&self) -> MutexGuard<'_, Option<Arc<OfflineFallback>>> {
        self.cut_off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! One pool as this process uses it: its submissions, its waiters, and the ledger that decides
//! while the store is unavailable.
//!
//! Callers put actions into the submit queue and take turns at the dispatcher, which is the only
//! one that talks to the store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant as Local;

use standpipe_core::{Action, Configured, Key};
use standpipe_store::{Log, Participant, PoolName};

use super::dispatcher::Turn;
use super::io_worker::IoWorker;
use super::submit_queue::{Submission, SubmitQueue};
use super::{CallerId, DispatchGuard, Dispatcher, NO_CALLER, Uptime};
use crate::journal::Writer;
use crate::offline::OfflineFallback;

/// One pool as this process uses it.
pub(crate) struct PoolClient {
    pub(super) pool: PoolName,
    /// How many leases live with this process's session.
    pub(super) leases: AtomicUsize,
    /// The result of each tap's configuration, by the tap's number.
    pub(super) configured: Mutex<BTreeMap<u64, Configured>>,
    pub(super) queue: Arc<SubmitQueue>,
    /// The thread that takes blocking steps for tasks.
    pub(super) worker: Arc<IoWorker>,
    /// The ledger that decides while the store is unavailable.
    pub(super) offline: Mutex<Option<Arc<OfflineFallback>>>,
    /// Whether a configuration of the pool names this fallback.
    pub(super) opens: AtomicBool,
    pub(super) shares: AtomicBool,
    /// For the client of an offline ledger: the client it replaces.
    pub(super) home: Option<Arc<Self>>,
    /// Whether the home client is in use again.
    pub(super) moved: AtomicBool,
    pub(super) dispatcher: Mutex<Dispatcher>,
}

impl PoolClient {
    pub(crate) fn new(
        pool: PoolName,
        participant: Participant<Box<dyn Log + Send>>,
        journal: Arc<Writer>,
        uptime: Uptime,
        remote: bool,
    ) -> Self {
        let queue = Arc::new(SubmitQueue::default());
        let submitted = Arc::clone(&queue);
        let dispatcher =
            Dispatcher::new(pool.clone(), participant, journal, submitted, uptime, remote);
        Self {
            pool,
            leases: AtomicUsize::new(0),
            configured: Mutex::default(),
            queue,
            worker: Arc::default(),
            offline: Mutex::default(),
            opens: AtomicBool::new(false),
            shares: AtomicBool::new(false),
            home: None,
            moved: AtomicBool::new(false),
            dispatcher: Mutex::new(dispatcher),
        }
    }

    pub(crate) const fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// Returns the thread that takes blocking steps for tasks on this pool.
    pub(crate) fn worker(&self) -> &Arc<IoWorker> {
        self.home.as_ref().map_or(&self.worker, |home| &home.worker)
    }

    /// Waits for the dispatcher. A caller that panicked left it as its last whole step did.
    pub(crate) fn dispatcher(&self) -> DispatchGuard<'_> {
        self.dispatcher_since(None)
    }

    /// Waits for the dispatcher, for a caller that has waited since an instant.
    pub(super) fn dispatcher_since(&self, since: Option<Local>) -> DispatchGuard<'_> {
        let (mut dispatcher, queued_at) = match self.dispatcher.try_lock() {
            Ok(dispatcher) => (dispatcher, None),
            Err(TryLockError::Poisoned(poisoned)) => (poisoned.into_inner(), None),
            Err(TryLockError::WouldBlock) => {
                let queued_at = Local::now();
                let locked = self.dispatcher.lock().unwrap_or_else(PoisonError::into_inner);
                (locked, Some(queued_at))
            }
        };
        dispatcher.begin_turn(Turn::Blocking { queued_at: since.or(queued_at) });
        DispatchGuard::new(dispatcher)
    }

    /// Waits for the dispatcher of a pool on a local store, for steps that do not wait for the
    /// pool's lock. Turns on a local store are short, so this is short as well.
    /// [`Dispatcher::was_blocked`] returns whether a step would have had to wait.
    pub(crate) fn short_turn(&self) -> DispatchGuard<'_> {
        let mut dispatcher = self.dispatcher.lock().unwrap_or_else(PoisonError::into_inner);
        dispatcher.begin_turn(Turn::NonBlocking);
        DispatchGuard::new(dispatcher)
    }

    /// Returns the dispatcher for steps that do not wait, if it is free.
    pub(crate) fn try_dispatcher(&self) -> Option<DispatchGuard<'_>> {
        let mut dispatcher = match self.dispatcher.try_lock() {
            Ok(dispatcher) => dispatcher,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        dispatcher.begin_turn(Turn::NonBlocking);
        Some(DispatchGuard::new(dispatcher))
    }

    /// Submits actions; the caller takes their outcomes with [`Dispatcher::answer`]. Without
    /// actions the caller wants a read.
    pub(crate) fn submit(&self, caller: CallerId, actions: Vec<Action>) {
        self.queue.lock().push(Submission { caller, actions });
    }

    /// Submits an action that goes with the next step and whose outcome no caller waits for.
    pub(crate) fn submit_unattended(&self, action: Action) {
        self.submit(NO_CALLER, vec![action]);
    }

    /// Detaches a caller that leaves, and cancels its ticket, with the next step of any caller.
    pub(crate) fn leave(&self, caller: CallerId, ticket: Option<Key>) {
        self.queue.leave(caller, ticket);
    }

    /// Returns whether a caller may wait here. The caller that holds the dispatcher may be about
    /// to.
    pub(crate) fn may_have_waiters(&self) -> bool {
        match self.dispatcher.try_lock() {
            Ok(dispatcher) => dispatcher.has_waiters(),
            Err(_) => true,
        }
    }

    /// Returns the result of a tap's configuration, if the pool has it.
    pub(crate) fn configured(&self, tap: u64) -> Option<Configured> {
        self.lock_configured().get(&tap).cloned()
    }

    pub(crate) fn set_configured(&self, tap: u64, result: Configured) {
        let mut configured = self.lock_configured();
        configured.insert(tap, result);
        // Taps that were closed are not removed; to configure a pool once more does no harm.
        while configured.len() > MAX_CONFIGURED {
            configured.pop_first();
        }
    }

    /// Makes every tap configure the pool again, because the pool lost its configuration.
    pub(crate) fn forget_configured(&self) {
        self.lock_configured().clear();
    }

    pub(crate) fn lease_began(&self) {
        self.leases.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn lease_ended(&self) {
        let less = |leases: usize| leases.checked_sub(1);
        // A lease that another client took over is counted there.
        let _ = self.leases.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(crate) fn has_leases(&self) -> bool {
        self.leases.load(Ordering::Relaxed) > 0
    }

    fn lock_configured(&self) -> MutexGuard<'_, BTreeMap<u64, Configured>> {
        self.configured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For how many taps the result of their configuration is remembered.
const MAX_CONFIGURED: usize = 64;

impl fmt::Debug for PoolClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolClient").field("pool", &self.pool).finish_non_exhaustive()
    }
}

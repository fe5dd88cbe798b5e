//! What all requests share: the library handle, the token, views of the pools, and bounds.
//!
//! Nothing here decides about a call: every admission comes from the store through the library.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use standpipe::observe::ConfigRejected;
use standpipe::{Error, Operation, Standpipe};
use tokio::sync::{Semaphore, watch};

use crate::http::budget::ConnectionBudget;
use crate::http::connections::{MAX_TCP, MAX_UNIX};
use crate::http::problem::Problem;
use crate::metrics::{JournalCounters, StoreLatency};
use crate::proxy::{ClientRetries, KeyNumbers, PromptCaches, RecentCalls, Totals};
use crate::reload::FileCheck;
use crate::token::Token;
use crate::watch::history::History;
use crate::watch::snapshots::SnapshotFrame;
use crate::watch::views::Views;

/// The most calls that wait at once.
pub(crate) const MAX_WAITING: usize = 2_048;
/// The most event and snapshot streams that are open at once.
pub(crate) const MAX_STREAMS: usize = 128;

/// The least time between two warnings about refused connections.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// What all requests share.
pub(crate) struct AppState {
    /// Replaced as a whole when the configuration is reloaded.
    tap: RwLock<Standpipe>,
    token: RwLock<Option<Token>>,
    /// The file that the last reload rejected, until one is applied.
    pub(crate) config_rejected: Mutex<Option<ConfigRejected>>,
    /// Lets a call have the configuration file checked.
    pub(crate) file_check: FileCheck,
    /// Pools that are known to exist, so that their existence is checked once.
    known_pools: Mutex<BTreeSet<String>>,
    pub(crate) stopping: watch::Sender<bool>,
    /// Set by the second signal: open connections are dropped.
    pub(crate) stop_now: watch::Sender<bool>,
    pub(crate) views: Views,
    pub(crate) frames: watch::Sender<Option<Arc<SnapshotFrame>>>,
    /// Incremented when the journal has grown.
    pub(crate) journal_grew: watch::Sender<u64>,
    pub(crate) history: Mutex<History>,
    pub(crate) counters: Mutex<JournalCounters>,
    pub(crate) store_latency: StoreLatency,
    pub(crate) proxied: Totals,
    pub(crate) recent_calls: RecentCalls,
    pub(crate) prompt_caches: PromptCaches,
    pub(crate) key_numbers: KeyNumbers,
    pub(crate) client_retries: ClientRetries,
    pub(crate) waiting: Semaphore,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) tcp_connections: Arc<ConnectionBudget>,
    pub(crate) unix_connections: Arc<ConnectionBudget>,
    pub(crate) started: SystemTime,
    /// When the daemon last warned about refused connections.
    warned: Mutex<Option<Instant>>,
}

impl AppState {
    pub(crate) fn new(
        tap: Standpipe,
        token: Option<Token>,
        directory: &Path,
    ) -> Result<Self, Error> {
        tap.start_maintenance()?;
        Ok(Self {
            tap: RwLock::new(tap),
            token: RwLock::new(token),
            config_rejected: Mutex::default(),
            file_check: FileCheck::default(),
            known_pools: Mutex::default(),
            stopping: watch::Sender::new(false),
            stop_now: watch::Sender::new(false),
            views: Views::default(),
            frames: watch::Sender::new(None),
            journal_grew: watch::Sender::new(0),
            history: Mutex::default(),
            counters: Mutex::new(JournalCounters::new()),
            store_latency: StoreLatency::default(),
            proxied: Totals::default(),
            recent_calls: RecentCalls::default(),
            prompt_caches: PromptCaches::default(),
            key_numbers: KeyNumbers::new(directory),
            client_retries: ClientRetries::default(),
            waiting: Semaphore::new(MAX_WAITING),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            tcp_connections: ConnectionBudget::new(MAX_TCP),
            unix_connections: ConnectionBudget::new(MAX_UNIX),
            started: SystemTime::now(),
            warned: Mutex::default(),
        })
    }

    /// The library handle with the current configuration.
    pub(crate) fn tap(&self) -> Standpipe {
        self.tap.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces handle and token after a reload.
    pub(crate) fn replace(&self, tap: Standpipe, token: Option<Token>) {
        *self.tap.write().unwrap_or_else(PoisonError::into_inner) = tap;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
    }

    pub(crate) fn needs_token(&self) -> bool {
        self.token.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether the presented token is the configured one, or none is configured.
    pub(crate) fn accepts_token(&self, presented: Option<&[u8]>) -> bool {
        match &*self.token.read().unwrap_or_else(PoisonError::into_inner) {
            None => true,
            Some(token) => presented.is_some_and(|presented| token.matches(presented)),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Resolves when the daemon begins to stop.
    pub(crate) async fn stopped(&self) {
        became_true(&self.stopping).await;
    }

    /// Resolves when open connections are to be dropped.
    pub(crate) async fn stopped_now(&self) {
        became_true(&self.stop_now).await;
    }

    /// Runs steps that may block on a thread of their own: a process that is stopped inside a step
    /// must not stall the event loops.
    pub(crate) async fn on_store<T: Send + 'static>(
        self: &Arc<Self>,
        step: impl FnOnce(&Standpipe) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let state = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || state.timed(step)).await;
        done.unwrap_or_else(|_| Err(Problem::internal("the step was not finished")))
    }

    /// Awaits an operation of the library, which never blocks this thread.
    pub(crate) async fn awaited<T: Send + 'static>(
        &self,
        operation: Operation<T>,
    ) -> Result<T, Problem> {
        let began = Instant::now();
        let done = operation.await.map_err(Problem::from);
        self.record_latency(began, &done);
        done
    }

    fn timed<T>(&self, step: impl FnOnce(&Standpipe) -> Result<T, Problem>) -> Result<T, Problem> {
        let began = Instant::now();
        let done = step(&self.tap());
        self.record_latency(began, &done);
        done
    }

    fn record_latency<T>(&self, began: Instant, done: &Result<T, Problem>) {
        match done {
            Err(problem) if problem.r#type == "store" => self.store_latency.failed(),
            _ => self.store_latency.took(began.elapsed()),
        }
    }

    /// Pools that are known to exist.
    pub(crate) fn known_pools(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.known_pools)
    }

    /// Warns that connections are refused, at most once per [`WARNING_INTERVAL`].
    pub(crate) fn warn_of_connections(&self, error: &dyn std::fmt::Display) {
        let mut warned = lock(&self.warned);
        if warned.is_none_or(|at: Instant| at.elapsed() >= WARNING_INTERVAL) {
            *warned = Some(Instant::now());
            tracing::warn!("cannot accept connections: {error}");
        }
    }
}

/// Resolves when the value is true.
async fn became_true(value: &watch::Sender<bool>) {
    let mut receiver = value.subscribe();
    // The sender lives as long as the state, so this cannot end early.
    let _ended = receiver.wait_for(|so| *so).await;
}

/// Locks and ignores poisoning: what these mutexes guard is only shown, never decided by.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

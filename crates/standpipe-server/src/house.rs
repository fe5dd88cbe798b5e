//! What all requests share: the tap, what was seen of the pools, and whether the daemon is ending.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use standpipe::{Error, Standpipe};
use tokio::sync::{Semaphore, watch};

use crate::history::History;
use crate::log::Log;
use crate::metrics::{StoreTimes, Tally};
use crate::problem::Problem;
use crate::token::Token;
use crate::watching::Frame;

/// How many calls wait here at once.
pub(crate) const MOST_WAITS: usize = 2_048;
/// How many streams of events or snapshots are open at once.
pub(crate) const MOST_STREAMS: usize = 128;

/// How often the same trouble is told.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// What all requests share.
pub(crate) struct House {
    /// Replaced as a whole when the configuration is read again.
    tap: RwLock<Standpipe>,
    token: RwLock<Option<Token>>,
    /// The store is across a network: nobody waits for it on a thread of the runtime.
    remote: bool,
    /// The pools that were seen to exist.
    known: Mutex<BTreeSet<String>>,
    pub(crate) stopping: watch::Sender<bool>,
    /// Nobody is waited for any more.
    pub(crate) at_once: watch::Sender<bool>,
    pub(crate) frames: watch::Sender<Option<Arc<Frame>>>,
    /// Counts up when the journal has grown.
    pub(crate) journal_grew: watch::Sender<u64>,
    pub(crate) history: Mutex<History>,
    pub(crate) tally: Mutex<Tally>,
    pub(crate) store_times: StoreTimes,
    pub(crate) waits: Semaphore,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) connections: AtomicUsize,
    pub(crate) began: SystemTime,
    /// When it was last said that connections cannot be taken.
    warned: Mutex<Option<Instant>>,
    pub(crate) log: Log,
}

impl House {
    pub(crate) fn new(tap: Standpipe, token: Option<Token>, log: Log) -> Result<Self, Error> {
        tap.keep_record()?;
        Ok(Self {
            remote: tap.is_remote()?,
            tap: RwLock::new(tap),
            token: RwLock::new(token),
            known: Mutex::default(),
            stopping: watch::Sender::new(false),
            at_once: watch::Sender::new(false),
            frames: watch::Sender::new(None),
            journal_grew: watch::Sender::new(0),
            history: Mutex::default(),
            tally: Mutex::new(Tally::new()),
            store_times: StoreTimes::default(),
            waits: Semaphore::new(MOST_WAITS),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            connections: AtomicUsize::new(0),
            began: SystemTime::now(),
            warned: Mutex::default(),
            log,
        })
    }

    /// The tap as it is configured now.
    pub(crate) fn tap(&self) -> Standpipe {
        self.tap.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The configuration was read again.
    pub(crate) fn replace(&self, tap: Standpipe, token: Option<Token>) {
        *self.tap.write().unwrap_or_else(PoisonError::into_inner) = tap;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
    }

    pub(crate) fn needs_token(&self) -> bool {
        self.token.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether that is the token, if one is needed.
    pub(crate) fn lets_in(&self, shown: Option<&[u8]>) -> bool {
        match &*self.token.read().unwrap_or_else(PoisonError::into_inner) {
            None => true,
            Some(token) => shown.is_some_and(|shown| token.is(shown)),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Ends when the daemon does.
    pub(crate) async fn stops(&self) {
        turned(&self.stopping).await;
    }

    /// Ends when nobody is to be waited for any more.
    pub(crate) async fn ends_at_once(&self) {
        turned(&self.at_once).await;
    }

    /// Does something with the store: at once where that takes microseconds, on a thread for
    /// waiting where the store is across a network.
    pub(crate) async fn on_store<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Standpipe) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        if self.remote { self.aside(act).await } else { self.timed(act) }
    }

    /// Does something that may take a while on a thread for waiting.
    pub(crate) async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Standpipe) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let house = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || house.timed(act)).await;
        done.unwrap_or_else(|_| Err(Problem::internal("the work was not finished")))
    }

    fn timed<T>(&self, act: impl FnOnce(&Standpipe) -> Result<T, Problem>) -> Result<T, Problem> {
        let began = Instant::now();
        let done = act(&self.tap());
        match &done {
            Err(problem) if problem.r#type == "store" => self.store_times.failed(),
            _ => self.store_times.took(began.elapsed()),
        }
        done
    }

    /// The pools that were seen to exist.
    pub(crate) fn known(&self) -> MutexGuard<'_, BTreeSet<String>> {
        held(&self.known)
    }

    /// Says that a connection could not be taken, now and then.
    pub(crate) fn warn_of_connections(&self, error: &std::io::Error) {
        let mut warned = held(&self.warned);
        if warned.is_none_or(|at: Instant| at.elapsed() >= NOW_AND_THEN) {
            *warned = Some(Instant::now());
            self.log.warn(&format!("cannot take connections: {error}"));
        }
    }

    pub(crate) fn count_connection(self: &Arc<Self>) -> Connection {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connection(Arc::clone(self))
    }
}

/// A connection that is open; dropped, it no longer is.
pub(crate) struct Connection(Arc<House>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends when it is so.
async fn turned(what: &watch::Sender<bool>) {
    let mut hears = what.subscribe();
    // Whoever says so lives as long as the house.
    let _ended = hears.wait_for(|so| *so).await;
}

/// A lock that outlives a panic elsewhere: what it guards is only figures to look at.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

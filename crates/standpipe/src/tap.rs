//! The tap: what a process opens once to reach its pools.
//!
//! Opening reads no pool and starts no thread. `tap/builder.rs` collects the options, `tap/open.rs`
//! chooses the store; read `pool` next.

mod builder;
pub(crate) mod open;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as Local};

use standpipe_core::PoolConfig;
use standpipe_observe::status::LostLedger;
use standpipe_store::{InvalidPoolName, PoolName};
use standpipe_store_file::FileStore;

pub use self::builder::{Builder, named_after};
use crate::client::fork_aware::ForkAware;
use crate::client::operation::{Operation, Plan, Worker};
use crate::client::registry::StoreHandle;
use crate::config::{Settings, StoreUrl};
use crate::error::Error;
use crate::journal::Journal;
use crate::lease::LeaseHandle;
use crate::lease_id::LeaseId;
use crate::pool::Pool;
use crate::request::{Request, shown};
use crate::routing::backpressure_log::LOG_POOL;
use crate::routing::workflow::{Backpressure, Graph};
use crate::wait::ReserveAll;

/// The entry point: a process opens it once and gets its pools from it. Clones are the same tap; it
/// may be used from any thread. Opening it is cheap: no pool is read and no thread is started
/// before it is needed.
#[derive(Clone)]
pub struct Standpipe {
    tap: Arc<Tap>,
}

/// What clones of a tap share.
pub(crate) struct Tap {
    fork_aware: ForkAware,
    settings: Settings,
    journal: Journal,
    agent: String,
    graph: Arc<Graph>,
    number: u64,
}

impl Standpipe {
    /// Opens the tap with the configuration that the command line would find: `$STANDPIPE_CONFIG`,
    /// the user's configuration directory, `/etc/standpipe/`. With none, everything is at its
    /// default: the store is a file in the user's state directory.
    ///
    /// # Errors
    /// [`Error::Config`] with everything that is wrong with the file, and [`Error::Store`] when the
    /// store cannot be used.
    pub fn open() -> Result<Self, Error> {
        Self::builder().open()
    }

    /// Returns a builder that opens the tap with other options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a pool by its name, `provider/scope`. Its configuration in the file is sent to the
    /// ledger when the pool is first used.
    ///
    /// # Errors
    /// [`Error::Invalid`] when that is not a valid name, [`Error::Config`] when a file names pools
    /// and not this one.
    pub fn pool(&self, name: &str) -> Result<Pool, Error> {
        let parsed: PoolName = name.parse().map_err(|wrong: InvalidPoolName| {
            let what = format!("`{}` cannot be the name of a pool", shown(name));
            Error::invalid(what, wrong.to_string())
        })?;
        if parsed.as_str() == LOG_POOL {
            let what = format!("`{LOG_POOL}` is reserved for the log of throttled agents");
            return Err(Error::invalid(what, "choose another name for a pool"));
        }
        match self.tap.settings.unknown_pool(&parsed) {
            Some(unknown) => Err(unknown.into()),
            None => Ok(Pool::new(Arc::clone(&self.tap), parsed)),
        }
    }

    /// Returns a pool by its name, whether or not the file describes it, to inspect and operate on
    /// it. Calls go through [`Standpipe::pool`].
    #[must_use]
    pub fn existing_pool(&self, name: &PoolName) -> Pool {
        Pool::new(Arc::clone(&self.tap), name.clone())
    }

    /// Returns the names of all pools, sorted: those of the configuration and those of the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn pools(&self) -> Operation<Vec<PoolName>> {
        self.operation(Self::list_pools)
    }

    pub(crate) fn list_pools(&self) -> Result<Vec<PoolName>, Error> {
        let mut pools = match self.pools_in_store() {
            // The pools that this process has read are known although the store is unavailable.
            Err(Error::Store(error)) if error.is_transient() => {
                let known = self.tap.store_handle()?.store_client().known_pools();
                if known.is_empty() {
                    return Err(error.into());
                }
                known
            }
            pools => pools?,
        };
        pools.extend(self.tap.settings.pools.keys().cloned());
        pools.extend(self.lost_ledgers()?.into_iter().map(|lost| lost.pool));
        pools.sort_unstable();
        pools.dedup();
        Ok(pools)
    }

    /// Returns the throttled agents that have others downstream. Empty if no workflow is declared.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn backpressure(&self) -> Operation<Vec<Backpressure>> {
        self.operation(Self::read_backpressure)
    }

    pub(crate) fn graph(&self) -> &Graph {
        self.tap.graph()
    }

    pub(crate) fn read_backpressure(&self) -> Result<Vec<Backpressure>, Error> {
        if **self.tap.graph() == Graph::default() {
            return Ok(Vec::new());
        }
        self.tap.store_handle()?.store_client().pressures()
    }

    /// Reserves several calls, all or none. Pools are reserved in one order (a pool before the one
    /// it lies within, then by name), so that two callers of the same pools never deadlock; when
    /// one is refused, the leases before it are cancelled. Leases come in the order of the
    /// requests.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Error, Limit, Request, Rule, Standpipe};
    /// # fn main() -> Result<(), Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// let (model, search) = (tap.pool("doc/model")?, tap.pool("doc/search")?);
    /// for pool in [&model, &search] {
    ///     pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking()?;
    /// }
    /// let both = vec![(search, Request::by("blog")), (model, Request::by("blog"))];
    /// let leases = tap.reserve_all(both).blocking()?;
    /// assert_eq!(leases[0].pool().as_str(), "doc/search");
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve_all(&self, requests: Vec<(Pool, Request)>) -> ReserveAll {
        ReserveAll::new(requests)
    }

    /// Returns a lease by its id, for example one that the command line printed earlier. Whether it
    /// exists is only checked when it is used.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn lease(&self, id: &LeaseId) -> Result<LeaseHandle, Error> {
        Ok(LeaseHandle::new(Arc::clone(&self.tap), id.clone()))
    }

    /// Returns the configuration that the tap was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.tap.settings
    }

    /// Returns the journal of this machine's pools.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.tap.journal
    }

    /// Returns how many events this process could not write to the journal.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn journal_losses(&self) -> Result<u64, Error> {
        Ok(self.tap.store_handle()?.store_client().journal().lost())
    }

    /// Returns messages for the operator about the store since the last call, for example that a
    /// damaged file was quarantined.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn take_messages(&self) -> Result<Vec<String>, Error> {
        Ok(self.tap.store_handle()?.store_client().take_messages())
    }

    /// Makes a round trip to the store and returns how long it took.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn ping(&self) -> Operation<Duration> {
        self.operation(|tap| {
            let began = Local::now();
            tap.tap.store_handle()?.store_client().store().pools()?;
            Ok(began.elapsed())
        })
    }

    /// Returns an operation on no single pool, which may block for several steps.
    pub(crate) fn operation<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Operation<T> {
        let tap = self.clone();
        Operation::new(move || match tap.tap.store_handle() {
            Ok(handle) => {
                let thread = Arc::clone(handle.store_client().worker());
                Plan::Block(Worker { thread, handle }, Box::new(move || run(&tap)))
            }
            Err(error) => Plan::Ready(Err(error)),
        })
    }

    /// Sends everything that is pending, for example the settlement of leases that were dropped.
    ///
    /// If a process ends without this, others settle its leases when they find that its session
    /// ended.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn flush(&self) -> Operation<()> {
        self.operation(|tap| Ok(tap.tap.store_handle()?.store_client().flush()?))
    }

    /// Returns whether the store is across a network, so that a step takes a round trip.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn is_remote(&self) -> Result<bool, Error> {
        Ok(self.tap.store_handle()?.store_client().store().is_remote())
    }

    /// Makes usage reach the journal in time even while the process is idle. Long-lived processes
    /// call it once; it starts a thread.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn start_maintenance(&self) -> Result<(), Error> {
        let handle = self.tap.store_handle()?;
        // Without a thread, usage is written with the next call.
        let _started = handle.store_client().maintenance().start(handle.store_client());
        Ok(())
    }

    /// Keeps leases alive without a thread, for programs that have to wait for something else
    /// anyway: call [`Standpipe::maintain`] when the time that it returned has passed. A call that
    /// has to wait starts the thread all the same. Stores across a network always use threads.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn maintain_without_thread(&self) -> Result<(), Error> {
        let handle = self.tap.store_handle()?;
        if !handle.store_client().store().is_remote() {
            handle.store_client().maintenance().leave_to_program();
        }
        Ok(())
    }

    /// Keeps the leases of this process alive, and restores them if the store lost them. Returns
    /// how long until the next time. Only after [`Standpipe::maintain_without_thread`].
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn maintain(&self) -> Result<Duration, Error> {
        let handle = self.tap.store_handle()?;
        let next = handle.store_client().maintenance().run_round(handle.store_client());
        Ok(next.saturating_duration_since(std::time::Instant::now()))
    }

    /// Returns the agent of requests that name none.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.tap.agent
    }

    /// Returns whether another URL is that of the open store.
    #[must_use]
    pub fn is_at(&self, url: &StoreUrl) -> bool {
        self.tap.is_at(url)
    }

    /// Returns the location of the store: a path, or an address without secrets.
    #[must_use]
    pub fn store_location(&self) -> String {
        self.tap.fork_aware.location()
    }
}

impl Standpipe {
    pub(crate) const fn of(tap: Arc<Tap>) -> Self {
        Self { tap }
    }

    /// Returns the pools of the store, sorted, whatever the configuration states.
    pub(crate) fn pools_in_store(&self) -> Result<Vec<PoolName>, Error> {
        let mut pools = self.tap.store_handle()?.store_client().store().pools()?;
        pools.retain(|name| name.as_str() != LOG_POOL);
        Ok(pools)
    }

    /// Returns the ledgers that are gone, and that neither this process nor another has made anew.
    /// A process that has a pool open restores its own calls, so there it is not lost.
    pub(crate) fn lost_ledgers(&self) -> Result<Vec<LostLedger>, Error> {
        let handle = self.tap.store_handle()?;
        let store_client = handle.store_client();
        let lost = store_client.engine().file().map_or(Ok(Vec::new()), FileStore::lost_pools)?;
        let lost = lost.into_iter().filter(|(name, _)| name.as_str() != LOG_POOL);
        let lost = lost.filter(|(name, _)| store_client.open_client(name).is_none());
        let ledger = |(pool, file): (PoolName, PathBuf)| {
            let slots_full = self.tap.settings.pools.get(&pool).map(|pool| pool.lease_ttl);
            let slots_full = slots_full.unwrap_or(PoolConfig::new(Vec::new()).lease_ttl);
            let file = file.display().to_string();
            LostLedger { pool, file, slots_full_ms: slots_full.0 / 1_000 }
        };
        Ok(lost.map(ledger).collect())
    }

    /// Writes buffered events to the journal now. That also happens every few seconds and when the
    /// last handle is dropped; call it before a process ends in another way.
    pub fn flush_journal(&self) {
        if let Ok(handle) = self.tap.store_handle() {
            handle.store_client().journal().flush();
        }
    }

    /// Returns the store handle of this process.
    pub(crate) fn store_handle(&self) -> Result<Arc<StoreHandle>, Error> {
        self.tap.store_handle()
    }
}

impl Tap {
    pub(crate) const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns the store handle of this process.
    pub(crate) fn store_handle(&self) -> Result<Arc<StoreHandle>, Error> {
        self.fork_aware.store_handle()
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns whether another URL is that of the open store.
    pub(crate) fn is_at(&self, url: &StoreUrl) -> bool {
        let env = |name: &str| std::env::var(name).ok();
        let store = self.settings.store.clone().unwrap_or_default().at(url.clone());
        let other = open::by_settings(&store, &self.settings, None, &env);
        other.is_ok_and(|other| self.fork_aware.has_key(&other.key))
    }

    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the graph of workflows.
    pub(crate) const fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Returns the tap's number, unique in this process.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    fn new(fork_aware: ForkAware, settings: Settings, journal: Journal, agent: String) -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let graph = Arc::new(Graph::of(&settings));
        Self { fork_aware, settings, journal, agent, graph, number }
    }
}

impl fmt::Debug for Standpipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standpipe").field("store", &self.store_location()).finish_non_exhaustive()
    }
}

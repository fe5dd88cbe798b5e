//! The tap: what a process opens once, and everything else hangs on.

mod builder;
pub(crate) mod open;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as Local};

use standpipe_store::{InvalidPoolName, PoolName};

pub use self::builder::{Builder, named_after};
use crate::anchor::Anchor;
use crate::config::Settings;
use crate::error::Error;
use crate::journal::Journal;
use crate::lease::LeaseHandle;
use crate::lease_id::LeaseId;
use crate::pool::Pool;
use crate::registry::Guard;
use crate::request::{Request, shown};
use crate::reserve_all::ReserveAll;
use crate::shared::board::BOARD;
use crate::workflow::{Backpressure, Graph};

/// The tap that a process draws its calls through. Clones are the same tap; it may be used from any
/// thread. Opening it is cheap: nothing is read and no thread is started before it is needed.
#[derive(Clone)]
pub struct Standpipe {
    tap: Arc<Tap>,
}

/// What clones of a tap share.
pub(crate) struct Tap {
    anchor: Anchor,
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

    /// Opens the tap otherwise.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A pool by its name, `provider/scope`. What the file says of it is told to the ledger when it
    /// is first used.
    ///
    /// # Errors
    /// [`Error::Invalid`] when that is not a name, [`Error::Config`] when a file names pools and
    /// not this one.
    pub fn pool(&self, name: &str) -> Result<Pool, Error> {
        let parsed: PoolName = name.parse().map_err(|wrong: InvalidPoolName| {
            let what = format!("`{}` cannot be the name of a pool", shown(name));
            Error::invalid(what, wrong.to_string())
        })?;
        if parsed.as_str() == BOARD {
            let what = format!("`{BOARD}` is where it is kept who is throttled");
            return Err(Error::invalid(what, "choose another name for a pool"));
        }
        match self.tap.settings.unknown_pool(&parsed) {
            Some(unknown) => Err(unknown.into()),
            None => Ok(Pool::new(Arc::clone(&self.tap), parsed)),
        }
    }

    /// A pool by its name, whether or not the file describes it: to look at what is there and to
    /// operate on it. Calls go through [`Standpipe::pool`].
    #[must_use]
    pub fn pool_as_it_is(&self, name: &PoolName) -> Pool {
        Pool::new(Arc::clone(&self.tap), name.clone())
    }

    /// The pools there are, in order: those of the configuration and those of the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn pools(&self) -> Result<Vec<PoolName>, Error> {
        let mut pools = self.pools_in_store()?;
        pools.extend(self.tap.settings.pools.keys().cloned());
        pools.sort_unstable();
        pools.dedup();
        Ok(pools)
    }

    /// Which agents are throttled just now that others work for. Empty where no workflow is
    /// declared.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn backpressure(&self) -> Result<Vec<Backpressure>, Error> {
        if **self.tap.graph() == Graph::default() {
            return Ok(Vec::new());
        }
        self.tap.guard()?.shared().pressures()
    }

    /// Asks for several calls, all or none. The pools are asked in the order of their names, so
    /// that two who want the same never wait for each other; when one is refused, what was granted
    /// before is given back. Leases come in the order of the requests.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Error, Limit, Request, Rule, Standpipe};
    /// # fn main() -> Result<(), Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// let (model, search) = (tap.pool("doc/model")?, tap.pool("doc/search")?);
    /// for pool in [&model, &search] {
    ///     pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })])?;
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

    /// A lease by its id, for example one that the command line printed earlier. That it exists is
    /// only found out when something is done with it.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn lease(&self, id: &LeaseId) -> Result<LeaseHandle, Error> {
        self.tap.guard()?.shared().desk(id.pool())?;
        Ok(LeaseHandle::new(Arc::clone(&self.tap), id.clone()))
    }

    /// The configuration it was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.tap.settings
    }

    /// What happened on this machine's pools.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.tap.journal
    }

    /// How many events this process could not write to the journal.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn journal_losses(&self) -> Result<u64, Error> {
        Ok(self.tap.guard()?.shared().journal().lost())
    }

    /// What happened to the store itself that people should know, as sentences, since this was
    /// last asked: a damaged file that was set aside, for example.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn news(&self) -> Result<Vec<String>, Error> {
        Ok(self.tap.guard()?.shared().take_news())
    }

    /// Asks the store for a sign of life. Answers how long it took.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn ping(&self) -> Result<Duration, Error> {
        let asked = Local::now();
        self.tap.guard()?.shared().store().pools()?;
        Ok(asked.elapsed())
    }

    /// Whether the store is across a network, so that a word with it takes a while.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn is_remote(&self) -> Result<bool, Error> {
        Ok(self.tap.guard()?.shared().store().is_remote())
    }

    /// Has what is gathered written down in time, also when nothing more happens. A process that
    /// lives long and is often idle says so once; it costs a thread.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn keep_record(&self) -> Result<(), Error> {
        let guard = self.tap.guard()?;
        // Without a thread it is written with the next call, as without this.
        let _started = guard.shared().keeper().start(guard.shared());
        Ok(())
    }

    /// The agent that requests without one are made by.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.tap.agent
    }

    /// What a person would call the store: a path, an address without secrets.
    #[must_use]
    pub fn store_place(&self) -> String {
        self.tap.anchor.place()
    }
}

impl Standpipe {
    /// The pools the store has, in order, whatever the configuration says.
    pub(crate) fn pools_in_store(&self) -> Result<Vec<PoolName>, Error> {
        let mut pools = self.tap.guard()?.shared().store().pools()?;
        pools.retain(|name| name.as_str() != BOARD);
        Ok(pools)
    }

    /// Writes what this process has to report into the journal now. That happens by itself every
    /// few seconds and when the last handle is dropped; call it before a process ends otherwise.
    pub fn flush_journal(&self) {
        if let Ok(guard) = self.tap.guard() {
            guard.shared().journal().flush();
        }
    }

    /// This process's part of the store.
    pub(crate) fn guard(&self) -> Result<Arc<Guard>, Error> {
        self.tap.guard()
    }
}

impl Tap {
    pub(crate) const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// This process's part of it.
    pub(crate) fn guard(&self) -> Result<Arc<Guard>, Error> {
        self.anchor.guard()
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// Who works for whom.
    pub(crate) const fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Tells taps of one process apart.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    fn new(anchor: Anchor, settings: Settings, journal: Journal, agent: String) -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let graph = Arc::new(Graph::of(&settings));
        Self { anchor, settings, journal, agent, graph, number }
    }
}

impl fmt::Debug for Standpipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standpipe").field("store", &self.store_place()).finish_non_exhaustive()
    }
}

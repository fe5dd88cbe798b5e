//! The store: a server, as one process uses it.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{FromRedisValue, Value, cmd};
use standpipe_core::Instant;
use standpipe_store::member::random_session;
use standpipe_store::{Log, PoolName, Process, Store, StoreError};

use crate::address::Address;
use crate::keys;
use crate::link::Link;
use crate::listener::Listener;
use crate::log::RedisLog;
use crate::scripts::Scripts;

/// Redis or Valkey: every process of many machines on one server.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) shared: Arc<Shared>,
}

/// How a [`RedisStore`] is opened.
#[derive(Clone)]
pub struct Options {
    /// What all keys begin with.
    pub prefix: String,
    /// How many replicas must have an entry before it counts.
    pub wait_replicas: u32,
    /// Where this machine remembers the pools it has used.
    pub markers: Option<PathBuf>,
    /// Who sees whether a process of this machine lives.
    pub lives: Option<Arc<dyn Lives>>,
    /// A damaged log is put aside and the pool begins anew; otherwise it is only reported.
    pub mends: bool,
}

/// Sessions of this machine, whose end can be seen there. A server sees only silence.
pub trait Lives: fmt::Debug + Send + Sync {
    /// Begins a session; see [`Store::begin_session`].
    ///
    /// # Errors
    /// When it cannot.
    fn begin(&self) -> Result<u64, StoreError>;

    /// Ends one.
    fn end(&self, session: u64);

    /// Whether a session of this machine is known to be gone.
    fn is_gone(&self, session: u64) -> bool;

    /// What can be shown of its process.
    fn process_of(&self, session: u64) -> Option<Process>;
}

/// What all logs of one store share.
pub(crate) struct Shared {
    pub(crate) address: Arc<Address>,
    pub(crate) place: String,
    pub(crate) options: Options,
    pub(crate) scripts: Scripts,
    pub(crate) listener: Arc<Listener>,
    /// For what is not a pool's: the list of pools.
    pub(crate) index: Mutex<Link>,
    /// The upper bits of this process's sessions, when nobody else gives them.
    process: u64,
    pid: u32,
    news: Mutex<Vec<String>>,
    #[cfg(feature = "harm")]
    pub(crate) clock: Option<standpipe_store::Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "standpipe".to_owned(),
            wait_replicas: 0,
            markers: None,
            lives: None,
            mends: true,
        }
    }
}

impl RedisStore {
    /// The store at this address. Nothing is connected before it is needed.
    #[must_use]
    pub fn new(address: Address, options: Options) -> Self {
        let address = Arc::new(address);
        let shared = Shared {
            place: address.to_string(),
            index: Mutex::new(Link::new(Arc::clone(&address))),
            address,
            options,
            scripts: Scripts::new(),
            listener: Arc::default(),
            process: random_session() >> 32,
            pid: std::process::id(),
            news: Mutex::default(),
            #[cfg(feature = "harm")]
            clock: None,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The log of a pool, not asked for before it is used.
    #[must_use]
    pub fn pool_log(&self, pool: &PoolName) -> RedisLog {
        RedisLog::new(Arc::clone(&self.shared), pool.clone())
    }
}

impl Shared {
    /// Something happened that people should know.
    pub(crate) fn tell(&self, news: String) {
        let mut told = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < NEWS && !told.contains(&news) {
            told.push(news);
        }
    }

    /// The time, if tests give it.
    pub(crate) fn given_time(&self) -> Option<Instant> {
        #[cfg(feature = "harm")]
        return self.clock.as_ref().map(|clock| clock());
        #[cfg(not(feature = "harm"))]
        None
    }

    /// This machine's wall clock: only for names, never for decisions.
    pub(crate) fn wall_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Lists a pool until its keys expire. A list is for people: if it fails, it is made up for
    /// the next time.
    pub(crate) fn list(&self, pool: &PoolName, expires: u64) {
        let key = keys::index(&self.options.prefix);
        let mut index = self.index();
        let _ = index.call(cmd("ZADD").arg(key).arg(expires).arg(pool.as_str()));
    }

    pub(crate) fn index(&self) -> std::sync::MutexGuard<'_, Link> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.listener.stop();
    }
}

impl Store for RedisStore {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        Ok(Box::new(self.pool_log(pool)))
    }

    fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        let shared = &self.shared;
        let index = keys::index(&shared.options.prefix);
        let mut link = shared.index();
        let time: (u64, u64) = read(link.call(&cmd("TIME"))?, &shared.place)?;
        let from = format!("({}", time.0 * 1_000 + time.1 / 1_000);
        let range = link.call(cmd("ZRANGEBYSCORE").arg(&index).arg(from).arg("+inf"))?;
        drop(link);
        let names: Vec<String> = read(range, &shared.place)?;
        let mut pools: Vec<PoolName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        pools.sort();
        Ok(pools)
    }

    fn begin_session(&self) -> Result<u64, StoreError> {
        let session = match &self.shared.options.lives {
            Some(lives) => lives.begin()?,
            None => self.shared.process << 32 | random_session() & u64::from(u32::MAX),
        };
        let prefix = &self.shared.options.prefix;
        self.shared.listener.hear([keys::channel(prefix, session), keys::begun(prefix)]);
        Ok(session)
    }

    fn end_session(&self, session: u64) {
        if let Some(lives) = &self.shared.options.lives {
            lives.end(session);
        }
    }

    fn is_gone(&self, session: u64) -> bool {
        self.shared.options.lives.as_ref().is_some_and(|lives| lives.is_gone(session))
    }

    fn process_of(&self, session: u64) -> Option<Process> {
        self.shared.options.lives.as_ref().and_then(|lives| lives.process_of(session))
    }

    fn wait_for_wake(&self, at_most: Duration) {
        self.shared.listener.wait(&self.shared.address, at_most);
    }

    fn interrupt(&self) {
        self.shared.listener.ring();
    }

    fn belongs_to_a_parent(&self) -> bool {
        self.shared.pid != std::process::id()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn news(&self) -> Vec<String> {
        let mut told = self.shared.news.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *told)
    }

    fn place(&self) -> String {
        self.shared.place.clone()
    }
}

/// An answer as a value of ours.
pub(crate) fn read<T: FromRedisValue>(value: Value, place: &str) -> Result<T, StoreError> {
    T::from_redis_value(value)
        .map_err(|_| StoreError::transient(format!("{place} gave an answer that is none")))
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("place", &self.shared.place).finish_non_exhaustive()
    }
}

/// How many sentences are kept for whoever asks.
const NEWS: usize = 64;

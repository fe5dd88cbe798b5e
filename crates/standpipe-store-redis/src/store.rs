//! The store: what all pool logs of one process share on a server.
//!
//! It lists pools, begins sessions and waits for wake-ups. Connections are made when they are
//! needed: one per pool log, one for the pool index, one for the subscriber.

mod admin;
mod subscriber;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{Cmd, Value, cmd};
use standpipe_core::Instant;
use standpipe_store::engine::{Messages, SessionRegistry};
use standpipe_store::participant::random_session;
use standpipe_store::{Liveness, Log, PoolName, Process, Store, StoreError};

pub use self::admin::ServerInfo;
use self::subscriber::{Channels, WakeSubscriber};
use crate::address::Address;
use crate::connection::ServerConnection;
use crate::log::RedisLog;
use crate::protocol::keys;
use crate::protocol::reply::convert;
use crate::protocol::scripts::Scripts;

/// A Redis or Valkey server whose pools many machines share.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) inner: Arc<StoreInner>,
}

/// How a [`RedisStore`] is opened.
#[derive(Clone)]
pub struct Options {
    /// The beginning of all keys and channels.
    pub prefix: String,
    /// How many replicas must have an entry before it counts.
    pub wait_replicas: u32,
    /// The directory of this machine's pool markers. Without it markers end with the process.
    pub marker_dir: Option<PathBuf>,
    /// Detects which processes of this machine are alive. Without it a killed process keeps its
    /// leases until it was silent for 2 min.
    pub local_sessions: Option<Arc<dyn SessionRegistry>>,
    /// Whether a damaged log is quarantined and the pool starts again. Otherwise the damage is only
    /// reported as an error.
    pub quarantine_damaged: bool,
}

/// What all logs of one store share.
pub(crate) struct StoreInner {
    pub(crate) address: Arc<Address>,
    /// The address without secrets, for messages.
    pub(crate) place: String,
    pub(crate) options: Options,
    pub(crate) scripts: Scripts,
    pub(crate) subscriber: Arc<WakeSubscriber>,
    /// For commands that concern no single pool. In a cluster the index may be on another node.
    index_connection: Mutex<ServerConnection>,
    /// The upper bits of this process's session ids, if there is no session registry.
    process: u64,
    /// The process that opened the store, to detect a fork.
    pid: u32,
    messages: Messages,
    #[cfg(feature = "harm")]
    pub(crate) clock: Option<standpipe_store::Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "standpipe".to_owned(),
            wait_replicas: 0,
            marker_dir: None,
            local_sessions: None,
            quarantine_damaged: true,
        }
    }
}

impl RedisStore {
    /// Returns the store at an address. It connects when it is first used.
    #[must_use]
    pub fn new(address: Address, options: Options) -> Self {
        let address = Arc::new(address);
        let inner = StoreInner {
            place: address.to_string(),
            index_connection: Mutex::new(ServerConnection::new(Arc::clone(&address))),
            address,
            options,
            scripts: Scripts::new(),
            subscriber: Arc::default(),
            process: random_session() >> 32,
            pid: std::process::id(),
            messages: Messages::default(),
            #[cfg(feature = "harm")]
            clock: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Adds a message for people to [`Store::take_messages`].
    pub fn report(&self, message: String) {
        self.inner.report(message);
    }

    /// Returns the log of a pool. It connects when it is first used.
    #[must_use]
    pub fn pool_log(&self, pool: &PoolName) -> RedisLog {
        RedisLog::new(Arc::clone(&self.inner), pool.clone())
    }
}

impl StoreInner {
    /// Adds a message for people.
    pub(crate) fn report(&self, message: String) {
        self.messages.push(message);
    }

    /// Returns the time that tests stamp with, if they do.
    pub(crate) fn given_time(&self) -> Option<Instant> {
        #[cfg(feature = "harm")]
        return self.clock.as_ref().map(|clock| clock());
        #[cfg(not(feature = "harm"))]
        None
    }

    /// Returns this machine's wall clock. Only names of quarantined keys contain it; no decision
    /// depends on it.
    pub(crate) fn wall_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Puts a pool on the pool index until its keys expire. A failure is ignored: only people read
    /// the index, and the pool is put there again later.
    pub(crate) fn index_pool(&self, pool: &PoolName, expires_at: u64) {
        let _ = self.call_on_index(&self.index_command(pool, expires_at));
    }

    /// Returns the command that puts a pool on the pool index.
    pub(crate) fn index_command(&self, pool: &PoolName, expires_at: u64) -> Cmd {
        let key = keys::pool_index(&self.options.prefix);
        cmd("ZADD").arg(key).arg(expires_at).arg(pool.as_str()).to_owned()
    }

    /// Sends a command for the pool index. A foreign value in its place is quarantined: processes
    /// index the pools they use again.
    pub(crate) fn call_on_index(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut connection = self.index_connection();
        match connection.call(command) {
            Err(error) if error.is_damaged() && self.options.quarantine_damaged => {}
            result => return result,
        }
        let key = keys::pool_index(&self.options.prefix);
        let quarantined = keys::quarantined_index(&self.options.prefix, self.wall_millis());
        // If this fails, another process was faster and the next call works, or it returns why not.
        if connection.call(cmd("RENAME").arg(&key).arg(&quarantined)).is_ok() {
            self.report(format!(
                "`{key}` on {} holds something that Standpipe did not write; it is kept as \
                 `{quarantined}`, and the list of pools starts again",
                self.place
            ));
        }
        connection.call(command)
    }

    fn index_connection(&self) -> MutexGuard<'_, ServerConnection> {
        self.index_connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        self.subscriber.stop();
    }
}

impl Store for RedisStore {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        Ok(Box::new(self.pool_log(pool)))
    }

    fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        let inner = &self.inner;
        let index = keys::pool_index(&inner.options.prefix);
        let time: (u64, u64) = convert(inner.index_connection().call(&cmd("TIME"))?, &inner.place)?;
        // The score is the expiry: expired pools are left out.
        let from = format!("({}", time.0 * 1_000 + time.1 / 1_000);
        let range = inner.call_on_index(cmd("ZRANGEBYSCORE").arg(&index).arg(from).arg("+inf"))?;
        let names: Vec<String> = convert(range, &inner.place)?;
        let mut pools: Vec<PoolName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        pools.sort();
        Ok(pools)
    }

    fn begin_session(&self) -> Result<u64, StoreError> {
        let session = match &self.inner.options.local_sessions {
            Some(sessions) => sessions.begin()?,
            None => self.inner.process << 32 | random_session() & u64::from(u32::MAX),
        };
        let prefix = &self.inner.options.prefix;
        self.inner.subscriber.set_channels(Channels {
            wake: keys::wake_channel(prefix, session),
            new_log: keys::new_log_channel(prefix),
        });
        Ok(session)
    }

    fn end_session(&self, session: u64) {
        if let Some(sessions) = &self.inner.options.local_sessions {
            sessions.end(session);
        }
    }

    fn renew_session(&self, session: u64) {
        if let Some(sessions) = &self.inner.options.local_sessions {
            sessions.renew(session);
        }
    }

    fn liveness(&self, session: u64) -> Liveness {
        match &self.inner.options.local_sessions {
            Some(sessions) => sessions.liveness(session),
            None if session >> 32 == self.inner.process => Liveness::Alive,
            None => Liveness::Unknown,
        }
    }

    fn process_of(&self, session: u64) -> Option<Process> {
        self.inner.options.local_sessions.as_ref().and_then(|sessions| sessions.process_of(session))
    }

    fn wait_for_wake(&self, at_most: Duration) {
        self.inner.subscriber.wait(&self.inner.address, at_most);
    }

    fn interrupt(&self) {
        self.inner.subscriber.notify();
    }

    fn was_forked(&self) -> bool {
        self.inner.pid != std::process::id()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn take_messages(&self) -> Vec<String> {
        self.inner.messages.take()
    }

    fn location(&self) -> String {
        self.inner.place.clone()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("place", &self.inner.place).finish_non_exhaustive()
    }
}

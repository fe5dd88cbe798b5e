//! The store: what all pool logs of one process share on a server.
//!
//! It lists pools, begins sessions and waits for wake-ups. Connections are made when they are
//! needed: one per pool log, one for the pool index, one for the subscriber.

mod admin;
mod index;
mod subscriber;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use standpipe_core::Instant;
use standpipe_store::engine::{Message, Messages, SessionRegistry};
use standpipe_store::participant::random_session;
use standpipe_store::{Liveness, Log, PoolName, Process, Store, StoreError};

pub use self::admin::ServerInfo;
use self::index::PendingIndex;
use self::subscriber::{Channels, WakeSubscriber};
use crate::address::Address;
use crate::connection::deadline::Deadline;
use crate::connection::servers::Servers;
use crate::connection::{STEP_TIMEOUT, ServerConnection};
use crate::log::RedisLog;
use crate::protocol::keys;
use crate::protocol::reply::{texts, unexpected};
use crate::protocol::resp::cmd;
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
    pub(crate) servers: Arc<Servers>,
    pub(crate) options: Options,
    pub(crate) scripts: Scripts,
    pub(crate) subscriber: Arc<WakeSubscriber>,
    /// For commands that concern no single pool. In a cluster the index may be on another node.
    index_connection: Mutex<ServerConnection>,
    pending_index: PendingIndex,
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
        let servers = Arc::new(Servers::new(address));
        let inner = StoreInner {
            index_connection: Mutex::new(ServerConnection::new(Arc::clone(&servers))),
            pending_index: PendingIndex::default(),
            servers,
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
        self.inner.report(None, message);
    }

    /// Returns the log of a pool. It connects when it is first used.
    #[must_use]
    pub fn pool_log(&self, pool: &PoolName) -> RedisLog {
        RedisLog::new(Arc::clone(&self.inner), pool.clone())
    }
}

impl StoreInner {
    /// Adds a message for people.
    pub(crate) fn report(&self, pool: Option<&PoolName>, message: String) {
        self.messages.push(pool, message);
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
        let (inner, deadline) = (&self.inner, Deadline::within(STEP_TIMEOUT));
        let (index, place) = (keys::pool_index(&inner.options.prefix), &inner.servers.place);
        let mut connection = inner.index();
        inner.send_pending_index(&mut connection, deadline);
        let time = texts(&connection.call(&cmd("TIME"), deadline)?, place)?;
        let number = |index: usize| time.get(index).and_then(|text| text.parse::<u64>().ok());
        let time = number(0).zip(number(1)).ok_or_else(|| unexpected(place))?;
        // The score is the expiry: expired pools are left out.
        let from = format!("({}", time.0 * 1_000 + time.1 / 1_000);
        let mut range = cmd("ZRANGEBYSCORE");
        range.arg(&index).arg(from).arg("+inf");
        let names = texts(&inner.call_on_index(&mut connection, &range, deadline)?, place)?;
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
        self.inner.subscriber.wait(&self.inner.servers, at_most);
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

    fn take_messages(&self) -> Vec<Message> {
        self.inner.messages.take()
    }

    fn location(&self) -> String {
        self.inner.servers.place.clone()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("place", &self.inner.servers.place)
            .finish_non_exhaustive()
    }
}

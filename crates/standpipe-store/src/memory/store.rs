//! A store in memory: many pools and their sessions.
//!
//! Several values made by [`MemoryStore::another_process`] act as several processes on one store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::MemoryLog;
use crate::engine::WakeFlag;
use crate::error::StoreError;
use crate::log::{Clock, Log, LogRead, Position, Snapshot};
use crate::participant::random_session;
use crate::pool::PoolName;
use crate::store::{Liveness, Store};

/// A store in memory. Nothing survives the process.
pub struct MemoryStore {
    shared: Arc<Shared>,
    wake_flag: Arc<WakeFlag>,
}

struct Shared {
    clock: Clock,
    pools: Mutex<BTreeMap<PoolName, MemoryLog>>,
    /// The live sessions, and the wake-up flag of the process that owns each.
    sessions: Mutex<BTreeMap<u64, Arc<WakeFlag>>>,
}

/// A memory log that can wake the sessions of its store.
struct WakingLog {
    log: MemoryLog,
    shared: Arc<Shared>,
}

impl MemoryStore {
    /// Creates an empty store with this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let (pools, sessions) = (Mutex::default(), Mutex::default());
        Self { shared: Arc::new(Shared { clock, pools, sessions }), wake_flag: Arc::default() }
    }

    /// Opens the same pools as another process would, with its own sessions.
    #[must_use]
    pub fn another_process(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), wake_flag: Arc::default() }
    }
}

impl Store for MemoryStore {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        let mut pools = lock(&self.shared.pools);
        let clock = &self.shared.clock;
        let log = pools.entry(pool.clone()).or_insert_with(|| MemoryLog::new(clock.clone()));
        Ok(Box::new(WakingLog { log: log.clone(), shared: Arc::clone(&self.shared) }))
    }

    fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        Ok(lock(&self.shared.pools).keys().cloned().collect())
    }

    fn begin_session(&self) -> Result<u64, StoreError> {
        let session = random_session();
        lock(&self.shared.sessions).insert(session, Arc::clone(&self.wake_flag));
        Ok(session)
    }

    fn end_session(&self, session: u64) {
        lock(&self.shared.sessions).remove(&session);
    }

    fn liveness(&self, session: u64) -> Liveness {
        match lock(&self.shared.sessions).contains_key(&session) {
            true => Liveness::Alive,
            false => Liveness::Dead,
        }
    }

    fn wait_for_wake(&self, at_most: Duration) {
        self.wake_flag.wait(at_most);
    }

    fn interrupt(&self) {
        self.wake_flag.set();
    }

    fn location(&self) -> String {
        "memory".to_owned()
    }
}

impl Log for WakingLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        self.log.append(from, bodies)
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.log.read(from)
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.log.write_snapshot(snapshot)
    }

    fn wake_sessions(&self, sessions: &[u64]) {
        let sessions_alive = lock(&self.shared.sessions);
        for wake_flag in sessions.iter().filter_map(|session| sessions_alive.get(session)) {
            wake_flag.set();
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

/// Locks a mutex and ignores poisoning: the guarded values are consistent after every statement.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Memory logs of many pools, as one process has them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::MemoryLog;
use crate::error::StoreError;
use crate::log::{Clock, Log, Position, Since, Snapshot};
use crate::member::random_session;
use crate::pool::PoolName;
use crate::store::Store;

/// The pools of one process. Nothing survives it.
pub struct MemoryStore {
    shared: Arc<Shared>,
    bell: Arc<Bell>,
}

struct Shared {
    clock: Clock,
    pools: Mutex<BTreeMap<PoolName, MemoryLog>>,
    /// The living sessions and whom to wake for them.
    sessions: Mutex<BTreeMap<u64, Arc<Bell>>>,
}

#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

/// A memory log that also wakes.
struct Woken {
    log: MemoryLog,
    shared: Arc<Shared>,
}

impl MemoryStore {
    /// An empty store on this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let (pools, sessions) = (Mutex::default(), Mutex::default());
        Self { shared: Arc::new(Shared { clock, pools, sessions }), bell: Arc::default() }
    }

    /// The same pools as another process would have them, with sessions of its own.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), bell: Arc::default() }
    }
}

impl Store for MemoryStore {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        let mut pools = lock(&self.shared.pools);
        let clock = &self.shared.clock;
        let log = pools.entry(pool.clone()).or_insert_with(|| MemoryLog::new(clock.clone()));
        Ok(Box::new(Woken { log: log.clone(), shared: Arc::clone(&self.shared) }))
    }

    fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        Ok(lock(&self.shared.pools).keys().cloned().collect())
    }

    fn begin_session(&self) -> Result<u64, StoreError> {
        let session = random_session();
        lock(&self.shared.sessions).insert(session, Arc::clone(&self.bell));
        Ok(session)
    }

    fn end_session(&self, session: u64) {
        lock(&self.shared.sessions).remove(&session);
    }

    fn is_gone(&self, session: u64) -> bool {
        !lock(&self.shared.sessions).contains_key(&session)
    }

    fn wait_for_wake(&self, at_most: Duration) {
        let rung = lock(&self.bell.rung);
        let waited = self.bell.changed.wait_timeout_while(rung, at_most, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }

    fn interrupt(&self) {
        self.bell.ring();
    }

    fn place(&self) -> String {
        "memory".to_owned()
    }
}

impl Log for Woken {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        self.log.append(from, bodies)
    }

    fn read(&mut self, from: Position) -> Result<Since, StoreError> {
        self.log.read(from)
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.log.write_snapshot(snapshot)
    }

    fn wake(&self, sessions: &[u64]) {
        let living = lock(&self.shared.sessions);
        for bell in sessions.iter().filter_map(|session| living.get(session)) {
            bell.ring();
        }
    }
}

impl Bell {
    fn ring(&self) {
        *lock(&self.rung) = true;
        self.changed.notify_all();
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

/// What these mutexes guard is whole after every statement, so a panic leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The pool index: the list of pools that have keys on the server, for people.
//!
//! In a cluster the index is on one node and pools are on all of them. A step of a pool must not
//! wait for a node that it does not need, so a thread puts pools on the index there. It starts with
//! the first pool that is due, tries until the node answers, and ends when nothing is left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use standpipe_store::{PoolName, StoreError};

use super::StoreInner;
use crate::connection::deadline::Deadline;
use crate::connection::{STEP_TIMEOUT, ServerConnection};
use crate::protocol::keys;
use crate::protocol::resp::{Command, Reply, cmd};

const MIN_BACKOFF: Duration = Duration::from_millis(20);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Pools that have to be put on the index.
#[derive(Default)]
pub(super) struct PendingIndex(Mutex<Pending>);

#[derive(Default)]
struct Pending {
    /// When the keys of each expire, in milliseconds.
    pools: BTreeMap<PoolName, u64>,
    has_thread: bool,
    /// The connection of the thread, while there is none.
    connection: Option<ServerConnection>,
}

impl StoreInner {
    /// Returns the command that puts a pool on the pool index until its keys expire.
    pub(crate) fn index_command(&self, pool: &PoolName, expires_at: u64) -> Command {
        let key = keys::pool_index(&self.options.prefix);
        let mut command = cmd("ZADD");
        command.arg(key).arg(expires_at).arg(pool.as_str());
        command
    }

    /// Puts a pool on the pool index without waiting for it.
    pub(crate) fn index_later(self: &Arc<Self>, pool: &PoolName, expires_at: u64) {
        let mut pending = self.pending();
        pending.pools.insert(pool.clone(), expires_at);
        if pending.has_thread {
            return;
        }
        let store = Arc::downgrade(self);
        let new = || ServerConnection::new(Arc::clone(&self.servers));
        let connection = pending.connection.take().unwrap_or_else(new);
        let thread = std::thread::Builder::new().name("standpipe-index".to_owned());
        // Without the thread they are put there when somebody lists pools.
        let spawned = thread.spawn(move || {
            let (mut connection, mut backoff) = (connection, MIN_BACKOFF);
            while let Some(store) = store.upgrade() {
                let deadline = Deadline::within(STEP_TIMEOUT);
                store.send_pending_index(&mut connection, deadline);
                let mut pending = store.pending();
                if pending.pools.is_empty() {
                    pending.has_thread = false;
                    pending.connection = Some(connection);
                    return;
                }
                drop(pending);
                drop(store);
                std::thread::sleep(backoff);
                backoff = (backoff * 2).min(MAX_BACKOFF);
            }
        });
        pending.has_thread = spawned.is_ok();
    }

    /// Puts the pools on the index that are due. While the server is unavailable they stay due;
    /// any other failure is ignored, because only people read the index.
    pub(super) fn send_pending_index(&self, connection: &mut ServerConnection, deadline: Deadline) {
        loop {
            let due = self.pending().pools.iter().next().map(|(pool, at)| (pool.clone(), *at));
            let Some((pool, expires_at)) = due else { return };
            let command = self.index_command(&pool, expires_at);
            match self.call_on_index(connection, &command, deadline) {
                Err(error) if error.is_transient() => return,
                _ => self.forget_index_of_until(&pool, expires_at),
            }
        }
    }

    /// Forgets that a pool has to be put on the index.
    pub(super) fn forget_index_of(&self, pool: &PoolName) {
        self.pending().pools.remove(pool);
    }

    /// The same, unless the pool is to be put there for longer by now.
    fn forget_index_of_until(&self, pool: &PoolName, expires_at: u64) {
        let mut pending = self.pending();
        if pending.pools.get(pool) == Some(&expires_at) {
            pending.pools.remove(pool);
        }
    }

    /// Sends a command for the pool index. A foreign value in its place is quarantined: processes
    /// index the pools they use again.
    pub(crate) fn call_on_index(
        &self,
        connection: &mut ServerConnection,
        command: &Command,
        deadline: Deadline,
    ) -> Result<Reply, StoreError> {
        match connection.call(command, deadline) {
            Err(error) if error.is_damaged() && self.options.quarantine_damaged => {}
            result => return result,
        }
        let key = keys::pool_index(&self.options.prefix);
        let quarantined = keys::quarantined_index(&self.options.prefix, self.wall_millis());
        // If this fails, another process was faster and the next call works, or it returns why not.
        let mut rename = cmd("RENAME");
        if connection.call(rename.arg(&key).arg(&quarantined), deadline).is_ok() {
            self.report(
                None,
                format!(
                    "`{key}` on {} holds something that Standpipe did not write; it is kept as \
                 `{quarantined}`, and the list of pools starts again",
                    self.servers.place
                ),
            );
        }
        connection.call(command, deadline)
    }

    /// Returns the connection for commands that concern no single pool.
    pub(super) fn index(&self) -> MutexGuard<'_, ServerConnection> {
        self.index_connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        // A panic elsewhere cannot leave it half-written.
        self.pending_index.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

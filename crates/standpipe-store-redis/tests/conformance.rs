//! Redis proves itself with the suite every store does.

#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, Weak};

use standpipe_servers::Server;
use standpipe_store::conformance::Harness;
use standpipe_store::{Clock, PoolName};
use standpipe_store_redis::{Options, RedisLog, RedisStore};

struct Redis;

struct Pool {
    store: RedisStore,
    name: PoolName,
    _server: Arc<Server>,
}

/// One server for all behaviours that run at the same time; it ends with the last of them.
fn server() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Server::start());
    *shared = Arc::downgrade(&server);
    server
}

impl Harness for Redis {
    type Pool = Pool;
    type Log = RedisLog;

    fn open(&self, clock: Clock) -> Pool {
        static POOLS: AtomicU64 = AtomicU64::new(0);
        let server = server();
        let options = Options { mends: false, ..Options::default() };
        let store = RedisStore::new(server.url().parse().unwrap(), options).with_clock(clock);
        let number = POOLS.fetch_add(1, Ordering::Relaxed);
        Pool { store, name: format!("test/pool-{number}").parse().unwrap(), _server: server }
    }

    fn attach(&self, pool: &Pool) -> RedisLog {
        pool.store.pool_log(&pool.name)
    }

    fn lose(&self, pool: &Pool, entries: u64) {
        self.attach(pool).lose(entries).unwrap();
    }

    fn damage(&self, pool: &Pool, entry: u64) {
        self.attach(pool).damage(entry).unwrap();
    }
}

standpipe_store::conformance!(Redis);

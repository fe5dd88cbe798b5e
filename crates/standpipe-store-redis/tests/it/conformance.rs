//! Redis, Valkey and the oldest Redis that is met prove themselves with the suite every store does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use standpipe_servers::{Flavour, Options as ServerOptions, Server};
use standpipe_store::conformance::Harness;
use standpipe_store::{Clock, PoolName};
use standpipe_store_redis::{Options, RedisLog, RedisStore};

/// One server for all behaviours that run at the same time; it ends with the last of them.
struct On {
    flavour: Flavour,
    shared: Mutex<Weak<Server>>,
}

struct Pool {
    store: RedisStore,
    name: PoolName,
    _server: Arc<Server>,
}

impl On {
    const fn new(flavour: Flavour) -> Self {
        Self { flavour, shared: Mutex::new(Weak::new()) }
    }

    fn server(&self) -> Arc<Server> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let options = ServerOptions { flavour: self.flavour, ..ServerOptions::default() };
        let server = Arc::new(Server::start_with(options));
        *shared = Arc::downgrade(&server);
        server
    }
}

impl Harness for &On {
    type Pool = Pool;
    type Log = RedisLog;

    fn open(&self, clock: Clock) -> Pool {
        static POOLS: AtomicU64 = AtomicU64::new(0);
        let server = self.server();
        let options = Options { quarantine_damaged: false, ..Options::default() };
        let store = RedisStore::new(server.url().parse().unwrap(), options).with_clock(clock);
        let number = POOLS.fetch_add(1, Ordering::Relaxed);
        Pool { store, name: format!("test/pool-{number}").parse().unwrap(), _server: server }
    }

    fn attach(&self, pool: &Pool) -> RedisLog {
        pool.store.pool_log(&pool.name)
    }

    fn lose_entries(&self, pool: &Pool, entries: u64) {
        self.attach(pool).lose(entries).unwrap();
    }

    fn corrupt_entry(&self, pool: &Pool, entry: u64) {
        self.attach(pool).damage(entry).unwrap();
    }
}

mod redis {
    static HERE: super::On = super::On::new(super::Flavour::Redis);
    standpipe_store::conformance!(&HERE);
}

mod valkey {
    static HERE: super::On = super::On::new(super::Flavour::Valkey);
    standpipe_store::conformance!(&HERE);
}

mod old {
    static HERE: super::On = super::On::new(super::Flavour::Old);
    standpipe_store::conformance!(&HERE);
}

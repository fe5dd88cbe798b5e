//! The engine of a tap, with the operations on a ledger that only some engines support.
//!
//! Everything that needs the Redis engine is in `redis`, which the feature of that name compiles.

#[cfg(feature = "redis")]
pub(crate) mod redis;

use std::sync::Arc;

use standpipe_core::Instant;
use standpipe_observe::doctor::ServerInfo;
use standpipe_store::{PoolName, Replica, Snapshot, Store, StoreError};
use standpipe_store_file::FileStore;

use crate::error::Error;

/// The engine beneath a tap.
#[derive(Clone, Debug)]
pub(crate) enum Engine {
    File(FileStore),
    #[cfg(feature = "redis")]
    Redis(standpipe_store_redis::RedisStore),
    Other(Arc<dyn Store>),
}

impl Engine {
    /// Returns what every engine can do.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::File(store) => Arc::new(store.clone()),
            #[cfg(feature = "redis")]
            Self::Redis(store) => Arc::new(store.clone()),
            Self::Other(store) => Arc::clone(store),
        }
    }

    pub(crate) const fn file(&self) -> Option<&FileStore> {
        match self {
            Self::File(store) => Some(store),
            _ => None,
        }
    }

    /// Returns what the server of the store reports about itself; `None` without a server.
    pub(crate) fn server_info(&self) -> Option<Result<ServerInfo, StoreError>> {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(store) => Some(redis::server_info(store)),
            _ => None,
        }
    }

    /// Deletes a pool's ledger. Returns whether there was one.
    pub(crate) fn reset(&self, pool: &PoolName) -> Result<bool, Error> {
        match self {
            Self::File(store) => Ok(store.reset(pool)?),
            #[cfg(feature = "redis")]
            Self::Redis(store) => Ok(store.reset(pool)?),
            Self::Other(store) => Err(unsupported(&**store)),
        }
    }

    /// Moves a pool that is not in use to another engine. `remedy` is for one of its name there.
    pub(crate) fn move_pool(&self, pool: &PoolName, to: &Self, remedy: &str) -> Result<(), Error> {
        if let (Self::File(from), Self::File(to)) = (self, to) {
            return Ok(from.move_pool(pool, to)?);
        }
        if !self.store().pools()?.contains(pool) {
            let what = format!("there is no pool `{pool}` to move");
            return Err(Error::invalid(what, "`standpipe status` lists the pools"));
        }
        let mut replica = Replica::new();
        replica.catch_up(&mut self.store().log(pool)?, |_, _, _| ())?;
        #[cfg(feature = "redis")]
        if let Self::Redis(_) = self {
            redis::check_silent(pool, &replica)?;
        }
        if !to.take_over(pool, &replica.snapshot(), replica.now())? {
            let what = format!("{} already has a pool `{pool}`", to.store().location());
            return Err(Error::invalid(what, remedy));
        }
        match self {
            Self::File(from) => from.reset(pool).map(drop)?,
            #[cfg(feature = "redis")]
            Self::Redis(from) => from.remove(pool)?,
            Self::Other(_) => {}
        }
        Ok(())
    }

    /// Creates a pool from a snapshot of another engine. Returns whether there was none before.
    fn take_over(&self, pool: &PoolName, snapshot: &Snapshot, now: Instant) -> Result<bool, Error> {
        match self {
            Self::File(store) => Ok(store.take_over(pool, snapshot, now)?),
            #[cfg(feature = "redis")]
            Self::Redis(store) => Ok(store.take_over(pool, snapshot, now)?),
            Self::Other(store) => Err(unsupported(&**store)),
        }
    }
}

fn unsupported(store: &dyn Store) -> Error {
    let what = format!("the store {} does not support this on single pools", store.location());
    Error::invalid(what, "a ledger in memory ends with its process")
}

//! The engine beneath a tap: what people do to a ledger that only some engines can do.

use std::sync::Arc;

use standpipe_store::{PoolName, Process, Store, StoreError};
use standpipe_store_file::FileStore;
use standpipe_store_redis::{Lives, RedisStore};

use crate::error::Error;

/// The engine beneath a tap.
#[derive(Clone, Debug)]
pub(crate) enum Engine {
    File(FileStore),
    Redis(RedisStore),
    Other(Arc<dyn Store>),
}

impl Engine {
    /// What every engine can do.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::File(store) => Arc::new(store.clone()),
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

    pub(crate) const fn redis(&self) -> Option<&RedisStore> {
        match self {
            Self::Redis(store) => Some(store),
            _ => None,
        }
    }

    /// Begins a pool anew as if nobody had ever used it. Answers whether there was one.
    pub(crate) fn reset(&self, pool: &PoolName) -> Result<bool, Error> {
        match self {
            Self::File(store) => Ok(store.reset(pool)?),
            Self::Redis(store) => Ok(store.reset(pool)?),
            Self::Other(store) => Err(cannot(&**store)),
        }
    }

    /// Moves a pool that nobody uses to another engine.
    pub(crate) fn move_pool(&self, pool: &PoolName, to: &Self) -> Result<(), Error> {
        match (self, to) {
            (Self::File(from), Self::File(to)) => Ok(from.move_pool(pool, to)?),
            _ => Err(cannot(&*to.store())),
        }
    }
}

fn cannot(store: &dyn Store) -> Error {
    let what = format!("the store {} cannot do that to single pools", store.place());
    Error::invalid(what, "a ledger in memory ends with its process")
}

/// Sessions of this machine, seen by a file store in its state directory although the ledger is
/// elsewhere: so whoever is killed gives back what it holds as soon as somebody here looks.
#[derive(Debug)]
pub(crate) struct LocalSessions(pub(crate) FileStore);

impl Lives for LocalSessions {
    fn begin(&self) -> Result<u64, StoreError> {
        self.0.begin_session()
    }

    fn end(&self, session: u64) {
        self.0.end_session(session);
    }

    fn is_gone(&self, session: u64) -> bool {
        self.0.is_gone(session)
    }

    fn process_of(&self, session: u64) -> Option<Process> {
        self.0.process_of(session)
    }
}

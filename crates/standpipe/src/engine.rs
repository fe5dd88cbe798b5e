//! The engine beneath a tap: what people do to a ledger that only some engines can do.

use std::sync::Arc;

use standpipe_core::bounds;
use standpipe_store::{Liveness, PoolName, Process, Replica, Store, StoreError};
use standpipe_store_file::FileStore;
use standpipe_store_redis::{RedisStore, SessionRegistry};

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
        if let (Self::File(from), Self::File(to)) = (self, to) {
            return Ok(from.move_pool(pool, to)?);
        }
        if !self.store().pools()?.contains(pool) {
            let what = format!("there is no pool `{pool}` to move");
            return Err(Error::invalid(what, "`standpipe status` shows those there are"));
        }
        let mut replica = Replica::new();
        replica.catch_up(&mut self.store().log(pool)?, |_, _, _| ())?;
        if let Self::Redis(_) = self {
            is_silent(pool, &replica)?;
        }
        let (snapshot, now) = (replica.snapshot(), replica.now());
        let taken = match to {
            Self::File(to) => to.take_over(pool, &snapshot, now)?,
            Self::Redis(to) => to.take_over(pool, &snapshot, now)?,
            Self::Other(to) => return Err(cannot(&**to)),
        };
        if !taken {
            let what = format!("there is a pool `{pool}` in {} already", to.store().location());
            return Err(Error::invalid(what, "reset it first"));
        }
        match self {
            Self::File(from) => from.reset(pool).map(drop)?,
            Self::Redis(from) => from.remove(pool)?,
            Self::Other(_) => {}
        }
        Ok(())
    }
}

/// Processes of other machines cannot be seen; that they are silent can.
fn is_silent(pool: &PoolName, replica: &Replica) -> Result<(), Error> {
    let living = replica.state().facts().sessions.values().filter(|session| !session.ended);
    let Some(last) = living.map(|session| session.last_seen).max() else { return Ok(()) };
    let silent = replica.now().since(last);
    if silent >= bounds::SILENCE {
        return Ok(());
    }
    let what = format!("`{pool}` was used {} s ago and cannot move", silent.0 / 1_000_000);
    Err(Error::invalid(what, "stop who uses it, and wait until it was silent for 2 min"))
}

fn cannot(store: &dyn Store) -> Error {
    let what = format!("the store {} cannot do that to single pools", store.location());
    Error::invalid(what, "a ledger in memory ends with its process")
}

/// Sessions of this machine, seen by a file store in its state directory although the ledger is
/// elsewhere: so whoever is killed gives back what it holds as soon as somebody here looks.
#[derive(Debug)]
pub(crate) struct LocalSessions(pub(crate) FileStore);

impl SessionRegistry for LocalSessions {
    fn begin(&self) -> Result<u64, StoreError> {
        self.0.begin_session()
    }

    fn end(&self, session: u64) {
        self.0.end_session(session);
    }

    fn renew(&self, session: u64) {
        self.0.renew_session(session);
    }

    fn liveness(&self, session: u64) -> Liveness {
        self.0.liveness(session)
    }

    fn process_of(&self, session: u64) -> Option<Process> {
        self.0.process_of(session)
    }
}

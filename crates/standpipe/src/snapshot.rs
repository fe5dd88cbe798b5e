//! How all pools stand at once: the one object that `status --json`, the daemon and the terminal
//! view show.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::pool::Pool;
use crate::status::PoolStatus;
use crate::tap::Standpipe;
use crate::workflow::Backpressure;

/// How pools stand.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// What a person would call the store: a path, an address without secrets.
    pub store: String,
    /// The pools that could be read.
    pub pools: Vec<PoolStatus>,
    /// Which agents are throttled just now that others work for.
    pub backpressure: Vec<Backpressure>,
    /// The pools that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
}

/// A pool that cannot be read.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Unreadable {
    /// Its name.
    pub pool: String,
    /// Why not.
    pub detail: String,
}

impl Snapshot {
    /// The same with at most so many calls and agents of each pool, for those who cannot show them
    /// all. How many there are in all is in each pool's figures.
    #[must_use]
    pub fn at_most(mut self, rows: usize) -> Self {
        for pool in &mut self.pools {
            pool.leases.truncate(rows);
            pool.tickets.truncate(rows);
            pool.agents.truncate(rows);
        }
        self
    }
}

impl Standpipe {
    /// How these pools stand. One that cannot be read does not hide the others.
    ///
    /// # Errors
    /// When something is wrong that is not one pool's own.
    pub fn snapshot(&self, pools: &[Pool]) -> Result<Snapshot, Error> {
        let (mut read, mut unreadable) = (Vec::new(), Vec::new());
        for pool in pools {
            match pool.status() {
                Ok(status) => read.push(status),
                Err(error @ Error::Store(_)) => unreadable
                    .push(Unreadable { pool: pool.name().to_string(), detail: error.to_string() }),
                Err(error) => return Err(error),
            }
        }
        let (store, backpressure) = (self.store_place(), self.backpressure()?);
        Ok(Snapshot { store, pools: read, backpressure, unreadable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Settings, StoreUrl};
    use crate::request::Request;
    use standpipe_core::{Limit, Rule};

    #[test]
    fn what_is_written_is_read_again_the_same() {
        let tap = Standpipe::builder().settings(Settings::default()).store(StoreUrl::Memory);
        let tap = tap.open().unwrap();
        let pool = tap.pool("unit/snapshot").unwrap();
        pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).unwrap();
        let held = pool.reserve(Request::by("blog").model("sonnet")).blocking().unwrap();
        pool.pause(std::time::Duration::from_secs(5)).unwrap();
        let seen = tap.snapshot(&[pool]).unwrap();
        let text = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), seen);
        let value = serde_json::to_value(&seen).unwrap();
        assert_eq!(serde_json::from_value::<Snapshot>(value).unwrap(), seen);
        assert!(seen.pools[0].pause.is_some() && seen.pools[0].leases.len() == 1);
        drop(held);
    }
}

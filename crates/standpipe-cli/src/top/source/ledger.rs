//! The ledger itself, through the library.
//!
//! Looking tells a pool nothing that `status` would not: only what a file says of the pools it
//! describes, once.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use standpipe::journal::Follow;
use standpipe::{Error, Pool, PoolName, Standpipe};

use super::{Act, ROWS, Source};
use crate::failure::Failure;

/// How far back the first look at what happened goes.
const AN_HOUR: Duration = Duration::from_secs(3_600);

/// A ledger.
pub(crate) struct Ledger {
    tap: Standpipe,
    wanted: Option<PoolName>,
    follow: Option<Follow>,
}

impl Ledger {
    pub(crate) const fn new(tap: Standpipe, wanted: Option<PoolName>) -> Self {
        Self { tap, wanted, follow: None }
    }

    fn pools(&self) -> Result<Vec<Pool>, Error> {
        let names = match &self.wanted {
            Some(wanted) => vec![wanted.clone()],
            None => self.tap.pools()?,
        };
        Ok(names.iter().map(|name| self.tap.pool_as_it_is(name)).collect())
    }

    fn pool(&self, name: &str) -> Result<Pool, String> {
        let name = name.parse().map_err(|_| format!("there is no pool `{name}`"))?;
        Ok(self.tap.pool_as_it_is(&name))
    }

    fn wants(&self, pool: &str) -> bool {
        pool == "*" || self.wanted.as_ref().is_none_or(|wanted| wanted.as_str() == pool)
    }
}

impl Source for Ledger {
    fn place(&self) -> String {
        format!("ledger {}", self.tap.store_place())
    }

    fn look(&mut self) -> Result<Value, String> {
        let pools = self.pools().map_err(line)?;
        let seen = self.tap.snapshot(&pools).map_err(line)?;
        match seen.unreadable.first() {
            // None can be read: then it is not one pool, it is the store.
            Some(first) if seen.pools.is_empty() => Err(first.detail.clone()),
            _ => Ok(json!(seen.at_most(ROWS))),
        }
    }

    fn events(&mut self) -> Result<Vec<Value>, String> {
        let follow = self.follow.get_or_insert_with(|| {
            let since = SystemTime::now().checked_sub(AN_HOUR);
            self.tap.journal().follow(since, None)
        });
        let more = follow.more();
        Ok(more.iter().filter(|event| self.wants(&event.pool)).map(|event| json!(event)).collect())
    }

    fn act(&mut self, act: &Act) -> Result<(), String> {
        match act {
            Act::Pause { pool, ms } => self.pool(pool)?.pause(Duration::from_millis(*ms)),
            Act::Resume { pool } => self.pool(pool)?.resume(),
            Act::Settle { lease, .. } => self.tap.lease(lease).and_then(|lease| lease.commit([])),
        }
        .map_err(line)
    }
}

fn line(error: Error) -> String {
    Failure::from(error).lines.join(" ")
}

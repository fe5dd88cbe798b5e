//! The status of many pools at once.
//!
//! A pool that cannot be read does not hide the others.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use standpipe_core::{AgentName, Reason};
use standpipe_observe::status::{
    Backpressure, Delay, LostLedger, Snapshot, TicketStatus, Unreadable, join,
};

use crate::client::operation::Operation;
use crate::error::Error;
use crate::pool::Pool;
use crate::status::PoolStatus;
use crate::tap::Standpipe;

/// How many pools above a pool are read. The configuration allows no circle; another one might.
const MAX_DEPTH: usize = 16;
/// How many other pools are read for one view.
const MAX_OTHERS: usize = 64;
/// How many names of other pools are looked at for that.
const MAX_NAMES: usize = 4_096;
/// How many pools are read at the same time across a network.
const READERS: usize = 16;

impl Standpipe {
    /// Returns the status of these pools. A pool that cannot be read does not hide the others. A
    /// pool that was reset and not used since is left out.
    ///
    /// # Errors
    /// When something fails that is not one pool's own.
    pub fn snapshot(&self, pools: &[Pool]) -> Operation<Snapshot> {
        let pools = pools.to_vec();
        self.operation(move |tap| tap.read_snapshot(&pools))
    }

    pub(crate) fn read_snapshot(&self, pools: &[Pool]) -> Result<Snapshot, Error> {
        // Reading a pool whose ledger is gone would create another one.
        let mut lost = self.lost_ledgers()?;
        lost.retain(|lost| pools.iter().any(|pool| *pool.name() == lost.pool));
        let is_there = |pool: &&Pool| lost.iter().all(|lost| lost.pool != *pool.name());
        let pools: Vec<Pool> = pools.iter().filter(is_there).cloned().collect();
        self.read_present(&pools, lost)
    }

    fn read_present(&self, pools: &[Pool], lost: Vec<LostLedger>) -> Result<Snapshot, Error> {
        let (mut read, mut unreadable) = (Vec::new(), Vec::new());
        let statuses = match self.is_remote()? {
            true => read_concurrently(pools),
            false => pools.iter().map(Pool::read_status).collect(),
        };
        for (pool, status) in pools.iter().zip(statuses) {
            match status {
                Ok(status) if status.is_forgotten() => {}
                Ok(status) => read.push(status),
                Err(error @ Error::Store(_)) => unreadable
                    .push(Unreadable { pool: pool.name().clone(), detail: error.to_string() }),
                Err(error) => return Err(error),
            }
        }
        let mut others = self.read_others(&read);
        others.extend(self.read_parents(&read, &others));
        join(&mut read, &others, &|pool, ticket| {
            self.existing_pool(&pool.parse().ok()?).bound_of(ticket)
        });
        let backpressure = match self.read_backpressure() {
            // Known pools are shown although the store is unavailable.
            Err(Error::Store(error)) if error.is_transient() => Vec::new(),
            backpressure => backpressure?,
        };
        for ticket in read.iter_mut().flat_map(|pool| &mut pool.tickets) {
            self.name_upstream(ticket, &backpressure);
        }
        let (store, pools) = (self.store_location(), read);
        Ok(Snapshot { store, pools, backpressure, unreadable, lost, config_rejected: None })
    }

    /// Names the agent that a call is held for.
    fn name_upstream(&self, ticket: &mut TicketStatus, throttled: &[Backpressure]) {
        if ticket.reason != Some(Reason::Hold.into()) || ticket.delay.is_some() {
            return;
        }
        ticket.delay = AgentName::new(&ticket.agent).and_then(|agent| {
            let upstream = self.graph().upstream_of(&agent)?;
            let holds = |one: &&Backpressure| {
                AgentName::new(&one.agent).and_then(|name| upstream.get(&name)) == Some(&true)
            };
            let longest = throttled.iter().filter(holds).max_by_key(|one| one.until_ms)?;
            Some(Delay::Upstream(longest.agent.clone()))
        });
    }

    /// Reads the other pools that calls draw on, a bounded number. One that cannot be read is left
    /// out.
    fn read_others(&self, pools: &[PoolStatus]) -> Vec<PoolStatus> {
        let names = pools.iter().flat_map(|pool| {
            let tickets = pool.tickets.iter().flat_map(|ticket| &ticket.also);
            tickets.chain(pool.leases.iter().flat_map(|lease| &lease.also))
        });
        let is_read = |name: &str| pools.iter().any(|known| known.pool.as_str() == name);
        let names: BTreeSet<&str> =
            names.map(String::as_str).filter(|name| !is_read(name)).take(MAX_NAMES).collect();
        if names.is_empty() {
            return Vec::new();
        }
        // A view creates no pool.
        let Ok(present) = self.pools_in_store() else { return Vec::new() };
        let others = present.iter().filter(|name| names.contains(name.as_str())).take(MAX_OTHERS);
        others.filter_map(|name| self.existing_pool(name).read_status().ok()).collect()
    }

    /// Reads the pools that others lie within and that are not among them. One that cannot be read
    /// is left out.
    fn read_parents(&self, pools: &[PoolStatus], others: &[PoolStatus]) -> Vec<PoolStatus> {
        let mut parents: Vec<PoolStatus> = Vec::new();
        let all = || pools.iter().chain(others);
        if all().all(|pool| pool.within.is_none()) {
            return parents;
        }
        // A view creates no pool.
        let Ok(present) = self.pools_in_store() else { return parents };
        for pool in all() {
            let mut above = pool.within.clone();
            for _ in 0..MAX_DEPTH {
                let Some(name) = above else { break };
                let mut known = all().chain(&parents);
                if let Some(parent) = known.find(|known| known.pool.as_str() == name) {
                    above = parent.within.clone();
                    continue;
                }
                let parent = present.iter().find(|present| present.as_str() == name);
                let parent = parent.map(|name| self.existing_pool(name).read_status());
                let Some(Ok(parent)) = parent else { break };
                above = parent.within.clone();
                parents.push(parent);
            }
        }
        parents
    }
}

/// Reads pools in parallel: each takes a round trip to the server.
fn read_concurrently(pools: &[Pool]) -> Vec<Result<PoolStatus, Error>> {
    let next = AtomicUsize::new(0);
    let read = Mutex::new(Vec::with_capacity(pools.len()));
    let run = || {
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(pool) = pools.get(index)
        {
            let status = pool.read_status();
            read.lock().unwrap_or_else(PoisonError::into_inner).push((index, status));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..READERS.min(pools.len()) {
            // Without another thread this one reads them all.
            let _started = std::thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    let mut read = read.into_inner().unwrap_or_else(PoisonError::into_inner);
    read.sort_by_key(|(index, _)| *index);
    read.into_iter().map(|(_, status)| status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Settings, StoreUrl};
    use crate::request::Request;
    use standpipe_core::{Limit, Rule};

    #[test]
    fn a_snapshot_survives_serialization() {
        let tap = Standpipe::builder().settings(Settings::default()).store(StoreUrl::Memory);
        let tap = tap.open().unwrap();
        let pool = tap.pool("unit/snapshot").unwrap();
        pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking().unwrap();
        let held = pool.reserve(Request::by("blog").model("sonnet")).blocking().unwrap();
        pool.pause(std::time::Duration::from_secs(5)).blocking().unwrap();
        let seen = tap.snapshot(&[pool]).blocking().unwrap();
        let text = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), seen);
        let value = serde_json::to_value(&seen).unwrap();
        assert_eq!(serde_json::from_value::<Snapshot>(value).unwrap(), seen);
        assert!(seen.pools[0].pause.is_some() && seen.pools[0].leases.len() == 1);
        drop(held);
    }
}

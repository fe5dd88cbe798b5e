//! The audit: every agent seen on a pool, its rate, all of them together against the quota, and who
//! is at risk.
//!
//! It is worked out from the journal alone, and from the limits as the ledger has them. Plain
//! values to print or to serialise; moments are texts of the calendar, lengths are milliseconds.

mod compare;
mod risk;
mod series;
mod tally;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use standpipe_store::PoolName;

use self::tally::Tally;
use crate::error::Error;
use crate::finding::Finding;
use crate::journal::Kind;
use crate::moment::Moment;
use crate::tap::Standpipe;

pub use self::compare::{Comparison, Traffic};
pub use self::series::Rate;

/// Of a stated quota, that many percent are for all agents together: what is above is for jitter.
pub(crate) const AIM: u64 = 80;

/// What agents did on the pools during a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Audit {
    /// How far back it goes.
    pub since: Moment,
    /// When it was made.
    pub until: Moment,
    /// The pools, in order.
    pub pools: Vec<PoolAudit>,
}

/// What agents did on one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PoolAudit {
    /// Its name.
    pub pool: String,
    /// Whether it holds calls back now; `false` is shadow mode.
    pub enforce: bool,
    /// Calls that were recorded in the other mode and are not in here: they would tell how it was,
    /// not how it is.
    pub left_out: u64,
    /// Calls that were admitted.
    pub calls: u64,
    /// Calls that tried another again.
    pub retries: u64,
    /// Calls that the provider refused for a reason of quota.
    pub refused: u64,
    /// Calls that the provider refused because it was short of capacity.
    pub overloads: u64,
    /// How long calls waited, all together.
    pub waited_ms: u64,
    /// When the first and the last call was admitted.
    pub first: Option<Moment>,
    /// See [`PoolAudit::first`].
    pub last: Option<Moment>,
    /// All agents together, by limit. Calls in flight are no rate and not among them.
    pub limits: Vec<LimitAudit>,
    /// How many calls may be in flight, where that is limited.
    pub parallel: Option<u64>,
    /// The agents, the busiest first.
    pub agents: Vec<AgentAudit>,
    /// Who is at risk, and what to do.
    pub findings: Vec<Finding>,
}

/// All agents together on one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LimitAudit {
    /// Its name, for example `requests per 1min`.
    pub limit: String,
    /// What it counts.
    pub unit: String,
    /// Its period.
    pub period_ms: u64,
    /// The quota, as stated or as the provider says if that is less; none when nobody said.
    pub stated: Option<u64>,
    /// What all agents together should stay below: 80 % of the quota.
    pub aim: Option<u64>,
    /// What the agents' averages add up to: all of them active at once.
    pub average: Rate,
    /// How many percent of the quota that is.
    pub average_percent: Option<u64>,
    /// The most in any one period, as it really was.
    pub peak: u64,
    /// How many percent of the quota that is.
    pub peak_percent: Option<u64>,
    /// When that period began.
    pub peak_at: Option<Moment>,
}

/// What one agent did on a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentAudit {
    /// Its name.
    pub agent: String,
    /// What it called.
    pub models: Vec<String>,
    /// Its calls that were admitted.
    pub calls: u64,
    /// Of those, the ones that were never sent.
    pub cancelled: u64,
    /// Of those, the ones that tried another again.
    pub retries: u64,
    /// Its calls that the provider refused for a reason of quota.
    pub refused: u64,
    /// How long its calls waited, all together.
    pub waited_ms: u64,
    /// How long the longest of them waited.
    pub longest_ms: u64,
    /// What they waited for most.
    pub waited_for: Option<String>,
    /// How many were not admitted in time.
    pub gave_up: u64,
    /// Its rate on each limit of the pool.
    pub rates: Vec<AgentRate>,
    /// What its calls used, all together.
    pub units: BTreeMap<String, u64>,
    /// What that cost, in millionths of a dollar, where the file has prices.
    pub micro_usd: Option<u64>,
}

/// An agent's rate on one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentRate {
    /// Which limit.
    pub limit: String,
    /// How many in a period, over the time in which the agent was active.
    pub average: Rate,
    /// The most in any one period.
    pub peak: u64,
}

impl Standpipe {
    /// What agents did on a pool, or on all of them, during so long until now. What a process did
    /// in its last ten seconds may be missing.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::Standpipe;
    /// # fn main() -> Result<(), standpipe::Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// let audit = tap.audit(None, std::time::Duration::from_secs(86_400))?;
    /// for finding in audit.pools.iter().flat_map(|pool| &pool.findings) {
    ///     println!("{}: {}", finding.level.as_str(), finding.what);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the store cannot be read. A single pool that cannot be is one of the findings.
    pub fn audit(&self, pool: Option<&PoolName>, back: Duration) -> Result<Audit, Error> {
        let now = SystemTime::now();
        let since = now.checked_sub(back).unwrap_or(SystemTime::UNIX_EPOCH);
        let priced = self.settings().pools.iter().filter(|(_, pool)| !pool.price.is_empty());
        let mut tally =
            Tally::new(priced.map(|(name, pool)| (name.to_string(), pool.price.clone())).collect());
        for kind in [Kind::Usage, Kind::Wait, Kind::Throttle, Kind::Reclaim, Kind::Outside] {
            self.journal().events(Some(since), Some(kind)).for_each(|event| tally.add(event));
        }
        let guard = self.guard()?;
        let there = self.pools_in_store()?;
        let mut names = there.clone();
        names.extend(tally.pools().filter_map(|name| name.parse::<PoolName>().ok()));
        names.sort_unstable();
        names.dedup();
        names.retain(|name| pool.is_none_or(|wanted| wanted == name));
        let mut pools = Vec::new();
        for name in names {
            let known = there.contains(&name).then(|| guard.shared().glance(&name)).transpose();
            let status = known.as_ref().ok().and_then(|known| Some(&known.as_ref()?.status));
            let mut audit = tally.audit(&name, status);
            audit.findings.extend(known.err().map(|error| unreadable(&name, &error)));
            pools.push(audit);
        }
        Ok(Audit { since: Moment::of(since), until: Moment::of(now), pools })
    }
}

fn unreadable(pool: &PoolName, error: &Error) -> Finding {
    let what = format!("its ledger cannot be read, so its limits are not known here: {error}");
    Finding::failure("store", what).remedy("`standpipe doctor` looks further").on(pool.as_str())
}

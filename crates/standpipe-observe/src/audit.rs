//! The audit: the rate of every agent of a pool, their sum against the quota, and who is at risk.
//!
//! It is computed from the journal's events and the limits in the ledger. `tally` adds the events
//! up by agent, `series` finds peaks and averages, `risk` derives findings, `compare` sets two runs
//! side by side.

mod compare;
mod risk;
mod series;
mod tally;

use std::collections::BTreeMap;

use serde::Serialize;
use standpipe_core::Priority;
use standpipe_store::PoolName;

use self::tally::JournalTotals;
use crate::finding::Finding;
use crate::journal::{Event, EventKind, Usage};
use crate::status::{Label, PoolStatus};
use crate::time::Timestamp;

pub use self::compare::{Comparison, Traffic};
pub use self::series::Rate;
pub use self::tally::Prices;

/// Of a stated quota, that many percent are for all agents together: what is above is for jitter.
pub const AIM: u64 = 80;

/// What agents did on the pools during a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Audit {
    /// How far back it goes.
    pub since: Timestamp,
    /// When it was made.
    pub until: Timestamp,
    /// The pools, in order.
    pub pools: Vec<PoolAudit>,
}

/// What agents did on one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PoolAudit {
    /// Its name.
    pub pool: PoolName,
    /// The pool that has every call on this one too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Whether it holds calls back now; `false` is shadow mode.
    pub enforce: bool,
    /// Set if running processes have not written all of their calls yet: until when they have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_until: Option<Timestamp>,
    /// Calls that were recorded in the other mode and are not included.
    pub left_out: u64,
    /// Calls that were admitted and not cancelled.
    pub calls: u64,
    /// Calls that tried another again.
    pub retries: u64,
    /// Calls that the provider refused for a reason of quota.
    pub refused: u64,
    /// Calls that the provider refused because it was short of capacity.
    pub overloads: u64,
    /// How often the provider stopped the pool: an account without credit, a blocked key.
    pub stops: u64,
    /// How long calls waited, all together.
    pub waited_ms: u64,
    /// When the first and the last call was admitted.
    pub first: Option<Timestamp>,
    /// See [`PoolAudit::first`].
    pub last: Option<Timestamp>,
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
    /// The quota: as stated, or as learned from the provider if that is less; `None` if unknown.
    pub stated: Option<u64>,
    /// What all agents together should stay below: 80 % of the quota.
    pub aim: Option<u64>,
    /// What the agents' averages add up to: all of them active at once.
    pub average: Rate,
    /// How many percent of the quota that is.
    pub average_percent: Option<u64>,
    /// The most in any one period, as it really was.
    pub peak: u64,
    /// The most that the quota allows in any one period: for a bucket, its burst in addition.
    pub peak_stated: Option<u64>,
    /// The usable part of that.
    pub peak_usable: Option<u64>,
    /// How many percent of [`LimitAudit::peak_stated`] the peak is.
    pub peak_percent: Option<u64>,
    /// When that period began.
    pub peak_at: Option<Timestamp>,
    /// What others use of it now: the provider counts it, and no agent above was admitted for it.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_others: u64,
}

/// What one agent did on a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentAudit {
    /// Its name.
    pub agent: String,
    /// What it called.
    pub models: Vec<String>,
    /// Its calls that were admitted and not cancelled.
    pub calls: u64,
    /// Of its figures, what belongs to calls that named another pool, which has them too.
    #[serde(skip_serializing_if = "Parts::is_none")]
    pub parts: Parts,
    /// Calls that were cancelled because they were never sent. They count nowhere else.
    pub cancelled: u64,
    /// Of its calls, the ones that tried another again.
    pub retries: u64,
    /// Its calls that the provider refused for a reason of quota.
    pub refused: u64,
    /// How long its calls waited, all together.
    pub waited_ms: u64,
    /// How long the longest of them waited.
    pub longest_ms: u64,
    /// What they waited for most.
    pub waited_for: Option<String>,
    /// Whether that was a slot: a call in flight had to end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_slots: bool,
    /// How many were not admitted in time.
    pub gave_up: u64,
    /// How many were not admitted, for any reason.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_admitted: u64,
    /// The same by reason: `deadline` for those that timed out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub not_admitted_for: BTreeMap<String, u64>,
    /// How many of its calls are in flight now.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_flight: u64,
    /// How many wait now. Their waits so far are included.
    pub waiting: u64,
    /// Its tier, if the pool still has the agent.
    pub priority: Option<Label<Priority>>,
    /// Its rate on each limit of the pool.
    pub rates: Vec<AgentRate>,
    /// What its calls used, all together.
    pub units: BTreeMap<String, u64>,
    /// What that cost, in millionths of a dollar, where the file has prices.
    pub micro_usd: Option<u64>,
}

/// What of an agent's figures belongs to calls that named another pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Parts {
    /// Calls that were admitted and not cancelled.
    pub calls: u64,
    /// Of those, the ones that tried another again.
    pub retries: u64,
    /// Calls that the provider refused for a reason of quota.
    pub refused: u64,
    /// What they cost, in millionths of a dollar.
    pub micro_usd: u64,
}

impl Parts {
    fn add(&mut self, usage: &Usage) {
        let calls = usage.calls.saturating_sub(usage.cancelled);
        self.calls = self.calls.saturating_add(calls);
        self.retries = self.retries.saturating_add(usage.retries);
        self.refused = self.refused.saturating_add(usage.refused);
        let cost = usage.units.get("usd").copied().unwrap_or(0);
        self.micro_usd = self.micro_usd.saturating_add(cost);
    }

    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// An agent's rate on one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentRate {
    /// Which limit.
    pub limit: String,
    /// How many in a period, over the time in which the agent was active; at most the peak.
    pub average: Rate,
    /// The most in any one period.
    pub peak: u64,
}

/// The pools to audit: each with its status, `None` if the ledger has no such pool, or why it
/// cannot be read.
pub type Pools = BTreeMap<PoolName, Result<Option<PoolStatus>, String>>;

impl Audit {
    /// Works out what agents did on these pools from the journal's events of [`Audit::KINDS`].
    #[must_use]
    pub fn of(
        since: Timestamp,
        until: Timestamp,
        prices: BTreeMap<String, Prices>,
        events: Vec<Event>,
        pools: Pools,
    ) -> Self {
        let mut tally = JournalTotals::new(prices);
        events.into_iter().for_each(|event| tally.add(event));
        let audit = |(name, status): (PoolName, Result<Option<PoolStatus>, String>)| {
            let known = status.as_ref().ok().and_then(Option::as_ref);
            let complete_until = tally.complete_until(&name, known, until);
            let mut audit = PoolAudit { complete_until, ..tally.audit(&name, known) };
            audit.findings.extend(status.err().map(|error| unreadable(&name, &error)));
            audit
        };
        Self { since, until, pools: pools.into_iter().map(audit).collect() }
    }

    /// The kinds of events that it is worked out from.
    pub const KINDS: [EventKind; 7] = [
        EventKind::Usage,
        EventKind::Wait,
        EventKind::Throttle,
        EventKind::Reclaim,
        EventKind::Outside,
        EventKind::Pause,
        EventKind::ClientRetry,
    ];
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(units: &u64) -> bool {
    *units == 0
}

fn unreadable(pool: &PoolName, error: &str) -> Finding {
    let what = format!("its ledger cannot be read, so its limits are unknown: {error}");
    Finding::failure("store", what).remedy("run `standpipe doctor` for details").on(pool.as_str())
}

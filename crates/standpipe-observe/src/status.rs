//! The status of a pool: the one view that `status`, `top`, the daemon and the metrics show.
//!
//! Plain values to print, to serialise, and to read again in another process. Instants are texts of
//! the calendar, lengths are milliseconds (`*_ms`). `read` computes them from a ledger's state,
//! `label` holds the enums, `snapshot` is all pools at once, `overview` what audit and doctor see.

mod agent_use;
mod backpressure;
mod calls;
mod forecast;
mod foresight;
mod label;
mod lost_ledger;
mod next_reason;
mod overview;
mod parent;
mod parts;
mod provider_reset;
mod read;
mod snapshot;
mod state;
mod throttle;
mod tickets;
mod will_wait;

use serde::{Deserialize, Serialize};
use standpipe_core::{Breaker, Priority, ThrottleKind, Zone};
use standpipe_store::PoolName;

pub use self::agent_use::{AgentShares, KeptUnits, slot_holders};
pub(crate) use self::agent_use::{
    agents_ahead, is_by_cap, is_zero, kept_from, needs_all, rate_users, shares_of, shortage,
    superior_of,
};
pub use self::backpressure::Backpressure;
pub use self::calls::{Delay, LeaseStatus, TicketStatus};
pub use self::forecast::Expected;
pub(crate) use self::forecast::forecast_of;
pub use self::label::{
    ConfigSource, Label, LeaseHolder, LimitKind, Named, OfflineMode, ProbeState, VerdictKind,
};
pub use self::lost_ledger::{LostLedger, reset_if_idle};
pub use self::next_reason::NextReason;
pub(crate) use self::next_reason::next_reason;
pub use self::overview::PoolOverview;
pub use self::parent::ParentStatus;
pub use self::parts::{Bound, join};
pub use self::provider_reset::ProviderReset;
pub use self::read::Processes;
pub(crate) use self::read::{amounts, lease_status, recovers};
pub use self::snapshot::{ConfigRejected, Snapshot, Unreadable};
pub use self::state::PoolState;
pub use self::throttle::{Incident, RampStatus, Retries, ThrottleStatus};
pub(crate) use self::tickets::claim_of;
pub(crate) use self::will_wait::breaker;
use crate::time::Timestamp;

/// The status of a pool.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pool: PoolName,
    /// Its provider, when the file names one.
    pub provider: Option<String>,
    /// The pool that every call on this one draws on too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The pools that it lies within and that are paused or stopped, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<ParentStatus>,
    /// The time of this status.
    pub at: Timestamp,
    /// The position in the store's log: the number of events of the pool so far.
    pub position: u64,
    /// Whether the limits are enforced; `false` is shadow mode.
    pub enforce: bool,
    /// The share of stated rates that is left unused, in thousandths: the largest of its limits.
    pub margin_per_mille: u16,
    /// Whether the margin is adjusted automatically.
    pub margin_auto: bool,
    /// Where its configuration came from.
    pub origin: Origin,
    /// No call is admitted before then.
    pub pause: Option<Pause>,
    /// Set while the provider has stopped the pool.
    pub terminal: Option<Stop>,
    /// Set after the store lost the ledger, until all calls in flight are known again.
    pub learning: Option<Pause>,
    /// Set after the store lost the ledger, while rates count as full and return over one period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovering: Option<Pause>,
    /// When the store lost the ledger, while its limits are not stated again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_lost_at: Option<Timestamp>,
    /// The consequences of the provider's refusals.
    pub trouble: ThrottleStatus,
    /// How much quota is left: `green`, `amber` or `red`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub zone: Label<Zone>,
    /// `closed`, `pre_emptive`, `open` or `half_open`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub breaker: Label<Breaker>,
    /// What the last day cost, where the file has prices.
    pub money: Option<Money>,
    /// What it is limited by.
    pub limits: Vec<LimitStatus>,
    /// The number of calls in flight.
    pub in_flight: usize,
    /// The calls in flight, oldest first.
    pub leases: Vec<LeaseStatus>,
    /// The number of queued calls.
    pub waiting: usize,
    /// The queued calls, in order.
    pub tickets: Vec<TicketStatus>,
    /// The agents of the pool, the last active first.
    pub agents: Vec<AgentStatus>,
    /// The number of events in its log that this program does not understand.
    pub skipped: u64,
    /// Set while the store is unavailable and this process decides on its own.
    pub cut_off: Option<OfflineStatus>,
    /// Set when the store does not answer: the rest is what this process knew last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unavailable: Option<Unavailable>,
}

/// A store that did not answer when the pool was read.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Unavailable {
    /// How old the figures are.
    pub age_ms: u64,
    /// Why the store could not be read.
    pub detail: String,
}

impl Unavailable {
    /// Creates the note about a store that did not answer.
    #[must_use]
    pub const fn new(age_ms: u64, detail: String) -> Self {
        Self { age_ms, detail }
    }
}

/// What a pool does while its store is unavailable.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Away))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfflineStatus {
    /// How long the store has been unavailable.
    pub for_ms: u64,
    /// What the pool does meanwhile: `open` or `share`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub mode: Label<OfflineMode>,
    /// The number of processes that share its limits.
    pub among: u64,
}

/// Where a pool's configuration came from.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// `file`, `code`, or `none` while there is none.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub source: Label<ConfigSource>,
    /// The version the file states.
    pub version: Option<u64>,
    /// When the file was written.
    pub written: Option<Timestamp>,
    /// Explicit changes at run time since.
    pub changes: u64,
    /// Whether no limit is stated: all are learned from the provider's responses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learned: bool,
}

/// A condition that ends at a known instant.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pause {
    /// When it ends.
    pub until: Timestamp,
    /// In how long.
    pub for_ms: u64,
    /// The agent that ordered a pause by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When a pause by hand was ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// Who caused a pause, and when.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PausedBy {
    /// The agent that ordered it, or whose call the provider refused.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The kind of the refusal; absent if the pause was ordered by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub refusal: Option<Label<ThrottleKind>>,
}

/// The provider stopped the pool: no call is admitted.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stop {
    /// When that ends, if it is known.
    pub until: Option<Timestamp>,
    /// In how long.
    pub for_ms: Option<u64>,
    /// The time until one call is admitted as a probe.
    pub look_ms: Option<u64>,
}

/// The status of one limit.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitStatus {
    /// Its name in answers, for example `requests per 1min`.
    pub limit: String,
    /// What it counts; `parallel` for calls in flight.
    pub unit: String,
    /// `window`, `bucket` or `parallel`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Label<LimitKind>,
    /// As stated.
    pub amount: u64,
    /// What a bucket holds at most.
    pub burst: Option<u64>,
    /// In how long.
    pub period_ms: Option<u64>,
    /// The amount that was learned from the provider's answers, if any.
    #[serde(default)]
    pub learned: Option<u64>,
    /// What is usable of it, after the margin and what was learned.
    pub effective: u64,
    /// What is charged now.
    pub used: u64,
    /// What calls in flight hold in addition.
    pub held: u64,
    /// What is left of [`LimitStatus::effective`], and of the step of a ramp.
    pub left: u64,
    /// What of [`LimitStatus::left`] floors keep from standard calls of agents without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptUnits>,
    /// Set after a pause, while only a part is usable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<RampStatus>,
    /// What a bucket regains in its period: the stated rate without the margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refill: Option<u64>,
    /// What was charged to a bucket in its last period, by all agents together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_period: Option<u64>,
    /// The share of the stated rate that is left unused, in thousandths; none for calls in flight.
    pub margin_per_mille: Option<u16>,
    /// Usage that did not go through Standpipe, by the provider's own count.
    pub outside: u64,
    /// What others are believed to use of it, also from before Standpipe started. It is not usable.
    #[serde(default)]
    pub by_others: u64,
    /// In how long all of it is free if nothing else happens; none where only calls that end bring
    /// room.
    pub full_again_ms: Option<u64>,
    /// The end of the provider's own window, as its responses announced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<ProviderReset>,
    /// The least time between two grants.
    pub pace_ms: Option<u64>,
    /// In how long the next grant may follow.
    pub next_grant_ms: Option<u64>,
}

/// An agent of a pool.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentStatus {
    /// Its name.
    pub name: String,
    /// Its tier.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub priority: Label<Priority>,
    /// Its calls in flight.
    pub in_flight: usize,
    /// Its calls that wait.
    pub waiting: usize,
    /// The pools on which calls of it wait while they keep their units here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps_for: Vec<String>,
    /// What it uses of each limit; limits that it does not use are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<AgentUsage>,
    /// What is kept for it.
    pub floor: Vec<String>,
    /// The most it may use.
    pub cap: Vec<String>,
    /// Its weight in fair order, if it is not 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u16>,
    /// How long ago it was last active: 0 while it has a call in flight or waiting.
    pub active_ms: u64,
    /// The configuration names it, and it has not called yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_called: bool,
    /// While a background call of it waits, and not for its own cap: how long the agent has not
    /// been admitted, pauses excluded.
    pub denied_ms: Option<u64>,
    /// Whether its next call is served as standard, because it was denied for so long.
    pub promoted: bool,
}

/// What an agent uses of one limit.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentUsage {
    /// The name of the limit, as in [`LimitStatus::limit`].
    pub limit: String,
    /// What is charged to the agent in the limit's period.
    pub used: u64,
    /// What its calls in flight hold in addition.
    pub held: u64,
}

/// What the last day's calls cost.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Money {
    /// In millionths of a dollar.
    pub spent_micro_usd: u64,
    /// The part of it that refused and failed calls cost.
    pub wasted_micro_usd: u64,
}

//! How a pool stands: the one snapshot that every face shows.
//!
//! Plain values to print, to serialise, and to read again where another process serialised them.
//! Moments are texts of the calendar, lengths are milliseconds (`*_ms`). Working them out is in
//! `status/read.rs`.

mod foresight;
mod read;
mod trouble;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::lease_id::LeaseId;
use crate::moment::Moment;
use crate::when::When;

/// One of a few fixed words; a field's own words say which.
pub type Word = &'static str;

/// How a pool stands.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Its name.
    pub pool: String,
    /// Its provider, when the file names one.
    pub provider: Option<String>,
    /// When this was so.
    pub at: Moment,
    /// Where in the store's log this was read: how many events the pool has seen.
    pub position: u64,
    /// Whether it holds calls back; `false` is shadow mode.
    pub enforce: bool,
    /// The share of stated rates that is left unused, in thousandths: the largest of its limits.
    pub margin_per_mille: u16,
    /// Whether the margin is adjusted automatically.
    pub margin_auto: bool,
    /// Where its configuration came from.
    pub origin: Origin,
    /// No call is admitted before then.
    pub pause: Option<Pause>,
    /// The provider said stop.
    pub terminal: Option<Stop>,
    /// The ledger lost its memory and is finding out what is in flight; it knows again then.
    pub learning: Option<Pause>,
    /// What the provider's refusals left behind.
    pub trouble: Trouble,
    /// How much quota is left: `green`, `amber` or `red`.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub zone: Word,
    /// `closed`, `pre_emptive`, `open` or `half_open`.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub breaker: Word,
    /// What the last day cost, where the file has prices.
    pub money: Option<Money>,
    /// What it is limited by.
    pub limits: Vec<LimitStatus>,
    /// How many calls are in flight.
    pub in_flight: usize,
    /// The calls in flight, oldest first.
    pub leases: Vec<LeaseStatus>,
    /// How many calls wait.
    pub waiting: usize,
    /// The calls that wait, in order.
    pub tickets: Vec<TicketStatus>,
    /// Who was seen on it, the last active first.
    pub agents: Vec<AgentStatus>,
    /// Events in its log that this program does not understand.
    pub skipped: u64,
    /// The store is away, and this is what this process decides on meanwhile.
    pub cut_off: Option<Away>,
}

/// A store that is away.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Away {
    /// For how long.
    pub for_ms: u64,
    /// What the pool does then: `open` or `share`.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub mode: Word,
    /// Among how many processes its limits are shared.
    pub among: u64,
}

/// Where a pool's configuration came from.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// `file`, `code`, or `none` while there is none.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub source: Word,
    /// The version the file states.
    pub version: Option<u64>,
    /// When the file was written.
    pub written: Option<Moment>,
    /// Explicit changes at run time since.
    pub changes: u64,
}

/// Something that ends at a known moment.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pause {
    /// When it ends.
    pub until: Moment,
    /// In how long.
    pub for_ms: u64,
}

/// The provider's word that nothing will be admitted.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stop {
    /// When that ends, if it is known.
    pub until: Option<Moment>,
    /// In how long.
    pub for_ms: Option<u64>,
    /// In how long one call is let through, to see.
    pub look_ms: Option<u64>,
}

/// What a provider's refusals left behind. All of it is empty on a pool that was never refused.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trouble {
    /// What the last pause began with.
    pub incident: Option<Incident>,
    /// Refusals in a row.
    pub streak: u32,
    /// The same for a provider that is short of capacity.
    pub overloads: u32,
    /// A pause is over, and everybody comes back in turn until then.
    pub coming_back: Option<Pause>,
    /// The first call after a pause: `wanted`, or `sent` while its answer is awaited.
    #[serde(default, deserialize_with = "words::some")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub probe: Option<Word>,
    /// Calls go one at a time, until then if nothing is refused.
    pub one_at_a_time: Option<Pause>,
    /// The part of the shortest rates that is used, in thousandths, while that is not the whole.
    pub speed_per_mille: Option<u32>,
    /// How many calls the provider was seen to bear at once.
    pub bears: Option<u64>,
    /// Nothing is known of the limits: so many calls may be unanswered.
    pub cautious: Option<u64>,
    /// Retries that are left now, and how many there are in a minute.
    pub retries: Option<Retries>,
}

/// What a pause began with.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Incident {
    /// `quota`, `concurrency`, `slow_down`, `overload` or `terminal`.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Word,
    /// Whose call was refused.
    pub agent: Option<String>,
    /// When.
    pub at: Moment,
    /// How long that is ago.
    pub ago_ms: u64,
}

/// How many calls may be tried again.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Retries {
    /// Now.
    pub left: u64,
    /// In a minute like the last one.
    pub per_minute: u64,
}

/// How one limit stands.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitStatus {
    /// Its name in answers, for example `requests per 1min`.
    pub limit: String,
    /// What it counts; `parallel` for calls in flight.
    pub unit: String,
    /// `window`, `bucket` or `parallel`.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Word,
    /// As stated.
    pub amount: u64,
    /// What a bucket holds at most.
    pub burst: Option<u64>,
    /// In how long.
    pub period_ms: Option<u64>,
    /// As the provider taught it, if it did.
    pub told: Option<u64>,
    /// What is usable of it, after the margin and what was learned.
    pub effective: u64,
    /// What is charged just now.
    pub used: u64,
    /// What calls in flight hold beside that.
    pub held: u64,
    /// What is left of [`LimitStatus::effective`].
    pub left: u64,
    /// The share of the stated rate that is left unused, in thousandths; none for calls in flight.
    pub margin_per_mille: Option<u16>,
    /// What somebody draws without asking, as the provider's own count says.
    pub outside: u64,
    /// What others are believed to use of it, also from before Standpipe started. It is not usable.
    #[serde(default)]
    pub by_others: u64,
    /// In how long all of it is free if nothing else happens; none where only calls that end bring
    /// room.
    pub full_again_ms: Option<u64>,
    /// The least time between two grants.
    pub pace_ms: Option<u64>,
    /// In how long the next grant may follow.
    pub next_grant_ms: Option<u64>,
}

/// A call in flight.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeaseStatus {
    /// Its name.
    pub id: LeaseId,
    /// Whose it is.
    pub agent: String,
    /// Its tier.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub priority: Word,
    /// What it said it would take.
    pub cost: BTreeMap<String, u64>,
    /// When it was admitted.
    pub since: Moment,
    /// How long that is ago.
    pub age_ms: u64,
    /// What ends it when nobody settles it: `session` or `ttl`.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub holder: Word,
    /// The process that holds it, where that can be seen.
    pub pid: Option<u32>,
    /// That process is stopped (`SIGSTOP`) and keeps what it holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// In how long it ends by itself if nothing is heard.
    pub expires_ms: Option<u64>,
    /// For the record.
    pub model: Option<String>,
    /// For the record.
    pub task: Option<String>,
}

/// A call that waits.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TicketStatus {
    /// Whose it is.
    pub agent: String,
    /// Its tier.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub priority: Word,
    /// What it wants to take.
    pub cost: BTreeMap<String, u64>,
    /// How many stand in front, and itself.
    pub position: usize,
    /// Since when it waits.
    pub since: Moment,
    /// How long that is.
    pub waits_ms: u64,
    /// Why; none when it only has to be claimed.
    #[serde(default, deserialize_with = "words::some")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub reason: Option<Word>,
    /// The limit it is about.
    pub limit: Option<String>,
    /// How many units are missing there.
    pub short_by: u64,
    /// When it may be admitted.
    #[serde(flatten)]
    pub when: When,
    /// The process that waits, where that can be seen.
    pub pid: Option<u32>,
    /// That process is stopped (`SIGSTOP`) and keeps its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// In how long it gives up.
    pub deadline_ms: u64,
    /// For the record.
    pub model: Option<String>,
    /// For the record.
    pub task: Option<String>,
}

/// Somebody who was seen on a pool.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentStatus {
    /// Its name.
    pub name: String,
    /// Its tier.
    #[serde(deserialize_with = "words::known")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub priority: Word,
    /// Its calls in flight.
    pub in_flight: usize,
    /// Its calls that wait.
    pub waiting: usize,
    /// What is kept for it.
    pub floor: Vec<String>,
    /// The most it may use.
    pub cap: Vec<String>,
    /// How long ago it was last active.
    pub active_ms: u64,
    /// It asks in the background and was not admitted for so long, pauses not counted.
    pub denied_ms: Option<u64>,
    /// It was denied for so long that it is served as a standard agent, once.
    pub promoted: bool,
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

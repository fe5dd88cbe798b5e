//! The calls of a pool: those in flight, and those in the queue.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use standpipe_core::{Priority, Reason};

use super::{KeptUnits, Label, LeaseHolder, NextReason, PausedBy, ProviderReset, is_zero};
use crate::lease_id::LeaseId;
use crate::refusal::When;
use crate::time::Timestamp;

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
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub priority: Label<Priority>,
    /// Its stated cost.
    pub cost: BTreeMap<String, u64>,
    /// When it was admitted.
    pub since: Timestamp,
    /// How long that is ago.
    pub age_ms: u64,
    /// What ends it if no caller settles it: `session` or `ttl`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub holder: Label<LeaseHolder>,
    /// The process that holds it, where that can be seen.
    pub pid: Option<u32>,
    /// That process is stopped (`SIGSTOP`) and keeps what it holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// That process is the daemon, which holds it for a client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub daemon: bool,
    /// The time until it expires without a heartbeat.
    pub expires_ms: Option<u64>,
    /// For the record.
    pub model: Option<String>,
    /// For the record.
    pub task: Option<String>,
    /// The pool that the caller named, if the call draws on this one beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// The other pools that the call draws on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// What delays a call before it takes its turn.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delay {
    /// It is another try of an earlier call.
    Retry,
    /// This agent, which it depends on, is throttled.
    Upstream(String),
}

/// A queued call.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TicketStatus {
    /// Whose it is.
    pub agent: String,
    /// Its tier.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub priority: Label<Priority>,
    /// What it wants to take.
    pub cost: BTreeMap<String, u64>,
    /// Its place in the queue, from 1.
    pub position: usize,
    /// Since when it waits in the queue of this pool. A call on several pools may have asked
    /// earlier: it can be queued more than once.
    pub since: Timestamp,
    /// How long that is.
    pub waits_ms: u64,
    /// Why it waits; `None` when it is due and only has to be claimed.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub reason: Option<Label<Reason>>,
    /// The limit it is about.
    pub limit: Option<String>,
    /// How many units are missing there.
    pub short_by: u64,
    /// In fair order, the agent whose call is first in the queue for the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// How many calls are in its way in the queue for the limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls_ahead: usize,
    /// The agents of the calls that are ahead of it in the queue for the limit, the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<String>,
    /// How many more agents are ahead of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead_more: usize,
    /// The agents that hold the slots that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_use_by: Vec<String>,
    /// It takes more than the usable part of the limit: it is admitted when nothing else is
    /// charged there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// What floors of other agents keep from it on the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptUnits>,
    /// The agent of a higher priority that it leaves units to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superior: Option<String>,
    /// What delays it, if that is not the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Who ordered the pause that it waits for, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedBy>,
    /// What it waits for afterwards, or as well: the rule that decides the time of its admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextReason>,
    /// The provider's window that has to begin first, if a response decides and not time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<ProviderReset>,
    /// Its turn came, and its caller did not respond: others pass it until it does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lapsed: bool,
    /// When it may be admitted. For a call on several pools that is a lower bound over all of them.
    #[serde(flatten)]
    pub when: When,
    /// The process that waits, where that can be seen.
    pub pid: Option<u32>,
    /// That process is stopped (`SIGSTOP`) and keeps its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// That process is the daemon, which waits for a client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub daemon: bool,
    /// The time until its deadline.
    pub deadline_ms: u64,
    /// For the record.
    pub model: Option<String>,
    /// For the record.
    pub task: Option<String>,
    /// The pool that the caller named, if the call draws on this one beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// The other pools that the call draws on. It is admitted when all of them admit it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// The pool whose bound `not_before` is, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<String>,
    /// The pool that the call waits on, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Whether it keeps its units here while it waits on another pool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds: bool,
}

/// A lease without a process that is younger is probably that of a call that still runs.
const LEAKED_MS: u64 = 60_000;

impl LeaseStatus {
    /// Whether its call may be over without being settled: nothing shows whether it still runs.
    #[must_use]
    pub fn may_be_leaked(&self) -> bool {
        let is_unowned = self.pid.is_none() && self.holder == LeaseHolder::Ttl;
        is_unowned && self.age_ms >= LEAKED_MS
    }
}

impl TicketStatus {
    /// Returns when it gives up.
    #[must_use]
    pub const fn deadline(&self) -> Timestamp {
        let now = self.since.millis.saturating_add(self.waits_ms);
        Timestamp { millis: now.saturating_add(self.deadline_ms) }
    }
}

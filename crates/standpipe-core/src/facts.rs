//! Everything the ledger of a pool knows: the contents of a snapshot, and nothing derived.
//!
//! Two replicas are equal when their facts are equal. Everything else in [`crate::State`] is an
//! index that is computed from them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::agents::agent::Agent;
use crate::config::PoolConfig;
use crate::event::Key;
use crate::id::{AgentId, ConstraintId, IdVec, UnitId};
use crate::lease::Lease;
use crate::lease::call::CallId;
use crate::lease::session::Session;

use crate::provider::auto_margin::AutoMargin;
use crate::provider::cascade::Cascade;
use crate::provider::learn::Learned;
use crate::provider::ramp::Ramp;
use crate::provider::reconcile::ExternalUsage;
use crate::provider::return_windows::Returning;
use crate::provider::throttle::Throttling;
use crate::queue::ticket::{QueueKey, Ticket};
use crate::rules::retry_budget::RetryUsage;
use crate::time::{Instant, Span};
use crate::usage::counter::UsageCounter;
use crate::usage::money::Spending;
use crate::usage::size_histogram::{SizeHistogram, SizeKey};
use crate::usage::unit_usage::UnitUsage;

/// Everything the ledger of a pool knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The stamp of the last event.
    pub clock: Instant,
    /// The configuration in force.
    pub config: Option<PoolConfig>,
    /// The origin of that configuration.
    pub provenance: Provenance,
    /// When the pool was last used or configured. Code may loosen limits only after a silence.
    pub used: Instant,
    /// How many tickets were ever issued.
    pub arrivals: u64,
    /// By tier: the virtual time of fair order; zero in order of arrival.
    pub virtual_time: [u64; 3],
    /// The end of the shared pause: no call is admitted before it.
    pub pause: Option<Instant>,
    /// Set while the provider refuses everything, for example after a spend cap.
    pub terminal: Option<Terminal>,
    /// The refusals of the present incident.
    pub throttling: Throttling,
    /// How calls return after the last pause.
    pub returning: Returning,
    /// Agents throttled lately, and the sequential phase.
    pub cascade: Cascade,
    /// Set while the shortest rates are reduced after a refusal.
    pub ramp: Option<Ramp>,
    /// What the provider taught about its limits.
    pub learned: Learned,
    /// The calls that were admitted while the gate was shut and are not answered.
    pub unanswered: BTreeSet<Key>,
    /// The last minute's admissions and retries.
    pub retry_usage: RetryUsage,
    /// By tier: when a call of it last began or ended.
    pub tier_activity: [Option<Instant>; 3],
    /// How long all pauses that have ended lasted together.
    pub paused_total: Span,
    /// The usable share of each rate, where the margin is automatic.
    pub auto_margins: Vec<AutoMargin>,
    /// What others use of each limit.
    pub external: Vec<ExternalUsage>,
    /// How large calls turned out to be: of one agent, or of all.
    pub sizes: BTreeMap<(Option<AgentId>, SizeKey), SizeHistogram>,
    /// Whether the burn rate says that calls will have to wait.
    pub pre_emptive: bool,
    /// A day's spending.
    pub spending: Spending,
    /// When the store lost the pool's state: since then limits count as full and return over one
    /// period.
    pub state_lost_at: Option<Instant>,
    /// When limits were last switched on after shadow mode.
    pub enforced: Instant,
    /// The use of each unit that a limit or cap counts, now or in the previous configuration.
    pub units: IdVec<UnitId, UnitUsage>,
    /// One counter per limit in the configuration's order, then per learned limit, then per limit
    /// with a pace, then for the gate if there is one.
    pub counters: IdVec<ConstraintId, UsageCounter>,
    /// The agents seen; an agent's id is its index here.
    pub agents: IdVec<AgentId, Agent>,
    /// The sessions of living processes.
    pub sessions: BTreeMap<u64, Session>,
    /// The calls in flight.
    pub leases: BTreeMap<Key, Lease>,
    /// The calls that wait, in queue order.
    pub tickets: BTreeMap<QueueKey, Ticket>,
    /// Reserves that can be repeated with the same id.
    pub ids: BTreeMap<CallId, IdRecord>,
}

/// Where a configuration comes from. The greater one wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Provenance {
    /// Whether it comes from a file.
    pub file: bool,
    /// The version it states.
    pub version: Option<u64>,
    /// When the file was written.
    pub written: u64,
    /// How many explicit changes were made since.
    pub changes: u64,
}

/// The provider refuses everything for a long time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// When it ends, if the provider said so.
    pub until: Option<Instant>,
    /// From then on one call is admitted as a probe.
    pub next_probe: Option<Instant>,
    /// The call that is the probe.
    pub probe: Option<Key>,
}

/// The call behind an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRecord {
    /// The key of the first reserve with the id: its ticket and its lease have the same key.
    pub first: Key,
    /// When its call ended; `None` while it waits or is in flight.
    pub ended: Option<Instant>,
}

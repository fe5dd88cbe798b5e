//! The events of the replicated log: every input of [`crate::State::apply`], as plain values.
//!
//! An event can be logged, sent twice, replayed, fuzzed and written in a golden trace. It carries
//! durations, never instants: the store stamps the event, and durations count from that stamp, so
//! that no caller's clock enters a decision. What an event results in is in `outcome.rs`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::config::{LimitId, PoolConfig, Priority};
use crate::name::{AgentName, PoolRef, Text};
use crate::time::Span;
use crate::unit::{Amounts, Unit};

/// The identity of an event: its session and its sequence number within that session.
///
/// The ticket and the lease that result from a reserve have the reserve's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The session of the process that sent the event.
    pub session: u64,
    /// The sequence number: 1 for a session's first event on this pool, then strictly increasing.
    pub number: u64,
}

/// One entry of a pool's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The identity of the event. A number that is not greater than the session's last one marks a
    /// duplicate, which changes nothing.
    pub key: Key,
    /// What the event does.
    pub action: Action,
}

/// What an event does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Requests admission of a call, or claims a ticket.
    Reserve(Box<Reserve>),
    /// Reports what a call used.
    Commit(Commit),
    /// Returns everything, because the call was never sent.
    Cancel {
        /// The lease, or the ticket of a caller that gave up.
        lease: Key,
    },
    /// Dates the charges of a lease to now, because its call was not sent before: it waited for
    /// another pool. A lease that cannot be dated to now is withdrawn.
    Redate {
        /// The lease.
        lease: Key,
    },
    /// Returns everything like a cancel and releases the id of the call, because the call waits for
    /// another pool and is asked again later.
    Withdraw {
        /// The lease.
        lease: Key,
    },
    /// Reports that the caller of a ticket is gone. A ticket with an id keeps its position and
    /// blocks no other until its id is reserved again; any other ticket ends.
    Leave {
        /// The ticket.
        ticket: Key,
    },
    /// Reports that the provider refused a call.
    Throttled(Throttled),
    /// Reports the rate-limit headers of a response.
    Observed(Observed),
    /// Keeps the session alive, and extends a lease if one is named.
    Heartbeat {
        /// The lease to extend, or to detach from its session.
        lease: Option<Key>,
        /// The time to live that the lease has from now on, independent of its session.
        ttl: Option<Span>,
    },
    /// Reports that a session's process is dead.
    SessionEnded {
        /// The session.
        session: u64,
    },
    /// Reports that the owner process of a lease without a session is dead.
    OwnerEnded {
        /// The lease it owned.
        lease: Key,
    },
    /// Offers a configuration; see [`Source`] for which one wins.
    Configure(Box<Configure>),
    /// Pauses the pool by hand: no call is admitted until the pause ends.
    Pause {
        /// The length of the pause, from the stamp of the event.
        length: Span,
        /// The agent that ordered it, for views only.
        by: Option<AgentName>,
    },
    /// Ends the pause and the terminal state.
    Resume {
        /// The agent that ordered it, for views only.
        by: Option<AgentName>,
    },
    /// Restores an event that the store acknowledged and then lost.
    Recovered(Recovered),
    /// Announces resets of calendar windows, as a process computed them from its wall clock.
    Calendar {
        /// One per limit.
        resets: Vec<CalendarReset>,
    },
    /// Reports that the store lost the pool's state: every limit counts as full and becomes free
    /// again over one period.
    Forgotten,
}

/// A request to admit a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The agent that makes the call.
    pub agent: AgentName,
    /// The priority, if it differs from the agent's configured one.
    pub priority: Option<Priority>,
    /// The units the call takes.
    pub cost: Amounts,
    /// The longest time to wait in the queue; zero never queues.
    pub patience: Span,
    /// The lease's own time to live; without it the lease ends with its session.
    pub ttl: Option<Span>,
    /// The process whose death ends a lease that has no session.
    pub owner: Option<Owner>,
    /// The idempotency id: a second reserve of the same agent with the same id gets the first
    /// one's answer.
    pub id: Option<Text>,
    /// The model, for views only.
    pub model: Option<Text>,
    /// The task, for views only.
    pub task: Option<Text>,
    /// The lease of the call that this one retries.
    pub retry_of: Option<Key>,
    /// The ticket that this reserve claims. An unknown ticket makes it a new reserve.
    pub ticket: Option<Key>,
    /// The shortest time to wait, because an agent upstream in the workflow was throttled, on this
    /// pool or another.
    pub hold: Option<Span>,
    /// The size of the request in bytes, from which prompt tokens are estimated if the cost does
    /// not name them.
    pub bytes: Option<u64>,
    /// Upper bounds for units that the cost does not name.
    pub at_most: Amounts,
    /// The pool that the caller named, if its call draws on this pool beside it.
    pub part_of: Option<PoolRef>,
}

impl Reserve {
    /// Creates a reserve of this cost that never queues and whose lease ends with its session.
    #[must_use]
    pub fn new(agent: AgentName, cost: Amounts) -> Self {
        Self {
            agent,
            priority: None,
            cost,
            patience: Span::ZERO,
            ttl: None,
            owner: None,
            id: None,
            model: None,
            task: None,
            retry_of: None,
            ticket: None,
            hold: None,
            bytes: None,
            at_most: Amounts::default(),
            part_of: None,
        }
    }
}

/// A process, as its operating system identifies it. The core stores it and never interprets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process id.
    pub pid: u32,
    /// The start time of the process, which distinguishes it from a later one with the same id.
    pub started: u64,
}

/// A report of what a call used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The lease of the call.
    pub lease: Key,
    /// The totals of the call so far. A unit that a final commit omits settles at the estimate.
    pub used: Amounts,
    /// Whether the call continues; otherwise the commit ends the lease.
    pub progress: bool,
    /// Whether the provider refused the call, so that end-charged units were not used.
    pub refused: bool,
}

/// A report that the provider refused a call (429, 503, 529).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// The lease of the refused call, which this event settles.
    pub lease: Option<Key>,
    /// The agent that made the call, if no lease is named.
    pub agent: Option<AgentName>,
    /// The kind of refusal.
    pub kind: ThrottleKind,
    /// The wait the provider asks for (`Retry-After`).
    pub retry_after: Option<Span>,
    /// The limit that the provider reports as exceeded.
    pub hit: Option<Hit>,
}

/// The limit that a provider reports as exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The unit it counts.
    pub unit: Unit,
    /// Its period, if known.
    pub period: Option<Span>,
}

/// The kind of a provider's refusal. The kind selects the policies that react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleKind {
    /// A rate was exceeded.
    Quota,
    /// Too many calls were in flight.
    Concurrency,
    /// The rate grew too fast.
    SlowDown,
    /// The provider is short of capacity.
    Overload,
    /// The quota is used up for a long time: a spend cap, a daily quota.
    Terminal,
}

impl ThrottleKind {
    /// Returns the name of the kind, the same in every API, view and metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Concurrency => "concurrency",
            Self::SlowDown => "slow_down",
            Self::Overload => "overload",
            Self::Terminal => "terminal",
        }
    }
}

/// A report of the rate-limit headers of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The lease of the call that got the response.
    pub lease: Option<Key>,
    /// One reading per limit in the response.
    pub readings: Vec<Reading>,
}

/// What a provider reports about one of its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The unit the limit counts.
    pub unit: Unit,
    /// The period of the limit, if known.
    pub period: Option<Span>,
    /// The size of the limit.
    pub limit: Option<u64>,
    /// The units that remain.
    pub remaining: Option<u64>,
    /// The granularity of `remaining`; 1 is exact.
    pub coarse: u64,
    /// The time until a fixed window resets.
    pub reset_in: Option<Span>,
    /// The time until a continuously refilled limit is full.
    pub full_in: Option<Span>,
}

/// The resets of one calendar window around the stamp of the event. Both sides are needed: an event
/// that was stamped late may have missed the reset that it announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarReset {
    /// The limit.
    pub limit: LimitId,
    /// The time since the last reset.
    pub since: Span,
    /// The time until the next one.
    pub left: Span,
}

/// A configuration and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configure {
    /// The source, which decides between two different configurations.
    pub source: Source,
    /// The configuration.
    pub config: PoolConfig,
}

/// Where a configuration comes from. `config/precedence.rs` compares sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A configuration file.
    File {
        /// The `version` key of the file.
        version: Option<u64>,
        /// The modification time of the file, in any unit that grows.
        written: u64,
    },
    /// Limits given in code or as flags.
    Code,
    /// An explicit change at run time, which counts as newer than the configuration in force.
    Change,
}

/// A past event of a process, appended again because the store lost it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// The call was admitted: its lease is in flight again, above the limit if necessary.
    Reserve {
        /// The key of the lease.
        lease: Key,
        /// The original reserve.
        reserve: Box<Reserve>,
    },
    /// The call was settled: its lease ends without a refund.
    Commit {
        /// The key of the lease.
        lease: Key,
    },
    /// The provider refused the call: the pool pauses.
    Throttled(Throttled),
}

//! Everything that can happen to a pool, as plain values.
//!
//! An event can be logged, sent again, replayed, fuzzed and written in a golden trace. Times in it
//! are lengths, never moments: the store stamps it, and moments are counted from that stamp.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::config::{PoolConfig, Priority};
use crate::name::{AgentName, Text};
use crate::time::Span;
use crate::unit::{Amounts, Unit};

/// The number of an event within its session. It names the event, and the ticket and the lease that
/// come from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The living process that sent it.
    pub session: u64,
    /// 1 for a session's first event on this pool, and greater with every further one.
    pub number: u64,
}

/// Something that happens to a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Who sent it and which of theirs it is. One whose number is not greater than the session's
    /// last is a copy and changes nothing.
    pub key: Key,
    /// What happens.
    pub action: Action,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A call asks to be admitted, or a ticket is claimed.
    Reserve(Box<Reserve>),
    /// A call says what it used.
    Commit(Commit),
    /// The call was never sent: everything goes back.
    Cancel {
        /// The lease, or the ticket of a caller that no longer waits.
        lease: Key,
    },
    /// The provider refused a call.
    Throttled(Throttled),
    /// The provider said how things stand.
    Observed(Observed),
    /// The session lives; with a lease, that lease lives on.
    Heartbeat {
        /// The lease to extend, or to give a life of its own.
        lease: Option<Key>,
        /// From now on the lease lives so long by itself, without its session.
        ttl: Option<Span>,
    },
    /// A session was seen to be dead.
    SessionEnded {
        /// Which one.
        session: u64,
    },
    /// The owner of a lease without a session was seen to be dead.
    OwnerEnded {
        /// Its lease.
        lease: Key,
    },
    /// The pool is told about itself.
    Configure(Box<Configure>),
    /// No call is admitted for so long.
    Pause {
        /// From now.
        length: Span,
    },
    /// The pause, or the provider's word that ended everything, is lifted.
    Resume,
    /// An event of the sender's that the store had acknowledged and then lost.
    Recovered(Recovered),
    /// The store lost the pool's state: all limits count as full and come back over one period.
    Forgotten,
}

/// A call that asks to be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Who asks.
    pub agent: AgentName,
    /// The tier, when it is not the agent's own.
    pub priority: Option<Priority>,
    /// What the call takes.
    pub cost: Amounts,
    /// How long it waits at most; nothing means it never waits.
    pub patience: Span,
    /// The lease lives so long by itself; without it the lease lives with its session.
    pub ttl: Option<Span>,
    /// A process whose death ends a lease that has no session.
    pub owner: Option<Owner>,
    /// Makes the reserve repeatable: the same id of the same agent is answered with the first.
    pub id: Option<Text>,
    /// For the record.
    pub model: Option<Text>,
    /// For the record.
    pub task: Option<Text>,
    /// The lease of the call this one tries again.
    pub retry_of: Option<Key>,
    /// The ticket this is the claim of. An unknown one makes it a new reserve.
    pub ticket: Option<Key>,
    /// Not before so long from now: somebody it depends on was refused, on this pool or another.
    pub hold: Option<Span>,
    /// How many bytes are sent: what the tokens of a prompt are estimated by when the cost does not
    /// name them.
    pub bytes: Option<u64>,
    /// Units that the cost does not name and of which the call takes no more than this.
    pub at_most: Amounts,
}

impl Reserve {
    /// A call of this cost that does not wait and whose lease lives with its session.
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
        }
    }
}

/// A process as its operating system names it. The ledger keeps it and does not look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// When it started, so that a reused id is recognised.
    pub started: u64,
}

/// What a call says it used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Which call.
    pub lease: Key,
    /// Totals of the call so far. What a final commit does not name settles at the estimate.
    pub used: Amounts,
    /// The call goes on.
    pub progress: bool,
    /// The provider refused it: what is charged at the end was not used.
    pub refused: bool,
}

/// A provider's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// The call it refused; it is settled by this.
    pub lease: Option<Key>,
    /// Whose call it was, when the lease does not say.
    pub agent: Option<AgentName>,
    /// What kind of refusal.
    pub kind: ThrottleKind,
    /// How long the provider says to wait.
    pub retry_after: Option<Span>,
    /// The limit it says was exceeded.
    pub hit: Option<Hit>,
}

/// The limit a provider says was exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// What it counts.
    pub unit: Unit,
    /// Its period, when known.
    pub period: Option<Span>,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleKind {
    /// A rate was exceeded.
    Quota,
    /// Too many calls in flight.
    Concurrency,
    /// The rate grew too fast.
    SlowDown,
    /// The provider is short of capacity.
    Overload,
    /// Nothing will be admitted for long: a spend cap, a daily quota.
    Terminal,
}

impl ThrottleKind {
    /// The word for it, the same on every face.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Concurrency => "concurrency",
            Self::SlowDown => "slow_down",
            Self::Overload => "overload",
            Self::Terminal => "terminal",
        }
    }
}

/// What a provider's answer said of its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The call it answered.
    pub lease: Option<Key>,
    /// One reading per limit it spoke of.
    pub readings: Vec<Reading>,
}

/// What a provider said of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What it counts.
    pub unit: Unit,
    /// Its period, when known.
    pub period: Option<Span>,
    /// The limit.
    pub limit: Option<u64>,
    /// What is left of it.
    pub remaining: Option<u64>,
    /// What that is rounded to; 1 is exact.
    pub coarse: u64,
    /// When its window begins anew, from now.
    pub reset_in: Option<Span>,
    /// When all of it is there again, from now, where it comes back bit by bit.
    pub full_in: Option<Span>,
}

/// A configuration and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configure {
    /// What decides between two that differ.
    pub source: Source,
    /// What it says.
    pub config: PoolConfig,
}

/// Where a configuration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File {
        /// The version it states.
        version: Option<u64>,
        /// When it was written, by the file system, in any unit that grows.
        written: u64,
    },
    /// Code or flags.
    Code,
    /// An explicit change at run time: newer than what is there.
    Change,
}

/// What a process knows it had done before the store forgot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// It had been admitted: the lease is in flight again, above the limit if need be.
    Reserve {
        /// The lease.
        lease: Key,
        /// The reserve it came from.
        reserve: Box<Reserve>,
    },
    /// It had settled: the lease ends without a refund.
    Commit {
        /// The lease.
        lease: Key,
    },
    /// It had been refused by the provider: the pool pauses.
    Throttled(Throttled),
}

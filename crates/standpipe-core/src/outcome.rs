//! The result of an event: an answer for its sender, notices for everybody, tickets to wake, and
//! the next instant at which time alone changes the state.
//!
//! A refusal is a value, not an error. Every replica computes the same outcome for the same event.

use alloc::vec::Vec;

use crate::config::{InvalidConfig, LimitId};
use crate::event::{Key, ThrottleKind};
use crate::name::AgentName;
use crate::rules::zone::Zone;
use crate::time::{Instant, Span};

/// The result of applying one event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an outcome says whether the call may be made and whom to wake"]
pub struct Outcome {
    /// The answer for the sender.
    pub answer: Answer,
    /// The other changes, in the order in which they happened.
    pub notices: Vec<Notice>,
    /// The tickets whose waiters should claim now: they became due, ended, or became due earlier.
    pub wake: Vec<Key>,
    /// The next instant at which time alone changes the state.
    pub next: Option<Instant>,
}

/// The answer for the sender of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The answer to a reserve.
    Decided(Decision),
    /// The answer to a commit, cancel, throttle or heartbeat that names a lease.
    Lease(LeaseAnswer),
    /// The answer to a configuration.
    Configured(Configured),
    /// The event was applied and has no other answer.
    Done,
    /// The event is a duplicate and was ignored. [`crate::State::find`] returns the state of an
    /// earlier reserve.
    Duplicate,
    /// The session has ended. Its process must continue under a new session.
    SessionEnded,
}

/// The decision about a reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call may be made now.
    Admit(Grant),
    /// The call has to wait; a ticket holds its position in the queue.
    Wait(Queued),
    /// The call may not be made. No unit was charged and no ticket exists.
    Refuse(Refusal),
}

/// The admission of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The key of the lease.
    pub lease: Key,
    /// The instant at which the lease expires; [`Instant::NEVER`] if only the end of its session
    /// ends it.
    pub expires_at: Instant,
    /// Whether an earlier call of the same id has already ended, so that this one must not be made.
    pub settled: bool,
    /// The refusal that shadow mode suppressed.
    pub instead_of: Option<Refusal>,
}

/// A queued reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The key of the ticket, with which the waiter claims.
    pub ticket: Key,
    /// The position in the queue; 1 is first.
    pub position: usize,
    /// The reason for the wait.
    pub refusal: Refusal,
}

/// The reason why a call is not admitted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The first step of the admission rule that refuses the call.
    pub reason: Reason,
    /// The limit that refuses it, if one does.
    pub limit: Option<LimitId>,
    /// The units that the limit lacks.
    pub short_by: u64,
    /// When the call is admitted: at this instant if it is exact, and not before it otherwise.
    /// `None` if a call in flight must end first, or if time alone never admits the call.
    pub until: Option<Instant>,
    /// Whether the call is admitted at `until` if nothing else happens. Otherwise it depends on
    /// others: on tickets before it, on tiers above it, on what floors keep.
    pub exact: bool,
    /// In fair order, with [`Reason::Order`]: the agent whose ticket is first in the line, if it is
    /// another one.
    pub behind: Option<AgentName>,
}

impl Refusal {
    /// A refusal that names no instant.
    pub(crate) const fn new(reason: Reason, limit: Option<LimitId>, short_by: u64) -> Self {
        Self { reason, limit, short_by, until: None, exact: false, behind: None }
    }

    /// Whether it waits for the answers of others, and not for a limit.
    pub(crate) const fn is_by_gate(&self) -> bool {
        let may_be_gate = matches!(
            self.reason,
            Reason::Probe | Reason::Sequential | Reason::Learning | Reason::Order
        );
        may_be_gate && self.limit.is_none()
    }
}

/// Why a call is refused. The order in which rules are asked is that of the tables in `rules.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The provider reported that the quota is used up for a long time.
    Terminal,
    /// The cost is above a stated limit.
    Never,
    /// The pool is paused.
    Pause,
    /// The pause is over, but the return instant of this call lies ahead.
    ReturnWindow,
    /// The zone is amber or red and a higher tier is active: the agent is paced or parked.
    Zone,
    /// An agent upstream in the workflow was throttled.
    Hold,
    /// The remaining units are left to higher tiers.
    Yield,
    /// Background waits so that a long limit lasts to the end of its period.
    Spread,
    /// The agent's cap is reached.
    Cap,
    /// An earlier ticket of the same or a higher tier waits for the same limit.
    Order,
    /// A limit lacks room.
    Limit,
    /// A limit has room, but floors of other agents reserve it.
    Floor,
    /// The pause is over, and the share of a limit that may be used at first is used.
    Ramp,
    /// The minimum gap since the last grant has not passed.
    Pace,
    /// The probe after a pause has not been answered.
    Probe,
    /// The pool is in sequential mode and a call is unanswered.
    Sequential,
    /// The store lost the calls in flight, or the provider's limits are not known yet.
    Learning,
    /// The retry budget is used up.
    RetryBudget,
    /// A bound of [`crate::bounds`] is reached.
    QueueFull,
    /// The deadline of the ticket has passed.
    Deadline,
}

impl Reason {
    /// All reasons, in order.
    pub const ALL: [Self; 20] = [
        Self::Terminal,
        Self::Never,
        Self::Pause,
        Self::ReturnWindow,
        Self::Zone,
        Self::Hold,
        Self::Yield,
        Self::Spread,
        Self::Cap,
        Self::Order,
        Self::Limit,
        Self::Floor,
        Self::Ramp,
        Self::Pace,
        Self::Probe,
        Self::Sequential,
        Self::Learning,
        Self::RetryBudget,
        Self::QueueFull,
        Self::Deadline,
    ];

    /// Whether time alone decides, whoever else is on the pool.
    pub(crate) const fn has_exact_end(self) -> bool {
        matches!(
            self,
            Self::Terminal
                | Self::Pause
                | Self::ReturnWindow
                | Self::Hold
                | Self::Cap
                | Self::Limit
                | Self::Pace
                | Self::Learning
                | Self::RetryBudget
        )
    }

    /// Returns the name of the reason, the same in every API, view and metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Never => "never",
            Self::Pause => "pause",
            Self::ReturnWindow => "return_window",
            Self::Zone => "zone",
            Self::Hold => "hold",
            Self::Yield => "yield",
            Self::Spread => "spread",
            Self::Cap => "cap",
            Self::Order => "order",
            Self::Limit => "limit",
            Self::Floor => "floor",
            Self::Ramp => "ramp",
            Self::Pace => "pace",
            Self::Probe => "probe",
            Self::Sequential => "sequential",
            Self::Learning => "learning",
            Self::RetryBudget => "retry_budget",
            Self::QueueFull => "queue_full",
            Self::Deadline => "deadline",
        }
    }
}

/// The answer to an event that names a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// The lease is in flight and expires at this instant unless it is extended.
    Lives(Instant),
    /// The event ended the lease.
    Ended,
    /// The lease does not exist, or no longer; nothing changed.
    Gone,
}

/// The answer to a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Configured {
    /// The configuration is now in force.
    Applied,
    /// The same configuration is already in force.
    Same,
    /// The configuration in force takes precedence: it is newer, from a file, or stricter.
    Kept,
    /// The configuration is not valid.
    Invalid(InvalidConfig),
}

/// A change of the state besides the answer, for the journal and for views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A lease ended without being settled and is charged at its estimate.
    Reclaimed {
        /// The lease.
        lease: Key,
        /// The agent that held it.
        agent: AgentName,
        /// The reason why it ended.
        why: Reclaim,
    },
    /// A ticket ended without a lease.
    TicketEnded {
        /// The ticket.
        ticket: Key,
        /// The agent that waited.
        agent: AgentName,
        /// The reason: [`Reason::Deadline`], [`Reason::Never`], [`Reason::Terminal`],
        /// [`Reason::Pause`] or [`Reason::ReturnWindow`].
        why: Reason,
        /// The time the ticket waited.
        waited: Span,
    },
    /// A ticket became a lease.
    Waited {
        /// The ticket.
        ticket: Key,
        /// The agent that waited.
        agent: AgentName,
        /// The time the ticket waited.
        waited: Span,
    },
    /// A session was reported as ended.
    SessionEnded {
        /// The session.
        session: u64,
    },
    /// The provider refused a call.
    Throttled {
        /// The agent that made the call, if known.
        agent: Option<AgentName>,
        /// The kind of refusal.
        kind: ThrottleKind,
        /// Whether the call was admitted after the last pause began, so that it raises the streak.
        new: bool,
        /// The number of refusals in a row.
        streak: u32,
    },
    /// The provider's `Retry-After` is out of range and was ignored.
    Unbelieved {
        /// The value that the provider sent.
        retry_after: Option<Span>,
    },
    /// The provider reported that less is left than the ledger has, and the reading was ignored: it
    /// is about a smaller burst limit.
    ReadingIgnored {
        /// The limit that the reading names.
        limit: LimitId,
        /// The units that the provider reported as remaining.
        remaining: u64,
        /// When all of them are free again by the provider's count: too soon for this limit.
        full_in: Span,
    },
    /// Sequential mode began or ended.
    Sequential {
        /// Whether it began.
        on: bool,
    },
    /// The size of a limit was learned from the provider.
    Learned {
        /// The limit.
        limit: LimitId,
        /// Its size.
        amount: u64,
    },
    /// The zone changed.
    Zone {
        /// The new zone.
        zone: Zone,
    },
    /// A background agent was denied for so long that its next call is served as standard.
    Promoted {
        /// The agent.
        agent: AgentName,
    },
    /// The automatic margin of a rate changed.
    Margin {
        /// The limit.
        limit: LimitId,
        /// The new margin, in thousandths.
        per_mille: u16,
    },
    /// Callers outside Standpipe draw on the same key.
    Outside {
        /// The limit they draw on.
        limit: LimitId,
        /// The units that were charged for them now.
        units: u64,
        /// All units that count for them now.
        total: u64,
    },
    /// The breaker began or ceased to forecast that calls will have to wait.
    Breaker {
        /// Whether it began.
        on: bool,
    },
    /// A pause began or became longer.
    Paused {
        /// The end of the pause.
        until: Instant,
        /// The agent that ordered it; `None` after a refusal.
        by: Option<AgentName>,
    },
    /// The pause is over.
    Resumed {
        /// When it ended. The event that shows it may be later.
        at: Instant,
        /// The agent that ended it by hand; `None` if it ended by itself.
        by: Option<AgentName>,
    },
    /// The provider reported that the quota is used up for a long time.
    Stopped {
        /// The end of the terminal state, if known.
        until: Option<Instant>,
    },
    /// A fixed window of the provider was reset.
    WindowReset {
        /// The limit.
        limit: LimitId,
    },
}

/// The reason why a lease ended without being settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Its time to live passed.
    Expired,
    /// Its session or owner process is dead.
    OwnerGone,
}

//! What comes of an event: an answer to its sender, and what else everybody should know.

use alloc::vec::Vec;

use crate::config::{InvalidConfig, LimitId};
use crate::event::{Key, ThrottleKind};
use crate::name::AgentName;
use crate::outlook::Zone;
use crate::time::{Instant, Span};

/// What came of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an outcome says whether the call may be made and whom to wake"]
pub struct Outcome {
    /// For the sender.
    pub answer: Answer,
    /// What happened besides, in order.
    pub notices: Vec<Notice>,
    /// Tickets whose waiters should look now: they became due, were refused, or come earlier.
    pub wake: Vec<Key>,
    /// When time alone changes something next.
    pub next: Option<Instant>,
}

/// For the sender of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a reserve.
    Decided(Decision),
    /// To a commit, a cancel or a throttle that names a lease, to a heartbeat of a lease.
    Lease(LeaseAnswer),
    /// To a configuration.
    Configured(Configured),
    /// It is noted.
    Done,
    /// The number is not new; the answer is the first one's. What became of a reserve can be asked
    /// with [`crate::State::find`].
    Copy,
    /// The session has ended; its process goes on under a new one.
    SessionEnded,
}

/// Whether a call may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Now.
    Admit(Grant),
    /// Not yet; a ticket keeps its place.
    Wait(Hold),
    /// No. Nothing was taken and nothing is kept.
    Refuse(Refusal),
}

/// A call that may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What it holds.
    pub lease: Key,
    /// When the lease ends by itself, if nothing is heard.
    pub expires_at: Instant,
    /// An earlier call of the same id that has ended since; this one must not be made.
    pub settled: bool,
    /// In shadow mode: what would have been said.
    pub instead_of: Option<Refusal>,
}

/// A place in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The place's name, to claim it with.
    pub ticket: Key,
    /// How many stand in front, and itself.
    pub position: usize,
    /// Why.
    pub refusal: Refusal,
}

/// Why not now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The first step of the admission rule that said no.
    pub reason: Reason,
    /// The limit it is about.
    pub limit: Option<LimitId>,
    /// How many units are missing there.
    pub short_by: u64,
    /// When it is admitted if nothing else happens; behind other tickets, not before. `None`:
    /// never.
    pub until: Option<Instant>,
}

/// Why a call is not admitted, in the order in which it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The provider said stop for good.
    Terminal,
    /// It is above a stated limit.
    Never,
    /// Everybody waits.
    Pause,
    /// The pause is over; its instant to come back is not there yet.
    ReturnWindow,
    /// Little is left: its agent keeps a distance, or parks.
    Zone,
    /// Somebody it depends on was refused.
    Hold,
    /// What is left is for higher tiers.
    Yield,
    /// The agent's own cap.
    Cap,
    /// Somebody came first.
    Order,
    /// A limit has no room.
    Limit,
    /// A limit has room, but it is kept for others.
    Floor,
    /// Too soon after the last one.
    Pace,
    /// The first call after a pause is under way.
    Probe,
    /// Everybody goes one at a time.
    Sequential,
    /// The ledger lost its memory and is finding out what is in flight, or nothing is known of the
    /// provider's limits yet.
    Learning,
    /// Too many calls are second tries.
    RetryBudget,
    /// A bound of the ledger is reached.
    QueueFull,
    /// Its time is up.
    Deadline,
}

impl Reason {
    /// All of them, in their order.
    pub const ALL: [Self; 18] = [
        Self::Terminal,
        Self::Never,
        Self::Pause,
        Self::ReturnWindow,
        Self::Zone,
        Self::Hold,
        Self::Yield,
        Self::Cap,
        Self::Order,
        Self::Limit,
        Self::Floor,
        Self::Pace,
        Self::Probe,
        Self::Sequential,
        Self::Learning,
        Self::RetryBudget,
        Self::QueueFull,
        Self::Deadline,
    ];

    /// The word for it, the same on every face.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Never => "never",
            Self::Pause => "pause",
            Self::ReturnWindow => "return_window",
            Self::Zone => "zone",
            Self::Hold => "hold",
            Self::Yield => "yield",
            Self::Cap => "cap",
            Self::Order => "order",
            Self::Limit => "limit",
            Self::Floor => "floor",
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

/// To an event about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// It goes on, until then if nothing is heard.
    Lives(Instant),
    /// It ended with this.
    Ended,
    /// There is no such lease, or no longer; nothing changed.
    Gone,
}

/// To a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Configured {
    /// It is in force.
    Applied,
    /// The pool knew it already.
    Same,
    /// Another one counts: newer, or from a file, or stricter.
    Kept,
    /// It cannot be used.
    Invalid(InvalidConfig),
}

/// What happened besides the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A lease ended without being settled, and counts at its estimate.
    Reclaimed {
        /// Which.
        lease: Key,
        /// Whose.
        agent: AgentName,
        /// Why.
        why: Reclaim,
    },
    /// A ticket ended without a lease.
    TicketEnded {
        /// Which.
        ticket: Key,
        /// Whose.
        agent: AgentName,
        /// [`Reason::Deadline`], [`Reason::Never`], [`Reason::Terminal`], [`Reason::Pause`] or
        /// [`Reason::ReturnWindow`].
        why: Reason,
        /// How long it had waited.
        waited: Span,
    },
    /// A ticket became a lease.
    Waited {
        /// Which.
        ticket: Key,
        /// Whose.
        agent: AgentName,
        /// How long.
        waited: Span,
    },
    /// A session fell silent or died.
    SessionEnded {
        /// Which.
        session: u64,
    },
    /// The provider refused a call.
    Throttled {
        /// Whose.
        agent: Option<AgentName>,
        /// What kind of refusal.
        kind: ThrottleKind,
        /// Whether it says something new: the call was admitted after the last pause.
        new: bool,
        /// Refusals in a row.
        streak: u32,
    },
    /// The provider's word on how long to wait is beyond reason and counts as none.
    Unbelieved {
        /// What it said.
        retry_after: Option<Span>,
    },
    /// Everybody goes one at a time from now on, or no longer.
    Sequential {
        /// Whether it begins.
        on: bool,
    },
    /// The provider taught the size of a limit.
    Learned {
        /// Which.
        limit: LimitId,
        /// How large it is.
        amount: u64,
    },
    /// How much quota is left has changed.
    Zone {
        /// To this.
        zone: Zone,
    },
    /// A background agent was denied for so long that it is served as a standard one, once.
    Promoted {
        /// Who.
        agent: AgentName,
    },
    /// More or less of a stated rate is used from now on.
    Headroom {
        /// Of which limit.
        limit: LimitId,
        /// In thousandths.
        per_mille: u16,
    },
    /// Somebody draws on the key without asking.
    Outside {
        /// On which limit.
        limit: LimitId,
        /// What was charged for it now.
        units: u64,
        /// What counts of it in all.
        total: u64,
    },
    /// The burn rate says that calls will have to wait, or no longer.
    Breaker {
        /// Whether it begins.
        on: bool,
    },
    /// Nobody is admitted before then.
    Paused {
        /// The end.
        until: Instant,
    },
    /// The pause is over.
    Resumed,
    /// The provider said stop for good; known end or not.
    Stopped {
        /// The end.
        until: Option<Instant>,
    },
    /// The provider's window began anew.
    WindowReset {
        /// Of which limit.
        limit: LimitId,
    },
}

/// Why a lease ended without being settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Its time was up.
    Expired,
    /// Its session or owner is gone.
    OwnerGone,
}

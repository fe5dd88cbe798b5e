//! Tickets: the queued calls of a pool.
//!
//! A ticket waits in the line of one constraint at a time. The units of constraints it no longer
//! waits for are earmarked for it. This file has the data only; `serve.rs` moves tickets.

use crate::config::Priority;
use crate::event::Key;
use crate::id::{AgentId, ConstraintId, ConstraintSet};
use crate::lease::call::Call;
use crate::outcome::Reason;
use crate::time::{Instant, Span};

/// The sort key of a ticket in the queue: the tier, then the fair tag, then the arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueKey {
    /// The tier; critical sorts first.
    pub tier: Priority,
    /// The tag of fair order, see `fair.rs`; 0 in order of arrival.
    pub tag: u64,
    /// The arrival number, which counts up; 0 sorts before every ticket of the tier.
    pub arrival: u64,
}

/// A queued call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The key of the ticket, and of the lease it becomes.
    pub key: Key,
    /// The session that waits; `None` if it ended and only the id keeps the ticket.
    pub session: Option<u64>,
    /// The agent that makes the call.
    pub agent: AgentId,
    /// The description of the call.
    pub call: Call,
    /// Where it begins in virtual time; its tag is where it ends.
    pub start: u64,
    /// The instant at which it was queued.
    pub since: Instant,
    /// The instant at which it ends by itself.
    pub deadline: Instant,
    /// What it waits for.
    pub phase: Phase,
    /// The constraints on which its units are earmarked.
    pub earmarked: ConstraintSet,
    /// The instant at which it returns from the last pause.
    pub returns: Instant,
    /// The instant before which the workflow holds it, because an agent upstream was throttled.
    pub holds: Instant,
    /// The time to live of the lease; see [`crate::Reserve::ttl`].
    pub ttl: Option<Span>,
}

/// What a ticket waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A reason of its own holds it back. It keeps its position and blocks nobody.
    Held {
        /// The reason: [`Reason::Pause`], [`Reason::ReturnWindow`], [`Reason::Zone`],
        /// [`Reason::Hold`], [`Reason::Yield`], [`Reason::Spread`] or [`Reason::Cap`].
        reason: Reason,
        /// The instant at which it is checked again.
        until: Instant,
    },
    /// It is in the line of this constraint.
    Line(ConstraintId),
    /// All its units are earmarked until this instant, and it waits for its claim.
    Due(Instant),
    /// It was due, and nobody claimed it in time. It keeps its position and blocks nobody until it
    /// is claimed.
    Lapsed,
    /// Its forecast lies after its deadline. It waits for returned units and blocks nobody.
    TooLate,
}

impl QueueKey {
    /// Returns the key behind every ticket of a tier.
    #[must_use]
    pub const fn last_of(tier: Priority) -> Self {
        Self { tier, tag: u64::MAX, arrival: u64::MAX }
    }

    /// Returns the tag and the arrival, by which a tier is ordered.
    #[must_use]
    pub const fn in_tier(self) -> (u64, u64) {
        (self.tag, self.arrival)
    }

    /// Returns the key before every ticket of a tier.
    #[must_use]
    pub const fn first_of(tier: Priority) -> Self {
        Self { tier, tag: 0, arrival: 0 }
    }
}

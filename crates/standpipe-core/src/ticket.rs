//! Tickets: places in a pool's queue.
//!
//! A ticket stands in one line at a time and has units set aside for what it no longer lacks. How
//! tickets move is in `serve.rs`; this file only says what one is.

use crate::agent::AgentId;
use crate::call::Call;
use crate::config::Priority;
use crate::event::Key;
use crate::outcome::Reason;
use crate::time::{Instant, Span};

/// A place in the order of the queue: the tier, then the arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Critical first.
    pub tier: Priority,
    /// Arrivals count up; 0 is before everybody of the tier.
    pub arrival: u64,
}

/// A call that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its name, and the lease's that will come of it.
    pub key: Key,
    /// The session that waits; none while only its id keeps it.
    pub session: Option<u64>,
    /// Whose call it is.
    pub agent: AgentId,
    /// What it takes, and what else was said of it.
    pub call: Call,
    /// When it came.
    pub since: Instant,
    /// When it ends by itself.
    pub deadline: Instant,
    /// How it waits.
    pub phase: Phase,
    /// The lanes, as bits, on which its units are set aside.
    pub aside: u64,
    /// When it comes back from the last pause.
    pub returns: Instant,
    /// Not before then: somebody it depends on was refused.
    pub holds: Instant,
    /// See [`crate::Reserve`].
    pub ttl: Option<Span>,
}

/// How a ticket waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// For a reason of its own, until then: keeps its place, blocks nobody.
    Held {
        /// [`Reason::Pause`], [`Reason::ReturnWindow`], [`Reason::Zone`], [`Reason::Hold`],
        /// [`Reason::Yield`] or [`Reason::Cap`].
        reason: Reason,
        /// When it is looked at again.
        until: Instant,
    },
    /// In the line of a lane.
    Line(u8),
    /// Everything is set aside for it since then; it only has to be claimed.
    Due(Instant),
    /// It was due and nobody claimed it: keeps its place, blocks nobody, until it is claimed again.
    Lapsed,
    /// Its instant lies after its deadline: waits for units that come back, blocks nobody.
    TooLate,
}

impl Place {
    /// Behind everybody of the tier.
    #[must_use]
    pub const fn last_of(tier: Priority) -> Self {
        Self { tier, arrival: u64::MAX }
    }

    /// Before everybody of the tier.
    #[must_use]
    pub const fn first_of(tier: Priority) -> Self {
        Self { tier, arrival: 0 }
    }
}

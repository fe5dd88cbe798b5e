//! The record of an agent: its activity, its denials, and its own usage counters.

use crate::event::Key;
use crate::id::{IdVec, UnitId};
use crate::name::AgentName;
use crate::time::Instant;
use crate::unit::Amounts;
use crate::usage::unit_usage::AgentUnitUsage;

/// The record of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The name of the agent.
    pub name: AgentName,
    /// The last instant with a ticket, a lease, an admission or a recorded refusal.
    pub active: Instant,
    /// The last recorded refusal.
    pub refused: Option<Instant>,
    /// The last requested cost, which the floor must cover.
    pub asked: Amounts,
    /// The last admission.
    pub admitted: Option<Instant>,
    /// The denial since the last admission, if the agent requests background calls.
    pub denied: Option<Denied>,
    /// The promotion to standard, until the next admission.
    pub promoted: Option<Promoted>,
    /// By tier: the greatest fair tag of its calls that were admitted while other agents waited.
    pub tags: [u64; 3],
    /// The use of each unit, in the order of [`crate::Facts::units`]; empty for agents without a
    /// rule beyond [`crate::bounds::AGENT_HISTORIES`].
    pub units: IdVec<UnitId, AgentUnitUsage>,
}

/// The denial of an agent that requests background calls and is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The start of the denial, on a clock that stops during pauses.
    pub since: Instant,
    /// The last known request.
    pub last: Instant,
}

/// The promotion of a background agent to standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promoted {
    /// The arrival number of the promotion, which the next call of the agent has in the queue.
    pub arrival: u64,
    /// The fair tag that it has there.
    pub tag: u64,
    /// The ticket that has this arrival number.
    pub ticket: Option<Key>,
}

//! Agents: who asks. Their record, and the meters of those with a floor or a cap.

use alloc::vec::Vec;

use crate::event::Key;
use crate::name::AgentName;
use crate::tally::Tally;
use crate::time::Instant;

/// The number of an agent in a pool's table.
pub type AgentId = u16;

/// What is known of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: AgentName,
    /// When it last had a ticket, a lease, an admission or a recorded refusal.
    pub active: Instant,
    /// When a refusal of it was last recorded.
    pub refused: Option<Instant>,
    /// When it was last admitted.
    pub admitted: Option<Instant>,
    /// It asks in the background and was not admitted since.
    pub denied: Option<Denied>,
    /// It was denied for long: its place in standard until it is admitted.
    pub promoted: Option<Promoted>,
    /// What it uses of limits on which it has a floor or a cap, in the order the configuration
    /// implies.
    pub meters: Vec<Tally>,
}

/// An agent that asks in the background and is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Since then, by a clock that stands still while the pool pauses.
    pub since: Instant,
    /// When it was last known to ask.
    pub last: Instant,
}

/// A place in standard for an agent that was denied for long in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promoted {
    /// When it was promoted, among the arrivals: whatever it asks stands there.
    pub arrival: u64,
    /// The ticket of its that does.
    pub ticket: Option<Key>,
}

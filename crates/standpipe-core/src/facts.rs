//! All that a pool's ledger knows: what a snapshot holds, and nothing that follows from it.
//!
//! Two replicas are equal when their facts are. Everything else in [`crate::State`] is an index
//! that is worked out from here.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::agent::{Agent, AgentId};
use crate::config::PoolConfig;
use crate::event::Key;
use crate::lease::Lease;
use crate::name::Text;
use crate::outlook::Outlook;
use crate::session::Session;
use crate::tally::Tally;
use crate::ticket::{Place, Ticket};
use crate::time::Instant;
use crate::trouble::Trouble;

/// All that a pool's ledger knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The stamp of the last event.
    pub clock: Instant,
    /// What the pool was told about itself.
    pub config: Option<PoolConfig>,
    /// Where that came from.
    pub provenance: Provenance,
    /// When the pool was last used or configured: code may loosen it only after a silence.
    pub used: Instant,
    /// How many tickets ever came.
    pub arrivals: u64,
    /// No call is admitted before then.
    pub pause: Option<Instant>,
    /// The provider said stop.
    pub terminal: Option<Terminal>,
    /// What else is remembered of its refusals.
    pub trouble: Trouble,
    /// What is remembered so that there are none.
    pub outlook: Outlook,
    /// The store lost the pool's state then, and no limits have been told since that could count as
    /// full.
    pub forgotten: Option<Instant>,
    /// One per limit in the configuration's order, then those the provider taught, then one per
    /// limit that has a pace, then the gate where there is one.
    pub lanes: Vec<Tally>,
    /// Who was seen; an agent's number is its place here.
    pub agents: Vec<Agent>,
    /// The living processes.
    pub sessions: BTreeMap<u64, Session>,
    /// The calls in flight.
    pub leases: BTreeMap<Key, Lease>,
    /// The calls that wait, in order.
    pub tickets: BTreeMap<Place, Ticket>,
    /// Reserves that can be repeated.
    pub ids: BTreeMap<(AgentId, Text), Known>,
}

/// Where a configuration came from; the greater counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Provenance {
    /// It is from a file.
    pub file: bool,
    /// The version it states.
    pub version: Option<u64>,
    /// When the file was written.
    pub written: u64,
    /// Explicit changes since.
    pub changes: u64,
}

/// The provider's word that nothing will be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// When that ends, if it is known.
    pub until: Option<Instant>,
    /// From then on one call is let through, to see.
    pub look: Option<Instant>,
    /// The call that was.
    pub probe: Option<Key>,
}

/// What became of a reserve with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The first reserve with it: a ticket's or a lease's name.
    pub first: Key,
    /// When its call ended; none while it waits or is in flight.
    pub ended: Option<Instant>,
}

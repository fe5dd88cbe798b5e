//! What is known of a lease from its grant, and what it needs to know besides.

use std::sync::Arc;
use std::time::{Duration, Instant as Local, SystemTime};

use standpipe_core::{Configured, Instant, Key, Priority, Reserve, Span, Zone};
use standpipe_dialect::Dialect;

use crate::pool::Pool;
use crate::refused::Refused;
use crate::routing::workflow::{Backpressure, Graph};

/// What a lease needs to know besides its grant.
#[derive(Clone, Debug)]
pub(crate) struct LeaseContext {
    /// The dialect of the pool's provider.
    pub(crate) dialect: Dialect,
    /// The workflows.
    pub(crate) graph: Arc<Graph>,
    /// The agent upstream that is throttled, if one is.
    pub(crate) backpressure: Option<Backpressure>,
}

/// What is known of a lease from its grant.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) key: Key,
    pub(crate) reserve: Reserve,
    pub(crate) expires_at: SystemTime,
    pub(crate) waited: Duration,
    pub(crate) settled: bool,
    /// Whether a later request with the same id may take it over.
    pub(crate) keeps_place: bool,
    pub(crate) instead_of: Option<Refused>,
    pub(crate) zone: Zone,
    pub(crate) forecast: Option<standpipe_core::Advice>,
    /// The tier it was admitted in; `None` if it has ended.
    pub(crate) tier: Option<Priority>,
    /// Whether this request created it, and not an earlier one with the same id.
    pub(crate) is_new: bool,
    /// `false` in shadow mode.
    pub(crate) enforced: bool,
    /// Whether its pool computes money from other units.
    pub(crate) priced: bool,
    /// What the pool made of the limits that came with the request.
    pub(crate) limits_result: Option<Configured>,
    /// Whether other agents or calls were on the pool when it was granted.
    pub(crate) was_shared: bool,
    /// The stamp of the grant.
    pub(crate) started: Instant,
    /// When the granting reserve was submitted, by the clock of this process.
    pub(crate) asked_at: Local,
    /// The slack of the pool.
    pub(crate) slack: Span,
    /// The pool that the lease's pool lies within.
    pub(crate) parent: Option<Box<Pool>>,
}

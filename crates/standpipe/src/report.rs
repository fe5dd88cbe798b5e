//! What callers tell a pool: that the provider refused a call, and what it said of its limits.

use std::time::Duration;

use standpipe_core::{Hit, Reading, ThrottleKind, Unit};

use crate::lease_id::LeaseId;
use crate::moment::span;

/// The provider refused a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a report does nothing until it is given to a pool or a lease"]
pub struct Throttle {
    pub(crate) kind: ThrottleKind,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) agent: Option<String>,
    pub(crate) lease: Option<LeaseId>,
    pub(crate) hit: Option<Hit>,
}

/// What a provider's answer said of its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a report does nothing until it is given to a pool"]
pub struct Observation {
    pub(crate) lease: Option<LeaseId>,
    pub(crate) readings: Vec<Reading>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(ThrottleKind::Quota)
    }
}

impl Throttle {
    /// A refusal of this kind.
    pub const fn new(kind: ThrottleKind) -> Self {
        Self { kind, retry_after: None, agent: None, lease: None, hit: None }
    }

    /// How long the provider says to wait.
    pub const fn retry_after(mut self, length: Duration) -> Self {
        self.retry_after = Some(length);
        self
    }

    /// Whose call it was, when the lease does not say.
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// The call it refused; it is settled by this.
    pub fn lease(mut self, lease: LeaseId) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The limit it says was exceeded: what it counts, and its period if that is known. Without a
    /// word the pool pauses for at most one period of its fullest limit.
    pub fn hit(mut self, unit: Unit, period: Option<Duration>) -> Self {
        self.hit = Some(Hit { unit, period: period.map(span) });
        self
    }
}

impl Observation {
    /// An answer that said nothing yet.
    pub const fn new() -> Self {
        Self { lease: None, readings: Vec::new() }
    }

    /// The call it answered.
    pub fn lease(mut self, lease: LeaseId) -> Self {
        self.lease = Some(lease);
        self
    }

    /// What it said of one limit.
    pub fn reading(mut self, reading: Reading) -> Self {
        self.readings.push(reading);
        self
    }
}

//! Reports of callers to a pool: that the provider refused a call, and the limits it stated.
//!
//! Both are plain values that do nothing until they are given to a pool or a lease. Callers that
//! have the provider's whole answer use `reply` instead.

use std::time::Duration;

use standpipe_core::{Hit, Reading, ThrottleKind, Unit};

use crate::lease_id::LeaseId;
use crate::moment::span;

/// The report that the provider refused a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a report does nothing until it is given to a pool or a lease"]
pub struct Throttle {
    pub(crate) kind: ThrottleKind,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) agent: Option<String>,
    pub(crate) lease: Option<LeaseId>,
    pub(crate) hit: Option<Hit>,
}

/// The report of limits that a provider stated.
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
    /// Creates the report of a refusal of this kind.
    pub const fn new(kind: ThrottleKind) -> Self {
        Self { kind, retry_after: None, agent: None, lease: None, hit: None }
    }

    /// Sets how long the provider asks to wait.
    pub const fn retry_after(mut self, length: Duration) -> Self {
        self.retry_after = Some(length);
        self
    }

    /// Sets the agent of the call, if there is no lease.
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Sets the lease of the refused call. The report settles it.
    pub fn lease(mut self, lease: LeaseId) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets the limit that was exceeded: its unit, and its period if that is known. Without one the
    /// pool pauses for at most one period of its fullest limit.
    pub fn hit(mut self, unit: Unit, period: Option<Duration>) -> Self {
        self.hit = Some(Hit { unit, period: period.map(span) });
        self
    }
}

impl Observation {
    /// Creates a report without readings.
    pub const fn new() -> Self {
        Self { lease: None, readings: Vec::new() }
    }

    /// Sets the lease of the call that was answered.
    pub fn lease(mut self, lease: LeaseId) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Adds what the provider stated about one limit.
    pub fn reading(mut self, reading: Reading) -> Self {
        self.readings.push(reading);
        self
    }
}

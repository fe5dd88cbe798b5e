//! What callers tell a pool: that the provider refused a call, and what it said of its limits.

use std::collections::BTreeMap;
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
    pub(crate) headers: Vec<(String, String)>,
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
        Self { lease: None, readings: Vec::new(), headers: Vec::new() }
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

    /// A header as it came. Those that speak of limits are written to the journal, no others.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl Observation {
    /// The headers that speak of limits. Everything else a provider sends may be a secret.
    pub(crate) fn headers_of_limits(&self) -> BTreeMap<String, String> {
        let speaks = |name: &str| {
            name.contains("ratelimit") || name.contains("rate-limit") || name == "retry-after"
        };
        let lower = self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let kept = lower.filter(|(name, _)| speaks(name) && name.len() <= 128);
        kept.map(|(name, value)| (name, value.chars().take(256).collect())).take(64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_headers_that_speak_of_limits_are_kept() {
        let observation = Observation::new()
            .header("Authorization", "Bearer secret")
            .header("Set-Cookie", "session=secret")
            .header("X-RateLimit-Remaining", "7")
            .header("Retry-After", "3");
        let kept = observation.headers_of_limits();
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["retry-after", "x-ratelimit-remaining"]);
    }
}

//! When a refused call may be admitted: an exact instant, a lower bound, or what must happen first.
//!
//! Every view takes its fields and its text from here, so that none shows a lower bound as exact.

use std::fmt;

use serde::{Deserialize, Serialize};
use standpipe_core::{Instant, LimitId, Reason, Refusal};

use crate::status::Expected;
use crate::time::{Now, Timestamp, format_wait};

/// When a call may be admitted: `until`, `not_before` or `waiting_for`. None of them is set if the
/// call is admitted now or never.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct When {
    /// The exact instant: refused before it, admitted at it if nothing else happens.
    pub until: Option<Timestamp>,
    /// Milliseconds to `until`.
    pub until_ms: Option<u64>,
    /// A lower bound: the call is not admitted earlier, and perhaps later.
    pub not_before: Option<Timestamp>,
    /// Milliseconds to `not_before`.
    pub not_before_ms: Option<u64>,
    /// A forecast, if no exact instant is known: when it is admitted if the calls ahead of it use
    /// what they reserved and nothing else happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Timestamp>,
    /// Milliseconds to `expected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u64>,
    /// The forecast is early: calls in flight have to end first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub or_later: bool,
    /// By the forecast its timeout ends before its turn. `expected` is its turn then, if known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub times_out: bool,
    /// What must happen first, if no exact instant is known.
    pub waiting_for: Option<String>,
}

impl When {
    /// When a call that the ledger refused may be admitted.
    #[must_use]
    pub fn of(refusal: &Refusal, now: &Now) -> Self {
        let at = instant(refusal).map(|until| (now.ahead(until), now.millis_until(until)));
        Self::new(at, refusal.exact, waiting_for(refusal.reason))
    }

    /// The same for a queued call, with a forecast. `for_response` is set if a response of the
    /// provider decides: no instant is known then.
    pub(crate) fn of_queued(
        refusal: &Refusal,
        expected: Option<Expected>,
        for_response: bool,
        now: &Now,
    ) -> Self {
        match for_response {
            true => Self::new(None, false, Some(NEW_WINDOW)),
            false => Self::of(refusal, now).with_forecast(expected, now),
        }
    }

    /// An instant and the milliseconds to it, or what must happen.
    pub fn new(at: Option<(Timestamp, u64)>, exact: bool, event: Option<&str>) -> Self {
        let none = Self::default();
        match at {
            Some((at, ms)) if exact => Self { until: Some(at), until_ms: Some(ms), ..none },
            Some((at, ms)) => Self { not_before: Some(at), not_before_ms: Some(ms), ..none },
            None => Self { waiting_for: event.map(str::to_owned), ..none },
        }
    }

    /// Adds a forecast, unless the instant is exact.
    #[must_use]
    pub fn with_forecast(self, expected: Option<Expected>, now: &Now) -> Self {
        let Some(expected) = expected.filter(|_| self.until.is_none()) else { return self };
        let (at, or_later, times_out) = match expected {
            Expected::At(at) => (Some(at), false, false),
            Expected::After(at) => (Some(at), true, false),
            Expected::TimesOut { turn, or_later } => (turn, or_later, true),
        };
        // What waits for an answer is admitted by time only if the answer never comes.
        let at = at.filter(|_| self.waiting_for.is_none() || or_later);
        let Some(at) = at else { return Self { times_out, ..self } };
        let (expected, expected_ms) = (Some(now.ahead(at)), Some(now.millis_until(at)));
        Self { expected, expected_ms, or_later, times_out, ..self }
    }

    /// Keeps only a lower bound of it, because other pools decide about the call as well.
    #[must_use]
    pub(crate) fn into_bound(self) -> Self {
        let (not_before, not_before_ms) =
            (self.until.or(self.not_before), self.until_ms.or(self.not_before_ms));
        Self { not_before, not_before_ms, waiting_for: self.waiting_for, ..Self::default() }
    }

    /// Adds the bound of another pool that decides about the same call. Returns whether that one is
    /// later.
    pub(crate) fn raise(&mut self, other: &Self) -> bool {
        let ms = |when: &Self| when.until_ms.or(when.not_before_ms);
        let is_later = ms(other) > ms(self);
        if is_later {
            self.not_before = other.until.or(other.not_before);
            self.not_before_ms = ms(other);
        }
        if self.waiting_for.is_none() {
            self.waiting_for.clone_from(&other.waiting_for);
        }
        is_later
    }

    /// Returns the milliseconds to the best known instant.
    #[must_use]
    pub fn in_ms(&self) -> Option<u64> {
        self.until_ms.or(self.expected_ms).or(self.not_before_ms)
    }

    /// Whether the call is admitted now or never.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let has_instant =
            self.until.is_some() || self.expected.is_some() || self.not_before.is_some();
        !has_instant && self.waiting_for.is_none()
    }
}

/// Returns the instant that a view may show. While the ledger waits for an answer (probe,
/// sequential mode, unknown limits: the gate, which is no limit) the core names the instant at
/// which it stops waiting. The answer may come earlier, so that instant is not even a bound. Nor is
/// the instant at which a call ahead gives up waiting for a slot: it may get one.
pub const fn instant(refusal: &Refusal) -> Option<Instant> {
    match refusal.reason {
        Reason::Probe | Reason::Sequential => None,
        Reason::Learning | Reason::Order if refusal.limit.is_none() => None,
        Reason::Order if matches!(refusal.limit, Some(LimitId::Parallel)) => None,
        _ => refusal.until,
    }
}

/// What must happen once the provider's own window has ended.
pub(crate) const NEW_WINDOW: &str = "a response that shows the provider's new window";

/// What must happen before a call is admitted that is refused for this reason without an instant.
/// `None` if nothing helps.
pub const fn waiting_for(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::Never => return None,
        Reason::Terminal => "`standpipe resume`",
        Reason::Order => "the calls before it in the queue",
        Reason::Probe => "the probe to be answered",
        Reason::Sequential | Reason::Learning => "a call in flight to be answered",
        Reason::RetryBudget | Reason::Pause | Reason::ReturnWindow | Reason::Hold => {
            "calls that are not retries, which refill the retry budget"
        }
        Reason::QueueFull => "a call in the queue or in flight to end",
        // All of these have an instant, unless calls in flight hold what the call needs.
        Reason::Zone
        | Reason::Yield
        | Reason::Spread
        | Reason::Cap
        | Reason::Limit
        | Reason::Floor
        | Reason::Ramp
        | Reason::Pace
        | Reason::Deadline => "a call in flight to end",
    })
}

impl When {
    /// `in 34 s (16:59:20)`, `expected in 34 s (16:59:20)`, `not expected before 16:59:20 (in
    /// 34 s)`, `not before 16:59:20 (in 34 s)` or `waiting for …`, which may have a bound, too.
    /// `clock` formats an instant that is so many milliseconds ahead. It drops what is below a
    /// second, so that one instant has one text in every view and no bound is shown later than it
    /// is.
    #[must_use]
    pub fn describe(&self, clock: &dyn Fn(Timestamp, u64) -> String) -> String {
        if let (Some(at), Some(ms)) = (self.until, self.until_ms) {
            format!("in {} ({})", format_wait(ms), clock(at, ms))
        } else if let (Some(at), Some(ms)) = (self.expected, self.expected_ms) {
            let (wait, at) = (format_wait(ms), clock(at, ms));
            match (self.or_later, &self.waiting_for) {
                (false, _) => format!("expected in {wait} ({at})"),
                (true, None) => format!("not expected before {at} (in {wait})"),
                (true, Some(event)) => {
                    format!("waiting for {event}, not expected before {at} (in {wait})")
                }
            }
        } else if let (Some(at), Some(ms)) = (self.not_before, self.not_before_ms) {
            let event = self.waiting_for.as_ref();
            let event = event.map(|event| format!("waiting for {event}, ")).unwrap_or_default();
            format!("{event}not before {} (in {})", clock(at, ms), format_wait(ms))
        } else {
            self.waiting_for
                .as_ref()
                .map(|event| format!("waiting for {event}"))
                .unwrap_or_default()
        }
    }
}

impl fmt::Display for When {
    /// With instants in UTC.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(&utc))
    }
}

const DAY: u64 = 86_400_000;

/// The time of day in UTC, with the date if it is a day or more ahead.
pub(super) fn utc(at: Timestamp, ms: u64) -> String {
    let text = at.to_string();
    let (date, time) = text.split_once('T').unwrap_or(("", &text));
    let time = time.split('.').next().unwrap_or(time);
    if ms < DAY { format!("{time}Z") } else { format!("{date} {time}Z") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, ms: u64) -> Option<(Timestamp, u64)> {
        Some((text.parse().unwrap(), ms))
    }

    #[test]
    fn the_three_cases_read_differently() {
        let soon = || at("2026-01-31T16:59:20.001Z", 33_901);
        let event = waiting_for(Reason::Limit);
        assert_eq!(When::new(soon(), true, event).to_string(), "in 34 s (16:59:20Z)");
        assert_eq!(When::new(soon(), false, event).to_string(), "not before 16:59:20Z (in 34 s)");
        let unknown = When::new(None, true, event);
        assert_eq!(unknown.to_string(), "waiting for a call in flight to end");
        let never = When::new(None, false, waiting_for(Reason::Never));
        assert!(never.is_empty() && never.to_string().is_empty());
        let late = When::new(at("2026-02-01T00:00:00.000Z", DAY), true, None).to_string();
        assert_eq!(late, "in 1 d (2026-02-01 00:00:00Z)");
    }

    #[test]
    fn only_never_waits_for_nothing() {
        for reason in Reason::ALL {
            assert_eq!(waiting_for(reason).is_none(), reason == Reason::Never, "{reason:?}");
        }
        assert_eq!(waiting_for(Reason::Terminal), Some("`standpipe resume`"));
        assert_eq!(waiting_for(Reason::Order), Some("the calls before it in the queue"));
        assert_eq!(waiting_for(Reason::Probe), Some("the probe to be answered"));
    }
}

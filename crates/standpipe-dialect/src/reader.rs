//! [`ResponseReader`]: one response while it is read, its parts and what was found in it so far.
//!
//! Every value passes through [`ResponseReader::ok_or_anomaly`] or
//! [`ResponseReader::add_limit`], so that an implausible value becomes an anomaly and never a limit
//! or a wait. Read next: [`limit_headers`] and [`retry_headers`] (headers), [`error_body`] and
//! [`phrases`] (bodies), [`verdict`] (what they lead to).

mod error_body;
mod headers;
mod limit_headers;
pub(crate) mod phrases;
mod retry_headers;
mod verdict;

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;

use crate::anomaly::{Anomalies, AnomalyReason};
use crate::answer::{LimitSeen, ResetMeans, Response};
use crate::bounds;
use crate::parse::borrowed::BorrowedValue;
use crate::parse::{date, json};
use crate::usage::Usage;

pub(crate) use error_body::ErrorBody;
pub(crate) use headers::Headers;
pub(crate) use limit_headers::{LimitHeaders, Reset, ResetFormat};
pub(crate) use retry_headers::RetryHeader;
pub(crate) use verdict::refused;

/// One response while it is read.
#[derive(Debug)]
pub(crate) struct ResponseReader<'a> {
    pub(crate) status: u16,
    pub(crate) headers: Headers<'a>,
    pub(crate) body: &'a [u8],
    /// When the response was written, in milliseconds since 1970: by the provider's clock if that
    /// is plausible, else by the local clock.
    pub(crate) now: Option<i64>,
    pub(crate) limits: Vec<LimitSeen>,
    pub(crate) anomalies: Anomalies,
}

impl<'a> ResponseReader<'a> {
    pub(crate) fn new(response: &Response<'a>) -> Self {
        let mut reader = Self {
            status: response.status,
            headers: Headers::new(response.headers),
            body: response.body,
            now: None,
            limits: Vec::new(),
            anomalies: Anomalies::default(),
        };
        reader.now = reader.written_at(response.received);
        reader
    }

    /// Whether Standpipe itself wrote the response. Its own refusals must not feed its ledger.
    pub(crate) fn is_from_standpipe(&self) -> bool {
        self.headers.has("x-standpipe-origin", "ledger")
    }

    /// The time at which the response was written.
    ///
    /// The `date` header wins over the local clock: the other instants in the response are by the
    /// same clock, so differences are right even if that clock is wrong. A date that is days off
    /// was not written just now (a cache, a test server, a clock never set); then the local clock
    /// is the better guess.
    fn written_at(&mut self, received: u64) -> Option<i64> {
        let received = i64::try_from(received).ok().filter(|ms| *ms >= bounds::CLOCK_SET_MS);
        let Some(text) = self.headers.first("date") else { return received };
        let (date, why) = match (date::http(text), received) {
            (None, _) => (received, Some(AnomalyReason::Unreadable)),
            (Some(date), Some(received)) if date.abs_diff(received) > bounds::SKEW_MS as u64 => {
                (Some(received), Some(AnomalyReason::FarFromNow))
            }
            (date, _) => (date, None),
        };
        if let Some(why) = why {
            self.anomalies.add("date", text, why);
        }
        date
    }

    /// Returns the parsed value; records an anomaly if parsing rejected it.
    pub(crate) fn ok_or_anomaly<T>(
        &mut self,
        what: &str,
        value: &str,
        parsed: Result<T, AnomalyReason>,
    ) -> Option<T> {
        parsed.map_err(|why| self.anomalies.add(what, value, why)).ok()
    }

    /// The time until an instant, at most [`bounds::WAIT`]. `None` if the time of the response is
    /// unknown.
    pub(crate) fn until(&mut self, what: &str, value: &str, then: i64) -> Option<Duration> {
        self.until_within(what, value, then, bounds::WAIT)
    }

    /// The time until the end of a terminal refusal, at most [`bounds::TERMINAL_WAIT`].
    pub(crate) fn until_terminal_end(
        &mut self,
        what: &str,
        value: &str,
        then: i64,
    ) -> Option<Duration> {
        self.until_within(what, value, then, bounds::TERMINAL_WAIT)
    }

    fn until_within(
        &mut self,
        what: &str,
        value: &str,
        then: i64,
        longest: Duration,
    ) -> Option<Duration> {
        let now = self.now?;
        if date::is_long_past(now, then) {
            self.anomalies.add(what, value, AnomalyReason::InThePast);
        }
        self.ok_or_anomaly(what, value, date::until(now, then, longest))
    }

    /// Adds a limit to the answer, unless its amounts are implausible.
    pub(crate) fn add_limit(&mut self, what: &str, mut seen: LimitSeen) {
        let (limit, remaining) = (seen.limit, seen.remaining);
        if limit == Some(0) {
            return self.anomalies.add(what, "0", AnomalyReason::Zero);
        }
        if let (Some(limit), Some(remaining)) = (limit, remaining)
            && remaining > limit
        {
            // Rounding can lift `remaining` above the limit by half a step.
            if remaining - limit > seen.coarse / 2 {
                let value = format!("{remaining} of {limit}");
                return self.anomalies.add(what, &value, AnomalyReason::MoreThanLimit);
            }
            seen.remaining = Some(limit);
        }
        let has_amount = limit.is_some() || remaining.is_some() || seen.utilization.is_some();
        if has_amount && self.limits.len() < bounds::LIMITS {
            self.limits.push(seen);
        }
    }

    /// The limit with nothing remaining, if there is exactly one: the refusal is due to it.
    pub(crate) fn exhausted(&self) -> Option<&LimitSeen> {
        let mut exhausted = self.limits.iter().filter(|seen| seen.remaining == Some(0));
        let first = exhausted.next()?;
        exhausted.next().is_none().then_some(first)
    }

    /// The token usage in a member of the body.
    pub(crate) fn usage_member(&mut self, member: &str) -> Usage {
        let value = json::raw_member(self.body, member).and_then(json::parse);
        let value = value.as_ref().and_then(|value| BorrowedValue::deserialize(value).ok());
        value.map_or(Usage::EMPTY, |value| Usage::from_json(&value, &mut self.anomalies))
    }
}

impl LimitSeen {
    /// A limit of this unit with no amounts yet.
    pub(crate) fn new(unit: impl Into<Cow<'static, str>>) -> Self {
        Self {
            unit: unit.into(),
            period: None,
            limit: None,
            remaining: None,
            coarse: 1,
            reset_in: None,
            reset: ResetMeans::Unknown,
            utilization: None,
            name: None,
        }
    }
}

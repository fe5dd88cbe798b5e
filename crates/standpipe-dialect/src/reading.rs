//! One answer while it is read: its parts, its own time, and what was gathered so far.

use std::borrow::Cow;
use std::time::Duration;

use crate::answer::{Kind, LimitSeen, Refused, Response, Verdict};
use crate::bounds;
use crate::date;
use crate::doubt::{Doubts, Why};
use crate::fault::Fault;
use crate::headers::Headers;
use crate::message;

/// One answer while it is read.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) status: u16,
    pub(crate) headers: Headers<'a>,
    pub(crate) body: &'a [u8],
    /// When the provider wrote it, by the provider's clock if that can be believed.
    pub(crate) now: Option<i64>,
    pub(crate) limits: Vec<LimitSeen>,
    pub(crate) doubts: Doubts,
}

impl<'a> Reading<'a> {
    pub(crate) fn of(response: &Response<'a>) -> Self {
        let mut reading = Self {
            status: response.status,
            headers: Headers::of(response.headers),
            body: response.body,
            now: None,
            limits: Vec::new(),
            doubts: Doubts::default(),
        };
        reading.now = reading.written(response.received);
        reading
    }

    /// Whether Standpipe itself wrote it. Its own refusals must not teach it anything.
    pub(crate) fn is_ours(&self) -> bool {
        self.headers.has("x-standpipe-origin", "ledger")
    }

    /// The answer's own `date`: moments in it are by the same clock, so lengths come out right
    /// however wrong that clock is. A date days away was not written just now (a cache, a test
    /// server, a clock never set): then the local clock is the better guess.
    fn written(&mut self, received: u64) -> Option<i64> {
        let received = i64::try_from(received).ok().filter(|ms| *ms >= bounds::CLOCK_SET_MS);
        let Some(text) = self.headers.first("date") else { return received };
        let (date, why) = match (date::http(text), received) {
            (None, _) => (received, Some(Why::Unreadable)),
            (Some(date), Some(received)) if date.abs_diff(received) > bounds::SKEW_MS as u64 => {
                (Some(received), Some(Why::FarFromNow))
            }
            (date, _) => (date, None),
        };
        if let Some(why) = why {
            self.doubts.add("date", text, why);
        }
        date
    }

    /// What was read, or nothing and a doubt.
    pub(crate) fn believe<T>(
        &mut self,
        what: &str,
        value: &str,
        read: Result<T, Why>,
    ) -> Option<T> {
        read.map_err(|why| self.doubts.add(what, value, why)).ok()
    }

    /// How long until a moment. Nothing while the time of the answer is not known.
    pub(crate) fn until(&mut self, what: &str, value: &str, then: i64) -> Option<Duration> {
        let now = self.now?;
        if date::is_long_past(now, then) {
            self.doubts.add(what, value, Why::InThePast);
        }
        self.believe(what, value, date::until(now, then))
    }

    /// How long until the end of a stop, which may be weeks ahead.
    pub(crate) fn until_the_end(&mut self, what: &str, value: &str, then: i64) -> Option<Duration> {
        let now = self.now?;
        if date::is_long_past(now, then) {
            self.doubts.add(what, value, Why::InThePast);
        }
        self.believe(what, value, date::until_the_end(now, then))
    }

    /// Takes a limit into the answer, unless its figures cannot be.
    pub(crate) fn see(&mut self, what: &str, mut seen: LimitSeen) {
        let (limit, remaining) = (seen.limit, seen.remaining);
        if limit == Some(0) {
            return self.doubts.add(what, "0", Why::Zero);
        }
        if let (Some(limit), Some(remaining)) = (limit, remaining)
            && remaining > limit
        {
            // Rounding may lift what remains above the limit by half a step.
            if remaining - limit > seen.coarse / 2 {
                let value = format!("{remaining} of {limit}");
                return self.doubts.add(what, &value, Why::MoreThanLimit);
            }
            seen.remaining = Some(limit);
        }
        let says = limit.is_some() || remaining.is_some() || seen.utilization.is_some();
        if says && self.limits.len() < bounds::LIMITS {
            self.limits.push(seen);
        }
    }

    /// The one limit of which nothing is left: it is the one that was hit.
    pub(crate) fn exhausted(&self) -> Option<&LimitSeen> {
        let mut empty = self.limits.iter().filter(|seen| seen.remaining == Some(0));
        let first = empty.next()?;
        empty.next().is_none().then_some(first)
    }
}

/// A refusal in the making.
pub(crate) fn refused(kind: Kind, wait: Option<Duration>, fault: &Fault) -> Refused {
    let message = message::scrubbed(&fault.message, bounds::MESSAGE);
    Refused { kind, wait, unit: None, period: None, message }
}

impl Refused {
    /// Names the limit that was hit.
    pub(crate) fn about(
        mut self,
        unit: Option<Cow<'static, str>>,
        period: Option<Duration>,
    ) -> Self {
        self.unit = unit.or(self.unit);
        self.period = period.or(self.period);
        self
    }

    pub(crate) fn verdict(self) -> Verdict {
        Verdict::Refused(self)
    }
}

impl LimitSeen {
    /// One of which nothing is known yet.
    pub(crate) fn of(unit: impl Into<Cow<'static, str>>) -> Self {
        Self {
            unit: unit.into(),
            period: None,
            limit: None,
            remaining: None,
            coarse: 1,
            reset_in: None,
            reset: crate::answer::ResetMeans::Unknown,
            utilization: None,
            name: None,
        }
    }
}

//! From an error to a [`Verdict`]: refusals with their wait and limit, and the HTTP status as the
//! last resort.
//!
//! Providers classify errors by code; these functions fill in the rest and decide what a status
//! means if the provider's rules leave it open.

use std::borrow::Cow;
use std::time::Duration;

use crate::answer::{Kind, LimitSeen, Refused, Verdict};
use crate::bounds;
use crate::reader::{ErrorBody, ResponseReader, RetryHeader, phrases};
use crate::text::redact;

/// The unit of a limit, if known.
type Unit = Option<Cow<'static, str>>;

impl ResponseReader<'_> {
    /// The verdict by the status alone.
    pub(crate) fn by_status(
        &mut self,
        retry_headers: &[RetryHeader],
        error: &ErrorBody,
    ) -> Verdict {
        match self.status {
            ..400 => Verdict::Ok,
            429 if error.is_about_concurrency() => {
                self.refusal(Kind::Concurrency, retry_headers, error)
            }
            429 => self.quota(retry_headers, error),
            503 | 529 => self.refusal(Kind::Overload, retry_headers, error),
            _ => self.failed(),
        }
    }

    /// A refusal with the wait that headers or message state.
    pub(crate) fn refusal(
        &mut self,
        kind: Kind,
        retry_headers: &[RetryHeader],
        error: &ErrorBody,
    ) -> Verdict {
        let wait = self.wait(retry_headers, error);
        refused(kind, wait, error).into_verdict()
    }

    /// A quota refusal with the wait and the exceeded limit that message or headers state.
    pub(crate) fn quota(&mut self, retry_headers: &[RetryHeader], error: &ErrorBody) -> Verdict {
        let wait = self.wait(retry_headers, error);
        let (unit, period) = self.exceeded_limit(error);
        refused(Kind::Quota, wait, error).with_limit(unit, period).into_verdict()
    }

    /// Unit and period of the exceeded limit: from the message, else from the limit headers.
    pub(crate) fn exceeded_limit(&self, error: &ErrorBody) -> (Unit, Option<Duration>) {
        let (unit, period) = phrases::limit(&error.lower);
        let is_same = |seen: &&LimitSeen| unit.as_ref().is_none_or(|unit| *unit == seen.unit);
        let exhausted = self.exhausted().filter(is_same);
        let exhausted_unit = exhausted.map(|seen| seen.unit.clone());
        (unit.or(exhausted_unit), period.or(exhausted.and_then(|seen| seen.period)))
    }

    /// The wait that headers and message state: the longer of the two.
    pub(crate) fn wait(
        &mut self,
        retry_headers: &[RetryHeader],
        error: &ErrorBody,
    ) -> Option<Duration> {
        let by_header = self.retry_after(retry_headers);
        self.wait_in_message(error).max(by_header)
    }

    /// The wait that the message states.
    pub(crate) fn wait_in_message(&mut self, error: &ErrorBody) -> Option<Duration> {
        let (text, wait) = phrases::wait(&error.lower)?;
        self.ok_or_anomaly("message", text, wait)
    }

    /// An error of the call itself. A header that states whether to retry wins over the status.
    pub(crate) fn failed(&self) -> Verdict {
        let headers = ["x-should-retry", "stripe-should-retry"];
        let should_retry = headers.iter().find_map(|name| match self.headers.first(name) {
            Some(value) if value.eq_ignore_ascii_case("true") => Some(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        });
        let transient = matches!(self.status, 408 | 409 | 425 | 500 | 502..=504 | 520..=524 | 529);
        Verdict::Failed { transient: should_retry.unwrap_or(transient) }
    }
}

/// A refusal with the redacted message of the error.
pub(crate) fn refused(kind: Kind, wait: Option<Duration>, error: &ErrorBody) -> Refused {
    let message = redact(&error.message, bounds::MESSAGE);
    Refused { kind, wait, unit: None, period: None, message }
}

impl Refused {
    /// Sets unit and period of the exceeded limit; `None` keeps what is set.
    pub(crate) fn with_limit(mut self, unit: Unit, period: Option<Duration>) -> Self {
        self.unit = unit.or(self.unit);
        self.period = period.or(self.period);
        self
    }

    pub(crate) fn into_verdict(self) -> Verdict {
        Verdict::Refused(self)
    }
}

impl Kind {
    /// Returns `Terminal` if the wait is longer than a caller should sleep, else the kind itself.
    pub(crate) fn terminal_if_longer(self, wait: Option<Duration>, longest: Duration) -> Self {
        if wait.is_some_and(|wait| wait > longest) { Self::Terminal } else { self }
    }
}

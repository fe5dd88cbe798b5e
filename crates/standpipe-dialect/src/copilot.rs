//! GitHub Copilot: OpenAI's bodies, headers of its own, and limits of days and weeks.

use std::time::Duration;

use crate::answer::{Kind, Verdict};
use crate::date;
use crate::fault::Fault;
use crate::hints::{COMMON, Hint};
use crate::openai;
use crate::reading::{Reading, refused};

pub(crate) const HINTS: &[Hint] =
    &[COMMON[0], COMMON[1], COMMON[2], Hint::Seconds("x-ratelimit-user-retry-after")];

/// A longer wait than this is no rate limit any more.
const LONGEST_RETRY: Duration = Duration::from_secs(3_600);

const WEEK: Duration = Duration::from_secs(7 * 86_400);

pub(crate) fn see_limits(reading: &mut Reading<'_>) {
    openai::see_limits(reading);
}

pub(crate) fn judge(reading: &mut Reading<'_>, fault: &Fault) -> Option<Verdict> {
    let exceeded = reading.headers.first("x-ratelimit-exceeded").unwrap_or_default();
    let code = fault.code.as_str();
    let is_spent = [code, exceeded].contains(&"quota_exceeded");
    let is_weekly = code.contains("weekly") || exceeded.contains("weekly");
    let is_rate = code == "rate_limit" || code.ends_with("rate_limited");
    if !(is_spent || is_weekly || is_rate || reading.status == 429) {
        return openai::by_code(reading, HINTS, fault);
    }
    let wait = reading.wait(HINTS, fault).or_else(|| until_said(reading, fault));
    if is_spent || is_weekly {
        let period = is_weekly.then_some(WEEK);
        return Some(refused(Kind::Terminal, wait, fault).about(None, period).verdict());
    }
    match openai::by_code(reading, HINTS, fault) {
        Some(Verdict::Refused(mut refused)) => {
            refused.kind = refused.kind.unless_longer_than(wait, LONGEST_RETRY);
            Some(refused.verdict())
        }
        Some(other) => Some(other),
        None => {
            let kind = Kind::Quota.unless_longer_than(wait, LONGEST_RETRY);
            Some(refused(kind, wait, fault).verdict())
        }
    }
}

/// `wait for your limit to reset on <date>`.
fn until_said(reading: &mut Reading<'_>, fault: &Fault) -> Option<Duration> {
    let (_, told) = fault.message.split_once("reset on ")?;
    let moment = date::in_words(told)?;
    reading.until("message", told, moment)
}

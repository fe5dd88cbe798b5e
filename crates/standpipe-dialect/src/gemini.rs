//! Gemini, also at Vertex: no headers; a refusal carries the quota and how long to wait.
//!
//! The rules and their order are those of Google's own command line.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Kind, LimitSeen, Refused, ResetMeans, Verdict};
use crate::date;
use crate::duration;
use crate::fault::Fault;
use crate::json;
use crate::reading::{Reading, refused};
use crate::status::HINTS;
use crate::words;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
/// A longer wait than this is no rate limit any more.
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// What a rate limit without a hint waits.
const DEFAULT_RETRY: Duration = Duration::from_secs(10);

/// Which quotas were exceeded, and what else the details say.
#[derive(Default)]
struct Details<'v> {
    violations: Vec<&'v Value>,
    retry_delay: Option<&'v str>,
    reason: &'v str,
    quota_limit: &'v str,
}

pub(crate) fn judge(reading: &mut Reading<'_>, fault: &Fault) -> Option<Verdict> {
    let named = fault.value.get("status").and_then(Value::as_str);
    if reading.status != 429 && named != Some("RESOURCE_EXHAUSTED") {
        // A call that was broken off may be made again.
        return (reading.status == 499).then_some(Verdict::NotOurs { transient: true });
    }
    let details = Details::of(fault);
    let daily = details.violations.iter().copied().find(|v| is_daily(quota_id(v)));
    let hit = daily.or_else(|| details.violations.first().copied());
    let (unit, period) = hit.map_or((None, None), |v| limit_of(quota_id(v)));
    let midnight = reading.now.and_then(date::pacific_midnight_after);
    let midnight = midnight.zip(reading.now).and_then(|(end, now)| date::until(now, end).ok());
    details.violations.iter().for_each(|violation| see(reading, violation, midnight));
    let refused = if daily.is_some() || is_daily(details.quota_limit) {
        refused(Kind::Terminal, midnight, fault).about(None, Some(DAY))
    } else {
        retryable(reading, fault, &details)
    };
    Some(refused.about(unit, period).verdict())
}

/// Everything but a quota per day.
fn retryable(reading: &mut Reading<'_>, fault: &Fault, details: &Details<'_>) -> Refused {
    let delay = details.retry_delay;
    let delay = delay.and_then(|text| reading.believe("retryDelay", text, duration::go(text)));
    let delay = delay.max(reading.hint(HINTS));
    if let Some(delay) = delay {
        let kind = Kind::Quota.unless_longer_than(Some(delay), LONGEST_RETRY);
        return refused(kind, Some(delay), fault);
    }
    let per_minute = details.violations.iter().any(|v| quota_id(v).contains("PerMinute"));
    if per_minute || details.quota_limit.contains("PerMinute") {
        return refused(Kind::Quota, Some(MINUTE), fault).about(None, Some(MINUTE));
    }
    let said = words::wait(&fault.lower);
    let said = said.and_then(|(text, length)| reading.believe("message", text, length));
    match details.reason {
        _ if said.is_some() => refused(Kind::Quota, said, fault),
        "RATE_LIMIT_EXCEEDED" => refused(Kind::Quota, Some(DEFAULT_RETRY), fault),
        "QUOTA_EXHAUSTED" | "INSUFFICIENT_G1_CREDITS_BALANCE" => {
            refused(Kind::Terminal, None, fault)
        }
        _ => refused(Kind::Quota, None, fault),
    }
}

/// The violation names the limit itself: it is learnt from it.
fn see(reading: &mut Reading<'_>, violation: &Value, midnight: Option<Duration>) {
    let Some(value) = violation.get("quotaValue") else { return };
    let text = json::text(value).unwrap_or_default();
    let limit = reading.believe("quotaValue", &text, json::figure(value));
    let (unit, period) = limit_of(quota_id(violation));
    let Some(unit) = unit else { return };
    let daily = period == Some(DAY);
    let seen = LimitSeen {
        period,
        limit,
        reset_in: midnight.filter(|_| daily),
        reset: if daily { ResetMeans::WindowEnds } else { ResetMeans::Unknown },
        ..LimitSeen::of(unit)
    };
    reading.see("quotaValue", seen);
}

fn quota_id(violation: &Value) -> &str {
    violation.get("quotaId").and_then(Value::as_str).unwrap_or_default()
}

fn is_daily(quota: &str) -> bool {
    quota.contains("PerDay") || quota.contains("Daily")
}

/// What a quota counts and its period, from an id such as
/// `GenerateContentInputTokensPerModelPerMinute-FreeTier`.
fn limit_of(quota: &str) -> (Option<Cow<'static, str>>, Option<Duration>) {
    let unit = if quota.contains("InputToken") {
        Some("input_tokens")
    } else if quota.contains("OutputToken") {
        Some("output_tokens")
    } else if quota.contains("Token") {
        Some("tokens")
    } else if quota.contains("Request") {
        Some("requests")
    } else {
        None
    };
    let period = match quota {
        _ if is_daily(quota) => Some(DAY),
        _ if quota.contains("PerMinute") => Some(MINUTE),
        _ => None,
    };
    (unit.map(Cow::Borrowed), period)
}

impl<'v> Details<'v> {
    fn of(fault: &'v Fault) -> Self {
        let mut found = Self::default();
        for detail in json::list(fault.value.get("details")) {
            let text = |path: &[&str]| json::at(detail, path).and_then(Value::as_str);
            let kind = text(&["@type"]).unwrap_or_default();
            if kind.ends_with("QuotaFailure") {
                found.violations.extend(json::list(detail.get("violations")).iter().take(16));
            } else if kind.ends_with("RetryInfo") {
                found.retry_delay = text(&["retryDelay"]);
            } else if kind.ends_with("ErrorInfo") {
                found.reason = text(&["reason"]).unwrap_or_default();
                found.quota_limit = text(&["metadata", "quota_limit"]).unwrap_or_default();
            }
        }
        found
    }
}

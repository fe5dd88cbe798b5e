//! Gemini, including Vertex: no limit headers; a refusal carries the exceeded quota and the wait.
//!
//! The rules and their order follow Google's own command-line client.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Kind, LimitSeen, Refused, ResetMeans, Verdict};
use crate::bounds;
use crate::dialect::Dialect;
use crate::parse::{date, duration, json};
use crate::providers::Provider;
use crate::reader::{ErrorBody, ResponseReader, RetryHeader, refused};

pub(super) static PROVIDER: Provider = Provider {
    aliases: &["google", "vertex", "vertex-ai", "google-ai"],
    classify,
    read_usage: |reader| reader.usage_member("usageMetadata"),
    ..Provider::new(Dialect::Gemini, "gemini")
};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
/// A refusal with a longer wait is terminal: callers should not sleep that long.
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// The wait after a rate-limit error that states none.
const DEFAULT_RETRY: Duration = Duration::from_secs(10);
/// Most violations read of one `QuotaFailure`.
const MAX_VIOLATIONS: usize = 16;

/// What the `details` of an error state.
#[derive(Default)]
struct Details<'v> {
    /// The exceeded quotas.
    violations: Vec<&'v Value>,
    retry_delay: Option<&'v str>,
    reason: &'v str,
    quota_limit: &'v str,
}

fn classify(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Option<Verdict> {
    let status = error.value.get("status").and_then(Value::as_str);
    if reader.status != 429 && status != Some("RESOURCE_EXHAUSTED") {
        // 499: the client cancelled the call, so it may be made again.
        return (reader.status == 499).then_some(Verdict::Failed { transient: true });
    }
    let details = Details::new(error);
    let daily = details.violations.iter().copied().find(|v| is_daily(quota_id(v)));
    let exceeded = daily.or_else(|| details.violations.first().copied());
    let (unit, period) = exceeded.map_or((None, None), |v| limit_of(quota_id(v)));
    let midnight = until_pacific_midnight(reader);
    details.violations.iter().for_each(|violation| add_limit(reader, violation, midnight));
    let refused = if daily.is_some() || is_daily(details.quota_limit) {
        refused(Kind::Terminal, midnight, error).with_limit(None, Some(DAY))
    } else {
        retryable(reader, error, &details)
    };
    Some(refused.with_limit(unit, period).into_verdict())
}

/// Daily quotas reset at midnight Pacific time.
fn until_pacific_midnight(reader: &ResponseReader<'_>) -> Option<Duration> {
    let now = reader.now?;
    date::until(now, date::next_pacific_midnight(now)?, bounds::WAIT).ok()
}

/// The refusal of any quota that is not daily.
fn retryable(reader: &mut ResponseReader<'_>, error: &ErrorBody, details: &Details<'_>) -> Refused {
    let delay = details.retry_delay;
    let delay =
        delay.and_then(|text| reader.ok_or_anomaly("retryDelay", text, duration::parse(text)));
    let delay = delay.max(reader.retry_after(RetryHeader::COMMON));
    if let Some(delay) = delay {
        let kind = Kind::Quota.terminal_if_longer(Some(delay), LONGEST_RETRY);
        return refused(kind, Some(delay), error);
    }
    let per_minute = details.violations.iter().any(|v| quota_id(v).contains("PerMinute"));
    if per_minute || details.quota_limit.contains("PerMinute") {
        return refused(Kind::Quota, Some(MINUTE), error).with_limit(None, Some(MINUTE));
    }
    let in_message = reader.wait_in_message(error);
    match details.reason {
        _ if in_message.is_some() => refused(Kind::Quota, in_message, error),
        "RATE_LIMIT_EXCEEDED" => refused(Kind::Quota, Some(DEFAULT_RETRY), error),
        "QUOTA_EXHAUSTED" | "INSUFFICIENT_G1_CREDITS_BALANCE" => {
            refused(Kind::Terminal, None, error)
        }
        _ => refused(Kind::Quota, None, error),
    }
}

/// Adds the limit that a violation states: without headers this is the only source for it.
fn add_limit(reader: &mut ResponseReader<'_>, violation: &Value, midnight: Option<Duration>) {
    let Some(value) = violation.get("quotaValue") else { return };
    let text = json::text(value).unwrap_or_default();
    let limit = reader.ok_or_anomaly("quotaValue", &text, json::amount(value));
    let (unit, period) = limit_of(quota_id(violation));
    let Some(unit) = unit else { return };
    let is_daily = period == Some(DAY);
    let seen = LimitSeen {
        period,
        limit,
        reset_in: midnight.filter(|_| is_daily),
        reset: if is_daily { ResetMeans::WindowEnds } else { ResetMeans::Unknown },
        ..LimitSeen::new(unit)
    };
    reader.add_limit("quotaValue", seen);
}

fn quota_id(violation: &Value) -> &str {
    violation.get("quotaId").and_then(Value::as_str).unwrap_or_default()
}

fn is_daily(quota: &str) -> bool {
    quota.contains("PerDay") || quota.contains("Daily")
}

/// Unit and period of a quota, from an id such as
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
    fn new(error: &'v ErrorBody) -> Self {
        let mut found = Self::default();
        for detail in json::array(error.value.get("details")) {
            let text = |path: &[&str]| json::get(detail, path).and_then(Value::as_str);
            let kind = text(&["@type"]).unwrap_or_default();
            if kind.ends_with("QuotaFailure") {
                let violations = json::array(detail.get("violations")).iter();
                found.violations.extend(violations.take(MAX_VIOLATIONS));
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

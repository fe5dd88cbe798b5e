//! GitHub, REST and GraphQL: primary limits in fixed windows, and secondary limits that no header
//! shows.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Kind, LimitSeen, ResetMeans, Verdict};
use crate::bounds;
use crate::dialect::Dialect;
use crate::parse::{date, json};
use crate::providers::Provider;
use crate::reader::{ErrorBody, LimitHeaders, ResetFormat, ResponseReader, RetryHeader, refused};
use crate::text::redact;
use crate::usage::Usage;

pub(super) static PROVIDER: Provider = Provider {
    aliases: &["gh"],
    read_limits,
    classify,
    error_in_200,
    read_usage,
    // A query that fails halfway still costs its points.
    reports_usage_of_errors: true,
    ..Provider::new(Dialect::GitHub, "github")
};

const LIMIT: LimitHeaders =
    LimitHeaders::new("x-ratelimit-", "", "requests", ResetFormat::EpochSeconds)
        .reset_means(ResetMeans::WindowEnds);

const HOUR: Duration = Duration::from_secs(3_600);
/// Added to a reset, so that the window has certainly ended.
const RESET_MARGIN: Duration = Duration::from_secs(1);
/// The wait after a secondary limit that states none.
const SECONDARY_WAIT: Duration = Duration::from_secs(60);
/// Most GraphQL errors read of one response.
const MAX_ERRORS: usize = 64;

fn read_limits(reader: &mut ResponseReader<'_>) {
    let Some(mut seen) = reader.limit_of(&LIMIT) else { return };
    let resource = reader.headers.first("x-ratelimit-resource");
    seen.period = match resource {
        // Without a resource it is nearly always the hourly quota.
        Some("core" | "graphql") | None => Some(HOUR),
        Some("search" | "code_search") => Some(Duration::from_secs(60)),
        _ => None,
    };
    if resource == Some("graphql") {
        seen.unit = Cow::Borrowed("points");
    }
    seen.name = resource.map(|name| redact(name, bounds::SHORT));
    reader.add_limit("x-ratelimit-*", seen);
}

fn classify(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Option<Verdict> {
    if reader.status == 409 {
        // A conflict in the repository, which a retry does not resolve.
        return Some(Verdict::Failed { transient: false });
    }
    let in_200 = reader.status < 400;
    if !in_200 && !matches!(reader.status, 403 | 429) {
        return None;
    }
    if error.contains(&["secondary rate limit", "abuse detection"]) {
        return Some(secondary(reader, error));
    }
    let is_named = matches!(error.kind.as_str(), "RATE_LIMITED" | "RATE_LIMIT")
        || error.contains(&["api rate limit exceeded"]);
    if is_named || (is_exhausted(reader) && !in_200) {
        return Some(primary(reader, error));
    }
    // A 403 for missing permission has no `retry-after`; a 403 with one is a limit.
    let wait = reader.retry_after(RetryHeader::COMMON).filter(|_| reader.status == 403);
    wait.map(|wait| refused(Kind::Quota, Some(wait), error).into_verdict())
}

fn is_exhausted(reader: &ResponseReader<'_>) -> bool {
    reader.limits.first().is_some_and(|seen| seen.remaining == Some(0))
}

fn primary(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Verdict {
    let wait = until_reset(reader).max(reader.retry_after(RetryHeader::COMMON));
    let seen = reader.limits.first();
    let (unit, period) = (seen.map(|seen| seen.unit.clone()), seen.and_then(|seen| seen.period));
    refused(Kind::Quota, wait, error).with_limit(unit, period).into_verdict()
}

fn secondary(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Verdict {
    // The reset is that of the primary limit: it matters only if that is used up, too.
    let reset = until_reset(reader).filter(|_| is_exhausted(reader));
    let wait = reader.retry_after(RetryHeader::COMMON).or(reset).unwrap_or(SECONDARY_WAIT);
    let unit = error.contains(&["content creation"]).then_some(Cow::Borrowed("content"));
    refused(Kind::Quota, Some(wait), error).with_limit(unit, None).into_verdict()
}

fn until_reset(reader: &ResponseReader<'_>) -> Option<Duration> {
    let reset = reader.limits.first()?.reset_in?;
    Some((reset + RESET_MARGIN).min(bounds::WAIT))
}

/// The rate-limit error in the `errors` of a GraphQL response, which has status 200.
fn error_in_200(body: &[u8]) -> Option<ErrorBody> {
    let errors = json::parse(json::raw_member(body, "errors")?)?;
    let mut errors = json::array(Some(&errors)).iter().take(MAX_ERRORS).map(ErrorBody::from_json);
    errors.find(|error| error.kind.starts_with("RATE_LIMIT") || error.contains(&["rate limit"]))
}

/// The cost of a query that asks for it: `rateLimit { cost remaining resetAt }`.
fn read_usage(reader: &mut ResponseReader<'_>) -> Usage {
    let rate_limit = json::raw_path(reader.body, &["data", "rateLimit"]).and_then(json::parse);
    let Some(rate_limit) = rate_limit.filter(Value::is_object) else { return Usage::EMPTY };
    let mut amount = |name: &str| {
        let value = rate_limit.get(name)?;
        reader.ok_or_anomaly(&format!("rateLimit.{name}"), &value.to_string(), json::amount(value))
    };
    let (cost, limit, remaining) = (amount("cost"), amount("limit"), amount("remaining"));
    let reset = rate_limit.get("resetAt").and_then(Value::as_str);
    let instant = reset.and_then(|text| Some((text, date::rfc3339(text)?)));
    let reset_in = instant.and_then(|(text, at)| reader.until("rateLimit.resetAt", text, at));
    // The headers state the same limit; a second copy of it would be redundant.
    if reader.limits.is_empty() {
        let seen = LimitSeen {
            period: Some(HOUR),
            limit,
            remaining,
            reset_in,
            reset: ResetMeans::WindowEnds,
            name: Some("graphql".to_owned()),
            ..LimitSeen::new("points")
        };
        reader.add_limit("rateLimit", seen);
    }
    Usage { points: cost, ..Usage::EMPTY }
}

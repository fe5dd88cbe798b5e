//! OpenAI: chat, Responses and embeddings, and the headers and codes that other providers copy.

use std::borrow::Cow;

use crate::answer::{Kind, ResetMeans, Verdict};
use crate::dialect::Dialect;
use crate::providers::Provider;
use crate::reader::{
    ErrorBody, LimitHeaders, ResetFormat, ResponseReader, RetryHeader, phrases, refused,
};

pub(super) static PROVIDER: Provider = Provider {
    aliases: &["open-ai", "codex"],
    charges_max_tokens: true,
    read_limits,
    classify: |reader, error| classify_code(reader, RetryHeader::COMMON, error),
    ..Provider::new(Dialect::OpenAi, "openai")
};

/// The provider does not state the period: small accounts see their daily limit where others see
/// the limit per minute.
const LIMITS: [LimitHeaders; 5] = [
    limit("-requests", "requests"),
    limit("-tokens", "tokens"),
    limit("-project-requests", "requests").named("project"),
    limit("-project-tokens", "tokens").named("project"),
    limit("-tokens_usage_based", "tokens").named("usage_based"),
];

/// The `x-ratelimit-*` headers of OpenAI for one unit. A reset is the time at which the bucket is
/// full; -1 means unknown.
pub(super) const fn limit(suffix: &'static str, unit: &'static str) -> LimitHeaders {
    let headers = LimitHeaders::new("x-ratelimit-", suffix, unit, ResetFormat::GoDuration);
    headers.reset_means(ResetMeans::Full).negative_is_unknown()
}

/// Codes of 429s that waiting does not resolve: the account needs money or a higher cap.
const TERMINAL_CODES: [&str; 6] = [
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_usage_limit_exceeded",
    "project_usage_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
];

pub(super) fn read_limits(reader: &mut ResponseReader<'_>) {
    reader.read_limit_headers(&LIMITS);
}

/// Classifies an error by OpenAI's codes, for every provider that uses them.
pub(super) fn classify_code(
    reader: &mut ResponseReader<'_>,
    retry_headers: &[RetryHeader],
    error: &ErrorBody,
) -> Option<Verdict> {
    let code = error.code.as_str();
    if is_terminal(code) || is_terminal(&error.kind) {
        // A `retry-after` says nothing about when the account is paid.
        return Some(refused(Kind::Terminal, None, error).into_verdict());
    }
    match code {
        "slow_down" => Some(reader.refusal(Kind::SlowDown, retry_headers, error)),
        "server_is_overloaded" => Some(reader.refusal(Kind::Overload, retry_headers, error)),
        "rate_limit_exceeded" if error.lower.starts_with("request too large") => {
            // The request exceeds the limit itself. It never fits, and it does not affect others.
            Some(Verdict::Failed { transient: false })
        }
        "rate_limit_exceeded" => Some(quota(reader, retry_headers, error)),
        _ => None,
    }
}

fn is_terminal(code: &str) -> bool {
    TERMINAL_CODES.contains(&code) || code.ends_with("_spend_limit_exceeded")
}

/// A quota refusal. The message names the unit, else `error.type` is the unit.
fn quota(
    reader: &mut ResponseReader<'_>,
    retry_headers: &[RetryHeader],
    error: &ErrorBody,
) -> Verdict {
    let (unit, _) = phrases::limit(&error.lower);
    let unit = unit.or(match error.kind.as_str() {
        "tokens" => Some(Cow::Borrowed("tokens")),
        "requests" => Some(Cow::Borrowed("requests")),
        _ => None,
    });
    match reader.quota(retry_headers, error) {
        Verdict::Refused(refused) => refused.with_limit(unit, None).into_verdict(),
        other => other,
    }
}

//! Anthropic: per-minute limits with an API key, shares of a budget with a subscription.

mod subscription;

use std::time::Duration;

use crate::answer::{Kind, ResetMeans, Verdict};
use crate::bounds;
use crate::dialect::Dialect;
use crate::parse::{date, json};
use crate::providers::Provider;
use crate::reader::{ErrorBody, LimitHeaders, ResetFormat, ResponseReader, RetryHeader, refused};
use crate::usage::ChargedInput;

use subscription::Status;

pub(super) static PROVIDER: Provider = Provider {
    aliases: &["claude", "claude-code"],
    refills_continuously: true,
    charged_input: ChargedInput::PlusCacheWrites,
    read_limits,
    classify,
    ..Provider::new(Dialect::Anthropic, "anthropic")
};

/// Limits per minute. Remaining tokens are rounded to a thousand. A reset is the time at which the
/// bucket is full, not the time of the next admitted call.
const LIMITS: [LimitHeaders; 8] = [
    limit("anthropic-ratelimit-requests-", "requests"),
    limit("anthropic-ratelimit-tokens-", "tokens").rounded_to(1_000),
    limit("anthropic-ratelimit-input-tokens-", "input_tokens").rounded_to(1_000),
    limit("anthropic-ratelimit-output-tokens-", "output_tokens").rounded_to(1_000),
    limit("anthropic-priority-input-tokens-", "input_tokens").rounded_to(1_000).named("priority"),
    limit("anthropic-priority-output-tokens-", "output_tokens").rounded_to(1_000).named("priority"),
    limit("anthropic-fast-input-tokens-", "input_tokens").rounded_to(1_000).named("fast"),
    limit("anthropic-fast-output-tokens-", "output_tokens").rounded_to(1_000).named("fast"),
];

const fn limit(prefix: &'static str, unit: &'static str) -> LimitHeaders {
    let headers = LimitHeaders::new(prefix, "", unit, ResetFormat::Rfc3339);
    headers.reset_means(ResetMeans::Full).per_seconds(60)
}

/// How the message begins when a spend cap is reached or credit is used up, in lower case. The
/// provider sends it with several statuses and error types.
const SPEND_CAP_MESSAGES: &[&str] = &[
    "you have reached your api usage limits",
    "you have reached your specified api usage limits",
    "you have reached your specified workspace api usage limits",
    "your credit balance is too low",
];

/// The wait after a burst refusal of a subscription that states none.
const BURST_WAIT: Duration = Duration::from_secs(1);

fn read_limits(reader: &mut ResponseReader<'_>) {
    reader.read_limit_headers(&LIMITS);
    subscription::read_limits(reader);
}

fn classify(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Option<Verdict> {
    if is_spend_cap(error) {
        let wait = spend_cap_wait(reader, error);
        return Some(refused(Kind::Terminal, wait, error).into_verdict());
    }
    match error.kind.as_str() {
        "overloaded_error" => Some(reader.refusal(Kind::Overload, RetryHeader::COMMON, error)),
        "rate_limit_error" => Some(rate_limited(reader, error)),
        // These types are never about quota, whatever the status.
        "api_error" | "timeout_error" => Some(reader.failed()),
        // A gateway may answer 429 without the provider's body.
        _ if reader.status == 429 => Some(rate_limited(reader, error)),
        _ => None,
    }
}

fn is_spend_cap(error: &ErrorBody) -> bool {
    let code = json::get(&error.value, &["details", "error_code"]).and_then(|code| code.as_str());
    code == Some("enforced_spend_limit_reached")
        || error.kind == "billing_error"
        || SPEND_CAP_MESSAGES.iter().any(|start| error.lower.starts_with(start))
}

/// The time until a spend cap ends: by a header, by the message, or for the provider's own
/// monthly cap until the first of the next month.
fn spend_cap_wait(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Option<Duration> {
    if let Some(wait) = reader.retry_after(RetryHeader::COMMON) {
        return Some(wait);
    }
    if let Some((_, text)) = error.message.split_once("regain access")
        && let Some(instant) = date::in_sentence(text)
    {
        return reader.until_terminal_end("message", text, instant);
    }
    let is_monthly = error.kind == "rate_limit_error";
    let end = reader.now.filter(|_| is_monthly).and_then(date::start_of_next_month)?;
    date::until(reader.now?, end, bounds::TERMINAL_WAIT).ok()
}

fn rate_limited(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Verdict {
    if error.contains(&["acceleration", "usage increase rate"]) {
        return reader.refusal(Kind::SlowDown, RetryHeader::COMMON, error);
    }
    if error.is_about_concurrency() {
        return reader.refusal(Kind::Concurrency, RetryHeader::COMMON, error);
    }
    let names_a_rate = error.contains(&["tokens per", "requests per"]);
    match subscription::status(reader).filter(|_| !names_a_rate) {
        Some(Status::Rejected) => subscription::refusal(reader, error),
        // The budget is not used up, so the refusal is about a burst of calls.
        Some(Status::Allowed) => {
            let wait = reader.retry_after(RetryHeader::COMMON).unwrap_or(BURST_WAIT);
            refused(Kind::Concurrency, Some(wait), error).into_verdict()
        }
        None => reader.quota(RetryHeader::COMMON, error),
    }
}

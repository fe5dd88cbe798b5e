//! GitHub Copilot: OpenAI's bodies, headers of its own, and limits of days and weeks.

use std::time::Duration;

use crate::answer::{Kind, Verdict};
use crate::dialect::Dialect;
use crate::parse::date;
use crate::providers::{Provider, openai};
use crate::reader::{ErrorBody, ResponseReader, RetryHeader, refused};

pub(super) static PROVIDER: Provider = Provider {
    aliases: &["github-copilot"],
    retry_headers: RETRY_HEADERS,
    read_limits: openai::read_limits,
    classify,
    ..Provider::new(Dialect::Copilot, "copilot")
};

const RETRY_HEADERS: &[RetryHeader] = &[
    RetryHeader::COMMON[0],
    RetryHeader::COMMON[1],
    RetryHeader::COMMON[2],
    RetryHeader::Seconds("x-ratelimit-user-retry-after"),
];

/// A refusal with a longer wait is terminal: callers should not sleep that long.
const LONGEST_RETRY: Duration = Duration::from_secs(3_600);

const WEEK: Duration = Duration::from_secs(7 * 86_400);

fn classify(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Option<Verdict> {
    let exceeded = reader.headers.first("x-ratelimit-exceeded").unwrap_or_default();
    let code = error.code.as_str();
    let is_used_up = [code, exceeded].contains(&"quota_exceeded");
    let is_weekly = code.contains("weekly") || exceeded.contains("weekly");
    let is_rate = code == "rate_limit" || code.ends_with("rate_limited");
    if !(is_used_up || is_weekly || is_rate || reader.status == 429) {
        return openai::classify_code(reader, RETRY_HEADERS, error);
    }
    let wait = reader.wait(RETRY_HEADERS, error).or_else(|| reset_in_message(reader, error));
    if is_used_up || is_weekly {
        let period = is_weekly.then_some(WEEK);
        return Some(refused(Kind::Terminal, wait, error).with_limit(None, period).into_verdict());
    }
    match openai::classify_code(reader, RETRY_HEADERS, error) {
        Some(Verdict::Refused(mut refused)) => {
            refused.kind = refused.kind.terminal_if_longer(wait, LONGEST_RETRY);
            Some(refused.into_verdict())
        }
        Some(other) => Some(other),
        None => {
            let kind = Kind::Quota.terminal_if_longer(wait, LONGEST_RETRY);
            Some(refused(kind, wait, error).into_verdict())
        }
    }
}

/// The time until the date in `wait for your limit to reset on <date>`.
fn reset_in_message(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Option<Duration> {
    let (_, text) = error.message.split_once("reset on ")?;
    let instant = date::in_sentence(text)?;
    reader.until("message", text, instant)
}

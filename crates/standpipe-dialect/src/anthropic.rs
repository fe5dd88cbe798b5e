//! Anthropic: limits per minute with a key, shares of a subscription with a bearer token.

mod unified;

use std::time::Duration;

use crate::answer::{Kind, ResetMeans, Verdict};
use crate::date;
use crate::fault::Fault;
use crate::json;
use crate::reading::{Reading, refused};
use crate::rows::{Clock, Row};
use crate::status::HINTS;

/// Limits per minute. Tokens are rounded to a thousand, and a reset is when the bucket is full, not
/// when the next call may go.
const ROWS: [Row; 8] = [
    row("anthropic-ratelimit-requests-", "requests"),
    row("anthropic-ratelimit-tokens-", "tokens").coarse(1_000),
    row("anthropic-ratelimit-input-tokens-", "input_tokens").coarse(1_000),
    row("anthropic-ratelimit-output-tokens-", "output_tokens").coarse(1_000),
    row("anthropic-priority-input-tokens-", "input_tokens").coarse(1_000).named("priority"),
    row("anthropic-priority-output-tokens-", "output_tokens").coarse(1_000).named("priority"),
    row("anthropic-fast-input-tokens-", "input_tokens").coarse(1_000).named("fast"),
    row("anthropic-fast-output-tokens-", "output_tokens").coarse(1_000).named("fast"),
];

const fn row(before: &'static str, unit: &'static str) -> Row {
    Row::new(before, "", unit, Clock::Rfc3339).means(ResetMeans::Full).per(60)
}

/// What an account without money left is told, under several statuses; in lower case.
const SPENT: &[&str] = &[
    "you have reached your api usage limits",
    "you have reached your specified api usage limits",
    "you have reached your specified workspace api usage limits",
    "your credit balance is too low",
];

/// The end of a spell in which nothing says when it ends by itself.
const BURST: Duration = Duration::from_secs(1);

pub(crate) fn see_limits(reading: &mut Reading<'_>) {
    reading.see_rows(&ROWS);
    unified::see_limits(reading);
}

pub(crate) fn judge(reading: &mut Reading<'_>, fault: &Fault) -> Option<Verdict> {
    if is_spent(fault) {
        let wait = end_of_spend_cap(reading, fault);
        return Some(refused(Kind::Terminal, wait, fault).verdict());
    }
    match fault.kind.as_str() {
        "overloaded_error" => Some(reading.refusal(Kind::Overload, HINTS, fault)),
        "rate_limit_error" => Some(rate_limited(reading, fault)),
        // Named, and not about quota: whatever the status.
        "api_error" | "timeout_error" => Some(reading.not_ours()),
        // A gateway in between may have sent it without a body of the provider's.
        _ if reading.status == 429 => Some(rate_limited(reading, fault)),
        _ => None,
    }
}

fn is_spent(fault: &Fault) -> bool {
    let code = json::at(&fault.value, &["details", "error_code"]).and_then(|code| code.as_str());
    code == Some("enforced_spend_limit_reached")
        || fault.kind == "billing_error"
        || SPENT.iter().any(|start| fault.lower.starts_with(start))
}

/// A header, the sentence, or for the provider's own cap the first of the next month.
fn end_of_spend_cap(reading: &mut Reading<'_>, fault: &Fault) -> Option<Duration> {
    if let Some(wait) = reading.hint(HINTS) {
        return Some(wait);
    }
    if let Some((_, told)) = fault.message.split_once("regain access")
        && let Some(moment) = date::in_words(told)
    {
        return reading.until_the_end("message", told, moment);
    }
    let monthly = fault.kind == "rate_limit_error";
    let end = reading.now.filter(|_| monthly).and_then(date::next_month)?;
    date::until_the_end(reading.now?, end).ok()
}

fn rate_limited(reading: &mut Reading<'_>, fault: &Fault) -> Verdict {
    if fault.says(&["acceleration", "usage increase rate"]) {
        return reading.refusal(Kind::SlowDown, HINTS, fault);
    }
    if fault.is_about_concurrency() {
        return reading.refusal(Kind::Concurrency, HINTS, fault);
    }
    let names_a_rate = fault.says(&["tokens per", "requests per"]);
    match unified::standing(reading).filter(|_| !names_a_rate) {
        Some(unified::Standing::Rejected) => unified::refusal(reading, fault),
        // The budget is not used up: it was only too much at once.
        Some(unified::Standing::Allowed) => {
            let wait = reading.hint(HINTS).unwrap_or(BURST);
            refused(Kind::Concurrency, Some(wait), fault).verdict()
        }
        None => reading.quota(HINTS, fault),
    }
}

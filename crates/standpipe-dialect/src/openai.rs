//! OpenAI: chat, Responses and embeddings; and what others have taken over from it.

use std::borrow::Cow;

use crate::answer::{Kind, ResetMeans, Verdict};
use crate::fault::Fault;
use crate::hints::Hint;
use crate::reading::{Reading, refused};
use crate::rows::{Clock, Row};
use crate::status::HINTS;
use crate::words;

/// A reset is when the bucket is full again. Of which period the figures are is not told: a small
/// account sees its day where others see their minute.
const ROWS: [Row; 5] = [
    row("-requests", "requests"),
    row("-tokens", "tokens"),
    row("-project-requests", "requests").named("project"),
    row("-project-tokens", "tokens").named("project"),
    row("-tokens_usage_based", "tokens").named("usage_based"),
];

const fn row(after: &'static str, unit: &'static str) -> Row {
    // -1 is sent where nothing is known.
    Row::new("x-ratelimit-", after, unit, Clock::Go).means(ResetMeans::Full).minus_is_unknown()
}

/// 429s that no waiting mends: money is missing.
const TERMINAL: [&str; 6] = [
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_usage_limit_exceeded",
    "project_usage_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
];

pub(crate) fn see_limits(reading: &mut Reading<'_>) {
    reading.see_rows(&ROWS);
}

pub(crate) fn judge(reading: &mut Reading<'_>, fault: &Fault) -> Option<Verdict> {
    by_code(reading, HINTS, fault)
}

/// What a code of OpenAI's means, at whoever sends it.
pub(crate) fn by_code(reading: &mut Reading<'_>, hints: &[Hint], fault: &Fault) -> Option<Verdict> {
    let code = fault.code.as_str();
    if is_terminal(code) || is_terminal(&fault.kind) {
        // When money comes, no header knows.
        return Some(refused(Kind::Terminal, None, fault).verdict());
    }
    match code {
        "slow_down" => Some(reading.refusal(Kind::SlowDown, hints, fault)),
        "server_is_overloaded" => Some(reading.refusal(Kind::Overload, hints, fault)),
        "rate_limit_exceeded" if fault.lower.starts_with("request too large") => {
            // Larger than the limit itself: it never fits, and nobody else need wait for it.
            Some(Verdict::NotOurs { transient: false })
        }
        "rate_limit_exceeded" => Some(quota(reading, hints, fault)),
        _ => None,
    }
}

fn is_terminal(code: &str) -> bool {
    TERMINAL.contains(&code) || code.ends_with("_spend_limit_exceeded")
}

/// The sentence names the limit; its type is what is counted.
fn quota(reading: &mut Reading<'_>, hints: &[Hint], fault: &Fault) -> Verdict {
    let (unit, _) = words::limit(&fault.lower);
    let unit = unit.or(match fault.kind.as_str() {
        "tokens" => Some(Cow::Borrowed("tokens")),
        "requests" => Some(Cow::Borrowed("requests")),
        _ => None,
    });
    match reading.quota(hints, fault) {
        Verdict::Refused(refused) => refused.about(unit, None).verdict(),
        other => other,
    }
}

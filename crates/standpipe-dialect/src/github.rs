//! GitHub: primary limits in fixed windows, secondary ones that no header shows, REST and GraphQL.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Kind, LimitSeen, ResetMeans, Verdict};
use crate::bounds;
use crate::date;
use crate::fault::Fault;
use crate::json;
use crate::message;
use crate::reading::{Reading, refused};
use crate::rows::{Clock, Row};
use crate::status::HINTS;
use crate::usage::Usage;

const ROW: Row =
    Row::new("x-ratelimit-", "", "requests", Clock::Epoch).means(ResetMeans::WindowEnds);

/// What is waited beyond a reset, so that it has certainly happened.
const MARGIN: Duration = Duration::from_secs(1);
/// What a secondary limit waits at least when it does not say.
const SECONDARY: Duration = Duration::from_secs(60);

pub(crate) fn see_limits(reading: &mut Reading<'_>) {
    let Some(mut seen) = reading.row(&ROW) else { return };
    let resource = reading.headers.first("x-ratelimit-resource");
    seen.period = match resource {
        // Most of what does not say is the hourly quota.
        Some("core" | "graphql") | None => Some(Duration::from_secs(3_600)),
        Some("search" | "code_search") => Some(Duration::from_secs(60)),
        _ => None,
    };
    if resource == Some("graphql") {
        seen.unit = Cow::Borrowed("points");
    }
    seen.name = resource.map(|name| message::scrubbed(name, bounds::SHORT));
    reading.see("x-ratelimit-*", seen);
}

pub(crate) fn judge(reading: &mut Reading<'_>, fault: &Fault) -> Option<Verdict> {
    if reading.status == 409 {
        // A conflict of contents, which trying again does not mend.
        return Some(Verdict::NotOurs { transient: false });
    }
    let in_200 = reading.status < 400;
    if !in_200 && !matches!(reading.status, 403 | 429) {
        return None;
    }
    if fault.says(&["secondary rate limit", "abuse detection"]) {
        return Some(secondary(reading, fault));
    }
    let is_named = matches!(fault.kind.as_str(), "RATE_LIMITED" | "RATE_LIMIT")
        || fault.says(&["api rate limit exceeded"]);
    let is_empty = reading.limits.first().is_some_and(|seen| seen.remaining == Some(0));
    if is_named || (is_empty && !in_200) {
        return Some(primary(reading, fault));
    }
    // A permission error has no hint; what has one is a limit, named or not.
    let hint = reading.hint(HINTS).filter(|_| reading.status == 403);
    hint.map(|wait| refused(Kind::Quota, Some(wait), fault).verdict())
}

fn primary(reading: &mut Reading<'_>, fault: &Fault) -> Verdict {
    let wait = until_reset(reading).max(reading.hint(HINTS));
    let seen = reading.limits.first();
    let (unit, period) = (seen.map(|seen| seen.unit.clone()), seen.and_then(|seen| seen.period));
    refused(Kind::Quota, wait, fault).about(unit, period).verdict()
}

fn secondary(reading: &mut Reading<'_>, fault: &Fault) -> Verdict {
    let is_empty = reading.limits.first().is_some_and(|seen| seen.remaining == Some(0));
    let reset = until_reset(reading).filter(|_| is_empty);
    let wait = reading.hint(HINTS).or(reset).unwrap_or(SECONDARY);
    let unit = fault.says(&["content creation"]).then_some(Cow::Borrowed("content"));
    refused(Kind::Quota, Some(wait), fault).about(unit, None).verdict()
}

fn until_reset(reading: &Reading<'_>) -> Option<Duration> {
    let reset = reading.limits.first()?.reset_in?;
    Some((reset + MARGIN).min(bounds::WAIT))
}

/// GraphQL answers 200 and lists its errors; the one about limits counts.
pub(crate) fn fault_in_200(body: &[u8]) -> Option<Fault> {
    let errors = json::parse(json::member(body, "errors")?)?;
    let mut faults = json::list(Some(&errors)).iter().take(64).map(Fault::of_value);
    faults.find(|fault| fault.kind.starts_with("RATE_LIMIT") || fault.says(&["rate limit"]))
}

/// What a query says of its own cost, if it asked: `rateLimit { cost remaining resetAt }`.
pub(crate) fn usage(reading: &mut Reading<'_>) -> Usage {
    let told = json::path(reading.body, &["data", "rateLimit"]).and_then(json::parse);
    let Some(told) = told.filter(Value::is_object) else { return Usage::default() };
    let mut figure = |name: &str| {
        let value = told.get(name)?;
        reading.believe(&format!("rateLimit.{name}"), &value.to_string(), json::figure(value))
    };
    let (cost, limit, remaining) = (figure("cost"), figure("limit"), figure("remaining"));
    let reset = told.get("resetAt").and_then(Value::as_str);
    let moment = reset.and_then(|text| Some((text, date::rfc3339(text)?)));
    let reset_in = moment.and_then(|(text, at)| reading.until("rateLimit.resetAt", text, at));
    // The headers say the same; only without them is it news.
    if reading.limits.is_empty() {
        let seen = LimitSeen {
            period: Some(Duration::from_secs(3_600)),
            limit,
            remaining,
            reset_in,
            reset: ResetMeans::WindowEnds,
            name: Some("graphql".to_owned()),
            ..LimitSeen::of("points")
        };
        reading.see("rateLimit", seen);
    }
    Usage { points: cost, ..Usage::default() }
}

//! One dialect by tables, for everybody whose answers differ only in names.
//!
//! A sheet per provider says which headers tell of limits and which codes and words refuse. The
//! headers that are to be the standard are read for all of them.

mod ietf;
mod sheets;
mod shopify;

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Kind, LimitSeen, ResetMeans, Verdict};
use crate::dialect::{Dialect, usage_of};
use crate::fault::Fault;
use crate::hints::{COMMON, Hint};
use crate::json;
use crate::number;
use crate::openai;
use crate::reading::{Reading, refused};
use crate::usage::Usage;

use sheets::{At, Mark, Sheet, Then};

pub(crate) const HINTS: &[Hint] =
    &[COMMON[0], COMMON[1], COMMON[2], Hint::Seconds("beta-retry-after")];

pub(crate) fn see_limits(dialect: Dialect, reading: &mut Reading<'_>) {
    let sheet = sheets::of(dialect);
    reading.see_rows(sheet.rows);
    if dialect == Dialect::Shopify {
        shopify::see_limits(reading);
    }
    ietf::see_limits(reading);
    // Many send the old names beside the new ones; the new ones say more.
    if reading.limits.is_empty() {
        reading.see_rows(sheet.plain);
    }
}

pub(crate) fn judge(dialect: Dialect, reading: &mut Reading<'_>, fault: &Fault) -> Option<Verdict> {
    let sheet = sheets::of(dialect);
    let code = code(sheet, reading, fault);
    if let Some(mark) = sheet.marks.iter().find(|mark| holds(mark, &code, reading, fault)) {
        return Some(follow(mark, sheet, reading, fault));
    }
    let by_openai = if sheet.speaks_openai { openai::by_code(reading, HINTS, fault) } else { None };
    by_openai.or_else(|| problem(sheet, reading, fault)).or_else(|| {
        let kind = if fault.is_about_concurrency() { Kind::Concurrency } else { Kind::Quota };
        (reading.status == 429).then(|| refuse(kind, None, None, sheet, reading, fault))
    })
}

/// The name of what went wrong; some put it into a header, with an address behind it.
fn code(sheet: &Sheet, reading: &Reading<'_>, fault: &Fault) -> String {
    let header = sheet.code_header.and_then(|name| reading.headers.first(name));
    let code = header.unwrap_or(&fault.code);
    let code = code.split(':').next().unwrap_or_default();
    code.rsplit('#').next().unwrap_or_default().to_ascii_lowercase()
}

fn holds(mark: &Mark, code: &str, reading: &Reading<'_>, fault: &Fault) -> bool {
    match mark.at {
        At::Code => code == mark.says,
        // In a stream there is no status but the 200 that came first.
        At::Message => matches!(reading.status, ..400 | 429) && fault.lower.contains(mark.says),
        At::Header(name) => match mark.says.strip_prefix('*') {
            Some(end) => reading.headers.first(name).is_some_and(|value| value.ends_with(end)),
            None => reading.headers.has(name, mark.says),
        },
    }
}

fn follow(mark: &Mark, sheet: &Sheet, reading: &mut Reading<'_>, fault: &Fault) -> Verdict {
    match mark.then {
        Then::Refuse(kind, unit, seconds) => {
            refuse(kind, unit, seconds.map(Duration::from_secs), sheet, reading, fault)
        }
        Then::NotOurs => Verdict::NotOurs { transient: true },
    }
}

fn refuse(
    kind: Kind,
    unit: Option<&'static str>,
    period: Option<Duration>,
    sheet: &Sheet,
    reading: &mut Reading<'_>,
    fault: &Fault,
) -> Verdict {
    let wait = wait(kind, sheet, reading, fault);
    let (hit, hit_period) = if kind == Kind::Quota { reading.hit(fault) } else { (None, None) };
    let refusal = refused(kind, wait, fault).about(hit, hit_period);
    refusal.about(unit.map(Cow::Borrowed), period).verdict()
}

/// Headers and words first, then the body's own field, then the end of what is empty.
fn wait(kind: Kind, sheet: &Sheet, reading: &mut Reading<'_>, fault: &Fault) -> Option<Duration> {
    if let Some(wait) = reading.wait(HINTS, fault) {
        return Some(wait);
    }
    if let Some(field) = sheet.wait_field
        && let Some(text) = fault.value.get(field).and_then(json::text)
        && let Some(wait) = reading.believe(field, &text, number::seconds(&text))
    {
        return Some(wait);
    }
    if kind != Kind::Quota {
        return None;
    }
    let is_empty = |seen: &&LimitSeen| seen.remaining == Some(0) && seen.reset != ResetMeans::Full;
    let resets = reading.limits.iter().filter(is_empty).filter_map(|seen| seen.reset_in);
    resets.max().or_else(|| shopify::wait(reading.body))
}

/// The problem types of the standard to be.
fn problem(sheet: &Sheet, reading: &mut Reading<'_>, fault: &Fault) -> Option<Verdict> {
    let named = |name: &str| fault.kind.ends_with(name);
    let kind = if named("quota-exceeded") {
        Kind::Quota
    } else if named("temporary-reduced-capacity") {
        Kind::Overload
    } else if named("abnormal-usage-detected") {
        Kind::SlowDown
    } else {
        return None;
    };
    let violated = json::list(fault.value.get("violated-policies"));
    let is_hit = |name: &str| violated.iter().any(|policy| policy.as_str() == Some(name));
    let hit = reading.limits.iter().find(|seen| seen.name.as_deref().is_some_and(is_hit));
    let (unit, period) = hit.map_or((None, None), |hit| (Some(hit.unit.clone()), hit.period));
    match refuse(kind, None, None, sheet, reading, fault) {
        Verdict::Refused(refused) => Some(refused.about(unit, period).verdict()),
        other => Some(other),
    }
}

/// An error in a body that came with 200: GraphQL lists them, Slack says that it is not `ok`.
pub(crate) fn fault_in_200(body: &[u8]) -> Option<Fault> {
    if let Some(errors) = json::member(body, "errors").and_then(json::parse) {
        let is_throttled = |error: &&Value| {
            json::at(error, &["extensions", "code"]).and_then(Value::as_str) == Some("THROTTLED")
        };
        let error = json::list(Some(&errors)).iter().take(64).find(is_throttled)?;
        return Some(Fault { code: "THROTTLED".to_owned(), ..Fault::of_value(error) });
    }
    (json::member(body, "ok")? == b"false").then(|| Fault::of(body))
}

/// What a query cost at Shopify.
pub(crate) fn shopify_usage(reading: &mut Reading<'_>) -> Usage {
    shopify::usage(reading)
}

/// Bedrock tells it in the body, or of a model's raw answer in headers.
pub(crate) fn bedrock_usage(reading: &mut Reading<'_>) -> Usage {
    let mut usage = usage_of(reading, "usage");
    let mut header = |name: &str| {
        let value = reading.headers.first(name)?;
        reading.believe(name, value, number::figure(value))
    };
    let input = header("x-amzn-bedrock-input-token-count");
    let output = header("x-amzn-bedrock-output-token-count");
    usage.input_tokens = usage.input_tokens.or(input);
    usage.output_tokens = usage.output_tokens.or(output);
    usage
}

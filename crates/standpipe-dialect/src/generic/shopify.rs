//! Shopify's bucket of cost points, and its older count of calls.

use std::time::Duration;

use serde_json::Value;

use crate::answer::{LimitSeen, ResetMeans};
use crate::bounds;
use crate::doubt::Why;
use crate::json;
use crate::number;
use crate::reading::Reading;
use crate::usage::Usage;

const CALLS: &str = "x-shopify-shop-api-call-limit";

pub(super) fn see_limits(reading: &mut Reading<'_>) {
    if let Some(value) = reading.headers.first(CALLS) {
        calls(reading, value);
    }
    let Some(cost) = cost(reading.body) else { return };
    let mut figure = |name: &str| {
        let value = json::at(&cost, &["throttleStatus", name])?;
        reading.believe(name, &value.to_string(), json::figure(value))
    };
    let limit = figure("maximumAvailable");
    let remaining = figure("currentlyAvailable");
    let rate = figure("restoreRate");
    let full = limit.zip(remaining).map(|(limit, left)| limit.saturating_sub(left));
    let seen = LimitSeen {
        period: time_for(limit, rate).filter(|period| !period.is_zero()),
        limit,
        remaining,
        reset_in: time_for(full, rate),
        reset: ResetMeans::Full,
        ..LimitSeen::of("points")
    };
    reading.see("extensions.cost.throttleStatus", seen);
}

/// `32/40`: used and limit of a bucket that leaks.
fn calls(reading: &mut Reading<'_>, value: &str) {
    let read = value
        .split_once('/')
        .ok_or(Why::Unreadable)
        .and_then(|(used, limit)| Ok((number::figure(used)?, number::figure(limit)?)));
    let Some((used, limit)) = reading.believe(CALLS, value, read) else { return };
    let remaining = Some(limit.saturating_sub(used));
    let reset = ResetMeans::Full;
    reading.see(
        CALLS,
        LimitSeen { limit: Some(limit), remaining, reset, ..LimitSeen::of("requests") },
    );
}

/// How long until a query of this cost would be let through.
pub(super) fn wait(body: &[u8]) -> Option<Duration> {
    let cost = cost(body)?;
    let figure = |path: &[&str]| json::figure(json::at(&cost, path)?).ok();
    let left = figure(&["throttleStatus", "currentlyAvailable"])?;
    let missing = figure(&["requestedQueryCost"])?.saturating_sub(left);
    time_for(Some(missing), figure(&["throttleStatus", "restoreRate"]))
}

pub(super) fn usage(reading: &mut Reading<'_>) -> Usage {
    let cost = cost(reading.body);
    let actual = cost.as_ref().and_then(|cost| cost.get("actualQueryCost"));
    let points = actual.filter(|actual| !actual.is_null()).and_then(|actual| {
        reading.believe("actualQueryCost", &actual.to_string(), json::figure(actual))
    });
    Usage { points, ..Usage::default() }
}

fn cost(body: &[u8]) -> Option<Value> {
    json::path(body, &["extensions", "cost"]).and_then(json::parse)
}

/// In how long so many points come back.
fn time_for(points: Option<u64>, per_second: Option<u64>) -> Option<Duration> {
    let millis = (points? * 1_000).checked_div(per_second?)?;
    Some(Duration::from_millis(millis)).filter(|time| *time <= bounds::WAIT)
}

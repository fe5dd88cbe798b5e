//! Shopify: a bucket of cost points in GraphQL bodies, and a call count in a REST header.

use std::time::Duration;

use serde_json::Value;

use crate::anomaly::AnomalyReason;
use crate::answer::{LimitSeen, ResetMeans};
use crate::bounds;
use crate::dialect::Dialect;
use crate::parse::{json, number};
use crate::providers::Provider;
use crate::providers::generic::{self, Profile, Rule, RuleVerdict};
use crate::reader::ResponseReader;
use crate::usage::Usage;

pub(super) static PROVIDER: Provider = Provider {
    read_limits: |reader| PROFILE.read_limits(reader),
    classify: |reader, error| PROFILE.classify(reader, error),
    error_in_200: generic::error_in_200,
    read_usage,
    reports_usage_of_errors: true,
    ..Provider::new(Dialect::Shopify, "shopify")
};

static PROFILE: Profile = Profile {
    other_limits: |reader| {
        read_call_limit(reader);
        read_points(reader);
    },
    rules: &[Rule::code("throttled", RuleVerdict::quota(Some("points"), None))],
    ..Profile::DEFAULT
};

const CALL_LIMIT: &str = "x-shopify-shop-api-call-limit";

/// Reads `32/40`: the level and the size of a leaky bucket of calls.
fn read_call_limit(reader: &mut ResponseReader<'_>) {
    let Some(value) = reader.headers.first(CALL_LIMIT) else { return };
    let parsed = value
        .split_once('/')
        .ok_or(AnomalyReason::Unreadable)
        .and_then(|(used, limit)| Ok((number::amount(used)?, number::amount(limit)?)));
    let Some((used, limit)) = reader.ok_or_anomaly(CALL_LIMIT, value, parsed) else { return };
    let seen = LimitSeen {
        limit: Some(limit),
        remaining: Some(limit.saturating_sub(used)),
        reset: ResetMeans::Full,
        ..LimitSeen::new("requests")
    };
    reader.add_limit(CALL_LIMIT, seen);
}

/// Reads the bucket of points in `extensions.cost.throttleStatus`.
fn read_points(reader: &mut ResponseReader<'_>) {
    let Some(cost) = cost(reader.body) else { return };
    let mut amount = |name: &str| {
        let value = json::get(&cost, &["throttleStatus", name])?;
        reader.ok_or_anomaly(name, &value.to_string(), json::amount(value))
    };
    let limit = amount("maximumAvailable");
    let remaining = amount("currentlyAvailable");
    let rate = amount("restoreRate");
    let used = limit.zip(remaining).map(|(limit, remaining)| limit.saturating_sub(remaining));
    let seen = LimitSeen {
        period: restore_time(limit, rate).filter(|period| !period.is_zero()),
        limit,
        remaining,
        reset_in: restore_time(used, rate),
        reset: ResetMeans::Full,
        ..LimitSeen::new("points")
    };
    reader.add_limit("extensions.cost.throttleStatus", seen);
}

/// The time until the bucket holds the points that the refused query needs.
pub(super) fn wait_for_points(body: &[u8]) -> Option<Duration> {
    let cost = cost(body)?;
    let amount = |path: &[&str]| json::amount(json::get(&cost, path)?).ok();
    let available = amount(&["throttleStatus", "currentlyAvailable"])?;
    let missing = amount(&["requestedQueryCost"])?.saturating_sub(available);
    restore_time(Some(missing), amount(&["throttleStatus", "restoreRate"]))
}

fn read_usage(reader: &mut ResponseReader<'_>) -> Usage {
    let cost = cost(reader.body);
    let actual = cost.as_ref().and_then(|cost| cost.get("actualQueryCost"));
    let points = actual.filter(|actual| !actual.is_null()).and_then(|actual| {
        reader.ok_or_anomaly("actualQueryCost", &actual.to_string(), json::amount(actual))
    });
    Usage { points, ..Usage::EMPTY }
}

fn cost(body: &[u8]) -> Option<Value> {
    json::raw_path(body, &["extensions", "cost"]).and_then(json::parse)
}

/// The time in which the bucket restores so many points.
fn restore_time(points: Option<u64>, per_second: Option<u64>) -> Option<Duration> {
    let millis = (points? * 1_000).checked_div(per_second?)?;
    Some(Duration::from_millis(millis)).filter(|time| *time <= bounds::WAIT)
}

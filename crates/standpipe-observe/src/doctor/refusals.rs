//! Refusals by providers: more than one a week means that a limit is set too high.

use std::collections::BTreeMap;

use standpipe_core::{Margin, Span, Unit};

use super::{Scene, length, or_ok};
use crate::finding::{Finding, TOO_MANY_AT_ONCE, UNLIMITED};
use crate::journal::EventData;
use crate::status::{LimitStatus, PoolOverview};
use crate::time::Timestamp;
use standpipe_config::plain;

pub(super) const NAME: &str = "429s";

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    if !scene.has_journal() {
        return Vec::new();
    }
    let found: Vec<Finding> = refused_often(scene)
        .map(|(pool, count, last)| too_high(scene, pool, count, last))
        .collect();
    or_ok(found, NAME, || match scene.refusals().next() {
        None => "no 429s in 7 days".to_owned(),
        Some(_) => "no pool got more than one 429 in 7 days".to_owned(),
    })
}

/// The pools with more than one refusal in the week: how many, and when the last was.
pub(super) fn refused_often(scene: &Scene) -> impl Iterator<Item = (&str, usize, Timestamp)> {
    let mut pools: BTreeMap<&str, (usize, Timestamp)> = BTreeMap::new();
    for (at, pool, _) in scene.refusals() {
        let (count, last) = pools.entry(pool).or_insert((0, at));
        (*count, *last) = (*count + 1, at.max(*last));
    }
    let often = pools.into_iter().filter(|(_, (count, _))| *count > 1);
    often.map(|(pool, (count, last))| (pool, count, last))
}

fn too_high(scene: &Scene, pool: &str, count: usize, last: Timestamp) -> Finding {
    let ago = ago(scene.now.millis.saturating_sub(last.millis));
    let overview = scene.pool(pool);
    let refused = refused_limits(scene, pool);
    let on = match refused.as_slice() {
        [] => String::new(),
        limits => format!(", on {}", limits.join(" and ")),
    };
    let what = format!(
        "`{pool}`: {count} calls got a 429 in 7 days, the last {ago}{on}{}",
        overview.map(margins).unwrap_or_default()
    );
    let rates = |overview: &PoolOverview| overview.status.limits.iter().any(|l| rate(l).is_some());
    let remedy = match overview {
        _ if is_about_slots(scene, pool) => TOO_MANY_AT_ONCE.to_owned(),
        Some(overview) if !rates(overview) => UNLIMITED.to_owned(),
        _ => lower(overview, &refused),
    };
    Finding::warning(NAME, what).remedy(remedy).on(pool)
}

/// Whether every refusal of a pool was of too many calls at once.
fn is_about_slots(scene: &Scene, pool: &str) -> bool {
    let about = scene.week.iter().filter(|event| event.pool == pool).filter_map(|event| {
        let EventData::Throttle { about, .. } = &event.what else { return None };
        Some(about.as_str())
    });
    about.filter(|about| *about != "overload").all(|about| about == "concurrency")
}

/// What to lower. A `margin` applies to all limits of a pool, so it is no advice where their own
/// margins differ.
fn lower(overview: Option<&PoolOverview>, refused: &[&str]) -> String {
    let limits = overview.into_iter().flat_map(|overview| &overview.status.limits);
    let mut margins: Vec<u16> = limits.filter_map(|limit| limit.margin_per_mille).collect();
    margins.dedup();
    let what = match (margins.as_slice(), refused) {
        ([_, _, ..], []) => "a limit is set too high: lower it".to_owned(),
        ([_, _, ..], some) => {
            let (verb, them) = if some.len() == 1 { ("is", "it") } else { ("are", "them") };
            format!("{} {verb} set too high: lower {them}", some.join(" and "))
        }
        (same, _) => {
            let present = same.first().copied().unwrap_or(Margin::Auto.per_mille());
            let present = plain::percent(present);
            format!("a limit is set too high: lower it, or set a `margin` above \"{present}\"")
        }
    };
    format!("{what}; if the limit is right, some calls bypass Standpipe")
}

/// The limits that the provider named as exceeded: an automatic margin grows for no other reason.
fn refused_limits<'a>(scene: &'a Scene, pool: &str) -> Vec<&'a str> {
    let mut margins: BTreeMap<&str, u16> = BTreeMap::new();
    let mut refused = Vec::new();
    for event in scene.week.iter().filter(|event| event.pool == pool) {
        let EventData::Margin { limit, per_mille } = &event.what else { continue };
        let before = margins.insert(limit, *per_mille).unwrap_or(Margin::Auto.per_mille());
        if *per_mille > before && !refused.contains(&limit.as_str()) {
            refused.push(limit.as_str());
        }
    }
    refused
}

/// The present margin of each rate.
fn margins(pool: &PoolOverview) -> String {
    let status = &pool.status;
    let each = status.limits.iter().filter_map(|limit| {
        let percent = plain::percent(limit.margin_per_mille?).replace('%', " %");
        Some(format!("{percent} of {}", rate(limit)?))
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        return String::new();
    }
    let auto = if status.margin_auto { "auto, now " } else { "" };
    format!("; margin {auto}{}", each.join(", "))
}

/// `requests 1000/min`
fn rate(limit: &LimitStatus) -> Option<String> {
    let unit = Unit::named(&limit.unit)?;
    let period = Span::millis(limit.period_ms?);
    Some(format!("{unit} {}", plain::rate(&unit, limit.amount, period)))
}

fn ago(ms: u64) -> String {
    if ms < 1_000 { "just now".to_owned() } else { format!("{} ago", length(ms)) }
}

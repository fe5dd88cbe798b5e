//! Refusals by providers: more than one a week means that a limit is set too high.

use std::collections::BTreeMap;

use standpipe_core::{Margin, Span, Unit};

use super::{Scene, length, or_ok};
use crate::finding::{Finding, UNLIMITED};
use crate::status::LimitStatus;
use crate::status::PoolOverview;
use crate::time::Timestamp;
use standpipe_config::plain;

const NAME: &str = "429s";

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    if !scene.has_journal() {
        return Vec::new();
    }
    let mut pools: BTreeMap<&str, (usize, Timestamp)> = BTreeMap::new();
    for (at, pool, _) in scene.refusals() {
        let (count, last) = pools.entry(pool).or_insert((0, at));
        (*count, *last) = (*count + 1, at.max(*last));
    }
    let many = pools.iter().filter(|(_, (count, _))| *count > 1);
    let found = many.map(|(pool, (count, last))| too_high(scene, pool, *count, *last)).collect();
    or_ok(found, NAME, || match pools.len() {
        0 => "no 429s in 7 days".to_owned(),
        _ => "no pool got more than one 429 in 7 days".to_owned(),
    })
}

fn too_high(scene: &Scene, pool: &str, count: usize, last: Timestamp) -> Finding {
    let ago = ago(scene.now.millis.saturating_sub(last.millis));
    let overview = scene.pool(pool);
    let what = format!(
        "`{pool}`: {count} calls got a 429 in 7 days, the last {ago}{}",
        overview.map(margin).unwrap_or_default()
    );
    let present =
        overview.map_or(Margin::Auto.per_mille(), |overview| overview.status.margin_per_mille);
    let present = plain::percent(present);
    let rates = |overview: &PoolOverview| overview.status.limits.iter().any(|l| rate(l).is_some());
    let remedy = match overview {
        Some(overview) if !rates(overview) => UNLIMITED.to_owned(),
        _ => format!(
            "a limit is set too high: lower it, or set a `margin` above \"{present}\"; if the \
             limit is right, some calls bypass Standpipe"
        ),
    };
    Finding::warning(NAME, what).remedy(remedy).on(pool)
}

/// The present margin and the rates it applies to.
fn margin(pool: &PoolOverview) -> String {
    let status = &pool.status;
    let rates: Vec<String> = status.limits.iter().filter_map(rate).collect();
    if rates.is_empty() {
        return String::new();
    }
    let percent = plain::percent(status.margin_per_mille).replace('%', " %");
    let auto = if status.margin_auto { "auto, now " } else { "" };
    format!("; margin {auto}{percent} of {}", rates.join(", "))
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

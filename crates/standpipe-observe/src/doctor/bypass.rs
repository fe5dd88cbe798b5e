//! Traffic that bypasses Standpipe: the provider counted more than the ledger.

use std::collections::{BTreeMap, BTreeSet};

use standpipe_store::PoolName;

use super::{Scene, length, names, or_ok, refusals};
use crate::finding::{Finding, counted};
use crate::journal::{Event, EventData};
use crate::others;
use crate::status::PoolOverview;
use crate::time::Timestamp;

pub(super) const NAME: &str = "outside";

/// What bypassed one limit of a pool.
#[derive(Clone, Copy)]
struct Seen {
    times: usize,
    units: u64,
    last: Timestamp,
}

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let (limits, mut found): (Vec<(&str, &str)>, Vec<Finding>) = present(scene).into_iter().unzip();
    if !scene.has_journal() {
        return found;
    }
    let mut seen: BTreeMap<(&str, &str), Seen> = BTreeMap::new();
    for event in &scene.week {
        let EventData::Outside { limit, units, .. } = &event.what else { continue };
        let first = Seen { times: 0, units: 0, last: event.at };
        let known = seen.entry((&event.pool, limit)).or_insert(first);
        known.times += 1;
        known.units = known.units.saturating_add(*units);
        known.last = known.last.max(event.at);
    }
    let earlier = seen.into_iter().filter(|(of, _)| !limits.contains(of));
    found.extend(earlier.map(|((pool, limit), seen)| bypassed(scene, pool, limit, seen)));
    found.extend(unknown(scene));
    found.extend(ignored(scene));
    // A pool with many 429s may have calls that bypass Standpipe and that no response shows.
    if found.is_empty() && refusals::refused_often(scene).next().is_some() {
        return Vec::new();
    }
    or_ok(found, NAME, || match scene.readable().any(|(_, pool)| has_rates(pool)) {
        true => "the providers counted no call that bypassed Standpipe in 7 days".to_owned(),
        false => "no rate to compare with the provider's count".to_owned(),
    })
}

/// Readings of the provider that contradict the ledger and were not believed: calls that bypass
/// Standpipe may be behind them.
fn ignored(scene: &Scene) -> Vec<Finding> {
    let mut seen: BTreeMap<(&str, &str), (u64, &Event)> = BTreeMap::new();
    for event in &scene.week {
        let EventData::Anomaly { about, .. } = &event.what else { continue };
        // Anomalies about headers name the header.
        let pool = scene.pool(&event.pool).map(|pool| &pool.status);
        let is_limit = pool.is_some_and(|pool| pool.limits.iter().any(|l| l.limit == *about));
        if is_limit {
            let (count, last) = seen.entry((&event.pool, about)).or_insert((0, event));
            (*count, *last) = (*count + 1, event);
        }
    }
    let finding = |((pool, limit), (count, last)): ((&str, &str), (u64, &Event))| {
        let EventData::Anomaly { value, why, .. } = &last.what else { return None };
        let what = format!(
            "`{pool}`: {} of {limit} in 7 days showed less than Standpipe counts and {} not \
             believed, the last ({value}): {why}",
            counted(count, "reading"),
            if count == 1 { "was" } else { "were" }
        );
        let remedy = "if other callers may use this key, find them; if the provider has such a \
                      burst limit, state it in standpipe.toml (`burst`)";
        Some(Finding::note(NAME, what).remedy(remedy).on(pool))
    };
    seen.into_iter().filter_map(finding).collect()
}

/// The pools of which no response has reported what the provider counts.
fn unknown(scene: &Scene) -> Option<Finding> {
    let reports = |event: &&Event| match &event.what {
        EventData::Observe { headers, .. } => {
            headers.keys().any(|name| !name.eq_ignore_ascii_case("retry-after"))
        }
        EventData::Outside { .. } => true,
        _ => false,
    };
    let known: BTreeSet<&str> =
        scene.week.iter().filter(reports).map(|event| event.pool.as_str()).collect();
    let is_unknown = |(name, pool): &(&PoolName, &PoolOverview)| {
        let others = |limit| others::used_by_others(&pool.status, limit) > 0;
        has_rates(pool) && !known.contains(name.as_str()) && !pool.status.limits.iter().any(others)
    };
    let pools: Vec<&str> = scene.readable().filter(is_unknown).map(|(n, _)| n.as_str()).collect();
    let named = names(&pools)?;
    let what = format!("not known for {named}: no response with limits was reported in 7 days");
    // Most pools never report headers, and nothing is wrong with that.
    Some(Finding::ok(NAME, what))
}

fn has_rates(pool: &PoolOverview) -> bool {
    pool.status.limits.iter().any(|limit| limit.period_ms.is_some())
}

/// What others use of each limit now, where that is notable. It is not in the journal while it may
/// be from before Standpipe started.
fn present(scene: &Scene) -> Vec<((&str, &str), Finding)> {
    let limits = scene.readable().flat_map(|(name, pool)| {
        pool.status.limits.iter().map(move |limit| (name.as_str(), &pool.status, limit))
    });
    let each = limits.filter_map(|(name, status, limit)| {
        let (units, stated) = (others::used_by_others(status, limit), others::stated(limit));
        let period_ms = limit.period_ms.filter(|_| others::is_notable(units, stated))?;
        let what = others::what(&limit.limit, &limit.unit, units, stated);
        let finding = Finding::warning(NAME, format!("`{name}`: {what}"));
        let finding = finding.remedy(others::remedy(period_ms)).on(name);
        Some(((name, limit.limit.as_str()), finding))
    });
    each.collect()
}

fn bypassed(scene: &Scene, pool: &str, limit: &str, seen: Seen) -> Finding {
    let ago = length(scene.now.millis.saturating_sub(seen.last.millis));
    let Seen { times, units, .. } = seen;
    let often = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    let what = format!(
        "`{pool}`: the provider counted {units} of {limit} that did not go through Standpipe, \
         {often} in 7 days, last {ago} ago"
    );
    let remedy = "find what else uses this key (another script, a colleague, a CI job, an SDK that \
                  retries on its own) and route it through Standpipe; until then a larger \
                  `margin` leaves room for it";
    Finding::warning(NAME, what).remedy(remedy).on(pool)
}

//! Counters of pools and of the journal itself.
//!
//! Counters that alerts use exist from the start with the value 0: the first event is a rise.

use std::collections::BTreeMap;

use super::counters::{JournalCounters, PoolCounters};
use super::exposition::{Amount, Exposition, Family};
use super::labels::{KIND, KINDS, LIMIT, Label, LabelCounts, POOL, REASON, RECLAIMS, UNIT};
use super::{PoolMetrics, unit_of};

/// The kind of an event of the journal.
const EVENT: Label = Label::any("kind");
/// Why a lease was reclaimed.
const WHY: Label = Label::of("why", &RECLAIMS);

pub(super) fn write(
    page: &mut Exposition,
    counters: &JournalCounters,
    pools: &BTreeMap<&str, PoolMetrics<'_>>,
) {
    let help = "Journal events since the daemon started, by kind.";
    let mut lines = page.counter("journal_lines_total", &[EVENT], help);
    for (kind, count) in counters.kinds() {
        lines.put(&[kind], count);
    }
    let help = "Journal events that processes of this machine could not write.";
    page.counter("journal_lost_lines_total", &[], help).put(&[], counters.lost());
    simple(page, pools);
    let help = "Calls that the provider refused (429 and similar), by kind.";
    let mut throttled = page.counter("throttled_total", &[POOL, KIND], help);
    let none = LabelCounts::of(&KINDS);
    for (pool, metrics) in pools {
        let counts = metrics.counters.map_or(&none, |counters| &counters.throttled);
        put_all(&mut throttled, pool, counts);
    }
    let help = "Leases that were reclaimed instead of settled.";
    let mut reclaimed = page.counter("reclaimed_total", &[POOL, WHY], help);
    let none = LabelCounts::of(&RECLAIMS);
    for (pool, metrics) in pools {
        let counts = metrics.counters.map_or(&none, |counters| &counters.reclaimed);
        put_all(&mut reclaimed, pool, counts);
    }
    let help = "Calls admitted in shadow mode that would have been held back.";
    let mut shadowed = page.counter("shadow_refused_total", &[POOL, REASON], help);
    for (pool, metrics) in pools {
        for (reason, count) in
            metrics.counters.into_iter().flat_map(|counters| counters.shadowed.some())
        {
            shadowed.put(&[pool, reason], count);
        }
    }
    outside(page, pools);
}

/// Counters whose only label is the pool.
fn simple(page: &mut Exposition, pools: &BTreeMap<&str, PoolMetrics<'_>>) {
    type Figure = fn(&PoolCounters) -> u64;
    let all: [(_, _, Figure); 6] = [
        ("pauses_total", "Pauses that started or were extended.", |counters| counters.pauses),
        ("stops_total", "Terminal refusals by the provider.", |counters| counters.stops),
        ("sessions_ended_total", "Sessions whose process died or was silent.", |counters| {
            counters.sessions_ended
        }),
        ("promoted_total", "Background calls promoted to standard.", |counters| counters.promoted),
        ("anomalies_total", "Values from the provider that were rejected.", |counters| {
            counters.anomalies
        }),
        (
            "store_notices_total",
            "Times the store became unavailable, available, or lost data.",
            |counters| counters.store_notices,
        ),
    ];
    for (name, help, figure) in all {
        let mut family = page.counter(name, &[POOL], help);
        for (pool, metrics) in pools {
            family.put(&[pool], metrics.counters.map_or(0, figure));
        }
    }
}

fn put_all<const N: usize>(family: &mut Family<'_>, pool: &str, counts: &LabelCounts<N>) {
    for (word, count) in counts.each() {
        family.put(&[pool, word], count);
    }
}

/// Use of the key that bypasses the ledger, by limit.
fn outside(page: &mut Exposition, pools: &BTreeMap<&str, PoolMetrics<'_>>) {
    let help = "Units used on the key without a reservation.";
    let mut family = page.counter("outside_units_total", &[POOL, LIMIT, UNIT], help);
    for (pool, metrics) in pools {
        let known = metrics.status.iter().flat_map(|status| &status.limits);
        let known = known.filter(|limit| limit.period_ms.is_some());
        let mut limits: BTreeMap<&str, u64> =
            known.map(|limit| (limit.limit.as_str(), 0)).collect();
        limits.extend(metrics.counters.into_iter().flat_map(|counters| counters.outside.each()));
        for (limit, units) in limits {
            let unit = unit_of(limit);
            let labels = [*pool, limit, unit];
            family.put(&labels, Amount(unit, units));
        }
    }
}

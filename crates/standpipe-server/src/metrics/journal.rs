//! Counters of pools and of the journal itself. What alerts look at is there from the beginning, as
//! nothing, so that the first one is seen as a rise.

use std::collections::BTreeMap;

use super::page::{Amount, Family, Page};
use super::tally::{PoolTally, Tally};
use super::words::{Counts, KINDS, RECLAIMS};
use super::{Both, unit_of};

pub(super) fn write(page: &mut Page, tally: &Tally, pools: &BTreeMap<&str, Both<'_>>) {
    let help = "Lines of the journal since the daemon began, by kind.";
    let mut lines = page.counter("journal_lines_total", help);
    for (kind, count) in tally.kinds() {
        lines.put(&[("kind", kind)], count);
    }
    let help = "Lines that processes of this machine could not write to the journal.";
    page.counter("journal_lost_lines_total", help).put(&[], tally.lost());
    simple(page, pools);
    let help = "Calls that the provider refused (429 and the like), by what it was about.";
    let mut throttled = page.counter("throttled_total", help);
    let none = Counts::of(&KINDS);
    for (pool, both) in pools {
        let counts = both.tally.map_or(&none, |tally| &tally.throttled);
        put_all(&mut throttled, pool, "kind", counts);
    }
    let help = "Leases that ended without being settled.";
    let mut reclaimed = page.counter("reclaimed_total", help);
    let none = Counts::of(&RECLAIMS);
    for (pool, both) in pools {
        let counts = both.tally.map_or(&none, |tally| &tally.reclaimed);
        put_all(&mut reclaimed, pool, "why", counts);
    }
    let help = "Calls admitted in shadow mode that would have been held back.";
    let mut shadowed = page.counter("shadow_refused_total", help);
    for (pool, both) in pools {
        for (reason, count) in both.tally.into_iter().flat_map(|tally| tally.shadowed.some()) {
            shadowed.put(&[("pool", pool), ("reason", reason)], count);
        }
    }
    outside(page, pools);
}

/// Those with no label but the pool.
fn simple(page: &mut Page, pools: &BTreeMap<&str, Both<'_>>) {
    type Figure = fn(&PoolTally) -> u64;
    let all: [(_, _, Figure); 6] = [
        ("pauses_total", "Pauses that began or were made longer.", |tally| tally.pauses),
        ("stops_total", "Times the provider said stop for good.", |tally| tally.stops),
        ("sessions_ended_total", "Processes that fell silent or died.", |tally| {
            tally.sessions_ended
        }),
        ("promoted_total", "Background agents served as standard ones, once.", |tally| {
            tally.promoted
        }),
        ("doubts_total", "Words of the provider that were not believed.", |tally| tally.doubts),
        (
            "store_notices_total",
            "Times the store went away, came back or lost something.",
            |tally| tally.store_notices,
        ),
    ];
    for (name, help, figure) in all {
        let mut family = page.counter(name, help);
        for (pool, both) in pools {
            family.put(&[("pool", pool)], both.tally.map_or(0, figure));
        }
    }
}

fn put_all<const N: usize>(
    family: &mut Family<'_>,
    pool: &str,
    label: &'static str,
    counts: &Counts<N>,
) {
    for (word, count) in counts.each() {
        family.put(&[("pool", pool), (label, word)], count);
    }
}

/// What the provider counted and nobody asked for, by limit.
fn outside(page: &mut Page, pools: &BTreeMap<&str, Both<'_>>) {
    let help = "Units that somebody drew on the key without asking.";
    let mut family = page.counter("outside_units_total", help);
    for (pool, both) in pools {
        let known = both.status.iter().flat_map(|status| &status.limits);
        let known = known.filter(|limit| limit.period_ms.is_some());
        let mut limits: BTreeMap<&str, u64> =
            known.map(|limit| (limit.limit.as_str(), 0)).collect();
        limits.extend(both.tally.into_iter().flat_map(|tally| tally.outside.each()));
        for (limit, units) in limits {
            let unit = unit_of(limit);
            let labels = [("pool", *pool), ("limit", limit), ("unit", unit)];
            family.put(&labels, Amount(unit, units));
        }
    }
}

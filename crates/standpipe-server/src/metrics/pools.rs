//! Gauges of the pools: limits, pauses, zones, money.
//!
//! A pool that cannot be read has no gauges; `pools_unreadable` counts it.

use std::collections::BTreeMap;

use standpipe::PoolStatus;
use standpipe::observe::LimitStatus;

use super::PoolMetrics;
use super::exposition::{Amount, Exposition, millionths, thousandths};
use super::labels::{BREAKERS, LIMIT, Label, POOL, UNIT, ZONES};

/// The labels of a limit.
const ON_LIMIT: [Label; 3] = [POOL, LIMIT, UNIT];
const ZONE: Label = Label::of("zone", &ZONES);
/// A state of the circuit breaker.
const STATE: Label = Label::of("state", &BREAKERS);

/// The pools that can be read.
type Pools<'a> = [(&'a str, &'a PoolStatus)];

pub(super) fn write(page: &mut Exposition, pools: &BTreeMap<&str, PoolMetrics<'_>>) {
    let pools: Vec<(&str, &PoolStatus)> =
        pools.iter().filter_map(|(name, metrics)| Some((*name, metrics.status?))).collect();
    calls(page, &pools);
    limits(page, &pools);
    flags(page, &pools);
    lengths(page, &pools);
    states(page, &pools);
    money(page, &pools);
}

fn calls(page: &mut Exposition, pools: &Pools<'_>) {
    type Figure = fn(&PoolStatus) -> u64;
    let all: [(_, _, Figure); 4] = [
        ("in_flight", "Calls in flight.", |pool| pool.in_flight as u64),
        ("waiting", "Waiting calls.", |pool| pool.waiting as u64),
        ("throttle_streak", "Consecutive refusals by the provider.", |pool| {
            u64::from(pool.trouble.streak)
        }),
        ("log_skipped", "Log events that this version does not know.", |pool| pool.skipped),
    ];
    for (name, help, figure) in all {
        let mut family = page.gauge(name, &[POOL], help);
        for (pool, status) in pools {
            family.put(&[pool], figure(status));
        }
    }
    let mut family = page.gauge("retries_left", &[POOL], "Retries that the budget still allows.");
    for (pool, status) in pools {
        if let Some(retries) = &status.trouble.retries {
            family.put(&[pool], retries.left);
        }
    }
}

fn limits(page: &mut Exposition, pools: &Pools<'_>) {
    type Figure = fn(&LimitStatus) -> Option<u64>;
    let all: [(_, _, Figure); 7] = [
        ("limit_stated", "A limit as stated.", |limit| Some(limit.amount)),
        ("limit_learned", "A limit as the provider reports it.", |limit| limit.learned),
        ("limit_effective", "What is usable of a limit, after its margin and learning.", |l| {
            Some(l.effective)
        }),
        ("limit_used", "What is charged on a limit now.", |limit| Some(limit.used)),
        ("limit_held", "What calls in flight hold in addition.", |limit| Some(limit.held)),
        ("limit_left", "What is left of the effective limit.", |limit| Some(limit.left)),
        ("limit_outside", "Current use of the key outside Standpipe.", |l| Some(l.outside)),
    ];
    for (name, help, figure) in all {
        let mut family = page.gauge(name, &ON_LIMIT, help);
        for_each(pools, |pool, limit| {
            if let Some(value) = figure(limit) {
                let labels = [pool, &*limit.limit, &*limit.unit];
                family.put(&labels, Amount(&limit.unit, value));
            }
        });
    }
    let mut family =
        page.gauge("limit_margin_ratio", &ON_LIMIT, "The share of a stated rate left unused.");
    for_each(pools, |pool, limit| {
        if let Some(per_mille) = limit.margin_per_mille {
            let labels = [pool, &*limit.limit, &*limit.unit];
            family.put(&labels, thousandths(per_mille.into()));
        }
    });
}

fn for_each(pools: &Pools<'_>, mut put: impl FnMut(&str, &LimitStatus)) {
    for (pool, status) in pools {
        status.limits.iter().for_each(|limit| put(pool, limit));
    }
}

/// Gauges that are 0 or 1.
fn flags(page: &mut Exposition, pools: &Pools<'_>) {
    type Flag = fn(&PoolStatus) -> bool;
    let all: [(_, _, Flag); 6] = [
        ("enforced", "Decisions are enforced; 0 is shadow mode.", |pool| pool.enforce),
        ("paused", "No call is admitted until the pause ends.", |pool| pool.pause.is_some()),
        ("terminal", "The provider stopped the pool.", |pool| pool.terminal.is_some()),
        ("learning", "The ledger lost its data and is recovering it.", |pool| {
            pool.learning.is_some()
        }),
        ("cut_off", "The store is unavailable; the daemon decides alone.", |pool| {
            pool.cut_off.is_some()
        }),
        ("sequential", "Several agents were throttled: calls go one at a time.", |pool| {
            pool.trouble.one_at_a_time.is_some()
        }),
    ];
    for (name, help, flag) in all {
        let mut family = page.gauge(name, &[POOL], help);
        for (pool, status) in pools {
            family.put_flag(&[pool], flag(status));
        }
    }
}

/// Durations in seconds; 0 if there is none.
fn lengths(page: &mut Exposition, pools: &Pools<'_>) {
    type Length = fn(&PoolStatus) -> u64;
    let all: [(_, _, Length); 5] = [
        ("pause_left_seconds", "Time until the pause ends.", |pool| {
            pool.pause.as_ref().map_or(0, |pause| pause.for_ms)
        }),
        ("terminal_left_seconds", "Time until the terminal refusal ends; 0 if unknown.", |pool| {
            pool.terminal.as_ref().and_then(|stop| stop.for_ms).unwrap_or(0)
        }),
        ("learning_left_seconds", "Time until learning ends.", |pool| {
            pool.learning.as_ref().map_or(0, |learning| learning.for_ms)
        }),
        ("cut_off_seconds", "How long the store has been unavailable.", |pool| {
            pool.cut_off.as_ref().map_or(0, |outage| outage.for_ms)
        }),
        ("longest_wait_seconds", "The longest current wait.", |pool| {
            pool.tickets.iter().map(|ticket| ticket.waits_ms).max().unwrap_or(0)
        }),
    ];
    for (name, help, length) in all {
        let mut family = page.gauge(name, &[POOL], help);
        for (pool, status) in pools {
            family.put(&[pool], thousandths(length(status)));
        }
    }
}

/// One series per state, of which one is 1.
fn states(page: &mut Exposition, pools: &Pools<'_>) {
    let mut family =
        page.gauge("zone", &[POOL, ZONE], "How much quota is left: one of the zones is 1.");
    for (pool, status) in pools {
        for zone in ZONES {
            family.put_flag(&[pool, zone], status.zone.as_str() == zone);
        }
    }
    let help = "The circuit breaker: one of the states is 1.";
    let mut family = page.gauge("breaker", &[POOL, STATE], help);
    for (pool, status) in pools {
        for state in BREAKERS {
            family.put_flag(&[pool, state], status.breaker.as_str() == state);
        }
    }
}

fn money(page: &mut Exposition, pools: &Pools<'_>) {
    let mut family =
        page.gauge("day_spent_usd", &[POOL], "The cost of the last day's calls, in dollars.");
    for (pool, status) in pools {
        if let Some(money) = &status.money {
            family.put(&[pool], millionths(money.spent_micro_usd));
        }
    }
    let help = "The cost of refused and failed calls in the last day, in dollars.";
    let mut family = page.gauge("day_wasted_usd", &[POOL], help);
    for (pool, status) in pools {
        if let Some(money) = &status.money {
            family.put(&[pool], millionths(money.wasted_micro_usd));
        }
    }
}

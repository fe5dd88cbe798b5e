//! Which of zones, yield and spread are on by default: each of them, and all, on quotas per minute,
//! hour and day, with a critical agent beside background agents that want everything.

use standpipe_core::{Policy, Priority, Zones};
use standpipe_sim::WaitMode;

use super::super::once::Once;
use super::super::table::{Table, percent, seconds};
use super::slow::{DAY, Scene, Slow};
use crate::stories::scene::{HOUR, MINUTE, SECOND, STEADY};

/// A quota, how often the critical agent calls, and how many calls it wants at once in each period
/// besides.
struct Quota {
    name: &'static str,
    amount: u64,
    period: u64,
    interval: u64,
    burst: u64,
}

const QUOTAS: [Quota; 6] = [
    Quota { name: "60 per minute", amount: 60, period: MINUTE, interval: 10 * SECOND, burst: 0 },
    Quota { name: "600 per minute", amount: 600, period: MINUTE, interval: 10 * SECOND, burst: 0 },
    Quota { name: "80 per hour", amount: 80, period: HOUR, interval: 5 * MINUTE, burst: 0 },
    Quota { name: "600 per hour", amount: 600, period: HOUR, interval: 5 * MINUTE, burst: 0 },
    Quota { name: "1,000 per day", amount: 1_000, period: DAY, interval: 5 * MINUTE, burst: 0 },
    Quota {
        name: "60 per minute, 10 critical calls at once",
        amount: 60,
        period: MINUTE,
        interval: 10 * SECOND,
        burst: 10,
    },
];

/// Which policies are on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum On {
    Nothing,
    Zones,
    Yield,
    Spread,
}

const ALL: [On; 4] = [On::Nothing, On::Zones, On::Yield, On::Spread];

/// The longest wait of a critical call, and what is used of the quota in thousandths.
type Measured = (u64, u64);

fn measure(quota: &Quota, on: On) -> Measured {
    let policy = Policy {
        zones: if on == On::Zones { Zones::All } else { Zones::Off },
        yields: on == On::Yield,
        spreads: on == On::Spread,
        ..Policy::usual()
    };
    let Quota { amount, period, interval, burst, .. } = *quota;
    let periods = match period {
        MINUTE => 30,
        HOUR => 12,
        _ => 2,
    };
    let slow = Slow { tier: Priority::Critical, burst, floor: 0, patience: period };
    let scene = Scene { policy, periods, interval, slow, ..Scene::new(amount, period) };
    let busy = if period == MINUTE { 4 } else { 1 };
    let came =
        (0..busy).fold(scene, |scene, _| scene.beside(Priority::Background, WaitMode::Sleep)).run();
    (came.story.agents[0].longest_wait(), came.used)
}

fn all() -> Vec<(&'static str, Vec<Measured>)> {
    static RUN: Once<(), Vec<(&'static str, Vec<Measured>)>> = Once::new();
    RUN.of((), |()| {
        let each = |quota: &Quota| {
            (quota.name, ALL.iter().map(|on| measure(quota, *on)).collect::<Vec<_>>())
        };
        QUOTAS.iter().map(each).collect()
    })
}

pub(in super::super) fn table() -> Table {
    let table = Table::wide("defaults", &["nothing", "`zones`", "`yield`", "`spread`"]);
    all().into_iter().fold(table, |table, (name, measured)| {
        let cell = |(wait, used): &Measured| format!("{}, {}", seconds(*wait), percent(*used));
        let cells: Vec<String> = measured.iter().map(cell).collect();
        table.cells(name, &[&cells[0], &cells[1], &cells[2], &cells[3]])
    })
}

/// With spread alone no critical call waits and at least 95 % is used, on every quota without a
/// burst; no other policy does both.
#[test]
fn spread_alone_keeps_both_promises() {
    let measured = all();
    for (name, each) in &measured[..5] {
        let keeps = |(wait, used): &Measured| *wait == STEADY.there && *used >= 950;
        let keep: Vec<bool> = each.iter().map(keeps).collect();
        assert_eq!(keep, [false, false, false, true], "{name}: {each:?}");
    }
}

/// Spread leaves a twentieth free at any time. Who needs more at once has a floor, or pays for
/// `yield`.
#[test]
fn a_burst_beyond_a_twentieth_waits_with_spread_and_not_with_yield() {
    let measured = all();
    let (_, each) = &measured[5];
    let [_, _, yields, spread] = each[..] else { panic!("{each:?}") };
    assert_eq!(yields.0, STEADY.there);
    assert!(spread.0 > STEADY.there && spread.1 > yields.1, "{each:?}");
}

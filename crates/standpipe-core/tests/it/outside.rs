//! An oracle for outside use: what the provider's reports leave of a limit, computed anew.

use proptest::prelude::*;
use standpipe_core::{
    Action, Amounts, Decision, Margin, Notice, Observed, Policy, PoolConfig, Reading, Reserve, Unit,
};

use crate::support::words::{HOUR, REQUESTS, agent, pool, secs, window};
use crate::support::world::World;

fn report(world: &mut World, limit: u64, remaining: u64) {
    let reading = Reading {
        unit: Unit::Requests,
        period: None,
        limit: Some(limit),
        remaining: Some(remaining),
        coarse: 1,
        reset_in: None,
        full_in: None,
    };
    let _ = world.send("s", Action::Observed(Observed { lease: None, readings: vec![reading] }));
}

proptest! {
    /// Outside use is taken off a limit before the margin, whatever the provider reports, and never
    /// exceeds the least that was reported as used. A single call may take all that others leave.
    #[test]
    fn usable_is_what_others_leave_less_the_margin(
        amount in 50_u64..=1_000,
        per_mille in 0_u16..=900,
        reports in proptest::collection::vec(0_u64..=1_000, 2..12),
    ) {
        let policy = Policy { reconciles: true, ..Policy::NONE };
        let margin = Margin::Fixed(per_mille);
        let limit = window(REQUESTS, amount, HOUR);
        let mut world = World::new(PoolConfig { margin, policy, ..pool([limit]) });
        let mut most_used = 0;
        for remaining in reports {
            let remaining = remaining.min(amount);
            most_used = most_used.max(amount - remaining);
            report(&mut world, amount, remaining);
            let figures = world.state.figures(world.now).remove(0);
            prop_assert!(figures.by_others <= most_used);
            let leave = amount - figures.by_others;
            let usable = leave * u64::from(1_000 - per_mille) / 1_000;
            prop_assert_eq!(figures.effective, usable.max(1));
            world.after(secs(7));
        }
        let figures = world.state.figures(world.now).remove(0);
        let leave = amount - figures.by_others;
        let ask = |units| {
            let cost = Amounts::cost([(Unit::Requests, units)]).expect("a cost");
            world.state.peek(&Reserve::new(agent("data"), cost), world.now)
        };
        if leave > 0 {
            let admitted = matches!(ask(leave), Decision::Admit(_));
            prop_assert!(admitted, "{leave} of {amount}: {:?}", ask(leave));
        }
    }
}

/// What was used before Standpipe started is taken off at the first report, without an alarm. The
/// next report gives it back if the first was wrong.
#[test]
fn the_first_report_counts_at_once_and_the_next_corrects_it() {
    let policy = Policy { reconciles: true, ..Policy::NONE };
    let config = PoolConfig { policy, ..pool([window(REQUESTS, 5_000, HOUR)]) };
    let mut world = World::new(config);
    report(&mut world, 5_000, 10);
    let figures = |world: &World| world.state.figures(world.now).remove(0);
    assert_eq!((figures(&world).by_others, figures(&world).left), (4_990, 10));
    assert_eq!(world.state.outside(world.now), [], "use from before is not an alarm");

    world.after(secs(5));
    report(&mut world, 5_000, 4_990);
    assert_eq!((figures(&world).by_others, figures(&world).left), (10, 4_990));
}

/// A reading of a burst bucket says nothing about the limit. If it shows less than the ledger has,
/// that leaves a trace: the other users of the key may be behind it.
#[test]
fn b19_a_reading_that_contradicts_the_ledger_and_is_ignored_is_reported() {
    let policy = Policy { reconciles: true, ..Policy::NONE };
    let config = PoolConfig { policy, ..pool([window(REQUESTS, 20, secs(60))]) };
    let mut world = World::new(config);
    let mut ignored = |remaining, full_in| {
        let reading = Reading {
            unit: Unit::Requests,
            period: None,
            limit: Some(20),
            remaining: Some(remaining),
            coarse: 0,
            reset_in: None,
            full_in: Some(secs(full_in)),
        };
        let observed = Observed { lease: None, readings: vec![reading] };
        let outcome = world.send("s", Action::Observed(observed));
        let ignored = outcome.notices.iter().filter_map(|notice| match notice {
            Notice::ReadingIgnored { remaining, full_in, .. } => Some((*remaining, *full_in)),
            _ => None,
        });
        ignored.collect::<Vec<_>>()
    };
    assert_eq!(ignored(4, 12), [(4, secs(12))], "16 of 20 return in 48 s at the soonest");
    assert_eq!(ignored(4, 48), [], "that is the limit itself");
    assert_eq!(ignored(20, 0), [], "it shows no less than the ledger has");
}

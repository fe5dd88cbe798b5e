//! Too much admitted: boundaries, bursts, clocks, rounding, changed limits.

use std::collections::VecDeque;

use standpipe_core::{
    Action, Answer, Configured, Decision, Instant, Limit, PoolConfig, Priority, Reason, Source,
    Span, bounds,
};

use super::naive::{Approximate, Bucket, Exact, FixedWindow, Naive, peak};
use crate::support::words::{
    DAY, HOUR, MINUTE, REQUESTS, SECOND, TOKENS, bucket, millis, parallel, pool, secs, window,
};
use crate::support::world::{BEGINNING, World, is_admitted};

/// Takes whatever it can get for so long, one request at a time; when.
fn flood(world: &mut World, length: Span) -> Vec<u64> {
    let end = world.now + length;
    let mut stamps = Vec::new();
    while world.now < end {
        match world.reserve("p", "flood").send() {
            Decision::Admit(grant) => {
                stamps.push(world.now.0);
                world.commit(grant.lease).send();
            }
            Decision::Refuse(refusal) => {
                world.now = refusal.until.expect("not larger than the limit");
            }
            waits => panic!("{waits:?}"),
        }
    }
    stamps
}

/// How many of so many requests at once are admitted. Their calls are over at once.
fn burst(world: &mut World, count: usize) -> usize {
    let mut admitted = 0;
    for _ in 0..count {
        if let Decision::Admit(grant) = world.reserve("p", "burst").send() {
            world.commit(grant.lease).send();
            admitted += 1;
        }
    }
    admitted
}

/// An event says nothing of the time it was sent at: only the stamp counts, so hosts with clocks
/// that differ cannot disagree on what a window holds, nor refill it for each other.
#[test]
fn b04_b05_no_time_but_the_stamp() {
    let mut world = World::new(pool([window(REQUESTS, 10, MINUTE), bucket(TOKENS, 1, MINUTE, 5)]));
    let fits = |world: &mut World, host: &str| {
        is_admitted(&world.reserve(host, host).cost(&[(TOKENS, 1)]).send())
    };
    assert_eq!((0..10).filter(|_| fits(&mut world, "fast")).count(), 5);
    assert_eq!((0..10).filter(|_| fits(&mut world, "slow")).count(), 0);
    world.after(MINUTE);
    assert!(fits(&mut world, "slow"), "neither too much nor too little");
    assert!(!fits(&mut world, "fast"));
}

/// Who claims late, with a stamp before that of a granted call, neither displaces nor adds to it.
#[test]
fn b06_a_late_claim_does_not_add_to_the_granted() {
    let mut world = World::new(pool([parallel(1)]));
    let first = world.reserve("a", "a").admitted();
    let hold = world.reserve("b", "b").patience(HOUR).waits();
    world.after(secs(1));
    world.commit(first).send();
    let second = world.reserve("c", "c").tier(Priority::Critical).admitted();
    world.now = BEGINNING;
    world.claim(hold.ticket).waits();
    world.commit(second).send();
    world.claim(hold.ticket).admitted();
}

#[test]
fn b07_a_late_stamp_mints_nothing() {
    let nows = |base: u64, step: u64| [base + 10 * step, base + step, base + 10 * step + step / 9];
    let mut naive = Bucket { burst: 5, interval: 1_000, tokens: 5, last: 0, clamps: true };
    let rounds = |admits: &mut dyn FnMut(u64) -> bool| {
        (0..50).flat_map(|_| nows(BEGINNING.0, 1_000)).filter(|now| admits(*now)).count()
    };
    assert!(rounds(&mut |now| naive.admits(now)) > 100, "every late caller mints");
    let mut world = World::new(pool([bucket(REQUESTS, 1, millis(1), 5)]));
    let ours = rounds(&mut |now| {
        world.now = Instant(now);
        is_admitted(&world.reserve("p", "a").send())
    });
    assert_eq!(ours, 5, "of a full bucket nothing was missing at first, and 111 µs make no token");
}

#[test]
fn b08_no_double_burst_at_the_boundary() {
    let around: Vec<u64> = (0..40).map(|n| 3_000_000 - 25_000 / 2 + n * 625).collect();
    let mut naive = FixedWindow { limit: 5, period: 1_000_000, stretch: 0, count: 0 };
    let admitted: Vec<u64> = around.iter().copied().filter(|now| naive.admits(*now)).collect();
    assert_eq!(peak(&admitted, 25_000), 10, "both stretches' whole in 25 ms");
    for origin in [0, 1, 777_777] {
        let mut world = World::new(pool([window(REQUESTS, 5, SECOND)]));
        let mut admitted = Vec::new();
        for now in &around {
            world.now = Instant(10_000_000_000 + origin + now);
            if burst(&mut world, 1) == 1 {
                admitted.push(world.now.0);
            }
        }
        admitted.extend(flood(&mut world, secs(4)));
        assert_eq!(peak(&admitted, 1_000_000), 5);
    }
}

#[test]
fn b09_a_bucket_that_a_rolling_window_cannot_object_to() {
    let mut naive = World::new(pool([bucket(REQUESTS, 100, MINUTE, 100)]));
    let stamps = flood(&mut naive, secs(180));
    assert!(peak(&stamps, MINUTE.0) >= 199, "a burst, and the refill of the same minute");
    for burst in [1, 20, 50, 99] {
        let limit = Limit::bucket_under_window(REQUESTS, 100, MINUTE, burst);
        let mut world = World::new(pool([limit]));
        let stamps = flood(&mut world, secs(180));
        assert!(peak(&stamps, MINUTE.0) <= 100, "{}", peak(&stamps, MINUTE.0));
        let first = stamps.iter().filter(|stamp| **stamp == BEGINNING.0).count();
        assert_eq!(first as u64, burst, "all of it at once");
    }
}

#[test]
fn b10_below_512_entries_a_window_is_exact() {
    let period = 1_000_000;
    let mut approximate = Approximate { limit: 50, period, stretch: 0, last: 0, count: 0 };
    let mut exact = Exact { limit: 50, period, stamps: VecDeque::new() };
    let mut world = World::new(pool([window(REQUESTS, 50, Span(period))]));
    let (mut now, mut wrong) = (BEGINNING.0, 0);
    for step in 0..3_000_u64 {
        // Uneven: bursts, then quiet, by a small generator.
        now += if step % 97 < 60 { step * 7_919 % 3_001 } else { step * 104_729 % 40_009 };
        let fits = exact.counted(now) < exact.limit;
        wrong += u64::from(approximate.admits(now) != fits);
        world.now = Instant(now);
        assert_eq!(burst(&mut world, 1) == 1, fits, "at {now}");
        if fits {
            exact.stamps.push_back(now);
        }
    }
    assert!(wrong > 100, "the approximation was wrong {wrong} times");
}

#[test]
fn b10_above_512_entries_it_is_late_by_at_most_a_slice_and_never_early() {
    let period = 10_000_000;
    let slice = period / bounds::WINDOW_SLICES + 1;
    let limit = 3_000;
    let mut exact = Exact { limit, period, stamps: VecDeque::new() };
    let mut late = Exact { limit, period: period + slice, stamps: VecDeque::new() };
    let mut world = World::new(pool([window(REQUESTS, limit as u64, Span(period))]));
    world.bulk = true;
    // What a limiter without slices would have given out, left to itself.
    let mut ideal = Exact { limit, period, stamps: VecDeque::new() };
    let (mut now, mut given, mut ideally) = (BEGINNING.0, 0, 0);
    for step in 0..20_000_u64 {
        now += if step % 5_000 < 3_500 { step * 7_919 % 1_001 } else { step * 104_729 % 9_001 };
        world.now = Instant(now);
        let admitted = burst(&mut world, 1) == 1;
        assert!(exact.counted(now) < exact.limit || !admitted, "early at {now}");
        assert!(admitted || late.counted(now) >= late.limit, "later than a slice at {now}");
        if admitted {
            given += 1;
            exact.stamps.push_back(now);
            late.stamps.push_back(now);
        }
        if ideal.counted(now) < ideal.limit {
            ideally += 1;
            ideal.stamps.push_back(now);
        }
    }
    assert!(given * 1_000 >= ideally * 995, "{given} of {ideally}");
}

#[test]
fn b11_after_idling_a_burst_is_a_burst() {
    for idle in 0..12 {
        let mut world = World::new(pool([bucket(REQUESTS, 1, SECOND, 5)]));
        assert_eq!(burst(&mut world, 20), 5, "the first is not free");
        world.after(Span(SECOND.0 * idle));
        assert_eq!(burst(&mut world, 20) as u64, idle.min(5), "after {idle} s");
        world.after(Span(SECOND.0 - 1));
        assert_eq!(burst(&mut world, 20), 0);
    }
}

#[test]
fn b12_never_rounded_in_the_callers_favour() {
    let interval = 10_000_000;
    let mut naive = Bucket { burst: 1, interval, tokens: 1, last: 0, clamps: true };
    assert!(naive.admits(0) && naive.admits(5_000_000), "rounded to the nearest token");
    for (amount, period, exact) in
        [(1, secs(10), 10_000_000), (3, SECOND, 333_334), (7, Span(10), 2), (999, SECOND, 1_002)]
    {
        let mut world = World::new(pool([bucket(REQUESTS, amount, period, 1)]));
        assert_eq!(burst(&mut world, 2), 1);
        let told = world.reserve("p", "a").refused().until;
        assert_eq!(told, Some(BEGINNING + Span(exact)), "{amount} per {period:?}");
        world.after(Span(exact - 1));
        assert_eq!(burst(&mut world, 1), 0);
        world.after(Span(1));
        assert_eq!(burst(&mut world, 1), 1);
    }
}

#[test]
fn b13_idle_credit_ends_at_the_burst() {
    let mut naive = Bucket { burst: 5, interval: 1_000_000, tokens: 5, last: 0, clamps: false };
    assert!((0..100).filter(|_| naive.admits(HOUR.0)).count() == 100, "an hour's worth at once");
    let mut limits = pool([bucket(REQUESTS, 1, SECOND, 5), window(REQUESTS, 5, SECOND)]);
    limits.slack = millis(50);
    let mut world = World::new(limits);
    world.after(HOUR);
    assert_eq!(burst(&mut world, 100), 5);
}

#[test]
fn b14_short_periods_and_high_rates_count_like_long_ones() {
    let mut world = World::new(pool([window(REQUESTS, 3, Span(2))]));
    assert_eq!(peak(&flood(&mut world, Span(200)), 2), 3);
    let mut world = World::new(pool([bucket(REQUESTS, 1_000, Span(7), 2)]));
    let admitted = flood(&mut world, Span(1)).len();
    assert_eq!(admitted, 2, "within one instant nothing is refilled");
}

#[test]
fn b15_sustained_traffic_sees_every_window() {
    let mut world = World::new(pool([window(REQUESTS, 10, SECOND)]));
    let stamps = flood(&mut world, secs(3));
    assert_eq!(stamps.len(), 30);
}

/// A store that forgot says so, and then nothing is given out that may be out already.
#[test]
fn b16_what_was_forgotten_counts_as_used() {
    let mut world = World::new(pool([window(REQUESTS, 10, MINUTE), bucket(TOKENS, 5, MINUTE, 5)]));
    assert_eq!(burst(&mut world, 10), 10);
    let _ = world.send("p", Action::Forgotten);
    assert_eq!(burst(&mut world, 10), 0);
    assert!(!is_admitted(&world.reserve("p", "a").cost(&[(TOKENS, 1), (REQUESTS, 0)]).send()));
    world.after(secs(30));
    let half = burst(&mut world, 10);
    assert!((4..=5).contains(&half), "half after half a period, not {half}");
    let mut stamps = vec![BEGINNING.0; 10];
    stamps.extend(vec![world.now.0; half]);
    stamps.extend(flood(&mut world, MINUTE));
    assert!(peak(&stamps, MINUTE.0) <= 20, "never more than twice over a loss");
    assert!(peak(&stamps[10..], MINUTE.0) <= 10, "and never after it");
}

#[test]
fn b21_tiers_at_the_edge_stay_below_the_whole() {
    let mut world = World::new(pool([parallel(3), window(REQUESTS, 100, MINUTE)]));
    let mut tiers = Priority::ALL.into_iter().cycle();
    let mut leases = Vec::new();
    for _ in 0..30 {
        let ask = world.reserve("p", "a").tier(tiers.next().unwrap());
        if let Decision::Admit(grant) = ask.send() {
            leases.push(grant.lease);
        }
        assert!(leases.len() <= 3);
    }
    assert_eq!(burst(&mut world, 5), 0);
    world.cancel(leases.remove(0));
    assert!(is_admitted(&world.reserve("p", "a").send()));
    assert_eq!(burst(&mut world, 5), 0);
}

/// Two configurations of different strictness: the ledger does not alternate between them, and who
/// lost is told.
#[test]
fn b23_two_configurations_never_alternate() {
    let strict = pool([window(REQUESTS, 5, MINUTE)]);
    let loose = pool([window(REQUESTS, 50, MINUTE)]);
    let mut world = World::new(loose.clone());
    let mut tell = |session: &str, source: Source, config: &PoolConfig| {
        let configure = standpipe_core::Configure { source, config: config.clone() };
        match world.send(session, Action::Configure(Box::new(configure))).answer {
            Answer::Configured(how) => how,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(tell("a", Source::Code, &strict), Configured::Applied, "the stricter wins");
    for _ in 0..3 {
        assert_eq!(tell("b", Source::Code, &loose), Configured::Kept);
        assert_eq!(tell("a", Source::Code, &strict), Configured::Same);
    }
    let file = |version: u64| Source::File { version: Some(version), written: 9 };
    assert_eq!(tell("b", file(1), &loose), Configured::Applied, "a file beats code");
    assert_eq!(tell("a", Source::Code, &strict), Configured::Kept);
    assert_eq!(tell("a", file(2), &strict), Configured::Applied, "then the higher version");
    assert_eq!(tell("b", file(1), &loose), Configured::Kept);
    assert_eq!(burst(&mut world, 100), 5);
}

#[test]
fn b24_a_limit_changed_on_the_way_counts_at_once_and_keeps_what_was_used() {
    let limits = |n: u64| pool([window(REQUESTS, n, MINUTE), parallel(100)]);
    let mut world = World::new(limits(10));
    assert_eq!(burst(&mut world, 6), 6);
    world.after(secs(20));
    assert_eq!(world.change(limits(7)), Configured::Applied);
    assert_eq!(burst(&mut world, 9), 1, "six of seven were used");
    assert_eq!(world.change(limits(3)), Configured::Applied);
    let told = world.reserve("p", "a").refused();
    assert_eq!((told.reason, told.until), (Reason::Limit, Some(BEGINNING + MINUTE)));
    assert_eq!(world.reserve("p", "a").requests(4).refused().reason, Reason::Never);
    assert_eq!(world.change(limits(20)), Configured::Applied);
    assert_eq!(burst(&mut world, 99), 13, "seven of twenty were used");
    world.at(BEGINNING + MINUTE);
    assert_eq!(burst(&mut world, 99), 6, "what was used first has aged");
}

#[test]
fn b24_a_bucket_changed_on_the_way_keeps_what_is_missing() {
    let limits = |n: u64| pool([bucket(REQUESTS, 1, MINUTE, n)]);
    let mut world = World::new(limits(10));
    assert_eq!(burst(&mut world, 6), 6);
    assert_eq!(world.change(limits(8)), Configured::Applied);
    assert_eq!(burst(&mut world, 9), 2);
    assert_eq!(world.change(limits(4)), Configured::Applied);
    assert_eq!(burst(&mut world, 9), 0);
    assert_eq!(world.change(limits(20)), Configured::Applied);
    assert_eq!(burst(&mut world, 99), 12);
}

/// A stamp far in the future, then an earlier one: what is given out is what the later one allows.
#[test]
fn b49_a_clock_that_steps_back_stands_still() {
    let mut world = World::new(pool([window(REQUESTS, 5, MINUTE), bucket(TOKENS, 1, SECOND, 5)]));
    assert_eq!(burst(&mut world, 9), 5);
    world.after(DAY);
    assert_eq!(burst(&mut world, 9), 5, "a suspended day is a day");
    world.now = BEGINNING + secs(30);
    assert_eq!(burst(&mut world, 9), 0, "and does not come twice");
    world.at(BEGINNING + DAY + MINUTE);
    assert_eq!(burst(&mut world, 9), 5);
}

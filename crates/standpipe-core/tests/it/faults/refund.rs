//! Capacity made out of nothing, or lost: refunds, cancels, denials, and calls over several limits.

use standpipe_core::{Decision, Key, LeaseAnswer, Span};

use crate::support::words::{
    HOUR, MINUTE, OUTPUT, REQUESTS, SECOND, TOKENS, at_end, bucket, parallel, pool, secs, window,
};
use crate::support::world::{World, is_admitted};

/// How many tokens there are to give, up to a hundred.
fn tokens_left(world: &mut World) -> u64 {
    let fits = |world: &mut World, n: u64| {
        is_admitted(&world.reserve("probe", "probe").cost(&[(REQUESTS, 0), (TOKENS, n)]).peek())
    };
    (1..=100).rev().find(|n| fits(world, *n)).unwrap_or(0)
}

fn take(world: &mut World, tokens: u64) -> Key {
    world.reserve("p", "a").cost(&[(TOKENS, tokens)]).admitted()
}

#[test]
fn b17_a_refund_makes_no_capacity_and_loses_none() {
    for limit in [window(TOKENS, 10, MINUTE), bucket(TOKENS, 1, MINUTE, 10)] {
        let mut world = World::new(pool([limit]));
        let (first, second) = (take(&mut world, 6), take(&mut world, 4));
        assert_eq!(tokens_left(&mut world), 0);
        assert_eq!(world.commit(first).used(&[(TOKENS, 1)]).send(), LeaseAnswer::Ended);
        assert_eq!(tokens_left(&mut world), 5);
        for _ in 0..3 {
            assert_eq!(world.commit(first).used(&[(TOKENS, 0)]).send(), LeaseAnswer::Gone);
            assert_eq!(world.cancel(first), LeaseAnswer::Gone, "not twice");
        }
        assert_eq!(tokens_left(&mut world), 5);
        assert_eq!(world.cancel(second), LeaseAnswer::Ended);
        assert_eq!(tokens_left(&mut world), 9);
        assert_eq!(world.cancel(second), LeaseAnswer::Gone);
        assert_eq!(tokens_left(&mut world), 9);
    }
}

/// A lease that was reclaimed has been settled at its estimate; what its holder says later is
/// neither charged nor refunded.
#[test]
fn b17_nothing_comes_back_from_a_reclaimed_lease() {
    let mut world = World::new(pool([window(TOKENS, 10, HOUR)]));
    let lease = world.reserve("p", "a").cost(&[(TOKENS, 6)]).ttl(secs(5)).admitted();
    world.after(secs(5));
    assert_eq!(tokens_left(&mut world), 4);
    assert_eq!(world.commit(lease).used(&[(TOKENS, 1)]).send(), LeaseAnswer::Gone);
    assert_eq!(world.cancel(lease), LeaseAnswer::Gone);
    assert_eq!(tokens_left(&mut world), 4);
}

#[test]
fn b18_no_credit_from_a_charge_that_has_aged() {
    let mut world = World::new(pool([window(TOKENS, 10, MINUTE)]));
    let old = take(&mut world, 10);
    world.after(MINUTE);
    let _ = take(&mut world, 10);
    assert_eq!(world.cancel(old), LeaseAnswer::Ended);
    assert_eq!(tokens_left(&mut world), 0, "the window of the refund is over");

    let mut world = World::new(pool([bucket(TOKENS, 10, MINUTE, 10)]));
    let old = take(&mut world, 10);
    world.after(MINUTE);
    assert_eq!(tokens_left(&mut world), 10);
    let _ = take(&mut world, 10);
    assert_eq!(world.cancel(old), LeaseAnswer::Ended);
    assert_eq!(tokens_left(&mut world), 0, "what it took has been refilled already");
}

/// The provider counts what was used beyond the estimate, so the ledger does; and admits nothing
/// until that has aged.
#[test]
fn b17_use_beyond_the_estimate_is_charged_when_known() {
    let mut world = World::new(pool([window(TOKENS, 10, MINUTE)]));
    let lease = take(&mut world, 2);
    world.after(secs(20));
    world.commit(lease).used(&[(TOKENS, 30)]).send();
    let told = world.reserve("p", "a").cost(&[(TOKENS, 1)]).refused();
    assert_eq!(told.until, Some(world.now + MINUTE));
    let unforeseen = world.reserve("p", "a").cost(&[]).admitted();
    world.after(MINUTE);
    world.commit(unforeseen).used(&[(TOKENS, 9)]).send();
    assert_eq!(tokens_left(&mut world), 1, "also of a unit the call did not name");
}

#[test]
fn b31_a_storm_of_cancels_leaves_everything() {
    let limits = [
        window(TOKENS, 100, HOUR),
        bucket(OUTPUT, 1, HOUR, 100),
        at_end(window(REQUESTS, 100, HOUR)),
        parallel(5),
    ];
    let mut world = World::new(pool(limits));
    let mut keys = Vec::new();
    for round in 0..200_u64 {
        let cost = [(TOKENS, 1 + round % 40), (OUTPUT, 1 + round % 17)];
        let decision = world.reserve("p", "a").cost(&cost).patience(HOUR).send();
        match decision {
            Decision::Admit(grant) => keys.push(grant.lease),
            Decision::Wait(hold) => keys.push(hold.ticket),
            Decision::Refuse(refusal) => panic!("{refusal:?}"),
        }
        if round % 3 > 0 {
            // Some have been granted in the meantime and do not know.
            let key = keys.remove((round * 7_919 % keys.len() as u64) as usize);
            world.cancel(key);
        }
        world.after(Span(round));
    }
    for key in keys {
        assert_ne!(world.cancel(key), LeaseAnswer::Gone);
    }
    let all = [(TOKENS, 100), (OUTPUT, 100), (REQUESTS, 100)];
    let _ = world.reserve("p", "a").cost(&all).admitted();
}

#[test]
fn b33_a_denied_call_takes_nothing() {
    let mut naive = super::naive::FixedWindow { limit: 10, period: 60, stretch: 0, count: 0 };
    let denied = 11 > naive.limit;
    naive.count += 11;
    assert!(denied && !super::naive::Naive::admits(&mut naive, 1), "the denied one blocks");

    let mut world = World::new(pool([window(TOKENS, 10, MINUTE), parallel(3)]));
    let _ = world.reserve("p", "a").cost(&[(TOKENS, 11)]).refused();
    assert_eq!(tokens_left(&mut world), 10);
    let _ = take(&mut world, 8);
    for _ in 0..50 {
        let _ = world.reserve("p", "a").cost(&[(TOKENS, 3)]).refused();
    }
    assert_eq!(tokens_left(&mut world), 2);
    let _ = take(&mut world, 2);
}

#[test]
fn b34_a_call_that_one_limit_denies_takes_nothing_of_the_others() {
    let limits = [window(REQUESTS, 1, MINUTE), window(TOKENS, 10, HOUR), parallel(9)];
    let mut world = World::new(pool(limits));
    for _ in 0..10 {
        let _ = world.reserve("p", "a").cost(&[(TOKENS, 1)]).send();
    }
    assert_eq!(tokens_left(&mut world), 9, "one was admitted");
    world.after(MINUTE);
    let _ = world.reserve("p", "a").cost(&[(TOKENS, 9)]).admitted();
}

/// Progress is what is known so far, so a crash afterwards settles the rest at the estimate and
/// counts nothing twice.
#[test]
fn b25_progress_then_a_crash_counts_the_estimate_once() {
    let mut world = World::new(pool([at_end(window(TOKENS, 20, MINUTE))]));
    let lease = take(&mut world, 10);
    world.after(SECOND);
    world.commit(lease).used(&[(TOKENS, 4)]).progress().send();
    world.after(SECOND);
    world.commit(lease).used(&[(TOKENS, 7)]).progress().send();
    assert_eq!(tokens_left(&mut world), 10);
    world.after(SECOND);
    let _ = world.kill("p");
    assert_eq!(tokens_left(&mut world), 10);
    world.after(Span(MINUTE.0 - SECOND.0 - SECOND.0));
    assert_eq!(tokens_left(&mut world), 14, "the first four were stamped when they were told");
    world.after(SECOND);
    assert_eq!(tokens_left(&mut world), 17);
    world.after(SECOND);
    assert_eq!(tokens_left(&mut world), 20);
}

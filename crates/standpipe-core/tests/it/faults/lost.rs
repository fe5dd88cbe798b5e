//! Too little admitted: slots that nobody gives back, pauses that nobody lifts, wrong hints.

use standpipe_core::{
    Action, Decision, Found, Instant, LeaseAnswer, Notice, PoolConfig, Reason, Reclaim, Span,
    bounds,
};

use crate::support::words::{
    DAY, HOUR, MINUTE, REQUESTS, SECOND, bucket, millis, paced, parallel, pool, secs, window,
};
use crate::support::world::{BEGINNING, World, is_admitted, why};

#[test]
fn b25_a_crashed_holder_gives_its_slot_back() {
    // Its death was seen.
    let mut world = World::new(pool([parallel(2)]));
    let seen = world.reserve("dies", "a").admitted();
    let _ = world.reserve("dies", "a").admitted();
    let _ = world.reserve("lives", "b").refused();
    let outcome = world.kill("dies");
    let reclaimed = outcome
        .notices
        .iter()
        .filter(|notice| matches!(notice, Notice::Reclaimed { why: Reclaim::OwnerGone, .. }));
    assert_eq!(reclaimed.count(), 2);
    assert_eq!(world.state.find(seen), Found::Absent);
    let _ = world.reserve("lives", "b").admitted();

    // Its life cannot be tested: after a silence a participant may report it.
    let mut world = World::new(pool([parallel(1)]));
    let _ = world.reserve("dies", "a").admitted();
    let dies = world.session("dies");
    let silent = |world: &World| world.state.silent_sessions(world.now).collect::<Vec<_>>();
    world.at(BEGINNING + bounds::SILENCE - Span(1));
    assert_eq!(silent(&world), []);
    world.after(Span(1));
    assert_eq!(silent(&world), [dies]);
    let _ = world.reserve("lives", "b").refused();
    let _ = world.kill("dies");
    let _ = world.reserve("lives", "b").admitted();

    // It had no session: its own time.
    let mut world = World::new(pool([parallel(1)]));
    let grant = world.reserve("command", "a").ttl(HOUR).owner(77).granted();
    assert_eq!(grant.expires_at, BEGINNING + HOUR);
    let _ = world.send("finder", Action::OwnerEnded { lease: grant.lease });
    let _ = world.reserve("lives", "b").admitted();
}

/// A silent session is forgotten once it holds nothing, whether that was so when it became silent,
/// or another session ended its last lease after that.
#[test]
fn silent_sessions_are_forgotten_when_they_hold_nothing() {
    let mut world = World::new(pool([parallel(3)]));
    let held = world.reserve("first", "a").admitted();
    let other = world.after(SECOND).reserve("second", "a").admitted();
    let _ = world.after(SECOND).send("idle", Action::Heartbeat { lease: None, ttl: None });
    let [first, second, idle] = ["first", "second", "idle"].map(|name| world.session(name));
    let beat = |world: &mut World| {
        let _ = world.send("busy", Action::Heartbeat { lease: None, ttl: None });
    };
    let known = |world: &World| {
        [first, second, idle].map(|session| world.state.last_number(session).is_some())
    };
    world.at(BEGINNING + bounds::SILENCE);
    beat(&mut world);
    assert_eq!(known(&world), [true, true, true]);
    world.at(BEGINNING + bounds::SILENCE + SECOND + SECOND);
    beat(&mut world);
    assert_eq!(known(&world), [true, true, false]);
    for (lease, left) in [(held, [false, true, false]), (other, [false, false, false])] {
        let _ = world.after(SECOND).send("busy", Action::OwnerEnded { lease });
        beat(&mut world);
        assert_eq!(known(&world), left);
    }
}

/// A stopped process is alive: however long it is silent, it keeps what it holds.
#[test]
fn b26_a_silent_holder_keeps_its_lease() {
    let mut world = World::new(PoolConfig { longest_lease: None, ..pool([parallel(1)]) });
    let lease = world.reserve("stopped", "a").admitted();
    let told = world.after(DAY).reserve("next", "b").refused();
    assert_eq!(told.until, None, "nothing is known of when it ends");
    assert_eq!(world.state.find(lease), Found::Lease);
    assert_eq!(world.commit(lease).send(), LeaseAnswer::Ended);
    let _ = world.reserve("next", "b").admitted();
}

/// One that was reported as ended although it lives learns that from the answer to its next event.
#[test]
fn b26_a_slow_holder_learns_that_its_lease_is_lost() {
    let mut world = World::new(pool([parallel(1), window(REQUESTS, 10, DAY)]));
    let lease = world.reserve("slow", "a").admitted();
    world.live(secs(600));
    assert_eq!(world.state.find(lease), Found::Lease, "it beats");
    let _ = world.kill("slow");
    let second = world.reserve("next", "b").admitted();
    assert_eq!(world.commit(lease).used(&[(REQUESTS, 9)]).send(), LeaseAnswer::Gone);
    assert_eq!(world.cancel(lease), LeaseAnswer::Gone);
    assert_eq!(world.state.find(second), Found::Lease);
    let _ = world.reserve("third", "c").refused();
    world.cancel(second);
    let _ = world.reserve("third", "c").requests(9).admitted();
}

#[test]
fn b26_no_lease_outlives_the_longest_without_progress() {
    let mut config = pool([parallel(1)]);
    config.longest_lease = Some(secs(300));
    let mut world = World::new(config);
    let lease = world.reserve("p", "a").admitted();
    world.live(secs(290));
    assert!(matches!(world.commit(lease).progress().send(), LeaseAnswer::Lives(_)));
    world.live(secs(299));
    assert_eq!(world.state.find(lease), Found::Lease);
    world.live(secs(1));
    assert_eq!(world.state.find(lease), Found::Absent);
    let _ = world.reserve("q", "b").admitted();
}

#[test]
fn b27_a_stale_release_frees_nobody_elses_slot() {
    let mut world = World::new(pool([parallel(1)]));
    let old = world.reserve("old", "a").ttl(secs(5)).admitted();
    world.after(secs(5));
    let _ = world.reserve("new", "b").admitted();
    for _ in 0..3 {
        assert_eq!(world.commit(old).send(), LeaseAnswer::Gone);
        assert_eq!(world.cancel(old), LeaseAnswer::Gone);
        let outcome = world.send("old", Action::OwnerEnded { lease: old });
        assert!(outcome.notices.is_empty());
        let _ = world.reserve("third", "c").refused();
    }
}

/// A pause is the longest that anybody asked for, and ends by itself.
#[test]
fn b40_a_pause_only_grows_and_always_ends() {
    let mut world = World::new(pool([window(REQUESTS, 100, SECOND)]));
    let lease = world.reserve("p", "a").admitted();
    let _ = world.throttled(Some(lease), Some(secs(40)));
    let ends = world.reserve("p", "a").refused().until.unwrap();
    assert!(ends >= BEGINNING + secs(40), "{ends:?}");
    world.after(secs(1));
    let _ = world.throttled(None, Some(secs(2)));
    let _ = world.pause(secs(3));
    assert_eq!(world.reserve("p", "a").refused().until, Some(ends), "not shortened");
    let _ = world.pause(secs(100));
    let told = world.reserve("p", "a").tier(standpipe_core::Priority::Critical).refused();
    assert_eq!(told.reason, Reason::Pause);
    let longer = BEGINNING + secs(101);
    assert_eq!(told.until, Some(longer));
    world.at(longer - Span(1));
    let _ = world.reserve("p", "a").refused();
    world.at(longer);
    let _ = world.reserve("p", "a").admitted();
    let _ = world.throttled(None, Some(Span(bounds::PAUSE.0 + 1)));
    let decision = world.reserve("p", "a").send();
    let told = why(&decision).map_or(world.now, |refusal| refusal.until.unwrap());
    assert!(told < world.now + DAY, "absurd lengths are not believed: {told:?}");
    let _ = world.pause(Span(u64::MAX));
    assert!(world.reserve("p", "a").refused().until.unwrap() <= world.now + bounds::SPAN);
    let _ = world.resume();
    let _ = world.reserve("p", "a").admitted();
}

/// Who could not go before its deadline because of a pause is told at once.
#[test]
fn b40_a_pause_beyond_the_deadline_is_told_at_once() {
    let mut world = World::new(pool([window(REQUESTS, 100, SECOND)]));
    let _ = world.pause(secs(60));
    let told = world.reserve("p", "a").patience(secs(59)).refused();
    assert_eq!(told.reason, Reason::Pause);
    let hold = world.reserve("p", "a").patience(secs(61)).waits();
    assert_eq!(hold.refusal.until, Some(BEGINNING + secs(60)));
}

/// However many processes have died, the ledger forgets them.
#[test]
fn b47_dead_processes_are_forgotten() {
    let mut world = World::new(pool([parallel(10)]));
    world.bulk = true;
    for number in 0..20_000 {
        let _ = world.reserve(&format!("process {number}"), "a").send();
        world.after(secs(13));
    }
    world.check();
    assert!(format!("{:?}", world.state).len() < 50_000);
}

#[test]
fn b54_sleeping_until_the_named_instant_is_enough() {
    let pools = [
        pool([window(REQUESTS, 3, SECOND)]),
        pool([bucket(REQUESTS, 7, SECOND, 3)]),
        pool([paced(window(REQUESTS, 3, SECOND), millis(90)), bucket(REQUESTS, 2, SECOND, 2)]),
        pool([parallel(2), window(REQUESTS, 4, MINUTE)]),
    ];
    for (number, mut config) in pools.into_iter().enumerate() {
        config.slack = Span(777);
        let mut world = World::new(config);
        let mut denied = 0;
        let mut leases = Vec::new();
        for _ in 0..200 {
            match world.reserve("p", "a").ttl(HOUR).send() {
                Decision::Admit(grant) => {
                    denied = 0;
                    leases.push(grant.lease);
                }
                decision => {
                    denied += 1;
                    assert_eq!(denied, 1, "denied twice in a row: {decision:?} in {number}");
                    // No instant is named where a call in flight has to end: one does.
                    match why(&decision).unwrap().until {
                        Some(until) => world.now = until,
                        None => {
                            denied = 0;
                            let _ = world.commit(leases.remove(0)).send();
                        }
                    }
                }
            }
        }
    }
}

/// The same for somebody who waits in line alone.
#[test]
fn b54_claiming_at_the_named_instant_is_enough() {
    let mut world = World::new(pool([window(REQUESTS, 2, SECOND), parallel(1)]));
    let mut leases = Vec::new();
    for _ in 0..40 {
        match world.reserve("p", "a").ttl(HOUR).patience(HOUR).send() {
            Decision::Admit(grant) => leases.push(grant.lease),
            Decision::Wait(hold) if hold.refusal.until.is_none() => {
                let _ = world.after(millis(300)).commit(leases.remove(0)).send();
                let until = match world.claim(hold.ticket).send() {
                    Decision::Admit(grant) => {
                        leases.push(grant.lease);
                        continue;
                    }
                    told => why(&told).unwrap().until.unwrap(),
                };
                leases.push(world.at(until).claim(hold.ticket).admitted());
            }
            Decision::Wait(hold) => {
                let until = hold.refusal.until.unwrap();
                world.at(Instant(until.0 - 1));
                assert!(!is_admitted(&world.claim(hold.ticket).send()));
                world.at(until);
                leases.push(world.claim(hold.ticket).admitted());
            }
            Decision::Refuse(refusal) => panic!("{refusal:?}"),
        }
    }
}

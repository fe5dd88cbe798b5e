//! Who is woken, and when: everybody who can go now or earlier than it was to, and nobody else.

use standpipe_core::{Decision, Key, Policy, PoolConfig, Priority, Reason, Span, Zones, bounds};

use crate::support::words::{
    HOUR, MINUTE, REQUESTS, TOKENS, millis, parallel, pool, ranked, secs, window,
};
use crate::support::world::{World, is_admitted};

/// Who was woken by the last event.
fn woken(world: &World) -> Vec<Key> {
    world.log.last().map(|(_, _, outcome)| outcome.wake.clone()).unwrap_or_default()
}

fn queue(world: &mut World, name: &str, tier: Priority) -> Key {
    world.reserve(name, name).tier(tier).patience(HOUR).waits().ticket
}

#[test]
fn b62_a_commit_that_gives_nothing_back_wakes_nobody() {
    let limits = [window(REQUESTS, 2, MINUTE), parallel(10)];
    let mut world = World::new(pool(limits));
    let lease = world.reserve("p", "a").admitted();
    let other = world.reserve("p", "a").admitted();
    for name in ["x", "y", "z"] {
        queue(&mut world, name, Priority::Standard);
    }
    let _ = world.after(secs(1)).commit(lease).send();
    assert_eq!(woken(&world), [], "its request was used, and slots were free before");
    let _ = world.cancel(other);
    assert_eq!(
        woken(&world).len(),
        3,
        "a request came back: the first goes, the others come earlier"
    );
}

#[test]
fn b62_a_slot_that_was_the_last_wakes_who_waits_for_it() {
    let mut world = World::new(pool([parallel(1)]));
    let lease = world.reserve("p", "a").admitted();
    let waiter = queue(&mut world, "x", Priority::Standard);
    let _ = world.after(secs(1)).commit(lease).send();
    assert_eq!(woken(&world).first(), Some(&waiter));
}

/// The probe's answer is what the others wait for: the next one is woken then, also if it is held
/// back by its own return window, and not a second later.
#[test]
fn b62_the_next_ticket_is_woken_when_the_probe_is_answered() {
    let config = PoolConfig { policy: Policy::usual(), ..pool([window(REQUESTS, 100, MINUTE)]) };
    let mut world = World::new(config);
    let _ = world.pause(secs(10));
    let first = queue(&mut world, "first", Priority::Critical);
    let second = queue(&mut world, "second", Priority::Critical);
    world.after(secs(10));
    let probe = loop {
        if let Decision::Admit(grant) = world.claim(first).send() {
            break grant.lease;
        }
        world.after(millis(1));
    };
    let sent = world.now;
    let Decision::Wait(hold) = world.claim(second).send() else { panic!("the probe is under way") };
    let returns = hold.refusal.until.filter(|until| *until < sent + millis(500));
    assert!(
        returns.is_some() && !hold.refusal.exact,
        "the probe may be answered at once: {hold:?}"
    );
    let _ = world.after(millis(5)).commit(probe).send();
    assert!(woken(&world).contains(&second), "{:?}", woken(&world));
    let Decision::Wait(hold) = world.claim(second).send() else { panic!("its window comes later") };
    let returns = hold.refusal.until.filter(|until| *until < sent + millis(500));
    world.at(returns.unwrap_or_else(|| panic!("{hold:?}")));
    assert!(is_admitted(&world.claim(second).send()));
}

/// Units that come back shorten the distance which the zone asks for.
#[test]
fn b62_who_is_held_back_by_the_zone_is_woken_when_units_return() {
    let policy = Policy { zones: Zones::All, spreads: false, ..Policy::usual() };
    let agents = vec![ranked("picard", Priority::Critical), ranked("ralph", Priority::Background)];
    let config = PoolConfig { policy, agents, ..pool([window(TOKENS, 1_000, HOUR)]) };
    let mut world = World::new(config);
    let large = world.reserve("p", "picard").tier(Priority::Critical).cost(&[(TOKENS, 600)]);
    let large = large.admitted();
    let second = world.reserve("p", "picard").tier(Priority::Critical).cost(&[(TOKENS, 50)]);
    let _ = second.admitted();
    let _ = world.reserve("p", "ralph").tier(Priority::Background).cost(&[(TOKENS, 1)]).admitted();
    world.after(millis(100));
    let held = world.reserve("q", "ralph").tier(Priority::Background).cost(&[(TOKENS, 1)]);
    let held = held.patience(HOUR).waits();
    assert_eq!(held.refusal.reason, Reason::Zone, "{held:?}");
    // Still amber, but with a shorter distance.
    let _ = world.after(millis(100)).commit(large).used(&[(TOKENS, 560)]).send();
    assert!(woken(&world).contains(&held.ticket), "{:?}", woken(&world));
    assert!(is_admitted(&world.claim(held.ticket).send()));
}

/// A tier that is held back while a higher one waits is not looked at again after every period of
/// that: with a period of a microsecond the ledger would not get through a second of silence.
#[test]
fn b75_held_by_the_zone_behind_a_waiting_call_is_no_busy_loop() {
    let policy = Policy { zones: Zones::All, spreads: false, ..Policy::usual() };
    let limit = window(REQUESTS, 4, Span(1));
    let mut world = World::new(PoolConfig { policy, slack: HOUR, ..pool([limit]) });
    let lease = world.reserve("p", "picard").tier(Priority::Critical).requests(4).admitted();
    let _ = world.commit(lease).send();
    let _ = world.reserve("q", "picard").tier(Priority::Critical).patience(HOUR).waits();
    let held = world.reserve("r", "data").tier(Priority::Background).patience(HOUR).waits();
    assert_eq!(held.refusal.reason, Reason::Zone, "{held:?}");
    // Fuel would run out here.
    let _ = world.after(secs(10)).reserve("s", "ralph").send();
}

/// Nothing holds anybody back in shadow mode, those who wait already included.
#[test]
fn b62_switching_to_shadow_mode_lets_those_go_who_wait() {
    let config = pool([window(REQUESTS, 1, HOUR)]);
    let mut world = World::new(config.clone());
    let _ = world.reserve("p", "a").admitted();
    let tickets = ["x", "y"].map(|name| queue(&mut world, name, Priority::Standard));
    let _ = world.change(PoolConfig { enforce: false, ..config });
    assert!(tickets.iter().all(|ticket| woken(&world).contains(ticket)), "{:?}", woken(&world));
    for ticket in tickets {
        match world.claim(ticket).send() {
            Decision::Admit(grant) => assert!(grant.instead_of.is_some(), "it is recorded"),
            other => panic!("still waits: {other:?}"),
        }
    }
}

/// Agents beyond the bound share one record; their ids and their caps are their own.
#[test]
fn b66_agents_beyond_the_bound_keep_their_ids_and_caps() {
    let cap = crate::support::words::capped("capped", 10);
    let limit = window(REQUESTS, 1_000_000, HOUR);
    let mut world = World::new(PoolConfig { agents: vec![cap], ..pool([limit, parallel(4_000)]) });
    world.bulk = true;
    // Each keeps a lease, so that its record stays.
    for number in 0..bounds::AGENTS + 50 {
        let name = format!("agent-{number}");
        let _ = world.reserve("p", &name).id("call").admitted();
    }
    let late = format!("agent-{}", bounds::AGENTS + 10);
    let own = world.reserve("p", &late).id("call").granted();
    let other = world.reserve("p", "other").id("call").granted();
    assert_ne!(own.lease, other.lease, "an agent named `other` does not get others' leases");
    assert_eq!(world.reserve("p", &late).id("call").granted().lease, own.lease);
    let slots = (0..100).filter(|_| is_admitted(&world.reserve("p", "capped").send())).count();
    assert_eq!(slots, 40, "one percent of the slots");
    world.check();
}

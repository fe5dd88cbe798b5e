//! Out of order: barging, starving, inverted priorities, and floors that become ceilings.

use standpipe_core::{Decision, Found, Key, Priority, Reason, Span};

use crate::support::words::{
    DAY, HOUR, MINUTE, REQUESTS, SECOND, TOKENS, bucket, capped, floored, millis, parallel, pool,
    ranked, secs, window,
};
use crate::support::world::{BEGINNING, World, is_admitted, why};

/// Fills a pool of requests and lines up so many standard calls; their tickets.
fn queue(world: &mut World, full: u64, waiting: usize) -> Vec<Key> {
    let _ = world.reserve("first", "a").requests(full).admitted();
    (0..waiting)
        .map(|n| world.reserve(&format!("w{n}"), "a").patience(DAY).waits().ticket)
        .collect()
}

#[test]
fn b35_nobody_barges() {
    let mut world = World::new(pool([window(REQUESTS, 5, MINUTE)]));
    let tickets = queue(&mut world, 5, 3);
    world.at(BEGINNING + MINUTE);
    // Five units are back; three are set aside, and the rest is for whoever comes.
    let _ = world.reserve("late", "b").requests(3).refused();
    let _ = world.reserve("late", "b").requests(2).admitted();
    let _ = world.reserve("late", "b").refused();
    for ticket in tickets.into_iter().rev() {
        let _ = world.claim(ticket).admitted();
    }
}

/// Everybody gets its turn, in order, when a single slot goes round.
#[test]
fn b35_a_slot_goes_round_in_order() {
    let mut world = World::new(pool([parallel(1)]));
    let mut held = world.reserve("first", "a").admitted();
    let names: Vec<String> = (0..20).map(|n| format!("w{n}")).collect();
    let tickets: Vec<Key> =
        names.iter().map(|name| world.reserve(name, name).patience(HOUR).waits().ticket).collect();
    for (at, ticket) in tickets.iter().enumerate() {
        for later in &tickets[at..] {
            assert!(!is_admitted(&world.claim(*later).send()), "the slot is taken");
        }
        world.after(secs(1));
        world.commit(held).send();
        for later in tickets[at + 1..].iter().rev() {
            assert!(!is_admitted(&world.claim(*later).send()), "not before {ticket:?}");
        }
        held = world.claim(*ticket).admitted();
    }
}

/// Who is due and does not come keeps its place but blocks nobody, and its units go on.
#[test]
fn b35_who_does_not_claim_blocks_nobody() {
    let mut world = World::new(pool([parallel(1)]));
    let held = world.reserve("first", "a").admitted();
    let absent = world.reserve("w0", "a").patience(HOUR).waits().ticket;
    let present = world.reserve("w1", "a").patience(HOUR).waits().ticket;
    world.commit(held).send();
    // Claimed within two seconds, or not.
    world.after(Span(2_000_000 - 1));
    let _ = world.claim(present).waits();
    world.after(Span(1));
    let held = world.claim(present).admitted();
    // Back again it stands before whoever came later.
    let later = world.reserve("w2", "a").patience(HOUR).waits().ticket;
    let _ = world.claim(absent).waits();
    world.commit(held).send();
    let _ = world.claim(later).waits();
    let _ = world.claim(absent).admitted();
}

#[test]
fn b36_a_large_call_is_not_starved_by_small_ones() {
    // Without order the ninety never fit: each second some of what aged is taken again.
    let mut world = World::new(pool([window(REQUESTS, 100, MINUTE)]));
    for _ in 0..60 {
        let _ = world.reserve("small", "s").requests(1).send();
        world.after(secs(1));
    }
    let came = world.now;
    let large = world.reserve("large", "l").requests(90).patience(HOUR).waits();
    assert_eq!(large.refusal.reason, Reason::Limit);
    let mut admitted_at = None;
    let mut barged = 0;
    for _ in 0..200 {
        world.after(secs(1));
        if admitted_at.is_none() && is_admitted(&world.claim(large.ticket).send()) {
            admitted_at = Some(world.now);
        }
        let small = is_admitted(&world.reserve("small", "s").send());
        barged += u32::from(small && admitted_at.is_none());
    }
    assert_eq!(barged, 0);
    assert!(admitted_at.is_some_and(|at| at <= came + MINUTE), "{admitted_at:?}");
}

/// Critical before standard before background, whatever came first.
#[test]
fn b37_tiers_are_served_in_order() {
    let mut world = World::new(pool([parallel(1)]));
    let mut held = world.reserve("first", "a").admitted();
    let mut tickets = Vec::new();
    for tier in Priority::ALL.into_iter().rev() {
        let name = format!("{tier:?}");
        tickets.push(world.reserve(&name, &name).tier(tier).patience(HOUR).waits().ticket);
    }
    for at in (0..3).rev() {
        world.commit(held).send();
        for lower in &tickets[..at] {
            let _ = world.claim(*lower).waits();
        }
        held = world.claim(tickets[at]).admitted();
    }
}

/// A huge background call at the head of the line holds up nobody above it, and what was set aside
/// for it goes to whoever stands before it.
#[test]
fn b37_a_huge_background_call_does_not_block_critical() {
    let mut world = World::new(pool([window(REQUESTS, 100, MINUTE)]));
    let _ = world.reserve("first", "a").requests(50).admitted();
    let huge = world.reserve("bulk", "bulk").tier(Priority::Background).requests(100);
    let huge = huge.patience(DAY).waits().ticket;
    let _ = world.reserve("boss", "boss").tier(Priority::Critical).requests(30).admitted();
    let _ = world.reserve("user", "user").requests(20).admitted();
    world.at(BEGINNING + MINUTE);
    // Everything is set aside for it now.
    let _ = world.reserve("boss", "boss").tier(Priority::Critical).requests(99).admitted();
    let _ = world.claim(huge).waits();
    world.after(MINUTE);
    let _ = world.claim(huge).admitted();
}

/// A due ticket does not get past a higher one that has come since and waits for the same limit.
#[test]
fn b37_a_higher_ticket_is_not_passed_by_one_that_is_due() {
    let mut world = World::new(pool([window(REQUESTS, 10, MINUTE)]));
    let _ = world.reserve("first", "a").requests(4).admitted();
    world.after(secs(30));
    let _ = world.reserve("first", "a").requests(6).admitted();
    let low = world.reserve("low", "l").tier(Priority::Background).requests(4);
    let low = low.patience(HOUR).waits();
    assert_eq!(low.refusal.until, Some(BEGINNING + MINUTE));
    world.at(BEGINNING + MINUTE);
    let high = world.reserve("high", "h").tier(Priority::Critical).requests(5);
    let high = high.patience(HOUR).waits();
    let _ = world.claim(low.ticket).waits();
    world.at(high.refusal.until.unwrap());
    let _ = world.claim(low.ticket).send();
    let _ = world.claim(high.ticket).admitted();
}

/// Who is held back for a reason of its own keeps its place and blocks nobody.
#[test]
fn b37_a_ticket_at_its_own_cap_blocks_nobody() {
    let mut config = pool([window(REQUESTS, 10, MINUTE)]);
    config.agents = vec![capped("modest", 500)];
    let mut world = World::new(config);
    let _ = world.reserve("m", "modest").requests(5).admitted();
    let held = world.reserve("m", "modest").patience(HOUR).waits();
    assert_eq!(held.refusal.reason, Reason::Cap);
    let _ = world.reserve("other", "b").requests(5).admitted();
    world.at(BEGINNING + MINUTE);
    let _ = world.claim(held.ticket).admitted();
}

/// A floor is no ceiling, an idle one is lent, and its owner has it back within a period.
#[test]
fn b38_a_floor_is_lent_and_comes_back() {
    let mut config = pool([window(REQUESTS, 100, MINUTE)]);
    config.agents = vec![floored("owner", 400)];
    let mut world = World::new(config);
    // Alone, anybody reaches the whole, the owner too.
    let alone = world.reserve("o", "owner").requests(100).admitted();
    world.cancel(alone);
    world.after(secs(31));
    let lent = world.reserve("b", "borrower").requests(100).admitted();
    world.commit(lent).send();
    // The owner comes back: its floor is kept for it from now on, and what was lent ages.
    let hold = world.reserve("o", "owner").requests(40).patience(HOUR).waits();
    let back = hold.refusal.until.unwrap();
    assert!(back <= world.now + MINUTE);
    world.live(back.since(world.now));
    assert_eq!(world.now, back);
    let greedy = world.reserve("b", "borrower").requests(61).send();
    assert!(!is_admitted(&greedy), "{greedy:?}");
    let _ = world.claim(hold.ticket).admitted();
}

/// While its owner is active nobody of its tier takes what a floor keeps, and critical takes all.
#[test]
fn b38_a_floor_holds_against_its_own_tier_and_not_against_critical() {
    let mut config = pool([window(REQUESTS, 100, MINUTE)]);
    config.agents = vec![floored("owner", 400), ranked("boss", Priority::Critical)];
    let mut world = World::new(config);
    let _ = world.reserve("o", "owner").requests(10).admitted();
    let told = world.reserve("b", "borrower").requests(61).refused();
    assert_eq!(told.reason, Reason::Floor);
    let _ = world.reserve("b", "borrower").requests(60).admitted();
    let _ = world.reserve("o", "owner").requests(15).admitted();
    let _ = world.reserve("c", "boss").requests(15).admitted();
    let _ = world.reserve("o", "owner").refused();
}

/// Small calls of others do not pass a large one that waits, beside an active floor; its owner does
/// with what the floor covers.
#[test]
fn b38_a_floor_owner_passes_while_the_others_stay_in_order() {
    let mut config = pool([window(REQUESTS, 100, MINUTE), window(TOKENS, 100, SECOND)]);
    config.agents = vec![floored("owner", 400)];
    let mut world = World::new(config);
    let _ = world.reserve("o", "owner").requests(1).admitted();
    let _ = world.reserve("b", "x").requests(50).admitted();
    let large = world.reserve("l", "large").requests(55).patience(HOUR).waits();
    for _ in 0..5 {
        let told = world.reserve("s", "small").requests(1).refused();
        assert_eq!(told.reason, Reason::Order);
    }
    let _ = world.reserve("o", "owner").requests(39).admitted();
    let Decision::Refuse(told) = world.reserve("o", "owner").requests(5).send() else {
        panic!("beyond its floor the owner is one of many")
    };
    assert_eq!(told.reason, Reason::Order);
    assert_eq!(world.state.find(large.ticket), Found::Ticket);
}

/// A call larger than what a floor leaves waits for its owner to be idle or served; the owner's own
/// large call, behind it in line, must not wait for that in turn.
#[test]
fn b38_a_floor_and_a_line_do_not_lock_each_other() {
    let mut config = pool([window(TOKENS, 9, SECOND)]);
    config.agents = vec![floored("owner", 600)];
    let mut world = World::new(config);
    let lease = world.reserve("o", "owner").cost(&[(TOKENS, 1)]).admitted();
    world.commit(lease).send();
    let guest = world.reserve("g", "guest").cost(&[(TOKENS, 7)]).patience(DAY).waits();
    let owner = world.reserve("o", "owner").cost(&[(TOKENS, 9)]).patience(HOUR).waits();
    let mut admitted = 0;
    for _ in 0..10 {
        world.after(SECOND);
        for ticket in [owner.ticket, guest.ticket] {
            if world.state.find(ticket) == Found::Ticket {
                admitted += u32::from(is_admitted(&world.claim(ticket).send()));
            }
        }
    }
    assert!(admitted > 0, "nothing is used and both wait");
}

/// Who stands behind the owner of a floor is told an instant that may be too early, never one that
/// is too late: the owner fills its floor when it is served.
#[test]
fn b54_the_instant_behind_a_floor_owner_is_not_too_late() {
    let mut config = pool([window(TOKENS, 9, secs(3))]);
    config.agents = vec![floored("owner", 223)];
    let mut world = World::new(config);
    let _ = world.reserve("p", "guest").cost(&[(TOKENS, 7)]).admitted();
    let owner = world.reserve("o", "owner").cost(&[(TOKENS, 3)]).ttl(secs(1));
    let owner = owner.patience(DAY).waits();
    let guest = world.reserve("g", "guest").cost(&[(TOKENS, 8)]).patience(DAY).waits();
    world.at(owner.refusal.until.unwrap());
    let _ = world.claim(owner.ticket).admitted();
    // Its lease ends after a second, and after a period without a call it is idle.
    world.after(secs(4));
    let _ = world.claim(guest.ticket).admitted();
    assert!(guest.refusal.until.unwrap() <= world.now, "{guest:?}");
}

/// A critical call makes the first in line lack another limit for longer, so it stands in that line
/// from then on; who stood behind it is not told to wait for it.
#[test]
fn b54_the_instant_is_not_too_late_when_somebody_changes_lines() {
    let mut world = World::new(pool([window(REQUESTS, 6, SECOND), bucket(TOKENS, 5, SECOND, 9)]));
    let _ = world.reserve("p", "a").cost(&[(REQUESTS, 1), (TOKENS, 6)]).admitted();
    let large = world.reserve("l", "a").cost(&[(REQUESTS, 3), (TOKENS, 4)]);
    let _ = large.patience(HOUR).waits();
    let small = world.reserve("s", "a").cost(&[(REQUESTS, 0), (TOKENS, 1)]);
    let small = small.patience(HOUR).waits();
    let critical = world.reserve("c", "c").tier(Priority::Critical);
    let _ = critical.cost(&[(REQUESTS, 3), (TOKENS, 1)]).admitted();
    let told = why(&world.claim(small.ticket).peek()).map_or(world.now, |no| no.until.unwrap());
    while !is_admitted(&world.claim(small.ticket).peek()) {
        world.after(millis(1));
    }
    assert!(told <= world.now, "told {told:?}, admitted at {:?}", world.now);
}

/// The same across tiers: the owner asks below its own tier, behind a call that its floor holds
/// back.
#[test]
fn b38_a_floor_and_a_line_do_not_lock_each_other_across_tiers() {
    let mut config = pool([window(REQUESTS, 6, SECOND)]);
    config.agents = vec![floored("owner", 500)];
    let mut world = World::new(config);
    let _ = world.reserve("o", "owner").requests(2).ttl(millis(1)).admitted();
    let guest = world.reserve("g", "guest").requests(5).patience(DAY).waits();
    let owner = world.reserve("o", "owner").tier(Priority::Background).requests(5);
    let owner = owner.patience(HOUR).waits();
    let mut admitted = 0;
    for _ in 0..10 {
        world.after(SECOND);
        for ticket in [owner.ticket, guest.ticket] {
            if world.state.find(ticket) == Found::Ticket {
                admitted += u32::from(is_admitted(&world.claim(ticket).send()));
            }
        }
    }
    assert!(admitted > 0, "nothing is used and both wait");
}

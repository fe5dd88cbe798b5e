//! Background draws on a rate at an even pace while a higher tier was active in the period, and
//! uses everything when none was.

use proptest::prelude::*;
use standpipe_core::{
    Action, Decision, Instant, LimitId, Observed, Policy, PoolConfig, Priority, Reading, Reason,
    Refusal, Span, Unit,
};

use crate::support::cases;
use crate::support::words::{
    HOUR, MINUTE, REQUESTS, TOKENS, at_end, pool, provider_resets, ranked, secs, window,
};
use crate::support::world::{BEGINNING, World, is_admitted};

/// A pool with nothing but this policy.
fn spread(limits: impl IntoIterator<Item = standpipe_core::Limit>) -> PoolConfig {
    let policy = Policy { spreads: true, ..Policy::NONE };
    let agents = vec![
        ranked("picard", Priority::Critical),
        ranked("data", Priority::Standard),
        ranked("ralph", Priority::Background),
    ];
    PoolConfig { policy, agents, ..pool(limits) }
}

/// Admits background calls until one is refused.
fn drain(world: &mut World) -> (u64, Refusal) {
    for count in 0.. {
        match world.reserve("r", "ralph").send() {
            Decision::Admit(_) => {}
            Decision::Refuse(refusal) => return (count, refusal),
            Decision::Wait(queued) => panic!("{queued:?}"),
        }
    }
    unreachable!()
}

fn resets_in(length: Span) -> Action {
    let reading = Reading {
        unit: Unit::Requests,
        period: None,
        limit: None,
        remaining: None,
        coarse: 1,
        reset_in: Some(length),
        full_in: None,
    };
    Action::Observed(Observed { lease: None, readings: vec![reading] })
}

/// A ticket behind one that is due waits until that one is claimed or lapses. Where a limit refills
/// within a microsecond, the ledger must not step through each of them.
#[test]
fn a_ticket_behind_a_due_one_is_not_looked_at_every_microsecond() {
    let mut world = World::new(spread([window(REQUESTS, 7, Span(1))]));
    let _ = world.reserve("p", "picard").admitted();
    let _ = world.reserve("p", "picard").admitted();
    let first = world.reserve("r", "ralph").patience(MINUTE).waits().ticket;
    let second = world.reserve("s", "ralph").patience(MINUTE).waits().ticket;
    world.after(secs(1));
    let woken = world.send("x", Action::Heartbeat { lease: None, ttl: None }).wake;
    assert_eq!(woken, [first], "it is due, and not claimed");
    world.after(secs(2));
    let woken = world.send("x", Action::Heartbeat { lease: None, ttl: None }).wake;
    assert_eq!(woken, [second], "the first one has lapsed");
}

/// A twentieth at once, then 95 in an hour, and a critical call finds room at every instant.
#[test]
fn a_rolling_quota_lasts() {
    let mut world = World::new(spread([window(REQUESTS, 100, HOUR)]));
    let _ = world.reserve("p", "picard").admitted();
    let (first, reply) = drain(&mut world);
    assert_eq!(first, 4, "the critical call drew on the same five");
    assert_eq!(reply.reason, Reason::Spread);
    assert_eq!(reply.limit, Some(LimitId::Window(Unit::Requests, HOUR)));
    assert_eq!((reply.until, reply.exact), (Some(BEGINNING + Span(37_894_737)), false));
    let mut used = 0;
    for _ in 0..360 {
        world.after(secs(10));
        used += drain(&mut world).0;
        if world.now.since(BEGINNING).0.is_multiple_of(600_000_000) {
            let _ = world.reserve("p", "picard").admitted();
            used += 1;
        }
    }
    assert_eq!(used, 96, "95 were refilled, and background may draw the last unit into debt");
}

#[test]
fn background_alone_is_never_held_back() {
    let mut world = World::new(spread([window(REQUESTS, 100, HOUR)]));
    let (all, reply) = drain(&mut world);
    assert_eq!((all, reply.reason), (100, Reason::Limit));
}

/// A higher tier counts as active for one period after its last call, to the microsecond.
#[test]
fn it_ends_one_period_after_the_last_higher_call() {
    let mut world = World::new(spread([window(REQUESTS, 100, HOUR)]));
    let lease = world.reserve("d", "data").requests(40).admitted();
    let _ = world.commit(lease).send();
    world.at(BEGINNING + HOUR - Span(1));
    let (some, reply) = drain(&mut world);
    assert_eq!((some, reply.reason), (5, Reason::Spread));
    assert_eq!(reply.until, Some(BEGINNING + HOUR));
    world.at(BEGINNING + HOUR);
    assert_eq!(drain(&mut world).0, 95, "nobody higher was there in the period");
}

/// What critical calls take is missing from the pace of background, however much it is.
#[test]
fn higher_tiers_are_not_held_back_and_background_catches_up() {
    let mut world = World::new(spread([window(REQUESTS, 100, HOUR)]));
    let lease = world.reserve("p", "picard").requests(43).admitted();
    let _ = world.commit(lease).send();
    let reply = world.reserve("r", "ralph").refused();
    // 39 units at 95 per hour.
    assert_eq!(reply.until, Some(BEGINNING + Span(1_477_894_737)));
    let _ = world.reserve("p", "picard").requests(57).admitted();
    let reply = world.reserve("r", "ralph").refused();
    assert_eq!(reply.reason, Reason::Spread, "{reply:?}");
}

/// In a fixed window total use stays within the share that has elapsed, and at its end all is used.
#[test]
fn a_fixed_window_is_used_evenly_and_up() {
    let mut world = World::new(spread([provider_resets(window(REQUESTS, 100, HOUR))]));
    let _ = world.send("p", resets_in(HOUR));
    let _ = world.reserve("p", "picard").requests(10).admitted();
    let reply = world.reserve("r", "ralph").refused();
    assert_eq!((reply.reason, reply.until), (Reason::Spread, Some(BEGINNING + secs(360))));
    world.at(BEGINNING + secs(1_800));
    assert_eq!(drain(&mut world).0, 41, "half is elapsed, ten are used, and one more at the mark");
    let _ = world.send("p", resets_in(secs(900)));
    assert_eq!(drain(&mut world).0, 25, "the provider's window ends earlier than it said");
    world.at(BEGINNING + secs(2_700) - Span(1));
    assert_eq!(drain(&mut world).0, 24, "all hundred");
}

/// A fixed window whose end is not known holds nothing back.
#[test]
fn without_a_known_window_there_is_no_pace() {
    let mut world = World::new(spread([provider_resets(window(REQUESTS, 100, HOUR))]));
    let _ = world.reserve("p", "picard").admitted();
    assert_eq!(drain(&mut world).0, 99);
}

/// Only limits that a call draws on hold it back.
#[test]
fn a_call_is_held_back_by_its_own_units_only() {
    let mut world = World::new(spread([window(REQUESTS, 100, HOUR), window(TOKENS, 100, HOUR)]));
    let _ = world.reserve("p", "picard").cost(&[(TOKENS, 60)]).admitted();
    let _ = world.reserve("r", "ralph").admitted();
    let reply = world.reserve("r", "ralph").cost(&[(TOKENS, 1)]).refused();
    assert_eq!(reply.limit, Some(LimitId::Window(Unit::Tokens, HOUR)));
}

/// What calls in flight will be charged at their end counts as used.
#[test]
fn units_held_in_flight_count() {
    let mut world = World::new(spread([at_end(window(TOKENS, 100, HOUR))]));
    let lease = world.reserve("p", "picard").cost(&[(TOKENS, 30)]).admitted();
    let reply = world.reserve("r", "ralph").cost(&[(TOKENS, 1)]).refused();
    assert_eq!((reply.reason, reply.until), (Reason::Spread, None), "its end is unknown");
    let _ = world.commit(lease).used(&[(TOKENS, 2)]).send();
    let _ = world.reserve("r", "ralph").cost(&[(TOKENS, 1)]).admitted();
}

/// Units that come back let background go earlier, and it is woken.
#[test]
fn a_refund_wakes_who_is_paced() {
    let mut world = World::new(spread([window(TOKENS, 100, HOUR)]));
    let lease = world.reserve("p", "picard").cost(&[(TOKENS, 40)]).admitted();
    let held = world.reserve("r", "ralph").cost(&[(TOKENS, 1)]).patience(HOUR).waits();
    assert_eq!(held.refusal.reason, Reason::Spread);
    let _ = world.after(secs(1)).commit(lease).used(&[(TOKENS, 1)]).send();
    let woken = world.log.last().map(|(_, _, outcome)| outcome.wake.clone());
    assert_eq!(woken, Some(vec![held.ticket]));
    assert!(is_admitted(&world.claim(held.ticket).send()));
}

/// As many tickets become due as the pace has units, and not all that wait.
#[test]
fn a_crowd_is_served_one_by_one() {
    let mut world = World::new(spread([window(REQUESTS, 100, HOUR)]));
    let _ = world.reserve("p", "picard").requests(5).admitted();
    let tickets: Vec<_> = (0..20)
        .map(|n| world.reserve(&format!("r{n}"), "ralph").patience(HOUR).waits().ticket)
        .collect();
    let due = |world: &World| {
        let state = world.state.at(world.now);
        let tickets = state.facts().tickets.values();
        let due = tickets.filter(|one| matches!(one.phase, standpipe_core::Phase::Due(_)));
        due.map(|one| one.key).collect::<Vec<_>>()
    };
    // A unit comes back every 3,600 / 95 s.
    world.at(BEGINNING + secs(38));
    assert_eq!(due(&world), tickets[..1]);
    assert!(is_admitted(&world.claim(tickets[0]).send()));
    assert_eq!(due(&world), []);
    world.at(BEGINNING + secs(76));
    assert_eq!(due(&world), tickets[1..2]);
}

/// A higher call that waits keeps background at its pace, and no lower.
#[test]
fn a_waiting_higher_call_is_no_standstill() {
    let mut world = World::new(spread([window(REQUESTS, 100, HOUR), window(TOKENS, 10, HOUR)]));
    let _ = world.reserve("p", "picard").cost(&[(TOKENS, 10)]).admitted();
    let _ = world.reserve("q", "picard").cost(&[(TOKENS, 10)]).patience(HOUR).waits();
    assert_eq!(drain(&mut world).0, 4);
    world.after(secs(38));
    assert_eq!(drain(&mut world).0, 1);
}

/// A promoted call is not background.
#[test]
fn a_promoted_call_is_not_paced() {
    let mut config = spread([window(REQUESTS, 100, HOUR)]);
    config.policy.promotes = true;
    let mut world = World::new(config);
    let _ = world.reserve("p", "picard").requests(60).admitted();
    let held = world.reserve("r", "ralph").patience(HOUR).waits();
    assert_eq!(held.refusal.reason, Reason::Spread);
    world.at(BEGINNING + secs(300));
    assert!(is_admitted(&world.claim(held.ticket).send()));
}

/// Switched on at run time it counts what was used before.
#[test]
fn switched_on_it_counts_what_was_used() {
    let mut config = spread([window(REQUESTS, 100, HOUR)]);
    let after = config.clone();
    config.policy.spreads = false;
    let mut world = World::new(config);
    let _ = world.reserve("p", "picard").requests(43).admitted();
    let _ = world.change(after);
    let reply = world.reserve("r", "ralph").refused();
    assert_eq!(reply.until, Some(BEGINNING + Span(1_477_894_737)));
    let mut off = spread([window(REQUESTS, 100, MINUTE)]);
    off.policy.spreads = false;
    let _ = world.change(off);
    assert!(world.state.facts().counters.iter().all(|counter| counter.spread.is_none()));
}

/// The pace as the book has it: every call, when it came and how large it was.
struct Pace {
    amount: u64,
    calls: Vec<(Instant, u64)>,
    higher: Option<Instant>,
}

impl Pace {
    /// What is missing from the bucket now, in millionths of a unit per second: every call anew.
    fn has_units(&self, now: Instant) -> bool {
        let burst = (self.amount / 20).max(1);
        let refill = u128::from((self.amount - burst).max(1));
        let (mut missing, mut at) = (0_u128, Instant(0));
        for (when, units) in &self.calls {
            missing = missing.saturating_sub(u128::from(when.since(at).0) * refill);
            missing += u128::from(*units) * u128::from(HOUR.0);
            at = *when;
        }
        let missing = missing.saturating_sub(u128::from(now.since(at).0) * refill);
        missing <= u128::from(burst - 1) * u128::from(HOUR.0)
    }

    fn holds(&self, now: Instant) -> bool {
        let higher = self.higher.is_some_and(|seen| now < seen + HOUR);
        higher && !self.has_units(now)
    }
}

proptest! {
    #![proptest_config(cases(200))]

    /// Background is admitted exactly when the book says so, and nobody above it waits for that.
    #[test]
    fn background_is_paced_as_the_book_says(
        amount in 2_u64..200,
        steps in prop::collection::vec((0_u64..2_000, 1_u64..5, 0_u8..4), 1..80),
    ) {
        let mut world = World::new(spread([window(REQUESTS, amount, HOUR)]));
        let mut pace = Pace { amount, calls: Vec::new(), higher: None };
        for (wait, units, who) in steps {
            world.live(secs(wait));
            let (name, background) = if who == 0 { ("picard", false) } else { ("ralph", true) };
            match world.reserve("p", name).requests(units.min(amount)).send() {
                Decision::Admit(grant) => {
                    prop_assert!(!background || !pace.holds(world.now));
                    let _ = world.commit(grant.lease).send();
                    pace.calls.push((world.now, units.min(amount)));
                    if !background {
                        pace.higher = Some(world.now);
                    }
                }
                Decision::Refuse(no) if no.reason == Reason::Spread => {
                    prop_assert!(background && pace.holds(world.now));
                }
                Decision::Refuse(no) => prop_assert_eq!(no.reason, Reason::Limit),
                Decision::Wait(queued) => panic!("{queued:?}"),
            }
        }
    }

    /// The same on a window that resets: within the elapsed share, whatever the others used.
    #[test]
    fn background_keeps_the_elapsed_share_as_the_book_says(
        amount in 2_u64..200,
        steps in prop::collection::vec((0_u64..60, 1_u64..5, 0_u8..4), 1..59),
    ) {
        let mut world = World::new(spread([provider_resets(window(REQUESTS, amount, HOUR))]));
        let _ = world.send("p", resets_in(HOUR));
        let (mut used, mut higher) = (0_u64, false);
        for (wait, units, who) in steps {
            world.live(secs(wait));
            let (name, background) = if who == 0 { ("picard", false) } else { ("ralph", true) };
            let units = units.min(amount);
            let elapsed = world.now.since(BEGINNING).0;
            let holds = higher && used * HOUR.0 > elapsed * amount;
            match world.reserve("p", name).requests(units).send() {
                Decision::Admit(grant) => {
                    prop_assert!(!background || !holds);
                    prop_assert!(used + units <= amount);
                    let _ = world.commit(grant.lease).send();
                    used += units;
                    higher |= !background;
                }
                Decision::Refuse(no) if no.reason == Reason::Spread => {
                    prop_assert!(background && holds);
                }
                Decision::Refuse(no) => {
                    prop_assert_eq!(no.reason, Reason::Limit);
                    prop_assert!(used + units > amount);
                }
                Decision::Wait(queued) => panic!("{queued:?}"),
            }
        }
    }
}

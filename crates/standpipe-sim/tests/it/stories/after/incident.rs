//! Calls that are refused together are one incident, and what was under way before says nothing of
//! how things are now.

use standpipe_core::Notice;
use standpipe_sim::{Options, PlannedCall, Provider, Report, RetryAfter, Rule, Shape};

use super::scene::{Tale, declared, play, usual};
use crate::stories::scene::{MILLI, MINUTE, SECOND, requests};

/// For the first minute, others use all there is.
fn upstream() -> Provider {
    let others =
        Rule::Foreign { per_second: 200, input: 0, output: 0, from: SECOND, until: MINUTE };
    let options = Options { retry_after: RetryAfter::Withheld, ..Options::of(Shape::OpenAi) };
    Provider::new(Shape::OpenAi, vec![requests(100, SECOND), others], 1).with(options)
}

/// One long call from the start, and twenty at once in the third second.
fn twenty() -> (Report, Tale) {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(1_000, MINUTE)]));
    let one = |at, lasts| vec![PlannedCall { at, lasts, ..PlannedCall::default() }];
    let mut agents = vec![tale.agent("long", one(0, 20 * SECOND))];
    agents.extend((0..20).map(|n| tale.agent(&format!("agent {n}"), one(3 * SECOND, SECOND))));
    (play(upstream(), agents).0, tale)
}

fn refusals(tale: &Tale) -> Vec<(u64, bool, u32)> {
    let refusal = |(at, notice): (u64, Notice)| match notice {
        Notice::Throttled { new, streak, .. } => Some((at / MILLI, new, streak)),
        _ => None,
    };
    tale.notices().into_iter().filter_map(refusal).collect()
}

#[test]
fn twenty_refused_together_are_one_incident() {
    let (story, tale) = twenty();
    let refusals = refusals(&tale);
    let told = format!("{story}\n{refusals:?}\n{:?}", tale.pauses());
    let first: Vec<_> = refusals.iter().filter(|(at, ..)| *at == 3_100).collect();
    assert_eq!(first.len(), 20, "{told}");
    assert_eq!(first.iter().filter(|(_, new, _)| *new).count(), 1, "{told}");
    assert!(first.iter().all(|(.., streak)| *streak == 1), "{told}");
    // One pause of ten seconds, not one of twenty doublings.
    assert_eq!(tale.pauses()[0], (3_100 * MILLI, 13_100 * MILLI), "{told}");
    assert_eq!(
        story.to_string(),
        "wanted 21: done 14, given up 7, lost 0; \
         made 36: refused 22, wasted 22, at most 20 a second; \
         244.2 s, waves of refusals: 3"
    );
}

/// The long call is answered in the twentieth second, between two refusals of the first calls after
/// a pause: the streak goes on.
#[test]
fn a_success_from_before_the_pause_does_not_reset_the_streak() {
    let (_, tale) = twenty();
    let news: Vec<_> = refusals(&tale).into_iter().filter(|(_, new, _)| *new).collect();
    let told = format!("{news:?}\n{:?}", tale.pauses());
    let long = 20_100;
    let (before, after): (Vec<_>, Vec<_>) = news.into_iter().partition(|(at, ..)| *at < long);
    let streak =
        |of: &[(u64, bool, u32)]| of.iter().map(|(.., streak)| *streak).collect::<Vec<_>>();
    assert_eq!((streak(&before), streak(&after)), (vec![1, 2], vec![3]), "{told}");
}

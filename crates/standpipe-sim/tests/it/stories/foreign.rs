//! Other traffic on the same key: agents that stay within the limit among themselves are refused
//! nevertheless.

use standpipe_sim::{Agent, Pattern, Report, Rule, Shape};

use super::scene::{MILLI, MINUTE, SECOND, STEADY, alone, calls, provider, requests, run};

/// Four agents that together make little more than half of what is allowed, and somebody else from
/// the second minute to the third.
fn play(per_second: u64) -> Report {
    let (from, until) = (MINUTE, 2 * MINUTE);
    let foreign = Rule::Foreign { per_second, input: 0, output: 0, from, until };
    let work = || calls(120, 100 * MILLI, Pattern::Every(1_500 * MILLI));
    let agents = (0..4).map(|n| Agent::new(format!("agent {n}"), alone(4), work()));
    let limits = [requests(50, 10 * SECOND), foreign];
    run(provider(Shape::OpenAi, &limits), STEADY, agents.collect())
}

#[test]
fn alone_on_the_key_nobody_is_refused() {
    assert_eq!(
        play(0).to_string(),
        "wanted 480: done 480, given up 0, lost 0; \
         made 480: refused 0, wasted 0, at most 4 a second; \
         178.7 s, waves of refusals: 0"
    );
}

#[test]
fn beside_others_everybody_is() {
    let story = play(4);
    assert_eq!(
        story.to_string(),
        "wanted 480: done 480, given up 0, lost 0; \
         made 971: refused 491, wasted 491, at most 21 a second; \
         178.7 s, waves of refusals: 19"
    );
    let first = story.waves.first().unwrap().from;
    assert!((MINUTE..MINUTE + 10 * SECOND).contains(&first), "{first}");
    assert!(story.agents.iter().all(|agent| agent.refused > 0));
}

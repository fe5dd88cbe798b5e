//! The cascade: agents in a chain on one key. One is refused, work piles up behind it, and when
//! the limit lifts, all of it comes at once.

use standpipe_sim::{Agent, Pattern, PlannedCall, Report, Shape};

use super::scene::{
    MILLI, MINUTE, SECOND, STEADY, alone, by_hand, calls, provider, requests, run, waves,
};

/// Triage, code, deploy: each piece of work is a call of each, one after the other. A new one comes
/// every two seconds, so that the three make 90 calls a minute, where 100 are allowed.
fn chain(extra: usize) -> Report {
    let work = || calls(150, 500 * MILLI, Pattern::Every(2 * SECOND));
    let mut triage = work();
    // In the second minute, triage finds more than usual, all at once.
    triage.extend(vec![
        PlannedCall {
            at: 90 * SECOND,
            lasts: 500 * MILLI,
            ..PlannedCall::default()
        };
        extra
    ]);
    let agent = |name: &str, work| Agent::new(name, alone(30), work).lanes(16);
    let agents = vec![
        agent("triage", triage),
        agent("code", work()).after(0),
        agent("deploy", work()).after(1),
    ];
    run(provider(Shape::Anthropic, &[requests(100, MINUTE)]), STEADY, agents)
}

#[test]
fn within_the_limit_the_chain_runs_smoothly() {
    let story = chain(0);
    assert_eq!(
        story.to_string(),
        "wanted 450: done 450, given up 0, lost 0; \
         made 450: refused 0, wasted 0, at most 2 a second; \
         299.8 s, waves of refusals: 0"
    );
    assert!(story.agents.iter().all(|agent| agent.longest_wait() < 2 * SECOND));
}

#[test]
fn one_burst_of_one_agent_throttles_all_three() {
    let story = chain(40);
    assert_eq!(
        story.to_string(),
        "wanted 490: done 490, given up 0, lost 0; \
         made 2782: refused 2292, wasted 2292, at most 28 a second; \
         301.3 s, waves of refusals: 16"
    );
    // The first wave goes on for two minutes, and nobody is spared: those who asked for no more
    // than before are refused as often as the one who did, and the last in the chain waits longest.
    assert_eq!(waves(&story)[..2], [(1_842, 3), (432, 3)]);
    assert_eq!(story.agents.iter().map(|agent| agent.refused).collect::<Vec<_>>(), [903, 614, 775]);
    let waits = story.agents.iter().map(|agent| agent.longest_wait() / SECOND);
    assert_eq!(waits.collect::<Vec<_>>(), [60, 67, 111]);
}

#[test]
fn what_is_given_up_takes_what_follows_with_it() {
    let agent = |name: &str| Agent::new(name, by_hand(1), calls(3, SECOND, Pattern::AtOnce));
    let agents = vec![agent("triage"), agent("code").after(0), agent("deploy").after(1)];
    let story = run(provider(Shape::Anthropic, &[requests(4, MINUTE)]), STEADY, agents);
    // Four are accepted, three refused, and the two behind those never begin.
    assert_eq!((story.done, story.given_up, story.lost), (4, 3, 2));
    assert_eq!(story.made, 7);
}

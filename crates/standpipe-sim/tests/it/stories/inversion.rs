//! Priority inversion: what may wait takes the quota, and what must not waits behind it.

use standpipe_sim::{Agent, Pattern, Shape};

use super::scene::{MILLI, MINUTE, SECOND, STEADY, alone, calls, provider, requests, run};

/// A background agent asks for new work all the time; the one whose decisions everybody waits for
/// asks once a minute, and is refused like any other.
#[test]
fn what_must_not_wait_waits_behind_what_may() {
    let polling = calls(600, 100 * MILLI, Pattern::Every(500 * MILLI));
    let mut deciding = calls(5, 100 * MILLI, Pattern::Every(MINUTE));
    deciding.iter_mut().for_each(|call| call.at += 45 * SECOND);
    let agents = vec![
        Agent::new("background", alone(20), polling).priority(2).lanes(8),
        Agent::new("critical", alone(20), deciding).priority(0),
    ];
    let story = run(provider(Shape::Anthropic, &[requests(80, MINUTE)]), STEADY, agents);
    assert_eq!(
        story.to_string(),
        "wanted 605: done 605, given up 0, lost 0; \
         made 2475: refused 1870, wasted 1870, at most 12 a second; \
         445.6 s, waves of refusals: 106"
    );
    let [background, critical] = &story.agents[..] else { panic!() };
    assert_eq!((background.refused, critical.refused), (1_850, 20));
    // A call of a tenth of a second.
    assert!(critical.waits.iter().all(|wait| *wait > 16 * SECOND), "{:?}", critical.waits);
}

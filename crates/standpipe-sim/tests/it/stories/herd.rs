//! The thundering herd: everybody is refused, is told the same wait, and comes back together.

use standpipe_sim::{Agent, Network, Pattern, Shape};

use super::scene::{MILLI, SECOND, STEADY, alone, by_hand, calls, provider, requests, run, waves};

fn herd(count: usize) -> Vec<Agent> {
    let agent = |n| Agent::new(format!("agent {n}"), alone(3), calls(1, SECOND, Pattern::AtOnce));
    (0..count).map(agent).collect()
}

/// Fifty agents, ten calls in any ten seconds: after each wait all who are left come at once.
#[test]
fn the_same_wait_for_all_brings_wave_after_wave() {
    let story = run(provider(Shape::Anthropic, &[requests(10, 10 * SECOND)]), STEADY, herd(50));
    assert_eq!(
        story.to_string(),
        "wanted 50: done 50, given up 0, lost 0; \
         made 150: refused 100, wasted 100, at most 50 a second; \
         41.5 s, waves of refusals: 4"
    );
    assert_eq!(waves(&story), [(40, 40), (30, 30), (20, 20), (10, 10)]);
}

/// A network that is now and then slower does not help: what it spreads is far less than a window.
#[test]
fn a_little_chance_on_the_way_does_not_scatter_the_herd() {
    let network = Network { jitter: 200 * MILLI, ..STEADY };
    let story = run(provider(Shape::Anthropic, &[requests(10, 10 * SECOND)]), network, herd(50));
    assert_eq!(
        story.to_string(),
        "wanted 50: done 50, given up 0, lost 0; \
         made 150: refused 100, wasted 100, at most 50 a second; \
         42.746 s, waves of refusals: 4"
    );
    assert_eq!(waves(&story), [(40, 40), (30, 30), (20, 20), (10, 10)]);
}

/// Six agents that double their wait each time regenerate the spike; they only space it out.
#[test]
fn backing_off_each_for_itself_only_widens_the_gaps() {
    let agent = |n| {
        let work = calls(10, 100 * MILLI, Pattern::AtOnce);
        Agent::new(format!("agent {n}"), by_hand(6), work)
    };
    let limit = requests(5, SECOND);
    let agents = (0..6).map(agent).collect();
    let story = run(provider(Shape::GitHub, &[limit]), STEADY, agents);
    assert_eq!(
        story.to_string(),
        "wanted 60: done 60, given up 0, lost 0; \
         made 103: refused 43, wasted 43, at most 17 a second; \
         16.6 s, waves of refusals: 7"
    );
}

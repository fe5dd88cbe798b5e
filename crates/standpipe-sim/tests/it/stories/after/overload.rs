//! A provider that is short of capacity, and one that finds the rate grew too fast.

use standpipe_sim::{Agent, Pattern, PlannedCall, Provider, Report, Rule, Shape};

use super::scene::{Tale, declared, play, usual};
use super::table::Table;
use crate::stories::scene::{MILLI, MINUTE, SECOND, STEADY, alone, calls, provider, requests, run};

/// Half a minute in which every call is answered with 529.
fn overloaded() -> Provider {
    let (from, until) = (30 * SECOND, MINUTE);
    let rule = Rule::Overload { from, until, share: 1_000, hint: None };
    provider(Shape::Anthropic, &[requests(600, MINUTE), rule])
}

fn ten(count: usize, every: u64, agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let work = || calls(count, 500 * MILLI, Pattern::Every(every));
    (0..10).map(|n| agent(&format!("agent {n}"), work())).collect()
}

fn short_of_capacity() -> (Report, Tale) {
    let tale = Tale::new(Shape::Anthropic, usual(vec![declared(600, MINUTE)]));
    let agents = ten(60, 2 * SECOND, &|name, work| tale.agent(name, work));
    (play(overloaded(), agents).0, tale)
}

pub(super) fn table() -> Table {
    let agents = ten(60, 2 * SECOND, &|name, work| Agent::new(name, alone(10), work));
    let before = run(overloaded(), STEADY, agents);
    Table::of("overload", &before, &short_of_capacity().0)
}

#[test]
fn overload_pauses_and_shrinks_nothing() {
    let (story, tale) = short_of_capacity();
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 600: done 600, given up 0, lost 0; \
         made 613: refused 13, wasted 13, at most 13 a second; \
         118.6 s, waves of refusals: 4",
        "\n{table}"
    );
    assert!(tale.looks().iter().all(|look| look.effective[0] == 600), "\n{table}");
    assert!(tale.looks().iter().all(|look| look.streak == 0 && look.bears.is_none()), "\n{table}");
    assert!(tale.looks().iter().all(|look| look.single_file.is_none()), "\n{table}");
    let lengths: Vec<_> = tale.pauses().iter().map(|(at, until)| (until - at) / SECOND).collect();
    assert_eq!(lengths, [2, 4, 8, 16], "\n{table}");
}

/// Twice as many as in the quarter minute before are too many; ten are always fine.
fn accelerating() -> Provider {
    let rule = Rule::Acceleration { growth: 2_000, stretch: 15 * SECOND, free: 30 };
    provider(Shape::Anthropic, &[requests(600, MINUTE), rule])
}

fn slowed() -> (Report, Tale) {
    let tale = Tale::new(Shape::Anthropic, usual(vec![declared(600, MINUTE)]));
    let agents = ten(120, SECOND, &|name, work| tale.agent(name, work));
    (play(accelerating(), agents).0, tale)
}

pub(super) fn slow_down_table() -> Table {
    let agents = ten(120, SECOND, &|name, work| Agent::new(name, alone(10), work));
    let before = run(accelerating(), STEADY, agents);
    Table::of("slow-down", &before, &slowed().0)
}

#[test]
fn growing_too_fast_halves_the_rate_and_ramps_up_again() {
    let (story, tale) = slowed();
    let table = slow_down_table();
    assert_eq!(
        story.to_string(),
        "wanted 1200: done 1200, given up 0, lost 0; \
         made 1221: refused 21, wasted 21, at most 10 a second; \
         797.668 s, waves of refusals: 12",
        "\n{table}"
    );
    let mut halvings: Vec<_> = tale.looks().iter().map(|look| look.halvings).collect();
    halvings.dedup();
    // Halved with each refusal of something new, doubled a minute later by time alone.
    assert_eq!(halvings[..8], [0, 1, 2, 3, 2, 3, 2, 3], "\n{table}");
}

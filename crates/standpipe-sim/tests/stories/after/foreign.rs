//! Others on the same key: they take their part, and nobody storms.

use standpipe_sim::{Agent, Pattern, Provider, Rule, Shape, Story, Wanted};

use super::scene::{Tale, declared, play, usual};
use super::table::Table;
use crate::scene::{HOUR, MILLI, SECOND, STEADY, alone, calls, provider, requests, run};

/// Fifty in ten seconds, of which others take a fifth.
fn upstream() -> Provider {
    let others = Rule::Foreign { per_second: 1, input: 0, output: 0, from: 0, until: HOUR };
    provider(Shape::OpenAi, &[requests(50, 10 * SECOND), others])
}

/// Six agents that want all there is for three minutes.
fn crowd(agent: &dyn Fn(&str, Vec<Wanted>) -> Agent) -> Vec<Agent> {
    let work = || calls(150, 100 * MILLI, Pattern::Every(1_200 * MILLI));
    (0..6).map(|n| agent(&format!("agent {n}"), work())).collect()
}

fn beside() -> (Story, Tale) {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(50, 10 * SECOND)]));
    let (story, _) = play(upstream(), crowd(&|name, work| tale.agent(name, work)));
    (story, tale)
}

pub(super) fn table() -> Table {
    let before = run(upstream(), STEADY, crowd(&|name, work| Agent::new(name, alone(10), work)));
    let (after, _) = beside();
    let waves = |story: &Story| story.waves.len();
    let largest = |story: &Story| story.waves.iter().map(|wave| wave.refusals).max().unwrap_or(0);
    Table::of("foreign", &before, &after)
        .row("waves of refusals", waves(&before), waves(&after))
        .row("refusals in the largest wave", largest(&before), largest(&after))
}

#[test]
fn a_fifth_taken_by_others_brings_no_storm() {
    let (story, _) = beside();
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 900: done 900, given up 0, lost 0; \
         made 900: refused 0, wasted 0, at most 6 a second; \
         212.6 s, waves of refusals: 0",
        "\n{table}"
    );
}

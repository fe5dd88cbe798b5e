//! The cascade: a burst of one agent no longer throttles the chain; and when others on the key
//! throttle three agents, all go in single file until it works again.

use standpipe_core::Notice;
use standpipe_sim::{Agent, Pattern, PlannedCall, Provider, Report, Rule, Shape};

use super::scene::{Tale, declared, play, usual};
use super::table::{Table, seconds};
use crate::stories::scene::{MILLI, MINUTE, SECOND, STEADY, alone, calls, provider, requests, run};

/// Triage, code, deploy, as in part one: in the second minute triage finds forty more at once.
fn chain(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let work = || calls(150, 500 * MILLI, Pattern::Every(2 * SECOND));
    let mut triage = work();
    triage.extend(vec![
        PlannedCall {
            at: 90 * SECOND,
            lasts: 500 * MILLI,
            ..PlannedCall::default()
        };
        40
    ]);
    let agent = |name: &str, work| agent(name, work).lanes(16);
    vec![agent("triage", triage), agent("code", work()).after(0), agent("deploy", work()).after(1)]
}

fn upstream() -> Provider {
    provider(Shape::Anthropic, &[requests(100, MINUTE)])
}

fn chained() -> Report {
    let tale = Tale::new(Shape::Anthropic, usual(vec![declared(100, MINUTE)]));
    play(upstream(), chain(&|name, work| tale.agent(name, work))).0
}

fn longest(story: &Report) -> String {
    let longest = story.agents.iter().map(standpipe_sim::AgentReport::longest_wait).max();
    seconds(longest.unwrap_or(0))
}

pub(super) fn table() -> Table {
    let agents = chain(&|name, work| Agent::new(name, alone(30), work));
    let (before, after) = (run(upstream(), STEADY, agents), chained());
    let table = Table::of("cascade", &before, &after);
    table.row("longest wait of a call", longest(&before), longest(&after))
}

#[test]
fn one_burst_of_one_agent_throttles_nobody() {
    let story = chained();
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 490: done 490, given up 0, lost 0; \
         made 490: refused 0, wasted 0, at most 12 a second; \
         299.8 s, waves of refusals: 0",
        "\n{table}"
    );
}

/// Six agents at half of what is allowed, and for twenty seconds others who use up all of it.
fn crowd(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let work = || calls(90, 300 * MILLI, Pattern::Every(1_730 * MILLI));
    (0..6).map(|n| agent(&format!("agent {n}"), work())).collect()
}

fn beside_others() -> Provider {
    let (from, until) = (20 * SECOND, 40 * SECOND);
    let others = Rule::Foreign { per_second: 97, input: 0, output: 0, from, until };
    provider(Shape::OpenAi, &[requests(60, 10 * SECOND), others])
}

fn single_file() -> (Report, Tale) {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(60, 10 * SECOND)]));
    let (story, _) = play(beside_others(), crowd(&|name, work| tale.agent(name, work)));
    (story, tale)
}

pub(super) fn single_file_table() -> Table {
    let agents = crowd(&|name, work| Agent::new(name, alone(10), work));
    let before = run(beside_others(), STEADY, agents);
    let (after, tale) = single_file();
    let looks = tale.looks();
    let most = looks.iter().filter_map(|look| look.single_file).max().unwrap_or(0);
    Table::of("sequential", &before, &after).row("calls in flight, one at a time", "–", most).row(
        "longest wait of a call",
        longest(&before),
        longest(&after),
    )
}

/// When single file began and ended.
fn turns(tale: &Tale) -> Vec<(u64, bool)> {
    let turn = |(at, notice): (u64, Notice)| match notice {
        Notice::Sequential { on } => Some((at, on)),
        _ => None,
    };
    tale.notices().into_iter().filter_map(turn).collect()
}

#[test]
fn three_throttled_agents_make_all_go_in_single_file_until_it_works() {
    let (story, tale) = single_file();
    let table = single_file_table();
    assert_eq!(
        story.to_string(),
        "wanted 540: done 540, given up 0, lost 0; \
         made 548: refused 8, wasted 8, at most 18 a second; \
         168.58 s, waves of refusals: 3",
        "\n{table}"
    );
    let turns = turns(&tale);
    // It begins once and ends by itself.
    assert!(matches!(turns[..], [(_, true), (_, false)]), "{turns:?}\n{table}");
    let most = tale.looks().iter().filter_map(|look| look.single_file).max();
    assert_eq!(most, Some(1), "\n{table}");
    // Afterwards calls overlap again.
    let after = tale.looks().into_iter().filter(|look| look.at > turns[1].0);
    assert!(after.map(|look| look.in_flight).max() > Some(1), "\n{table}");
}

//! The provider says stop for good: nobody calls, one looks each hour, and when it was paid all
//! goes on by itself.

use standpipe_core::Notice;
use standpipe_sim::{
    Agent, Cap, ClientOptions, Pattern, PlannedCall, Provider, Report, Rule, Shape, Work,
};

use super::scene::{Tale, declared, play, usual};
use super::table::Table;
use crate::stories::scene::{HOUR, MINUTE, SECOND, STEADY, alone, provider, requests, run};

/// Some three dollars, of which each call takes a cent; paid anew after three and a half hours, of
/// which the words say nothing.
fn upstream() -> Provider {
    let resets = 3 * HOUR + 30 * MINUTE;
    let cap = Rule::SpendCap { amount: 3_050_000, resets, cap: Cap::Enforced };
    provider(Shape::OpenAi, &[requests(1_000, MINUTE), cap])
}

/// Five agents, a call each minute, for five hours.
fn five(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let mut like = PlannedCall { lasts: SECOND, ..PlannedCall::default() };
    like.used.cost = 10_000;
    let work = Work { calls: 300, like, pattern: Pattern::Every(MINUTE), vary: 0 };
    (0..5).map(|n| agent(&format!("agent {n}"), work.calls(1))).collect()
}

fn stopped() -> (Report, Tale, Vec<u64>) {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(1_000, MINUTE)]));
    let options = ClientOptions { patience: 30 * SECOND, ..ClientOptions::USUAL };
    let (story, world) = play(upstream(), five(&|name, work| tale.agent_with(options, name, work)));
    let refusals = world.provider().record().refusals().map(|seen| seen.at / SECOND).collect();
    (story, tale, refusals)
}

pub(super) fn table() -> Table {
    let before = run(upstream(), STEADY, five(&|name, work| Agent::new(name, alone(4), work)));
    Table::of("terminal", &before, &stopped().0)
}

#[test]
fn an_empty_account_stops_all_and_one_looks_each_hour() {
    let (story, tale, refusals) = stopped();
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 1500: done 596, given up 904, lost 0; \
         made 603: refused 7, wasted 7, at most 5 a second; \
         17941.1 s, waves of refusals: 3",
        "\n{table}"
    );
    assert_eq!(refusals, [3_660, 3_660, 3_660, 3_660, 3_660, 7_260, 10_860], "\n{table}");
    let by_itself = |notice: &Notice| matches!(notice, Notice::Resumed { by: None, .. });
    let lifted = tale.notices().into_iter().filter(|(_, notice)| by_itself(notice));
    let lifted: Vec<_> = lifted.map(|(at, _)| at / SECOND).collect();
    assert_eq!(lifted, [14_461], "\n{table}");
}

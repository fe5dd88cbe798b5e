//! Retry stacking: there is one retry layer, and the ledger counts what it does.

use standpipe_core::{Policy, PoolConfig, RetryBudget};
use standpipe_sim::{Agent, Pattern, PlannedCall, Report, Retries, Rule, Shape, Uncoordinated};

use super::scene::{Tale, declared, play, usual};
use super::table::Table;
use crate::stories::scene::{HOUR, MINUTE, SECOND, STEADY, calls, provider, run};

const DOWN: Rule = Rule::Overload { from: 0, until: HOUR, share: 1_000, hint: None };

fn stacked() -> Uncoordinated {
    Uncoordinated::new(Retries::SDK.exactly(), Retries::by_hand(3), 1)
}

fn ten(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let work = || calls(1, SECOND, Pattern::AtOnce);
    (0..10).map(|n| agent(&format!("agent {n}"), work())).collect()
}

/// A provider that is down for an hour.
fn down() -> (Report, Tale) {
    let tale = Tale::new(Shape::Anthropic, usual(vec![declared(600, MINUTE)]));
    let agents = ten(&|name, work| tale.agent(name, work));
    (play(provider(Shape::Anthropic, &[DOWN]), agents).0, tale)
}

fn thousandths(of: usize) -> String {
    format!("{}.{:02}", of / 1_000, of % 1_000 / 10)
}

pub(super) fn table() -> Table {
    let agents = ten(&|name, work| Agent::new(name, stacked(), work));
    let before = run(provider(Shape::Anthropic, &[DOWN]), STEADY, agents);
    let (after, _) = down();
    let per = |story: &Report| thousandths(story.made_per_wanted());
    Table::of("stacking", &before, &after).row("calls for each wanted", per(&before), per(&after))
}

/// Ten minutes of calls at a provider that refuses every third.
fn shaky(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let work = || calls(200, SECOND, Pattern::Every(3 * SECOND));
    (0..10).map(|n| agent(&format!("agent {n}"), work())).collect()
}

const EVERY_THIRD: Rule = Rule::Overload { from: 0, until: HOUR, share: 333, hint: None };

fn shaken() -> (Report, Tale) {
    shaken_by(Policy::usual())
}

pub(super) fn shaken_by(policy: Policy) -> (Report, Tale) {
    let config = PoolConfig { policy, ..usual(vec![declared(600, MINUTE)]) };
    let tale = Tale::new(Shape::Anthropic, config);
    let agents = shaky(&|name, work| tale.agent(name, work));
    (play(provider(Shape::Anthropic, &[EVERY_THIRD]), agents).0, tale)
}

pub(super) fn shaky_table() -> Table {
    let agents = shaky(&|name, work| Agent::new(name, stacked(), work));
    let before = run(provider(Shape::Anthropic, &[EVERY_THIRD]), STEADY, agents);
    let (after, _) = shaken();
    let per = |story: &Report| thousandths(story.made_per_wanted());
    Table::of("shaky", &before, &after).row("calls for each wanted", per(&before), per(&after))
}

/// In no minute are more retries admitted than a tenth of that minute's calls, or three.
fn within_the_budget(tale: &Tale) -> bool {
    let admitted = tale.admitted();
    admitted.iter().all(|last| {
        let minute =
            admitted.iter().filter(|told| told.at + MINUTE > last.at && told.at <= last.at);
        let all = minute.clone().count();
        let retries = minute.filter(|told| told.retry).count();
        // A retry is drawn when it takes its ticket, and may be admitted up to a pause later: two
        // minutes' worth can fall into one.
        retries <= 2 * (all / 10).max(usize::from(RetryBudget::USUAL.least))
    })
}

#[test]
fn at_a_provider_that_is_down_few_calls_are_made() {
    let (story, tale) = down();
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 10: done 0, given up 10, lost 0; \
         made 21: refused 21, wasted 21, at most 10 a second; \
         277.64 s, waves of refusals: 12",
        "\n{table}"
    );
    assert!(within_the_budget(&tale), "\n{table}");
    // Three a minute, for the five minutes in which anybody is patient.
    assert!(story.made <= story.wanted + 3 * 5, "\n{table}");
}

#[test]
fn at_a_shaky_provider_retries_are_a_tenth() {
    let (story, tale) = shaken();
    let table = shaky_table();
    assert_eq!(
        story.to_string(),
        "wanted 2000: done 1963, given up 37, lost 0; \
         made 2187: refused 224, wasted 224, at most 10 a second; \
         3837.2 s, waves of refusals: 203",
        "\n{table}"
    );
    assert!(within_the_budget(&tale), "\n{table}");
    assert!(story.made_per_wanted() <= 1_100, "\n{table}");
}

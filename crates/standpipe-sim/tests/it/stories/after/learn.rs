//! Limits that nobody declared: the pool begins with care, learns from answers, and fills what it
//! has learned.

use standpipe_core::{Margin, PoolConfig};
use standpipe_sim::{
    Agent, ClientOptions, Options, Pattern, PlannedCall, Provider, Report, Rule, Shape, Unit, Work,
    World,
};

use super::scene::{Tale, play, usual};
use super::table::{Table, percent};
use crate::stories::scene::{
    HOUR, MILLI, MINUTE, SECOND, STEADY, alone, calls, provider, requests, run,
};

/// What changed in a sequence, in order.
fn steps<T: PartialEq>(of: impl Iterator<Item = T>) -> Vec<T> {
    let mut steps: Vec<T> = of.collect();
    steps.dedup();
    steps
}

/// Thirty agents at a provider that says nothing of its limits.
#[test]
fn who_knows_nothing_begins_with_one_call_and_doubles_per_answer() {
    let tale = Tale::new(Shape::Anthropic, usual(Vec::new()));
    let options = Options { silent: true, ..Options::of(Shape::Anthropic) };
    let upstream = Provider::new(Shape::Anthropic, vec![requests(1_000, MINUTE)], 1).with(options);
    let work = || calls(4, SECOND, Pattern::AtOnce);
    let agents = (0..30).map(|n| tale.agent(&format!("agent {n}"), work())).collect();
    let (story, _) = play(upstream, agents);
    let looks = tale.looks();
    let over = looks.iter().find(|look| look.cautious.is_some_and(|most| look.in_flight > most));
    assert_eq!(over, None, "{story}");
    let allowed = steps(looks.iter().filter_map(|look| look.cautious));
    assert_eq!(allowed[..7], [1, 2, 4, 8, 16, 32, 64], "{story}");
    assert_eq!(
        story.to_string(),
        "wanted 120: done 120, given up 0, lost 0; \
         made 120: refused 0, wasted 0, at most 30 a second; \
         7.7 s, waves of refusals: 0"
    );
}

fn ten(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let like = PlannedCall { lasts: 700 * MILLI, ..PlannedCall::default() };
    let work = Work { calls: 66, like, pattern: Pattern::AtOnce, vary: 200 };
    (0..10).map(|n| agent(&format!("agent {n}"), work.calls(n))).collect()
}

fn upstream() -> Provider {
    provider(Shape::Anthropic, &[requests(100, MINUTE)])
}

/// Ten agents want all there is, and nobody declared how much that is.
fn learned() -> (Report, World, Tale) {
    let tale = Tale::new(Shape::Anthropic, usual(Vec::new()));
    let options = ClientOptions { patience: HOUR, ..ClientOptions::USUAL };
    let (story, world) = play(upstream(), ten(&|name, work| tale.agent_with(options, name, work)));
    (story, world, tale)
}

/// What was used of the quota in the minutes between the first and the last, in thousandths.
fn used(world: &World, amount: u64) -> u64 {
    let used = world.provider().record().used(0);
    let whole = &used[1..used.len().saturating_sub(1).max(1)];
    whole.iter().sum::<u64>() * 1_000 / (amount * whole.len().max(1) as u64)
}

pub(super) fn table() -> Table {
    let before = run(upstream(), STEADY, ten(&|name, work| Agent::new(name, alone(40), work)));
    let (after, world, _) = learned();
    let table = Table::of("learned", &before, &after);
    table.row("of the quota used, once known", "–", percent(used(&world, 100)))
}

#[test]
fn limits_are_learned_from_headers_and_filled() {
    let (story, world, tale) = learned();
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 660: done 660, given up 0, lost 0; \
         made 660: refused 0, wasted 0, at most 20 a second; \
         366.778 s, waves of refusals: 0",
        "\n{table}"
    );
    assert_eq!((story.refused, used(&world, 100)), (0, 1_000), "\n{table}");
    // Told with the first answer.
    let first = tale.looks().into_iter().find(|look| !look.effective.is_empty()).unwrap();
    assert_eq!((first.at / MILLI, first.effective), (907, vec![100]), "\n{table}");
}

/// Twenty agents at a provider that bears five calls at once, and says so only by refusing.
fn at_once(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let work = || calls(60, SECOND, Pattern::AtOnce);
    (0..20).map(|n| agent(&format!("agent {n}"), work())).collect()
}

fn five_slots() -> Provider {
    provider(Shape::Anthropic, &[Rule::Concurrency { amount: 5 }, requests(10_000, MINUTE)])
}

fn borne() -> (Report, Tale) {
    let limits = vec![super::scene::declared(10_000, MINUTE)];
    let tale = Tale::new(Shape::Anthropic, usual(limits));
    let options = ClientOptions { patience: HOUR, ..ClientOptions::USUAL };
    let agents = at_once(&|name, work| tale.agent_with(options, name, work));
    (play(five_slots(), agents).0, tale)
}

pub(super) fn parallel_table() -> Table {
    let agents = at_once(&|name, work| Agent::new(name, alone(40), work));
    let before = run(five_slots(), STEADY, agents);
    Table::of("parallel", &before, &borne().0)
}

#[test]
fn how_many_calls_are_borne_is_learned_from_refusals() {
    let (story, tale) = borne();
    let table = parallel_table();
    assert_eq!(
        story.to_string(),
        "wanted 1200: done 1200, given up 0, lost 0; \
         made 1219: refused 19, wasted 19, at most 20 a second; \
         279.141 s, waves of refusals: 5",
        "\n{table}"
    );
    let bears = steps(tale.looks().into_iter().filter_map(|look| look.bears));
    assert_eq!(
        bears,
        [19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5],
        "\n{table}"
    );
}

/// Six processes with forty calls each at a provider that refills 120 a minute and holds as many.
/// Nobody declared that. A minute is possible: its answers show the refill, so the limit is learned
/// as a bucket, and what remains, so the margin is 5 %.
#[test]
fn a_limit_that_refills_is_learned_as_a_bucket_and_filled() {
    let config = PoolConfig { margin: Margin::Auto, ..usual(Vec::new()) };
    let tale = Tale::new(Shape::Anthropic, config);
    let (amount, period, burst) = (120, MINUTE, 120);
    let bucket = Rule::Bucket { unit: Unit::Requests, amount, period, burst };
    let work = || calls(40, 50 * MILLI, Pattern::AtOnce);
    let agents = (0..6).map(|n| tale.agent(&format!("agent {n}"), work())).collect();
    let (story, _) = play(provider(Shape::Anthropic, &[bucket]), agents);
    assert_eq!((story.done, story.refused), (240, 0), "{story}");
    // At least 90 % of the possible speed.
    assert!(story.ended <= MINUTE * 10 / 9, "{story}");
}

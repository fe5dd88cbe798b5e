//! The thundering herd after a pause: one call first, then tier after tier, and nobody is refused.

use standpipe_core::{Policy, PoolConfig};
use standpipe_sim::{
    Agent, Options, Pattern, PlannedCall, Provider, Report, RetryAfter, Rule, Shape, Unit, World,
};

use super::scene::{Tale, declared, play, usual};
use super::table::Table;
use crate::stories::scene::{
    MILLI, MINUTE, SECOND, STEADY, alone, calls, provider, requests, run, waves,
};

/// Ten calls a second, ten at once. Until the tenth second others use all of it; whoever is refused
/// is told the same wait.
fn burst_limiter() -> Provider {
    let burst = Rule::Bucket { unit: Unit::Requests, amount: 600, period: MINUTE, burst: 10 };
    let others =
        Rule::Foreign { per_second: 100, input: 0, output: 0, from: 0, until: 10 * SECOND };
    let options = Options {
        refused_count: false,
        retry_after: RetryAfter::Always(10),
        ..Options::of(Shape::OpenAi)
    };
    Provider::new(Shape::OpenAi, vec![burst, others], 1).with(options)
}

/// A scout that is refused, and a second later fifty who want to call: in three tiers.
fn fifty(lasts: u64, agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let at = |at| vec![PlannedCall { at, lasts, ..PlannedCall::default() }];
    let mut agents = vec![agent("scout", at(SECOND))];
    for (priority, count) in [(2, 15), (1, 25), (0, 10)] {
        let tier = (0..count).map(|n| agent(&format!("p{priority} {n}"), at(2 * SECOND)));
        agents.extend(tier.map(|agent| agent.priority(priority)));
    }
    agents
}

struct Comeback {
    story: Report,
    world: World,
    tale: Tale,
    /// When the pause ended.
    end: u64,
}

fn comeback(lasts: u64) -> Comeback {
    comeback_by(lasts, Policy::usual())
}

fn comeback_by(lasts: u64, policy: Policy) -> Comeback {
    let config = PoolConfig { policy, ..usual(vec![declared(600, MINUTE)]) };
    let tale = Tale::new(Shape::OpenAi, config);
    let agents = fifty(lasts, &|name, work| tale.agent(name, work));
    let (story, world) = play(burst_limiter(), agents);
    let end = tale.pauses()[0].1;
    Comeback { story, world, tale, end }
}

/// How many are refused after the first pause, and what came of it all.
pub(super) fn refused_after(policy: Policy) -> (usize, Report) {
    let Comeback { story, world, end, .. } = comeback_by(200 * MILLI, policy);
    (world.provider().record().refused_from(end), story)
}

fn before() -> Report {
    run(burst_limiter(), STEADY, fifty(200 * MILLI, &|name, work| Agent::new(name, alone(5), work)))
}

/// The most calls admitted in one instant from an instant on.
fn most_at_once(tale: &Tale, from: u64) -> usize {
    let admitted = tale.admitted();
    let after: Vec<_> = admitted.iter().filter(|told| told.at >= from).collect();
    after.chunk_by(|a, b| a.at == b.at).map(<[_]>::len).max().unwrap_or(0)
}

pub(super) fn table() -> Table {
    let (before, after) = (before(), comeback(200 * MILLI));
    let end = after.end;
    let refused = after.world.provider().record().refused_from(end);
    let late = before.waves.iter().filter(|wave| wave.from > 10 * SECOND);
    Table::of("herd", &before, &after.story)
        .row("refused after the first wait", late.map(|wave| wave.refusals).sum::<usize>(), refused)
        .row("bursts of refusals", before.waves.len(), after.story.waves.len())
}

/// Fifty wait, and the upstream bears ten at once: the first call is alone until it is answered,
/// critical comes before standard before background, and nobody is refused.
#[test]
fn b39_fifty_come_back_from_a_pause_and_none_is_refused() {
    let Comeback { story, world, tale, end } = comeback(200 * MILLI);
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 51: done 51, given up 0, lost 0; \
         made 52: refused 1, wasted 1, at most 13 a second; \
         21.148 s, waves of refusals: 1",
        "\n{table}"
    );
    assert_eq!(world.provider().record().refused_from(end), 0, "\n{table}");
    let back: Vec<_> = tale.admitted().into_iter().filter(|told| told.at >= end).collect();
    assert_eq!(back.len(), 51, "\n{table}");
    // The probe is answered 300 ms later; until then it is alone.
    assert!(back[1].at >= back[0].at + 300 * MILLI, "\n{table}");
    assert!(back[0].at < end + 50 * MILLI, "\n{table}");
    let tiers: Vec<_> = back.iter().map(|told| story.agents[told.agent].priority).collect();
    assert!(tiers.is_sorted(), "{tiers:?}\n{table}");
    assert_eq!(comeback(200 * MILLI).story, story, "the same seed, the same story");
}

/// A first call that is not answered within a second is waited for no longer. Those whose instants
/// have passed by then do not go at once, but one after the other.
#[test]
fn b39_behind_a_slow_first_call_nobody_bunches_up() {
    let Comeback { story, world, tale, end } = comeback(3 * SECOND);
    assert_eq!(
        story.to_string(),
        "wanted 51: done 51, given up 0, lost 0; \
         made 52: refused 1, wasted 1, at most 13 a second; \
         24.648 s, waves of refusals: 1"
    );
    assert_eq!(world.provider().record().refused_from(end), 0, "{story}");
    assert_eq!(most_at_once(&tale, end), 1, "{story}");
    let back = tale.admitted().into_iter().filter(|told| told.at >= end);
    let tiers: Vec<_> = back.map(|told| story.agents[told.agent].priority).collect();
    assert!(tiers.is_sorted(), "{tiers:?}");
}

/// When single file ends, those who waited for their turn go one after the other, too.
#[test]
fn b39_after_single_file_nobody_bunches_up() {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(600, MINUTE)]));
    let at = |at| vec![PlannedCall { at, lasts: SECOND, ..PlannedCall::default() }];
    let scouts = (0..3).map(|n| tale.agent(&format!("scout {n}"), at(SECOND)));
    let waiters = (0..30).map(|n| tale.agent(&format!("agent {n}"), at(2 * SECOND)));
    let (story, world) = play(burst_limiter(), scouts.chain(waiters).collect());
    let end = tale.pauses()[0].1;
    assert_eq!(
        story.to_string(),
        "wanted 33: done 33, given up 0, lost 0; \
         made 36: refused 3, wasted 3, at most 10 a second; \
         18.98 s, waves of refusals: 1"
    );
    assert_eq!(world.provider().record().refused_from(end), 0, "{story}");
    assert_eq!(most_at_once(&tale, end), 1, "{story}");
}

/// Part one's fifty at a limit that is declared: nobody is refused in the first place.
pub(super) fn declared_table() -> Table {
    let limits = [requests(10, 10 * SECOND)];
    let work = || calls(1, SECOND, Pattern::AtOnce);
    let agents = (0..50).map(|n| Agent::new(format!("agent {n}"), alone(3), work()));
    let before = run(provider(Shape::OpenAi, &limits), STEADY, agents.collect());
    let after = declared_story().0;
    Table::of("declared", &before, &after).row("bursts of refusals", waves(&before).len(), 0)
}

fn declared_story() -> (Report, World) {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(10, 10 * SECOND)]));
    let work = || calls(1, SECOND, Pattern::AtOnce);
    let agents = (0..50).map(|n| tale.agent(&format!("agent {n}"), work())).collect();
    play(provider(Shape::OpenAi, &[requests(10, 10 * SECOND)]), agents)
}

#[test]
fn where_the_limit_is_declared_nobody_is_refused_at_all() {
    let (story, _) = declared_story();
    let table = declared_table();
    assert_eq!(
        story.to_string(),
        "wanted 50: done 50, given up 0, lost 0; \
         made 50: refused 0, wasted 0, at most 10 a second; \
         41.1 s, waves of refusals: 0",
        "\n{table}"
    );
    assert_eq!(story.refused, 0, "\n{table}");
}

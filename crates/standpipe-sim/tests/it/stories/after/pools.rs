//! One pool's refusals never delay another.

use standpipe_sim::{Network, Pattern, PlannedCall, Provider, Report, Shape, World};

use super::scene::{Tale, declared, dialect, usual};
use super::table::{Table, seconds};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, STEADY, calls, provider, requests};

/// Four agents call both of two pools. The first provider bears less than is declared, or not.
fn both(first: u64) -> (Report, Vec<usize>) {
    let config = || usual(vec![declared(120, MINUTE)]);
    let pools = vec![(dialect(Shape::Gemini), config()), (dialect(Shape::Gemini), config())];
    let tale = Tale::of(pools);
    let work = |pool| {
        let calls = calls(60, 500 * MILLI, Pattern::Every(2_500 * MILLI));
        calls.into_iter().map(move |wanted| PlannedCall { pool, ..wanted }).collect()
    };
    let agents = (0..4).flat_map(|n| {
        let name = format!("agent {n}");
        [tale.agent(&name, work(0)), tale.agent(&name, work(1))]
    });
    let upstream = |amount| -> Provider { provider(Shape::Gemini, &[requests(amount, MINUTE)]) };
    let network: Network = STEADY;
    let mut world = World::new(upstream(first), network, agents.collect(), 1).and(upstream(120));
    let story = world.run(240 * HOUR);
    assert!(story.is_over(), "{story}");
    let refused = world.providers().iter().map(|provider| provider.record().refused());
    (story, refused.collect())
}

/// The longest wait on each pool.
fn longest(story: &Report) -> [u64; 2] {
    let of = |pool: usize| story.agents.iter().skip(pool).step_by(2);
    [0, 1].map(|pool| of(pool).map(standpipe_sim::AgentReport::longest_wait).max().unwrap_or(0))
}

pub(super) fn table() -> Table {
    let (story, refused) = both(50);
    let longest = longest(&story);
    Table::empty("pools", "the pool that is refused", "the other")
        .row("refused", refused[0], refused[1])
        .row("longest wait of a call", seconds(longest[0]), seconds(longest[1]))
}

#[test]
fn one_pools_refusals_never_delay_another() {
    let (calm, _) = both(120);
    let (story, refused) = both(50);
    let table = table();
    assert_eq!(refused, [2, 0], "\n{table}");
    let waits = |story: &Report| -> Vec<Vec<u64>> {
        story.agents.iter().skip(1).step_by(2).map(|agent| agent.waits.clone()).collect()
    };
    // To the microsecond as if the first pool had no trouble.
    assert_eq!(waits(&story), waits(&calm), "\n{table}");
    assert!(longest(&story)[0] > 10 * SECOND, "\n{table}");
}

//! Scenes in which the provider refuses, each run with a policy and without it.

use standpipe_core::{Policy, PoolConfig};
use standpipe_sim::{
    ClientOptions, Options, Pattern, PlannedCall, Provider, Report, RetryAfter, Rule, Shape, Unit,
    Work,
};

use super::super::scene::{Tale, declared, play, usual};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, requests};

/// What is different from scene to scene.
struct Scene {
    rules: Vec<Rule>,
    /// How much longer each answer takes.
    late: u64,
    retry_after: RetryAfter,
}

/// Fifteen agents with sixty calls each, one every two seconds, on a pool that takes itself for
/// larger than it is. The provider's headers say nothing of it.
fn fifteen(scene: Scene, policy: Policy) -> Report {
    let Scene { rules, late, retry_after } = scene;
    let config = PoolConfig { policy, ..usual(vec![declared(600, MINUTE)]) };
    let tale = Tale::new(Shape::OpenAi, config);
    let options = ClientOptions { patience: HOUR, ..ClientOptions::USUAL };
    let like = PlannedCall { lasts: 400 * MILLI, late, ..PlannedCall::default() };
    let work = Work { calls: 60, like, pattern: Pattern::Every(2 * SECOND), vary: 0 };
    let agents = (0..15).map(|n| tale.agent_with(options, &format!("agent {n}"), work.calls(n)));
    let (silent, refused_count) = (true, false);
    let options = Options { silent, refused_count, retry_after, ..Options::of(Shape::OpenAi) };
    play(Provider::new(Shape::OpenAi, rules, 1).with(options), agents.collect()).0
}

/// Others use all there is for a minute, and then for twenty seconds again.
pub(super) fn taken_twice(policy: Policy) -> Report {
    let others = |from, until| Rule::Foreign { per_second: 50, input: 0, output: 0, from, until };
    let rules = vec![
        requests(200, MINUTE),
        others(30 * SECOND, 90 * SECOND),
        others(130 * SECOND, 150 * SECOND),
    ];
    fifteen(Scene { rules, late: 0, retry_after: RetryAfter::Real }, policy)
}

/// Ten calls at once and ten a second are borne, and for two minutes others take eight of them.
pub(super) fn crowded(late: u64, policy: Policy) -> Report {
    crowded_by(late, RetryAfter::Real, policy)
}

/// The same with a provider that gives a `Retry-After`, or none.
pub(super) fn crowded_by(late: u64, retry_after: RetryAfter, policy: Policy) -> Report {
    let others = Rule::Foreign { per_second: 8, input: 0, output: 0, from: 0, until: 2 * MINUTE };
    let bucket = Rule::Bucket { unit: Unit::Requests, amount: 600, period: MINUTE, burst: 10 };
    let rules = vec![bucket, others];
    fifteen(Scene { rules, late, retry_after }, policy)
}

/// Twice as much is declared as there is. The provider's headers say so.
pub(super) fn declared_too_high(policy: Policy) -> Report {
    let config = PoolConfig { policy, ..usual(vec![declared(600, MINUTE)]) };
    let tale = Tale::new(Shape::OpenAi, config);
    let options = ClientOptions { patience: HOUR, ..ClientOptions::USUAL };
    let like = PlannedCall { lasts: 300 * MILLI, ..PlannedCall::default() };
    let work = Work { calls: 300, like, pattern: Pattern::Every(SECOND), vary: 0 };
    let agents = (0..8).map(|n| tale.agent_with(options, &format!("agent {n}"), work.calls(n)));
    let upstream = crate::stories::scene::provider(Shape::OpenAi, &[requests(300, MINUTE)]);
    play(upstream, agents.collect()).0
}

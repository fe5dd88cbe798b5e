//! Scenes in which nobody is refused, each run with a policy and without it.

use standpipe_core::{Charged, Limit, Policy, PoolConfig, Rule as Declared, Span, Unit as Counted};
use standpipe_sim::{
    Call, ClientOptions, CostHint, Pattern, PlannedCall, Report, Rule, Shape, Unit, Used, Work,
    World,
};

use super::super::scene::{Tale, declared, usual};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, STEADY, calls, provider, requests};

const PATIENT: ClientOptions = ClientOptions { patience: 4 * HOUR, ..ClientOptions::USUAL };

/// Six hundred in five minutes. One agent wants them all, one call after the other; a critical one
/// makes a call every ten seconds. What came of it, and what was used of the quota in half an hour,
/// in thousandths.
pub(super) fn hammered(policy: Policy) -> (Report, u64) {
    let config = PoolConfig { policy, ..usual(vec![declared(600, 5 * MINUTE)]) };
    let tale = Tale::new(Shape::OpenAi, config);
    let deciding = calls(180, 300 * MILLI, Pattern::Every(10 * SECOND));
    let hammering = calls(3_600, 150 * MILLI, Pattern::AtOnce);
    let agents = vec![
        tale.agent_with(PATIENT, "critical", deciding).priority(0),
        tale.agent_with(PATIENT, "standard", hammering),
    ];
    let upstream = provider(Shape::OpenAi, &[requests(600, 5 * MINUTE)]);
    let mut world = World::new(upstream, STEADY, agents, 1);
    let story = world.run(30 * MINUTE);
    let used: u64 = world.provider().record().used(0).iter().sum();
    (story, used * 1_000 / (600 * 6))
}

/// Twenty agents whose prompts are of 2,000 tokens and whose answers of 400, and who say how many
/// bytes they send and that the answer has 8,192 tokens at most. How many calls are done in twelve
/// minutes, how many are refused, and what was used of the tokens, in thousandths.
pub(super) fn unknown_sizes(policy: Policy) -> (Report, u64) {
    let window = |unit, amount| Declared::Window { unit, amount, period: Span(MINUTE) };
    let input = Limit::new(window(Counted::InputTokens, 400_000));
    let output = Limit::new(window(Counted::OutputTokens, 80_000));
    let output = Limit { charged: Charged::End, ..output };
    let config = PoolConfig { policy, ..usual(vec![declared(1_000, MINUTE), input, output]) };
    let tale = Tale::new(Shape::Anthropic, config);
    let options = ClientOptions { cost_hint: CostHint::Bounds, ..PATIENT };
    let agent = |n| {
        let call = Call { input: 2_000, max_output: 8_192, ..Call::default() };
        let used = Used { input: 2_000, output: 400, ..Used::default() };
        let like = PlannedCall { call, used, lasts: 6 * SECOND, ..PlannedCall::default() };
        let work = Work { calls: 200, like, pattern: Pattern::AtOnce, vary: 500 };
        tale.agent_with(options, &format!("agent {n}"), work.calls(n))
    };
    let rolling = |unit, amount| Rule::Rolling { unit, amount, period: MINUTE };
    let rules = [rolling(Unit::Input, 400_000), rolling(Unit::Output, 80_000)];
    let upstream = provider(Shape::Anthropic, &rules);
    let mut world = World::new(upstream, STEADY, (0..20).map(agent).collect(), 1);
    let story = world.run(12 * MINUTE);
    let used: u64 = world.provider().record().used(1)[2..].iter().sum();
    (story, used * 1_000 / (80_000 * 10))
}

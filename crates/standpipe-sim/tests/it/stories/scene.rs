//! What the stories share.

use standpipe_sim::{
    Agent, Network, Options, Pattern, PlannedCall, Provider, Report, Retries, Rule, Shape,
    Uncoordinated, Unit, Work, World,
};

pub(crate) const MILLI: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000 * MILLI;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;

/// Fifty milliseconds each way, always the same.
pub(crate) const STEADY: Network = Network { there: 50 * MILLI, back: 50 * MILLI, jitter: 0 };

/// At most so many requests in any stretch of time.
pub(crate) const fn requests(amount: u64, period: u64) -> Rule {
    Rule::Rolling { unit: Unit::Requests, amount, period }
}

/// A provider that does not count what it refuses.
pub(crate) fn provider(shape: Shape, rules: &[Rule]) -> Provider {
    let options = Options { refused_count: false, ..Options::of(shape) };
    Provider::new(shape, rules.to_vec(), 1).with(options)
}

/// Calls that take so long each.
pub(crate) fn calls(calls: usize, lasts: u64, pattern: Pattern) -> Vec<PlannedCall> {
    let like = PlannedCall { lasts, ..PlannedCall::default() };
    Work { calls, like, pattern, vary: 0 }.calls(1)
}

/// The two layers of most agents: the client library's, which obeys hints, and a loop around it
/// that does, too.
pub(crate) fn alone(attempts: u32) -> Uncoordinated {
    let outer = Retries::by_hand(attempts - 1).obeying(MINUTE);
    Uncoordinated::new(Retries::SDK.exactly(), outer, 1)
}

/// An agent with only a loop of its own, as it is written by hand.
pub(crate) fn by_hand(attempts: u32) -> Uncoordinated {
    Uncoordinated::new(Retries::NONE, Retries::by_hand(attempts - 1), 1)
}

pub(crate) fn run(provider: Provider, network: Network, agents: Vec<Agent>) -> Report {
    let story = World::new(provider, network, agents, 1).run(24 * HOUR);
    assert!(story.is_over(), "{story}");
    story
}

/// The refusals of each wave, and how many agents it hit.
pub(crate) fn waves(story: &Report) -> Vec<(usize, usize)> {
    story.waves.iter().map(|wave| (wave.refusals, wave.agents)).collect()
}

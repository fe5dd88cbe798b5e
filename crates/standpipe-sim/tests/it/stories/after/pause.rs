//! The pause itself: it always ends, only grows, is never too short, and what a call is told about
//! it is true.

use standpipe_core::{Backoff, Decision, Limit, Policy, PoolConfig, Rule as Declared, Span, Unit};
use standpipe_sim::{
    Call, ClientOptions, Options, Pattern, PlannedCall, Provider, Report, RetryAfter, Rule, Shape,
    Used, WaitMode,
};

use super::scene::{Tale, declared, play, usual};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, calls, requests};

/// A thousand tokens in forty seconds, ten requests in five: a call can be refused for the longer
/// or for the shorter.
fn two_limits() -> Provider {
    let tokens =
        Rule::Rolling { unit: standpipe_sim::Unit::Tokens, amount: 1_000, period: 40 * SECOND };
    let options = Options { refused_count: false, ..Options::of(Shape::OpenAi) };
    Provider::new(Shape::OpenAi, vec![tokens, requests(10, 5 * SECOND)], 1).with(options)
}

/// After ten calls that take all of both limits: one is refused for the longer, and those refused
/// for the shorter, or earlier, tell of it later.
fn late_words() -> (Report, Tale) {
    let tokens = Declared::Window { unit: Unit::Tokens, amount: 100_000, period: Span(MINUTE) };
    let policy = Policy { learn: false, ..Policy::usual() };
    let config = usual(vec![declared(600, MINUTE), Limit::new(tokens)]);
    let tale = Tale::new(Shape::OpenAi, PoolConfig { policy, ..config });
    let call = |at, input, late| {
        let call = Call { input, ..Call::default() };
        let used = Used { input, ..Used::default() };
        vec![PlannedCall { at, call, used, lasts: 100 * MILLI, late, ..PlannedCall::default() }]
    };
    let mut agents = vec![tale.agent("large", call(0, 1_000, 0))];
    agents.extend((0..9).map(|n| tale.agent(&format!("small {n}"), call(500 * MILLI, 0, 0))));
    agents.push(tale.agent("longer", call(SECOND, 500, 0)));
    agents.push(tale.agent("shorter", call(SECOND, 0, SECOND)));
    agents.push(tale.agent("old", call(SECOND, 500, 10 * SECOND)));
    (play(two_limits(), agents).0, tale)
}

#[test]
fn b40_a_pause_only_grows_and_always_ends_by_itself() {
    let (story, tale) = late_words();
    let pauses: Vec<_> =
        tale.pauses().iter().map(|(at, until)| (at / MILLI, until / MILLI)).collect();
    // The longer word at 1.1 s; the shorter one at 2.1 s changes nothing; the old one, ten seconds
    // late, only lengthens.
    assert_eq!(pauses, [(1_100, 40_100), (11_100, 50_100)]);
    assert!(tale.pauses().is_sorted_by_key(|(_, until)| *until));
    assert_eq!(
        story.to_string(),
        "wanted 13: done 13, given up 0, lost 0; \
         made 16: refused 3, wasted 3, at most 12 a second; \
         63.431 s, waves of refusals: 1"
    );
    assert!(!tale.looks().pop().unwrap().paused);
}

/// Eight days is the longest that is believed. It ends by itself, though nobody has asked since.
#[test]
fn b40_the_longest_pause_ends_by_itself_too() {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(600, MINUTE)]));
    let options =
        Options { retry_after: RetryAfter::Always(8 * 86_400), ..Options::of(Shape::OpenAi) };
    let others = Rule::Foreign { per_second: 100, input: 0, output: 0, from: 0, until: SECOND };
    let upstream =
        Provider::new(Shape::OpenAi, vec![requests(10, SECOND), others], 1).with(options);
    let at = |at| vec![PlannedCall { at, ..PlannedCall::default() }];
    let agents = vec![
        tale.agent("early", at(500 * MILLI)),
        tale.agent("meanwhile", at(HOUR)),
        tale.agent("afterwards", at(8 * 24 * HOUR + MINUTE)),
    ];
    let (story, _) = play(upstream, agents);
    let done: Vec<_> = story.agents.iter().map(|agent| agent.done).collect();
    // The first two are told at once that it will be too long for them.
    assert_eq!(done, [0, 0, 1], "{story}");
    assert_eq!(story.made, 2, "{story}");
}

/// Agents beside others who use all there is for two minutes.
fn refused_often(retry_after: RetryAfter, jitter: bool, seed: u64) -> Tale {
    let backoff = Backoff { jitter, ..Backoff::USUAL };
    // Who looked at what is left would be refused less.
    let policy = Policy { backoff: Some(backoff), reconciles: false, ..Policy::usual() };
    let config = PoolConfig { policy, ..usual(vec![declared(600, MINUTE)]) };
    let tale = Tale::new(Shape::OpenAi, config);
    let options = Options { retry_after, ..Options::of(Shape::OpenAi) };
    let others = Rule::Foreign { per_second: 30, input: 0, output: 0, from: 0, until: 2 * MINUTE };
    let upstream =
        Provider::new(Shape::OpenAi, vec![requests(600, MINUTE), others], seed).with(options);
    let work = || calls(40, 300 * MILLI, Pattern::Every(3 * SECOND + seed * 7 * MILLI));
    let agents = (0..5).map(|n| tale.agent(&format!("agent {n}"), work()));
    let _ = play(upstream, agents.collect());
    tale
}

#[test]
fn b41_a_pause_is_as_long_as_told_and_refused_again_at_least_the_base() {
    let base = Backoff::USUAL.base.0;
    let mut seen = 0;
    for seed in 1..=20 {
        for (retry_after, told) in [
            (RetryAfter::Withheld, 0),
            (RetryAfter::Always(0), 0),
            (RetryAfter::Always(1), SECOND),
            (RetryAfter::Always(33), 33 * SECOND),
        ] {
            for jitter in [false, true] {
                let pauses = refused_often(retry_after, jitter, seed).refusals();
                seen += pauses.len();
                let withheld = matches!(retry_after, RetryAfter::Withheld);
                let short = pauses.iter().find(|refusal| {
                    let again = refusal.new && refusal.streak > 1;
                    let own = if withheld || again { base } else { SECOND };
                    refusal.until - refusal.at < told.max(own)
                });
                assert_eq!(short, None, "seed {seed}, {retry_after:?}, jitter {jitter}");
            }
        }
    }
    assert_eq!(seen, 735);
}

/// One agent that takes no ticket but sleeps exactly as long as it is told, at a provider that
/// finds every reason to refuse.
fn alone_on_the_tap(seed: u64, config: PoolConfig, shape: Shape) -> (Tale, Report) {
    let tale = Tale::new(shape, config);
    let options =
        ClientOptions { patience: 2 * HOUR, wait_mode: WaitMode::Sleep, ..ClientOptions::USUAL };
    let work = calls(60, 300 * MILLI, Pattern::Every(700 * MILLI + seed * 13 * MILLI));
    let overload = Rule::Overload { from: 0, until: MINUTE, share: 150, hint: Some(seed % 4) };
    let growth = Rule::Acceleration { growth: 1_500, stretch: 10 * SECOND, free: 8 };
    let rules = vec![requests(20, 30 * SECOND), overload, growth];
    let agents = vec![tale.agent_with(options, "alone", work)];
    let (story, _) = play(Provider::new(shape, rules, seed), agents);
    (tale, story)
}

#[test]
fn b54_sleeping_as_long_as_told_is_enough() {
    let mut refused = 0;
    for seed in 0..40 {
        for shape in [Shape::OpenAi, Shape::Anthropic, Shape::Gemini] {
            let configs = [
                usual(vec![declared(60, MINUTE)]),
                usual(vec![declared(7, 10 * SECOND), declared(40, MINUTE)]),
                usual(Vec::new()),
            ];
            for config in configs {
                let (tale, story) = alone_on_the_tap(seed, config, shape);
                let told = tale.tap.decisions(0);
                for pair in told.windows(2) {
                    let [first, then] = pair else { continue };
                    let Decision::Refuse(refusal) = &first.decision else { continue };
                    refused += 1;
                    // The very next ask is at the instant it was told, and is let in.
                    let let_in = matches!(then.decision, Decision::Admit(_));
                    assert!(
                        first.call != then.call || let_in,
                        "seed {seed}, {shape:?}: {refusal:?} then {then:?}\n{story}"
                    );
                }
            }
        }
    }
    assert_eq!(refused, 9_706);
}

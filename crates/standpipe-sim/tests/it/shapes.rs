//! What each provider replies, to the letter: every status, header and body, held against texts
//! written after the providers' pages and recorded replies.
//!
//! A text holds one reply after the other: its name, its status, its headers, an empty line and its
//! body. Who changes a reply on purpose puts what the test prints into the text.

mod scenes;

use scenes::{MINUTE, Scenes, bucket, day, fixed, spend};
use standpipe_sim::{Call, Cap, Options, RetryAfter, Rule, Shape, Unit, Used};

const CALL: Call =
    Call { agent: 0, input: 2_000, max_output: 100, writes: false, creates: false, graphql: false };
const USED: Used =
    Used { input: 1_700, cache_read: 4_000, cache_written: 300, output: 42, cost: 9 };
const OVERLOAD: Rule = Rule::Overload { from: 0, until: MINUTE, share: 1_000, hint: None };
const GROWTH: Rule = Rule::Acceleration { growth: 1_000, stretch: MINUTE, free: 1 };
const PARALLEL: Rule = Rule::Concurrency { amount: 1 };

#[test]
fn anthropic() {
    let limits =
        [bucket(Unit::Requests, 50), bucket(Unit::Input, 80_000), bucket(Unit::Output, 16_000)];
    let tight =
        [bucket(Unit::Requests, 50), bucket(Unit::Input, 30_000), bucket(Unit::Output, 8_000)];
    let big = Call { input: 25_000, ..CALL };
    let mut scenes = Scenes::new(Shape::Anthropic);
    scenes.success("200", &limits, CALL, USED);
    scenes.refusal("429 of input tokens", &tight, big);
    scenes.refusal("429 of requests", &[bucket(Unit::Requests, 1)], CALL);
    scenes.refusal("429 of concurrency", &[PARALLEL], CALL);
    scenes.refusal("429 of acceleration", &[GROWTH], CALL);
    scenes.refusal("529", &[OVERLOAD], CALL);
    for cap in [Cap::Enforced, Cap::Organization, Cap::Project, Cap::Credits] {
        scenes.refusal(&format!("spent: {cap:?}"), &[spend(cap)], CALL);
    }
    scenes.with(|options| options.retry_after = RetryAfter::Withheld);
    scenes.refusal("429 without retry-after", &tight, big);
    scenes.with(|options| options.clock_error = 3_600_000_000);
    scenes.refusal("429 with a clock an hour ahead", &tight, big);
    scenes.check(include_str!("shapes/anthropic.txt"));
}

#[test]
fn openai() {
    let limits = [bucket(Unit::Requests, 5_000), bucket(Unit::Tokens, 160_000)];
    let tight = [bucket(Unit::Requests, 500), bucket(Unit::Tokens, 30_000)];
    let mut scenes = Scenes::new(Shape::OpenAi);
    scenes.success("200", &limits, CALL, USED);
    // The numbers of two known messages: 2.224 s and 41.724 s come from what was used.
    let first = Call { input: 29_012, ..CALL };
    scenes.refusal_after("429 of tokens", &tight, first, Call { input: 2_100, ..CALL });
    let first = Call { input: 8_782, ..CALL };
    let small = [bucket(Unit::Tokens, 10_000)];
    scenes.refusal_after("429 of more tokens", &small, first, Call { input: 8_172, ..CALL });
    scenes.refusal("429 of requests", &[bucket(Unit::Requests, 1)], CALL);
    scenes.refusal("429 of a day", &[day(Unit::Requests, 1, 0)], CALL);
    scenes.refusal("429 of concurrency", &[PARALLEL], CALL);
    scenes.refusal("429 of acceleration", &[GROWTH], CALL);
    scenes.refusal("503", &[OVERLOAD], CALL);
    for cap in [Cap::Enforced, Cap::Organization, Cap::Project, Cap::Credits] {
        scenes.refusal(&format!("spent: {cap:?}"), &[spend(cap)], CALL);
    }
    scenes.with(|options| options.retry_after = RetryAfter::Withheld);
    scenes.refusal("429 without a hint", &[bucket(Unit::Requests, 1)], CALL);
    scenes.check(include_str!("shapes/openai.txt"));
}

#[test]
fn azure() {
    let limits = [bucket(Unit::Requests, 60), bucket(Unit::Tokens, 10_000)];
    let mut scenes = Scenes::new(Shape::Azure);
    scenes.success("200", &limits, CALL, USED);
    scenes.refusal("429 of tokens", &limits, Call { input: 6_000, ..CALL });
    scenes.refusal("429 of calls", &[bucket(Unit::Requests, 1)], CALL);
    let overload = Rule::Overload { from: 0, until: MINUTE, share: 1_000, hint: Some(6) };
    scenes.refusal("429 of high demand", &[overload], CALL);
    scenes.refusal("spent", &[spend(Cap::Enforced)], CALL);
    scenes.with(|options| options.silent = true);
    scenes.success("200 that tells nothing", &limits, CALL, USED);
    scenes.check(include_str!("shapes/azure.txt"));
}

#[test]
fn gemini() {
    let tokens = Rule::Rolling { unit: Unit::Input, amount: 250_000, period: MINUTE };
    let big = Call { input: 200_000, ..CALL };
    let mut scenes = Scenes::new(Shape::Gemini);
    scenes.success("200", &[tokens], CALL, USED);
    scenes.refusal("429 of tokens", &[tokens], big);
    scenes.refusal("429 of requests", &[bucket(Unit::Requests, 1)], CALL);
    scenes.refusal("429 of a day", &[day(Unit::Requests, 1, 8)], CALL);
    scenes.refusal("429 of concurrency", &[PARALLEL], CALL);
    scenes.refusal("503", &[OVERLOAD], CALL);
    scenes.refusal("spent", &[spend(Cap::Enforced)], CALL);
    scenes.with(|options| options.retry_after = RetryAfter::Withheld);
    scenes.refusal("429 without a hint", &[tokens], big);
    scenes.check(include_str!("shapes/gemini.txt"));
}

#[test]
fn mistral() {
    let limits = [bucket(Unit::Requests, 60), bucket(Unit::Tokens, 10_000)];
    let mut scenes = Scenes::new(Shape::Mistral);
    scenes.success("200", &limits, CALL, USED);
    scenes.refusal("429 of tokens", &limits, Call { input: 6_000, ..CALL });
    scenes.refusal("429 of capacity", &[OVERLOAD], CALL);
    scenes.refusal("spent", &[spend(Cap::Enforced)], CALL);
    scenes.check(include_str!("shapes/mistral.txt"));
}

#[test]
fn github() {
    let secondary =
        Rule::Secondary { points_per_minute: 900, content_per_minute: 1, content_per_hour: 500 };
    let creates = Call { writes: true, creates: true, ..Call::default() };
    let mut scenes = Scenes::new(Shape::GitHub);
    scenes.success("200", &[fixed(5_000)], Call::default(), USED);
    scenes.success("201", &[fixed(5_000)], creates, USED);
    scenes.refusal("403 of the hour", &[fixed(1)], Call::default());
    scenes.refusal("200 of the hour", &[fixed(1)], Call { graphql: true, ..Call::default() });
    scenes.refusal("403 of the secondary limit", &[fixed(5_000), secondary], creates);
    scenes.refusal("403 of concurrency", &[fixed(5_000), PARALLEL], CALL);
    scenes.refusal("503", &[fixed(5_000), OVERLOAD], CALL);
    scenes.refusal("spent", &[fixed(5_000), spend(Cap::Organization)], CALL);
    scenes.with(|options| options.retry_after = RetryAfter::Withheld);
    scenes.refusal(
        "403 of the secondary limit without a hint",
        &[fixed(5_000), secondary],
        creates,
    );
    scenes.check(include_str!("shapes/github.txt"));
}

#[test]
fn plain() {
    let limits = [bucket(Unit::Requests, 100), day(Unit::Tokens, 1_000_000, 0)];
    let mut scenes = Scenes::new(Shape::Plain);
    scenes.success("200", &limits, CALL, USED);
    scenes.refusal("429 of requests", &[bucket(Unit::Requests, 1)], CALL);
    scenes.refusal("429 of concurrency", &[PARALLEL], CALL);
    scenes.refusal("429 of acceleration", &[GROWTH], CALL);
    scenes.refusal("503", &[OVERLOAD], CALL);
    scenes.refusal("spent", &[spend(Cap::Enforced)], CALL);
    scenes.with(|options| options.retry_after = RetryAfter::Always(7));
    scenes.refusal("429 that always says the same", &[bucket(Unit::Requests, 1)], CALL);
    scenes.check(include_str!("shapes/plain.txt"));
}

/// The numbers of a recorded reply: an idle bucket is full now, and what is left of the tokens is
/// told to the nearest thousand.
#[test]
fn anthropic_tells_what_is_left_to_the_nearest_thousand() {
    let rolling = |unit, amount| Rule::Rolling { unit, amount, period: MINUTE };
    let limits = [rolling(Unit::Input, 80_000), rolling(Unit::Output, 16_000)];
    for (input, left) in [(0, "80000"), (499, "80000"), (500, "80000"), (501, "79000")] {
        let used = Used { input, ..Used::default() };
        let reply = scenes::success(Shape::Anthropic, &limits, Call { input, ..CALL }, used);
        assert_eq!(reply.header("anthropic-ratelimit-input-tokens-remaining"), Some(left));
        assert_eq!(reply.header("anthropic-ratelimit-output-tokens-limit"), Some("16000"));
        assert_eq!(reply.header("anthropic-ratelimit-tokens-limit"), Some("96000"));
    }
    let idle = scenes::success(Shape::Anthropic, &limits, Call::default(), Used::default());
    assert_eq!(idle.header("date"), Some("Thu, 21 Aug 2025 12:41:02 GMT"));
    assert_eq!(idle.header("anthropic-ratelimit-tokens-reset"), Some("2025-08-21T12:41:02Z"));
}

/// A bucket that paces within the minute is enforced, but headers tell of the minute.
#[test]
fn pacing_is_not_told() {
    let pace = Rule::Bucket { unit: Unit::Requests, amount: 600, period: MINUTE, burst: 1 };
    let limits = [bucket(Unit::Requests, 600), pace];
    let reply = scenes::refused(Shape::OpenAi, &Options::of(Shape::OpenAi), &limits, CALL, CALL);
    assert_eq!(reply.header("x-ratelimit-remaining-requests"), Some("598"));
    assert_eq!(reply.header("retry-after-ms"), Some("100"));
}

//! Property tests: no response panics, and every accepted value is within the bounds.

use crate::support::streams;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{FileFailurePersistence, RngSeed};
use standpipe_dialect::{Answer, Dialect, Kind, Refused, Response, StreamReader, Verdict, bounds};

/// Header names that some provider uses.
const NAMES: [&str; 44] = [
    "Date",
    "Retry-After",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "beta-retry-after",
    "x-ratelimit-user-retry-after",
    "x-ratelimit-exceeded",
    "x-should-retry",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-resource",
    "x-ratelimit-bucket",
    "x-ratelimit-scope",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-requests-day",
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-input-tokens-limit",
    "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-unified-status",
    "anthropic-ratelimit-unified-representative-claim",
    "anthropic-ratelimit-unified-5h-utilization",
    "anthropic-ratelimit-unified-5h-reset",
    "anthropic-ratelimit-unified--utilization",
    "anthropic-ratelimit-unified-7d-status",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "beta-ratelimit-policy",
    "x-amzn-errortype",
    "x-amzn-bedrock-input-token-count",
    "stripe-rate-limited-reason",
    "x-shopify-shop-api-call-limit",
    "x-standpipe-origin",
];

const VALUES: [&str; 26] = [
    "0",
    "1",
    "17",
    "-1",
    "5000",
    "30,000",
    "1.5",
    "691200",
    "691201",
    "1792567780",
    "1792567780000",
    "999999999999999999999999999999999999999999",
    "6m0s",
    "9223372036854775807h",
    "2026-10-21T07:28:00Z",
    "9999-12-31T23:59:59Z",
    "Wed, 21 Oct 2026 07:29:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "rejected",
    "allowed",
    "shared",
    "graphql",
    "\"a\";q=10;w=60;r=5;t=3, 7;w=1",
    "limit=10, remaining=5, reset=1",
    "32/40",
    "ThrottlingException",
];

/// Pieces of generated bodies. Nearly valid bodies reach more code than noise.
const PIECES: [&str; 32] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "429",
    "-5",
    "1e400",
    "\"error\":{",
    "\"message\":\"Please try again in 41.724s\"",
    "\"message\":\"retry after 99999999999999999999 minutes\"",
    "\"code\":\"rate_limit_exceeded\"",
    "\"code\":\"insufficient_quota\"",
    "\"type\":\"rate_limit_error\"",
    "\"usage\":{\"input_tokens\":5}",
    "\"usage\":{\"prompt_tokens\":1000000000000}",
    "\"usageMetadata\":{",
    "\"errors\":[{\"type\":\"RATE_LIMITED\"}]",
    "\"extensions\":{\"cost\":{\"throttleStatus\":{\"maximumAvailable\":1000000000000,\
     \"currentlyAvailable\":0,\"restoreRate\":0}}}",
    "\"details\":[{\"@type\":\"x/google.rpc.RetryInfo\",\"retryDelay\":\"26s\"}]",
    "\"quotaId\":\"PerDay\"",
    "\"retry_after\":64.57",
    "You have reached your API usage limits. regain access on 9999-12-31 at 23:59 UTC",
    "data: ",
    "\n\n",
    "\r",
    "é",
    " sk-ant-secret1",
];

fn header() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![8 => select(&NAMES[..]).prop_map(str::to_owned), 1 => "\\PC{0,12}"];
    let value = prop_oneof![
        8 => select(&VALUES[..]).prop_map(str::to_owned),
        2 => "[-0-9.,:;=\"hms a-z]{0,20}",
        1 => any::<String>(),
    ];
    (name, value)
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        9 => select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..8),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn status() -> impl Strategy<Value = u16> {
    prop_oneof![select(&[200, 304, 400, 403, 429, 429, 429, 499, 503, 529][..]), any::<u16>()]
}

fn received() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_792_567_680_000), any::<u64>(), Just(0)]
}

/// Random cases with a fixed seed; twenty times as many with a fresh seed if `STANDPIPE_LONG=1`.
/// proptest's own environment variables win in either case.
fn cases() -> ProptestConfig {
    let said = |name: &str| std::env::var_os(name).is_some();
    let long = std::env::var_os("STANDPIPE_LONG").is_some_and(|value| value == "1");
    let regressions = FileFailurePersistence::Direct("tests/proptest-regressions/dialect.txt");
    let mut config = ProptestConfig {
        failure_persistence: Some(Box::new(regressions)),
        ..ProptestConfig::default()
    };
    if !said("PROPTEST_CASES") {
        config.cases = if long { 60_000 } else { 3_000 };
    }
    if !long && !said("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(0x57A4_D919E);
    }
    config
}

fn check_refused(refused: &Refused) -> Result<(), TestCaseError> {
    let longest = if refused.kind == Kind::Terminal { bounds::TERMINAL_WAIT } else { bounds::WAIT };
    prop_assert!(refused.wait.is_none_or(|wait| wait <= longest), "{refused:?}");
    prop_assert!(refused.message.chars().count() <= bounds::MESSAGE);
    prop_assert!(!refused.message.chars().any(char::is_control), "{refused:?}");
    prop_assert!(!refused.message.contains("secret1"), "{refused:?}");
    Ok(())
}

fn check(answer: &Answer) -> Result<(), TestCaseError> {
    if let Verdict::Refused(refused) = &answer.verdict {
        check_refused(refused)?;
    }
    prop_assert!(
        answer.limits.len() <= bounds::LIMITS && answer.anomalies.len() <= bounds::ANOMALIES
    );
    for seen in &answer.limits {
        let (limit, left) = (seen.limit, seen.remaining);
        prop_assert!(limit.is_none_or(|limit| (1..=bounds::AMOUNT).contains(&limit)), "{seen:?}");
        prop_assert!(left.is_none_or(|left| left <= limit.unwrap_or(bounds::AMOUNT)), "{seen:?}");
        prop_assert!(seen.reset_in.is_none_or(|reset| reset <= bounds::WAIT), "{seen:?}");
        prop_assert!(seen.period.is_none_or(|period| !period.is_zero()), "{seen:?}");
        prop_assert!(seen.name.as_ref().is_none_or(|name| name.chars().count() <= bounds::SHORT));
        prop_assert!(seen.coarse > 0 && seen.unit.chars().count() <= bounds::SHORT);
    }
    for anomaly in &answer.anomalies {
        prop_assert!(anomaly.what.chars().count() <= bounds::SHORT, "{anomaly}");
        prop_assert!(anomaly.value.chars().count() <= bounds::SHORT, "{anomaly}");
    }
    if let Some(usage) = answer.usage {
        let amounts = [usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.points];
        prop_assert!(amounts.iter().flatten().all(|amount| *amount <= bounds::AMOUNT));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    /// No response panics, and every accepted value is within the bounds.
    #[test]
    fn any_answer_is_read_within_bounds(
        dialect in select(&Dialect::ALL[..]),
        status in status(),
        headers in vec(header(), 0..12),
        body in body(),
        received in received(),
    ) {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let response = Response { status, headers: &headers, body: &body, received };
        let answer = dialect.read(&response);
        check(&answer)?;
        prop_assert_eq!(dialect.read(&response), answer);
    }

    /// Random bytes do not panic either.
    #[test]
    fn noise_is_read_within_bounds(
        dialect in select(&Dialect::ALL[..]), status in status(), body in vec(any::<u8>(), 0..256),
    ) {
        check(&dialect.read(&Response { status, headers: &[], body: &body, received: 0 }))?;
    }

    /// The result of a stream does not depend on how it is cut into chunks.
    #[test]
    fn a_stream_is_the_same_in_any_pieces(
        dialect in select(&Dialect::ALL[..]),
        stream in prop_oneof![body(), Just(streams::bedrock()), vec(any::<u8>(), 0..64)],
        cuts in vec(0_usize..400, 0..8),
    ) {
        let mut whole = StreamReader::new(dialect);
        whole.feed(&stream);
        if let Some(refused) = whole.refused() {
            check_refused(refused)?;
        }
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut pieces = StreamReader::new(dialect);
        cuts.windows(2).for_each(|ends| pieces.feed(&stream[ends[0]..ends[1]]));
        let summary = |reader: &StreamReader| {
            (*reader.usage(), reader.refused().cloned(), reader.finished(), reader.text_bytes())
        };
        prop_assert_eq!(summary(&pieces), summary(&whole));
    }

    /// A plain 429 is always a refusal, unless the provider states that it is about something
    /// else. A plain success never is one.
    #[test]
    fn a_429_is_a_refusal(dialect in select(&Dialect::ALL[..]), headers in vec(header(), 0..8)) {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let response = Response { status: 0, headers: &headers, body: b"", received: 0 };
        let of = |status| dialect.read(&Response { status, ..response });
        let elsewhere = headers.iter().any(|(_, value)| {
            value.eq_ignore_ascii_case("ledger") || value.eq_ignore_ascii_case("shared")
        });
        let verdict = of(429).verdict;
        prop_assert!(elsewhere || matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
        prop_assert!(!matches!(of(200).verdict, Verdict::Refused(_)));
        if let Verdict::Refused(refused) = of(503).verdict {
            let named = dialect == Dialect::Bedrock || dialect == Dialect::Copilot
                || dialect == Dialect::Stripe;
            prop_assert!(refused.kind == Kind::Overload || named, "{refused:?}");
        }
    }
}

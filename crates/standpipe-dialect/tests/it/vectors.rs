//! The test vectors that every reader of these dialects should pass, one test per vector.

use standpipe_dialect::{AnomalyReason, Dialect, Kind, ResetMeans};

use crate::support::{NEVER, OK, amounts, exceeded, kind_and_wait, read, reasons, seen};

#[test]
fn durations() {
    for (text, millis) in [
        ("1s", 1_000),
        ("6m0s", 360_000),
        ("17ms", 17),
        ("12ms", 12),
        ("1m30s", 90_000),
        ("8.64s", 8_640),
        ("1h2m3.5s", 3_723_500),
        ("250ms", 250),
        ("900ms", 900),
        ("34.074824224s", 34_074),
    ] {
        let headers = [("x-ratelimit-limit-tokens", "9"), ("x-ratelimit-reset-tokens", text)];
        let answer = read(Dialect::OpenAi, 200, &headers, "");
        assert_eq!(amounts(seen(&answer, "tokens", None)), (Some(9), None, Some(millis)), "{text}");
    }
}

#[test]
fn retry_after() {
    let date = ("date", "Wed, 21 Oct 2026 07:27:00 GMT");
    for (text, millis) in [
        ("17", Some(17_000)),
        ("1.5", Some(1_500)),
        ("0", Some(0)),
        ("", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", Some(60_000)),
        ("120s", None),
        ("-5", None),
    ] {
        for dialect in Dialect::ALL {
            let answer = read(dialect, 429, &[("Retry-After", text), date], "");
            assert_eq!(kind_and_wait(&answer), (Kind::Quota, millis), "{} {text}", dialect.name());
        }
    }
}

#[test]
fn a_bucket_that_is_already_full() {
    let headers = [
        ("date", "Thu, 21 Aug 2025 12:41:00 GMT"),
        ("anthropic-ratelimit-requests-limit", "1000"),
        ("anthropic-ratelimit-requests-remaining", "999"),
        ("anthropic-ratelimit-requests-reset", "2025-08-21T12:40:59Z"),
    ];
    let response = standpipe_dialect::Response {
        status: 200,
        headers: &headers,
        body: b"",
        received: 1_755_780_060_000,
    };
    let answer = Dialect::Anthropic.read(&response);
    assert_eq!(amounts(seen(&answer, "requests", None)), (Some(1_000), Some(999), Some(0)));
    assert_eq!(answer.anomalies, []);
}

#[test]
fn epochs() {
    for (date, text, millis) in [
        ("Fri, 15 Nov 2024 19:45:40 GMT", "1731700000", 60_000),
        ("Tue, 02 Aug 2016 21:23:43 GMT", "1470173023.123", 123),
        ("Fri, 15 Nov 2024 19:45:40 GMT", "60", 60_000),
        ("Fri, 15 Nov 2024 19:45:40 GMT", "1731700000000", 60_000),
    ] {
        let headers = [("date", date), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", text)];
        // The local clock was never set: the `date` header is the only clock.
        let response =
            standpipe_dialect::Response { status: 200, headers: &headers, body: b"", received: 5 };
        let answer = Dialect::Generic.read(&response);
        let (_, _, reset) = amounts(seen(&answer, "requests", None));
        assert_eq!(reset, Some(millis), "{text}");
        assert_eq!(answer.anomalies, [], "{text}");
    }
}

#[test]
fn ietf() {
    let headers = [
        ("RateLimit-Policy", r#""burst";q=100;w=60,"daily";q=1000;w=86400"#),
        ("RateLimit", r#""burst";r=50;t=30"#),
    ];
    let answer = read(Dialect::Generic, 200, &headers, "");
    let burst = seen(&answer, "requests", Some("burst"));
    assert_eq!(amounts(burst), (Some(100), Some(50), Some(30_000)));
    assert_eq!((burst.period, burst.reset), (crate::support::secs(60), ResetMeans::Unknown));
    let daily = seen(&answer, "requests", Some("daily"));
    assert_eq!(
        (amounts(daily), daily.period),
        ((Some(1_000), None, None), crate::support::secs(86_400))
    );

    let answer = read(Dialect::Generic, 200, &[("RateLimit", r#""default";r=50;t=30"#)], "");
    let state = seen(&answer, "requests", Some("default"));
    assert_eq!(amounts(state), (None, Some(50), Some(30_000)));

    let headers = [("RateLimit", "limit=100, remaining=50, reset=5")];
    let answer = read(Dialect::Generic, 200, &headers, "");
    assert_eq!(amounts(seen(&answer, "requests", None)), (Some(100), Some(50), Some(5_000)));
}

#[test]
fn azure_does_not_know() {
    let headers = [
        ("x-ratelimit-limit-tokens", "-1"),
        ("x-ratelimit-remaining-tokens", "-1"),
        ("x-ratelimit-reset-tokens", "0"),
    ];
    for dialect in [Dialect::AzureOpenAi, Dialect::OpenAi] {
        let answer = read(dialect, 200, &headers, "");
        assert_eq!((answer.limits, answer.anomalies, answer.verdict), (vec![], vec![], OK));
    }
}

#[test]
fn anthropic_spend_cap() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"no","details":
        {"error_code":"enforced_spend_limit_reached"}},"request_id":"req_1"}"#;
    let answer = read(Dialect::Anthropic, 429, &[], body);
    // The month ends in eleven days.
    assert_eq!(kind_and_wait(&answer), (Kind::Terminal, Some(923_520_000)));
    let late = [("date", "Thu, 22 Oct 2026 12:00:00 GMT")];
    let end = Some(820_800_000);
    assert_eq!(kind_and_wait(&read(Dialect::Anthropic, 429, &late, body)), (Kind::Terminal, end));
}

#[test]
fn openai_codes() {
    let body = |code: &str, message: &str| {
        format!(r#"{{"error":{{"message":"{message}","type":"x","code":"{code}"}}}}"#)
    };
    let said = |code: &str, message: &str| {
        kind_and_wait(&read(Dialect::OpenAi, 429, &[], &body(code, message)))
    };
    assert_eq!(said("insufficient_quota", ""), (Kind::Terminal, None));
    assert_eq!(said("slow_down", ""), (Kind::SlowDown, None));
    let message = "Please try again in 41.724s.";
    assert_eq!(said("rate_limit_exceeded", message), (Kind::Quota, Some(41_724)));
}

#[test]
fn gemini_per_day_is_terminal_whatever_else_is_said() {
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m","details":[
        {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":
         "GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"250"}]},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"}]}}"#;
    let answer = read(Dialect::Gemini, 429, &[], body);
    // From 07:28 UTC, 00:28 Pacific time, to the next midnight there.
    let until = (23 * 60 + 32) * 60_000;
    assert_eq!(kind_and_wait(&answer), (Kind::Terminal, Some(until)));
    assert_eq!(exceeded(&answer), (Some("requests"), Some(86_400)));
    assert_eq!(amounts(seen(&answer, "requests", None)), (Some(250), None, Some(until)));
}

#[test]
fn github_refusals() {
    let headers = [
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1792567780"),
        ("x-ratelimit-resource", "core"),
    ];
    let answer = read(Dialect::GitHub, 403, &headers, "");
    assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(101_000)));
    let body = r#"{"message":"You have exceeded a secondary rate limit."}"#;
    assert_eq!(kind_and_wait(&read(Dialect::GitHub, 403, &[], body)), (Kind::Quota, Some(60_000)));
    let body = r#"{"message":"Resource not accessible by integration"}"#;
    assert_eq!(read(Dialect::GitHub, 403, &[], body).verdict, NEVER);
    let body = r#"{"data":null,"errors":[{"type":"RATE_LIMITED","message":"API rate limit"}]}"#;
    assert_eq!(
        kind_and_wait(&read(Dialect::GitHub, 200, &headers, body)),
        (Kind::Quota, Some(101_000))
    );
}

#[test]
fn unified_windows() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Error"}}"#;
    let rejected = [
        ("anthropic-ratelimit-unified-status", "rejected"),
        ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
        ("anthropic-ratelimit-unified-5h-status", "rejected"),
        ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
        ("anthropic-ratelimit-unified-5h-reset", "1792569774"),
        ("retry-after", "2094"),
    ];
    let answer = read(Dialect::Anthropic, 429, &rejected, body);
    assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(2_094_000)));
    assert_eq!(exceeded(&answer), (Some("budget"), Some(5 * 3_600)));
    assert_eq!(seen(&answer, "budget", Some("5h")).utilization, Some(1_000_000));
    let allowed = [("anthropic-ratelimit-unified-status", "allowed")];
    let answer = read(Dialect::Anthropic, 429, &allowed, body);
    assert_eq!(kind_and_wait(&answer), (Kind::Concurrency, Some(1_000)));
}

#[test]
fn a_clock_that_is_an_hour_off_gives_the_right_length() {
    for date in ["Wed, 21 Oct 2026 06:28:00 GMT", "Wed, 21 Oct 2026 08:28:00 GMT"] {
        let after = date.replace(":28:", ":29:");
        let answer = read(Dialect::Generic, 503, &[("date", date), ("retry-after", &after)], "");
        assert_eq!(
            (kind_and_wait(&answer), reasons(&answer)),
            ((Kind::Overload, Some(60_000)), vec![])
        );
    }
    // Three days off: a cached response or an unset clock.
    let headers = [
        ("date", "Sun, 18 Oct 2026 07:28:00 GMT"),
        ("retry-after", "Wed, 21 Oct 2026 07:29:00 GMT"),
    ];
    let answer = read(Dialect::Generic, 503, &headers, "");
    assert_eq!(kind_and_wait(&answer), (Kind::Overload, Some(60_000)));
    assert_eq!(reasons(&answer), [AnomalyReason::FarFromNow]);
}

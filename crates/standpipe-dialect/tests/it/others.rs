//! Responses of GitHub, Copilot and the providers that a profile describes.

use standpipe_dialect::{AnomalyReason, Dialect, Kind, ResetMeans};

use crate::support::{
    AGAIN, NEVER, OK, amounts, exceeded, kind_and_wait, read, reasons, secs, seen,
};

const PRIMARY: [(&str, &str); 5] = [
    ("X-RateLimit-Limit", "5000"),
    ("X-RateLimit-Remaining", "4987"),
    ("X-RateLimit-Used", "13"),
    ("X-RateLimit-Reset", "1792568680"),
    ("X-RateLimit-Resource", "core"),
];

#[test]
fn github_tells_of_a_fixed_window() {
    for status in [200, 304, 404] {
        let answer = read(Dialect::GitHub, status, &PRIMARY, "");
        assert_eq!(answer.verdict, if status == 404 { NEVER } else { OK });
        let core = seen(&answer, "requests", Some("core"));
        assert_eq!(amounts(core), (Some(5_000), Some(4_987), Some(1_000_000)));
        assert_eq!((core.period, core.reset), (secs(3_600), ResetMeans::WindowEnds));
    }
    let body = r#"{"message":"API rate limit exceeded for user ID 1."}"#;
    assert_eq!(kind_and_wait(&read(Dialect::GitHub, 403, &[], body)), (Kind::Quota, None));
    assert_eq!(read(Dialect::GitHub, 409, &PRIMARY, "").verdict, NEVER);
    // A permission error while quota remains.
    assert_eq!(read(Dialect::GitHub, 403, &PRIMARY, "{}").verdict, NEVER);
    assert_eq!(kind_and_wait(&read(Dialect::GitHub, 429, &PRIMARY, "{}")), (Kind::Quota, None));
}

#[test]
fn github_secondary_limits() {
    let body = r#"{"message":"You have exceeded a secondary rate limit and have been temporarily
        blocked from content creation."}"#;
    let body = body.replace("\n       ", "");
    for status in [403, 429] {
        let answer = read(Dialect::GitHub, status, &[("retry-after", "17")], &body);
        assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(17_000)));
        assert_eq!(exceeded(&answer), (Some("content"), None));
        // GitHub sends a blank value in the first seconds.
        let blank = [("retry-after", "")];
        let answer = read(Dialect::GitHub, status, &blank, &body);
        assert_eq!(
            (kind_and_wait(&answer), reasons(&answer)),
            ((Kind::Quota, Some(60_000)), vec![])
        );
    }
    let empty = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1792567780")];
    assert_eq!(
        kind_and_wait(&read(Dialect::GitHub, 403, &empty, &body)),
        (Kind::Quota, Some(101_000))
    );
    let graph =
        r#"{"errors":[{"message":"x"},{"message":"You have exceeded a secondary rate limit"}]}"#;
    assert_eq!(kind_and_wait(&read(Dialect::GitHub, 200, &[], graph)), (Kind::Quota, Some(60_000)));
    // The body says nothing; a permission error has no `retry-after`.
    assert_eq!(
        kind_and_wait(&read(Dialect::GitHub, 403, &[("retry-after", "9")], "")).1,
        Some(9_000)
    );
}

#[test]
fn github_resources_have_their_own_windows() {
    for (resource, unit, period) in [
        ("graphql", "points", secs(3_600)),
        ("search", "requests", secs(60)),
        ("code_search", "requests", secs(60)),
        ("integration_manifest", "requests", None),
    ] {
        let headers = [("x-ratelimit-limit", "30"), ("x-ratelimit-resource", resource)];
        let answer = read(Dialect::GitHub, 200, &headers, "");
        assert_eq!(seen(&answer, unit, Some(resource)).period, period);
    }
    let abuse = r#"{"message":"You have triggered an abuse detection mechanism."}"#;
    assert_eq!(kind_and_wait(&read(Dialect::GitHub, 403, &[], abuse)), (Kind::Quota, Some(60_000)));
    let graph = r#"{"errors":[{"type":"RATE_LIMIT","message":"m"}]}"#;
    assert_eq!(kind_and_wait(&read(Dialect::GitHub, 200, &[], graph)), (Kind::Quota, None));
}

#[test]
fn github_queries_tell_their_cost() {
    let body = r#"{"data":{"viewer":{"login":"a"},"rateLimit":{"cost":3,"limit":5000,
        "remaining":4990,"resetAt":"2026-10-21T07:38:00Z"}}}"#;
    let answer = read(Dialect::GitHub, 200, &[], body);
    assert_eq!(answer.usage.unwrap().points, Some(3));
    let points = seen(&answer, "points", Some("graphql"));
    assert_eq!(amounts(points), (Some(5_000), Some(4_990), Some(600_000)));
    let body = r#"{"errors":[{"type":"NOT_FOUND","message":"Could not resolve"}]}"#;
    assert_eq!(read(Dialect::GitHub, 200, &[], body).verdict, OK);
}

#[test]
fn copilot_waits_or_stops() {
    let body = |code: &str| format!(r#"{{"error":{{"code":"{code}","message":"Sorry"}}}}"#);
    let said = |headers: &[(&str, &str)], code: &str| {
        kind_and_wait(&read(Dialect::Copilot, 429, headers, &body(code)))
    };
    assert_eq!(said(&[("retry-after", "60")], "rate_limit"), (Kind::Quota, Some(60_000)));
    let user = [("x-ratelimit-user-retry-after", "3600")];
    assert_eq!(said(&user, "rate_limited"), (Kind::Quota, Some(3_600_000)));
    let long = [("x-ratelimit-user-retry-after", "3601")];
    assert_eq!(said(&long, "rate_limit_exceeded"), (Kind::Terminal, Some(3_601_000)));
    assert_eq!(said(&[], "user_weekly_rate_limited"), (Kind::Terminal, None));
    let spent = [("x-ratelimit-exceeded", "quota_exceeded")];
    assert_eq!(said(&spent, ""), (Kind::Terminal, None));
    assert_eq!(said(&[], "quota_exceeded"), (Kind::Terminal, None));
    let flat = r#"{"errorCode":"user_weekly_rate_limited","statusCode":429,
        "message":"Please wait for your limit to reset on 2026-10-23."}"#;
    let answer = read(Dialect::Copilot, 429, &[], flat);
    assert_eq!(kind_and_wait(&answer), (Kind::Terminal, Some((40 * 60 + 32) * 60_000)));
    assert_eq!(exceeded(&answer).1, Some(7 * 86_400));
    assert_eq!(read(Dialect::Copilot, 401, &[], "").verdict, NEVER);
}

#[test]
fn bedrock_has_only_names_and_words() {
    let said = |status, kind: &str, message: &str| {
        let body = format!(r#"{{"message":"{message}"}}"#);
        read(Dialect::Bedrock, status, &[("x-amzn-ErrorType", kind)], &body)
    };
    let throttled = "ThrottlingException:http://internal.amazon.com/coral/x";
    let answer = said(429, throttled, "Too many tokens, please wait before trying again.");
    assert_eq!(
        (kind_and_wait(&answer), exceeded(&answer).0),
        ((Kind::Quota, None), Some("tokens"))
    );
    let answer = said(429, throttled, "Too many requests, please wait before trying again.");
    assert_eq!((kind_and_wait(&answer).0, exceeded(&answer).0), (Kind::Quota, Some("requests")));
    let answer = said(429, throttled, "Too many tokens per day, please wait.");
    assert_eq!(
        (kind_and_wait(&answer), exceeded(&answer)),
        ((Kind::Terminal, None), (Some("tokens"), Some(86_400)))
    );
    assert_eq!(kind_and_wait(&said(429, "ModelNotReadyException", "x")).0, Kind::Overload);
    assert_eq!(kind_and_wait(&said(503, "ServiceUnavailableException", "x")).0, Kind::Overload);
    assert_eq!(said(400, "ValidationException", "x").verdict, NEVER);
    let body = r#"{"__type":"com.amazon.coral#ThrottlingException","message":"Rate exceeded"}"#;
    assert_eq!(kind_and_wait(&read(Dialect::Bedrock, 400, &[], body)), (Kind::Quota, None));
}

#[test]
fn bedrock_usage_is_in_the_body_or_in_headers() {
    let body = r#"{"output":{},"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":115,
        "cacheReadInputTokens":60,"cacheWriteInputTokens":40}}"#;
    let usage = read(Dialect::Bedrock, 200, &[], body).usage.unwrap();
    assert_eq!(usage.charged_input(Dialect::Bedrock), Some(50));
    let headers =
        [("X-Amzn-Bedrock-Input-Token-Count", "7"), ("X-Amzn-Bedrock-Output-Token-Count", "9")];
    let usage = read(Dialect::Bedrock, 200, &headers, "").usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(7), Some(9)));
}

#[test]
fn groq_and_cerebras_speak_like_openai() {
    let headers = [
        ("x-ratelimit-limit-requests", "14400"),
        ("x-ratelimit-remaining-requests", "14370"),
        ("x-ratelimit-reset-requests", "2m59.56s"),
        ("x-ratelimit-limit-tokens", "18000"),
        ("x-ratelimit-remaining-tokens", "17997"),
        ("x-ratelimit-reset-tokens", "7.66s"),
    ];
    let body = r#"{"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4}}}"#;
    let answer = read(Dialect::Groq, 200, &headers, body);
    assert_eq!(seen(&answer, "requests", None).period, secs(86_400));
    assert_eq!(amounts(seen(&answer, "tokens", None)), (Some(18_000), Some(17_997), Some(7_660)));
    assert_eq!(answer.usage.unwrap().charged_input(Dialect::Groq), Some(6));
    let body = r#"{"error":{"message":"Rate limit reached on tokens per day (TPD): Limit 1. Please
        try again in 7m6.5s.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    let answer = read(Dialect::Groq, 429, &[], &body.replace("\n       ", ""));
    assert_eq!(
        (kind_and_wait(&answer), exceeded(&answer).1),
        ((Kind::Quota, Some(426_500)), Some(86_400))
    );

    let headers = [
        ("x-ratelimit-limit-requests-day", "1000000000"),
        ("x-ratelimit-remaining-requests-day", "999997455"),
        ("x-ratelimit-reset-requests-day", "33011.382867"),
        ("x-ratelimit-limit-tokens-minute", "1000000000"),
        ("x-ratelimit-remaining-tokens-minute", "999999998"),
        ("x-ratelimit-reset-tokens-minute", "11.38"),
    ];
    let answer = read(Dialect::Cerebras, 200, &headers, "");
    assert_eq!(seen(&answer, "tokens", None).period, secs(60));
    assert_eq!(seen(&answer, "requests", None).reset_in.unwrap().as_secs(), 33_011);
}

#[test]
fn stripe_tells_rates_from_concurrency_from_locks() {
    let said = |reason: &str, body: &str| {
        read(Dialect::Stripe, 429, &[("Stripe-Rate-Limited-Reason", reason)], body)
    };
    for reason in ["global-concurrency", "endpoint-concurrency"] {
        assert_eq!(kind_and_wait(&said(reason, "{}")).0, Kind::Concurrency);
    }
    for reason in ["global-rate", "endpoint-rate"] {
        let answer = said(reason, "{}");
        assert_eq!(
            (kind_and_wait(&answer).0, exceeded(&answer)),
            (Kind::Quota, (Some("requests"), Some(1)))
        );
    }
    assert_eq!(said("resource-specific", "{}").verdict, AGAIN);
    let lock = r#"{"error":{"code":"lock_timeout","message":"This object cannot be accessed"}}"#;
    assert_eq!(said("global-rate", lock).verdict, AGAIN);
    assert_eq!(kind_and_wait(&said("", r#"{"error":{"code":"rate_limit"}}"#)).0, Kind::Quota);
    let headers = [("Stripe-Should-Retry", "true")];
    assert_eq!(read(Dialect::Stripe, 400, &headers, "").verdict, AGAIN);
}

#[test]
fn slack_may_say_it_with_200() {
    let body = r#"{"ok":false,"error":"ratelimited"}"#;
    for status in [200, 429] {
        let answer = read(Dialect::Slack, status, &[("Retry-After", "30")], body);
        assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(30_000)));
    }
    let body = r#"{"ok":false,"error":"channel_not_found"}"#;
    assert_eq!(read(Dialect::Slack, 200, &[], body).verdict, OK);
    assert_eq!(read(Dialect::Slack, 200, &[], r#"{"ok":true}"#).verdict, OK);
}

#[test]
fn discord_buckets_and_scopes() {
    let mut headers = vec![
        ("X-RateLimit-Limit", "5"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1470173023.123"),
        ("X-RateLimit-Reset-After", "64.57"),
        ("X-RateLimit-Bucket", "abcd1234"),
    ];
    let answer = read(Dialect::Discord, 200, &headers, "");
    let bucket = seen(&answer, "requests", Some("abcd1234"));
    assert_eq!(amounts(bucket), (Some(5), Some(0), Some(64_570)));
    assert_eq!(
        kind_and_wait(&read(Dialect::Discord, 429, &headers, "")),
        (Kind::Quota, Some(64_570))
    );
    let body = r#"{"message":"You are being rate limited.","retry_after":64.57,"global":false}"#;
    assert_eq!(kind_and_wait(&read(Dialect::Discord, 429, &[], body)), (Kind::Quota, Some(64_570)));
    headers.push(("X-RateLimit-Scope", "shared"));
    assert_eq!(read(Dialect::Discord, 429, &headers, body).verdict, AGAIN);
}

#[test]
fn shopify_counts_points_and_calls() {
    let cost = r#""extensions":{"cost":{"requestedQueryCost":101,"actualQueryCost":46,
        "throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":954,
        "restoreRate":50.0}}}"#;
    let answer = read(Dialect::Shopify, 200, &[], &format!(r#"{{"data":{{}},{cost}}}"#));
    assert_eq!((&answer.verdict, answer.usage.unwrap().points), (&OK, Some(46)));
    let points = seen(&answer, "points", None);
    assert_eq!(amounts(points), (Some(1_000), Some(954), Some(920)));
    assert_eq!((points.period, points.reset), (secs(20), ResetMeans::Full));

    let cost = cost.replace("954", "1").replace("46", "null");
    let errors = r#""errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]"#;
    let answer = read(Dialect::Shopify, 200, &[], &format!("{{{errors},{cost}}}"));
    assert_eq!(
        (kind_and_wait(&answer), exceeded(&answer).0),
        ((Kind::Quota, Some(2_000)), Some("points"))
    );
    assert_eq!(answer.usage, None);

    let headers = [("X-Shopify-Shop-Api-Call-Limit", "32/40"), ("Retry-After", "2.0")];
    let answer = read(Dialect::Shopify, 429, &headers, "");
    assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(2_000)));
    assert_eq!(amounts(seen(&answer, "requests", None)), (Some(40), Some(8), None));
}

#[test]
fn the_standard_to_be_in_its_older_syntaxes() {
    let headers = [
        ("RateLimit-Limit", "100, 100;w=60, 5000;w=3600"),
        ("RateLimit-Remaining", "50"),
        ("RateLimit-Reset", "5"),
        ("X-RateLimit-Limit", "100"),
    ];
    let answer = read(Dialect::Generic, 200, &headers, "");
    assert_eq!(answer.limits.len(), 1);
    let seen = &answer.limits[0];
    assert_eq!((amounts(seen), seen.period), ((Some(100), Some(50), Some(5_000)), secs(60)));
    // Thousands separators, and an instant where the draft requires seconds.
    let headers = [("RateLimit-Limit", "1,000"), ("RateLimit-Reset", "1792567690")];
    let answer = read(Dialect::Generic, 200, &headers, "");
    assert_eq!(amounts(&answer.limits[0]), (Some(1_000), None, Some(10_000)));
    let headers = [
        ("ratelimit", "limit=100, remaining=50, reset=5"),
        ("ratelimit-policy", "100;w=60, 5000;w=3600"),
    ];
    let answer = read(Dialect::Generic, 200, &headers, "");
    assert_eq!(
        (amounts(&answer.limits[0]), answer.limits[0].period),
        ((Some(100), Some(50), Some(5_000)), secs(60))
    );
}

#[test]
fn the_standard_to_be_names_units_and_policies() {
    let headers = [
        (
            "Beta-RateLimit-Policy",
            "\"up,load\";q=65535;qu=\"content-bytes\";w=10;pk=:dHJpY2t5IGxpbWl0:, \
             \"conc\";q=10;qu=\"concurrent-requests\"",
        ),
        ("Beta-RateLimit", r#""up,load";r=100;t=7, "conc";r=0"#),
        ("Beta-Retry-After", "11"),
    ];
    let body = r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title":"Request cannot be satisfied","violated-policies":["up,load"]}"#;
    let answer = read(Dialect::Generic, 429, &headers, body);
    assert_eq!(
        (kind_and_wait(&answer), exceeded(&answer)),
        ((Kind::Quota, Some(11_000)), (Some("bytes"), Some(10)))
    );
    assert_eq!(
        amounts(seen(&answer, "bytes", Some("up,load"))),
        (Some(65_535), Some(100), Some(7_000))
    );
    assert_eq!(amounts(seen(&answer, "parallel", Some("conc"))), (Some(10), Some(0), None));
    for (name, kind) in [
        ("temporary-reduced-capacity", Kind::Overload),
        ("abnormal-usage-detected", Kind::SlowDown),
    ] {
        let body = format!(r#"{{"type":"urn:x#{name}","title":"x"}}"#);
        assert_eq!(kind_and_wait(&read(Dialect::Generic, 429, &[], &body)).0, kind);
    }
}

/// A 403 for a missing permission states neither a wait nor a limit that is used up.
#[test]
fn a_403_that_states_a_limit_is_a_refusal() {
    let waits = |headers: &[(&str, &str)]| {
        kind_and_wait(&read(Dialect::Generic, 403, headers, "secondary rate limit"))
    };
    let (kind, wait) = waits(&[("retry-after", "7")]);
    assert_eq!((kind, wait), (Kind::Quota, Some(7_000)));
    let used_up = [("x-ratelimit-limit", "5"), ("x-ratelimit-remaining", "0")];
    assert_eq!(waits(&used_up).0, Kind::Quota);
    let left = [("x-ratelimit-limit", "5"), ("x-ratelimit-remaining", "4")];
    assert_eq!(read(Dialect::Generic, 403, &left, "").verdict, NEVER);
}

#[test]
fn plain_headers_and_statuses() {
    let headers = [
        ("X-Rate-Limit-Limit", "60"),
        ("X-Rate-Limit-Remaining", "0"),
        ("X-Rate-Limit-Reset", "30"),
    ];
    let answer = read(Dialect::Generic, 429, &headers, "");
    assert_eq!(
        (kind_and_wait(&answer), exceeded(&answer).0),
        ((Kind::Quota, Some(30_000)), Some("requests"))
    );
    let body = "You have too many concurrent requests";
    for dialect in [Dialect::Generic, Dialect::OpenAi, Dialect::Groq] {
        assert_eq!(kind_and_wait(&read(dialect, 429, &[], body)).0, Kind::Concurrency);
    }
    for (status, kind) in [(429, Kind::Quota), (503, Kind::Overload), (529, Kind::Overload)] {
        for dialect in Dialect::ALL {
            let answer = read(dialect, status, &[], "<html>429 Too Many Requests</html>");
            assert_eq!(kind_and_wait(&answer), (kind, None), "{} {status}", dialect.name());
            // Only Bedrock means the limit; elsewhere it is the reason phrase of the status.
            let named = dialect == Dialect::Bedrock && status == 429;
            assert!(named || exceeded(&answer) == (None, None), "{}", dialect.name());
        }
    }
    for status in [408, 409, 425, 500, 502, 504, 520, 524] {
        assert_eq!(read(Dialect::Generic, status, &[], "").verdict, AGAIN, "{status}");
    }
    for status in [401, 402, 403, 410, 413, 422, 501, 505, 0, 999] {
        let verdict = if status == 0 { OK } else { NEVER };
        assert_eq!(read(Dialect::Generic, status, &[], "").verdict, verdict, "{status}");
    }
    for dialect in Dialect::ALL {
        for (status, verdict) in
            [(200, OK), (304, OK), (400, NEVER), (404, NEVER), (408, AGAIN), (500, AGAIN)]
        {
            assert_eq!(read(dialect, status, &[], "").verdict, verdict, "{status}");
        }
    }
}

#[test]
fn impossible_figures_are_anomalies() {
    for (limit, remaining, why) in [
        ("0", "0", AnomalyReason::Zero),
        ("10", "11", AnomalyReason::MoreThanLimit),
        ("1000000000001", "5", AnomalyReason::TooLarge),
        ("many", "5", AnomalyReason::Unreadable),
        ("-5", "5", AnomalyReason::Negative),
    ] {
        let headers = [("x-ratelimit-limit", limit), ("x-ratelimit-remaining", remaining)];
        let answer = read(Dialect::GitHub, 200, &headers, "");
        assert_eq!(reasons(&answer), [why], "{limit} {remaining}");
        assert!(answer.limits.iter().all(|seen| seen.limit.is_none()));
    }
    let headers = [
        ("x-ratelimit-limit", "50"),
        ("x-ratelimit-limit", "40"),
        ("x-ratelimit-reset", "99999999999"),
    ];
    let answer = read(Dialect::GitHub, 200, &headers, "");
    assert_eq!(reasons(&answer), [AnomalyReason::Contradiction, AnomalyReason::TooLong]);
    assert_eq!(amounts(&answer.limits[0]), (Some(40), None, None));
    let shown = answer.anomalies[0].to_string();
    let reason = "another value in the same response contradicts it";
    assert_eq!(shown, format!("x-ratelimit-limit says `50`: {reason}"));
}

//! Responses of Anthropic, OpenAI, Azure and Gemini, recorded or taken from documentation.

use standpipe_dialect::{AnomalyReason, Dialect, Kind, ResetMeans, Usage};

use crate::support::{
    AGAIN, NEVER, OK, amounts, exceeded, kind_and_wait, read, reasons, refused, secs, seen,
};

const DATE: (&str, &str) = ("Date", "Wed, 21 Oct 2026 07:28:00 GMT");

fn anthropic(status: u16, kind: &str, message: &str) -> standpipe_dialect::Answer {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"r"}}"#
    );
    read(Dialect::Anthropic, status, &[], &body)
}

#[test]
fn anthropic_tells_of_its_limits_on_every_answer() {
    let headers = [
        DATE,
        ("anthropic-ratelimit-requests-limit", "1000"),
        ("anthropic-ratelimit-requests-remaining", "999"),
        ("anthropic-ratelimit-requests-reset", "2026-10-21T07:28:01Z"),
        ("Anthropic-RateLimit-Tokens-Limit", "96000"),
        ("anthropic-ratelimit-tokens-remaining", "96000"),
        ("anthropic-ratelimit-tokens-reset", "2026-10-21T07:27:59Z"),
        ("anthropic-ratelimit-input-tokens-limit", "80000"),
        ("anthropic-ratelimit-input-tokens-remaining", "79000"),
        ("anthropic-ratelimit-output-tokens-limit", "16500"),
        ("anthropic-ratelimit-output-tokens-remaining", "17000"),
        ("anthropic-priority-input-tokens-limit", "5000"),
        ("anthropic-fast-output-tokens-remaining", "7000"),
    ];
    let body = r#"{"type":"message","content":[{"type":"text","text":"usage"}],"usage":
        {"input_tokens":12,"output_tokens":34,"cache_creation_input_tokens":100,
         "cache_read_input_tokens":4000,"service_tier":"standard"}}"#;
    let answer = read(Dialect::Anthropic, 200, &headers, body);
    assert_eq!((&answer.verdict, &answer.anomalies), (&OK, &vec![]));
    let requests = seen(&answer, "requests", None);
    assert_eq!(amounts(requests), (Some(1_000), Some(999), Some(1_000)));
    assert_eq!((requests.reset, requests.coarse), (ResetMeans::Full, 1));
    let tokens = seen(&answer, "tokens", None);
    assert_eq!(amounts(tokens), (Some(96_000), Some(96_000), Some(0)));
    assert_eq!((tokens.coarse, tokens.period), (1_000, secs(60)));
    // `remaining` is rounded above the limit: it equals the limit.
    let output = seen(&answer, "output_tokens", None);
    assert_eq!(amounts(output), (Some(16_500), Some(16_500), None));
    assert_eq!(seen(&answer, "input_tokens", Some("priority")).limit, Some(5_000));
    assert_eq!(seen(&answer, "output_tokens", Some("fast")).remaining, Some(7_000));
    let usage = answer.usage.unwrap();
    assert_eq!(usage.charged_input(Dialect::Anthropic), Some(112));
    assert_eq!((usage.output_tokens, usage.cache_read_tokens), (Some(34), Some(4_000)));
}

#[test]
fn anthropic_names_the_limit_in_its_sentence() {
    let message = "This request would exceed your organization's rate limit of 30,000 input tokens \
        per minute (org: 0f8fad5b-d9cb-469f-a165-70867728950e, model: claude-opus-4-6).";
    let answer = anthropic(429, "rate_limit_error", message);
    assert_eq!(kind_and_wait(&answer), (Kind::Quota, None));
    assert_eq!(exceeded(&answer), (Some("input_tokens"), Some(60)));
    let message = &refused(&answer).message;
    assert!(message.contains("(org: [masked], model: claude-opus-4-6)"), "{message}");
}

#[test]
fn anthropic_refusals_by_type_and_words() {
    for (status, kind, message, expected) in [
        (429, "rate_limit_error", "", Kind::Quota),
        (529, "overloaded_error", "Overloaded", Kind::Overload),
        (
            429,
            "rate_limit_error",
            "Number of concurrent connections to Claude exceeds your rate limit",
            Kind::Concurrency,
        ),
        (
            429,
            "rate_limit_error",
            "This request would exceed your organization's maximum usage increase rate for input \
             tokens per minute. Please scale gradually to stay within the acceleration limit.",
            Kind::SlowDown,
        ),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits. You will regain access later.",
            Kind::Terminal,
        ),
        (
            400,
            "invalid_request_error",
            "You have reached your specified workspace API usage limits.",
            Kind::Terminal,
        ),
        (400, "invalid_request_error", "Your credit balance is too low.", Kind::Terminal),
        (402, "billing_error", "Pay", Kind::Terminal),
    ] {
        assert_eq!(refused(&anthropic(status, kind, message)).kind, expected, "{message}");
    }
}

#[test]
fn anthropic_errors_that_are_not_about_quota() {
    for (status, kind, verdict) in [
        (400, "invalid_request_error", NEVER),
        (401, "authentication_error", NEVER),
        (403, "permission_error", NEVER),
        (404, "not_found_error", NEVER),
        (409, "conflict_error", AGAIN),
        (413, "request_too_large", NEVER),
        (500, "api_error", AGAIN),
        (504, "timeout_error", AGAIN),
    ] {
        assert_eq!(anthropic(status, kind, "m").verdict, verdict, "{status}");
    }
    let headers = [("x-should-retry", "false")];
    assert_eq!(read(Dialect::Anthropic, 500, &headers, "").verdict, NEVER);
}

#[test]
fn anthropic_says_when_access_comes_back() {
    let message = "You have reached your API usage limits: x. You will regain access on 2026-10-22 \
        at 00:00 UTC.";
    let answer = anthropic(429, "rate_limit_error", message);
    assert_eq!(kind_and_wait(&answer), (Kind::Terminal, Some((16 * 60 + 32) * 60_000)));
    let answer = anthropic(429, "rate_limit_error", &message.replace("10-22", "12-01"));
    let weeks = Some(3_515_520_000);
    assert_eq!(
        (kind_and_wait(&answer), reasons(&answer)),
        ((Kind::Terminal, weeks), vec![]),
        "weeks ahead"
    );
    let answer = anthropic(429, "rate_limit_error", &message.replace("2026-10-22", "2031-12-01"));
    assert_eq!(
        (kind_and_wait(&answer), reasons(&answer)),
        ((Kind::Terminal, None), vec![AnomalyReason::TooLong])
    );
    // The response states no end, and the month ends in four hours.
    let body = r#"{"error":{"type":"rate_limit_error","message":"x","details":
        {"error_code":"enforced_spend_limit_reached"}}}"#;
    let headers = [("date", "Sat, 31 Oct 2026 20:00:00 GMT")];
    let response = standpipe_dialect::Response {
        status: 429,
        headers: &headers,
        body: body.as_bytes(),
        received: 0,
    };
    assert_eq!(
        kind_and_wait(&Dialect::Anthropic.read(&response)),
        (Kind::Terminal, Some(4 * 3_600_000))
    );
}

#[test]
fn a_subscription_tells_shares() {
    let headers = [
        DATE,
        ("anthropic-ratelimit-unified-status", "allowed_warning"),
        ("anthropic-ratelimit-unified-representative-claim", "seven_day"),
        ("anthropic-ratelimit-unified-5h-status", "allowed"),
        ("anthropic-ratelimit-unified-5h-utilization", "0.42"),
        ("anthropic-ratelimit-unified-5h-reset", "1792571280"),
        ("anthropic-ratelimit-unified-7d-utilization", "0.915"),
        ("anthropic-ratelimit-unified-7d-reset", "1792999680"),
        ("anthropic-ratelimit-unified-7d_oi-utilization", "1.1"),
        ("anthropic-ratelimit-unified-fallback-percentage", "0.5"),
        ("anthropic-ratelimit-unified-overage-status", "rejected"),
    ];
    let answer = read(Dialect::Anthropic, 200, &headers, "");
    assert_eq!((&answer.verdict, answer.limits.len(), &answer.anomalies), (&OK, 3, &vec![]));
    let five = seen(&answer, "budget", Some("5h"));
    assert_eq!((five.utilization, five.period), (Some(420_000), secs(5 * 3_600)));
    assert_eq!((five.reset_in, five.reset), (secs(3_600), ResetMeans::WindowEnds));
    assert_eq!(seen(&answer, "budget", Some("7d_oi")).utilization, Some(1_100_000));
    // No window is used up: the refusal is about a burst, whatever the overage status.
    assert_eq!(kind_and_wait(&read(Dialect::Anthropic, 429, &headers, "")).0, Kind::Concurrency);
}

#[test]
fn a_subscription_that_is_used_up_waits_for_its_window() {
    let headers = [
        ("anthropic-ratelimit-unified-status", "rejected"),
        ("anthropic-ratelimit-unified-representative-claim", "seven_day"),
        ("anthropic-ratelimit-unified-7d-reset", "1792688860"),
    ];
    let answer = read(Dialect::Anthropic, 429, &headers, "");
    assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(121_180_000)));
    assert_eq!(exceeded(&answer), (Some("budget"), Some(7 * 86_400)));
    let headers = [
        ("anthropic-ratelimit-unified-5h-status", "allowed"),
        ("anthropic-ratelimit-unified-7d-status", "rejected"),
        ("anthropic-ratelimit-unified-reset", "1792567690"),
    ];
    let answer = read(Dialect::Anthropic, 429, &headers, "");
    assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(10_000)));
    assert_eq!(exceeded(&answer).1, Some(7 * 86_400));
}

#[test]
fn openai_tells_of_its_limits() {
    let headers = [
        ("x-ratelimit-limit-requests", "5000"),
        ("x-ratelimit-remaining-requests", "4999"),
        ("x-ratelimit-reset-requests", "12ms"),
        ("x-ratelimit-limit-tokens", "160,000"),
        ("x-ratelimit-remaining-tokens", "159976.0"),
        ("x-ratelimit-reset-tokens", "9ms"),
        ("x-ratelimit-limit-project-tokens", "100"),
        ("x-ratelimit-remaining-tokens_usage_based", "7"),
    ];
    let body = r#"{"choices":[{"message":{"content":"usage"}}],"usage":{"prompt_tokens":10,
        "completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":8}}}"#;
    let answer = read(Dialect::OpenAi, 200, &headers, body);
    let requests = seen(&answer, "requests", None);
    assert_eq!(amounts(requests), (Some(5_000), Some(4_999), Some(12)));
    assert_eq!((requests.period, requests.reset), (None, ResetMeans::Full));
    let tokens = seen(&answer, "tokens", None);
    assert_eq!(amounts(tokens), (Some(160_000), Some(159_976), Some(9)));
    assert_eq!(seen(&answer, "tokens", Some("project")).limit, Some(100));
    assert_eq!(seen(&answer, "tokens", Some("usage_based")).remaining, Some(7));
    let usage = answer.usage.unwrap();
    assert_eq!(usage.charged_input(Dialect::OpenAi), Some(10));
    assert_eq!((usage.cache_read_tokens, usage.total_tokens), (Some(8), Some(15)));
}

#[test]
fn openai_usage_of_responses_and_embeddings() {
    let body = r#"{"object":"response","usage":{"input_tokens":36,"input_tokens_details":
        {"cached_tokens":3,"cache_write_tokens":4},"output_tokens":87,"output_tokens_details":
        {"reasoning_tokens":5},"total_tokens":123}}"#;
    let expected = Usage {
        input_tokens: Some(36),
        output_tokens: Some(87),
        cache_read_tokens: Some(3),
        cache_write_tokens: Some(4),
        total_tokens: Some(123),
        points: None,
    };
    assert_eq!(read(Dialect::OpenAi, 200, &[], body).usage, Some(expected));
    let body =
        r#"{"data":[{"embedding":[0.1,-2e-3]}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#;
    let usage = read(Dialect::OpenAi, 200, &[], body).usage.unwrap();
    assert_eq!((usage.charged_input(Dialect::OpenAi), usage.output_tokens), (Some(8), None));
    assert_eq!(read(Dialect::OpenAi, 200, &[], r#"{"usage":null}"#).usage, None);
    let body = r#"{"usage":{"prompt_tokens":-1,"completion_tokens":9e99}}"#;
    let answer = read(Dialect::OpenAi, 200, &[], body);
    assert_eq!((answer.usage, answer.anomalies.len()), (None, 2));
}

#[test]
fn openai_refusals_by_code() {
    let body = |kind: &str, code: &str, message: &str| {
        format!(r#"{{"error":{{"message":"{message}","type":"{kind}","code":"{code}"}}}}"#)
    };
    for (status, kind, code, expected) in [
        (429, "tokens", "rate_limit_exceeded", Kind::Quota),
        (429, "rate_limit_error", "slow_down", Kind::SlowDown),
        (429, "insufficient_quota", "insufficient_quota", Kind::Terminal),
        (429, "insufficient_quota", "something_new", Kind::Terminal),
        (429, "x", "credit_balance_exhausted", Kind::Terminal),
        (429, "x", "organization_spend_limit_exceeded", Kind::Terminal),
        (429, "x", "project_spend_limit_exceeded", Kind::Terminal),
        (429, "x", "organization_usage_limit_exceeded", Kind::Terminal),
        (429, "x", "project_usage_limit_exceeded", Kind::Terminal),
        (429, "x", "billing_hard_limit_reached", Kind::Terminal),
        (429, "x", "billing_not_active", Kind::Terminal),
        (503, "service_unavailable_error", "server_is_overloaded", Kind::Overload),
        (429, "x", "unheard_of", Kind::Quota),
        (503, "x", "", Kind::Overload),
    ] {
        let answer = read(Dialect::OpenAi, status, &[], &body(kind, code, ""));
        assert_eq!(refused(&answer).kind, expected, "{code}");
    }
    for (status, verdict) in [(500, AGAIN), (502, AGAIN), (504, AGAIN), (400, NEVER), (401, NEVER)]
    {
        assert_eq!(read(Dialect::OpenAi, status, &[], &body("x", "y", "")).verdict, verdict);
    }
    let spent = body("x", "insufficient_quota", "");
    let answer = read(Dialect::OpenAi, 429, &[("retry-after", "5")], &spent);
    assert_eq!(kind_and_wait(&answer), (Kind::Terminal, None));
    let large = body("tokens", "rate_limit_exceeded", "Request too large for gpt-4o on TPM");
    assert_eq!(read(Dialect::OpenAi, 429, &[], &large).verdict, NEVER);
}

#[test]
fn openai_names_the_limit_and_the_wait_in_its_sentence() {
    let body = r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens
        per min (TPM): Limit 30000, Used 29012, Requested 2100. Please try again in 2.224s. Visit
        https://platform.openai.com/account/rate-limits to learn more.","type":"tokens",
        "param":null,"code":"rate_limit_exceeded"}}"#;
    let body = body.replace("\n       ", "");
    let answer = read(Dialect::OpenAi, 429, &[("retry-after", "2")], &body);
    assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(2_224)));
    assert_eq!(exceeded(&answer), (Some("tokens"), Some(60)));
    assert!(refused(&answer).message.contains("in organization [masked] on"), "{answer:?}");
    let headers = [("retry-after-ms", "1540"), ("retry-after", "2")];
    assert_eq!(
        kind_and_wait(&read(Dialect::OpenAi, 429, &headers, "")),
        (Kind::Quota, Some(1_540))
    );
}

#[test]
fn azure_speaks_in_sentences() {
    let quota = r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create
        Operation under Azure OpenAI API version 2024-02-01 have exceeded token rate limit of
        your current OpenAI S0 pricing tier. Please retry after 37 seconds."}}"#;
    let quota = quota.replace("\n       ", "");
    let answer = read(Dialect::AzureOpenAi, 429, &[], &quota);
    assert_eq!(
        (kind_and_wait(&answer), exceeded(&answer).0),
        ((Kind::Quota, Some(37_000)), Some("tokens"))
    );
    let busy = r#"{"error":{"code":"429","message":"The system is currently experiencing high demand
        and cannot process your request. Please retry after 6 seconds."}}"#;
    let busy = busy.replace("\n       ", "");
    let answer = read(Dialect::AzureOpenAi, 429, &[], &busy);
    assert_eq!(kind_and_wait(&answer), (Kind::Overload, Some(6_000)));
    for words in ["at capacity", "no capacity", "temporarily unable to process"] {
        let body = format!(r#"{{"error":{{"code":"429","message":"We are {words}."}}}}"#);
        assert_eq!(kind_and_wait(&read(Dialect::AzureOpenAi, 429, &[], &body)).0, Kind::Overload);
    }
    let headers = [
        ("x-ms-retry-after-ms", "750"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "26"),
    ];
    let answer = read(Dialect::AzureOpenAi, 429, &headers, "");
    assert_eq!(
        (kind_and_wait(&answer), exceeded(&answer).0),
        ((Kind::Quota, Some(750)), Some("tokens"))
    );
    assert_eq!(amounts(&answer.limits[0]), (Some(30_000), Some(0), Some(26_000)));
}

fn gemini(details: &str, message: &str) -> standpipe_dialect::Answer {
    let body = format!(
        r#"{{"error":{{"code":429,"message":"{message}","status":"RESOURCE_EXHAUSTED",
            "details":[{details}]}}}}"#
    );
    read(Dialect::Gemini, 429, &[], &body)
}

const PER_MINUTE: &str = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{
    "quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_input_token_count",
    "quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier",
    "quotaDimensions":{"location":"global","model":"gemini-2.5-flash"},"quotaValue":"250000"}]}"#;

fn retry(delay: &str) -> String {
    format!(r#"{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}"#)
}

fn info(reason: &str, quota_limit: &str) -> String {
    format!(
        r#"{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}",
            "metadata":{{"quota_limit":"{quota_limit}"}}}}"#
    )
}

#[test]
fn gemini_by_the_six_rules() {
    for (details, message, expected) in [
        (format!("{PER_MINUTE},{}", retry("26s")), "", (Kind::Quota, Some(26_000))),
        (retry("34.074824224s"), "", (Kind::Quota, Some(34_074))),
        (retry("900ms"), "", (Kind::Quota, Some(900))),
        (retry("301s"), "", (Kind::Terminal, Some(301_000))),
        (retry("soon"), "", (Kind::Quota, None)),
        (PER_MINUTE.to_owned(), "", (Kind::Quota, Some(60_000))),
        (info("", "GenerateRequestsPerMinute"), "", (Kind::Quota, Some(60_000))),
        (String::new(), "Please retry in 12.5s.", (Kind::Quota, Some(12_500))),
        (info("RATE_LIMIT_EXCEEDED", ""), "", (Kind::Quota, Some(10_000))),
        (info("QUOTA_EXHAUSTED", ""), "", (Kind::Terminal, None)),
        (info("INSUFFICIENT_G1_CREDITS_BALANCE", ""), "", (Kind::Terminal, None)),
        (String::new(), "Resource exhausted. Please try again later", (Kind::Quota, None)),
    ] {
        assert_eq!(kind_and_wait(&gemini(&details, message)), expected, "{details} {message}");
    }
    assert_eq!(read(Dialect::Gemini, 499, &[], "").verdict, AGAIN);
    assert_eq!(kind_and_wait(&read(Dialect::Gemini, 503, &[], "")), (Kind::Overload, None));
}

#[test]
fn gemini_tells_the_limit_when_it_refuses() {
    let answer = gemini(PER_MINUTE, "You exceeded your current quota");
    assert_eq!(exceeded(&answer), (Some("input_tokens"), Some(60)));
    let seen = seen(&answer, "input_tokens", None);
    assert_eq!((amounts(seen), seen.period), ((Some(250_000), None, None), secs(60)));
}

#[test]
fn gemini_wraps_its_errors_in_lists_and_in_messages() {
    let error = format!(r#"{{"error":{{"code":429,"message":"m","details":[{}]}}}}"#, retry("7s"));
    let list = format!("[{error}]");
    let inner = serde_json::Value::String(error.clone());
    let nested = format!(r#"{{"error":{{"code":429,"message":{inner}}}}}"#);
    for body in [error, list, nested] {
        let answer = read(Dialect::Gemini, 429, &[], &body);
        assert_eq!(kind_and_wait(&answer), (Kind::Quota, Some(7_000)), "{body}");
        assert_eq!(refused(&answer).message, "m");
    }
}

#[test]
fn gemini_usage_counts_thoughts_and_tools() {
    let body = r#"{"candidates":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":20,
        "thoughtsTokenCount":5,"toolUsePromptTokenCount":3,"cachedContentTokenCount":2,
        "totalTokenCount":38}}"#;
    let usage = read(Dialect::Gemini, 200, &[], body).usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(13), Some(25)));
    assert_eq!((usage.cache_read_tokens, usage.total_tokens), (Some(2), Some(38)));
}

#[test]
fn an_error_body_that_is_cut_off_still_says_its_code() {
    let body =
        r#"{"error":{"type":"x","code":"insufficient_quota","message":"You exceeded your cu"#;
    let answer = read(Dialect::OpenAi, 429, &[], body);
    assert_eq!(kind_and_wait(&answer), (Kind::Terminal, None));
    assert_eq!(refused(&answer).message, "You exceeded your cu");
}

//! Reports with the body of a provider's answer: what is read from it, and that nothing is kept.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, Home, files, lease, limit};

const SECONDARY: &str = r#"{"message":"You have exceeded a secondary rate limit. Please wait."}"#;
const INSUFFICIENT: &str = r#"{"error":{"message":"You exceeded your current quota",
    "type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
const GEMINI: &str = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota",
    "details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[
    {"quotaId":"GenerateRequestsPerMinutePerProjectPerModel","quotaValue":"15"}]},
    {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"}]}}"#;
const OVERLOADED: &str =
    r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
const SPEND: &str = r#"{"type":"error","error":{"type":"rate_limit_error","message":"m",
    "details":{"error_code":"enforced_spend_limit_reached"}}}"#;

/// Pool, status, body, and what is read from it: kind and wait in seconds.
const REFUSALS: [(&str, u16, &str, &str, RangeInclusive<u64>); 5] = [
    ("github/core", 403, SECONDARY, "quota", 60..=60),
    ("openai/gpt", 429, INSUFFICIENT, "terminal", 0..=0),
    ("gemini/flash", 429, GEMINI, "quota", 26..=26),
    ("anthropic/sonnet", 529, OVERLOADED, "overload", 0..=0),
    // Until the month ends.
    ("anthropic/opus", 429, SPEND, "terminal", 0..=31 * 86_400),
];

fn reserved(daemon: &Daemon, pool: &str) -> String {
    let limits = json!({"requests": "1000/h", "tokens": "100k/h"});
    lease(&daemon.reserve(&json!({"pool": pool, "agent": "blog", "limits": limits})))
}

fn commit(daemon: &Daemon, lease: &str, said: &Value) -> Answer {
    daemon.post(&format!("/v1/leases/{lease}/commit"), said)
}

#[track_caller]
fn assert_meaning(answer_body: &Value, kind: &str, wait: &RangeInclusive<u64>) {
    assert_eq!(
        (&answer_body["meaning"], &answer_body["kind"]),
        (&json!("refused"), &json!(kind)),
        "{answer_body}"
    );
    let seconds = answer_body["retry_after_ms"].as_u64().unwrap_or(0) / 1_000;
    assert!(wait.contains(&seconds), "{answer_body}");
}

#[test]
fn a_commit_reads_the_refusal_in_the_body() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (pool, status, body, kind, wait) in REFUSALS {
        let id = reserved(&daemon, pool);
        let answer_body = commit(&daemon, &id, &json!({"status": status, "body": body})).ok(200);
        assert_meaning(&answer_body, kind, &wait);
        assert_eq!(answer_body["settled"], true);
        let next = json!({"pool": pool, "timeout_ms": 0});
        let kind = if kind == "terminal" { "terminal" } else { "not_in_time" };
        daemon.reserve(&next).problem(429, kind);
    }
}

#[test]
fn a_report_without_a_lease_reads_the_body_too() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (pool, status, body, kind, wait) in REFUSALS {
        let id = reserved(&daemon, pool);
        commit(&daemon, &id, &json!({})).ok(200);
        let said = json!({"pool": pool, "status": status, "body": body});
        assert_meaning(&daemon.post("/v1/throttle", &said).ok(200), kind, &wait);
        daemon.post("/v1/resume", &json!({"pool": pool})).ok(200);
        let said = json!({"pool": pool, "status": status, "headers": {}, "body": body});
        assert_meaning(&daemon.post("/v1/observe", &said).ok(200), kind, &wait);
    }
    // The same words with a status that is no refusal: a plain permission error.
    let said = json!({"pool": "github/core", "status": 403, "body": "{\"message\":\"Forbidden\"}"});
    assert_eq!(daemon.post("/v1/throttle", &said).ok(200)["meaning"], "failed");
}

#[test]
fn a_throttle_with_a_kind_still_takes_the_wait_of_the_answer() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let id = reserved(&daemon, "gemini/flash");
    commit(&daemon, &id, &json!({})).ok(200);
    let said = json!({"pool": "gemini/flash", "kind": "quota", "body": GEMINI});
    let response = daemon.post("/v1/throttle", &said).ok(200);
    assert!((20_000..=26_000).contains(&response["paused_for_ms"].as_u64().unwrap()), "{response}");
}

/// What the caller states wins over how a status would be read.
#[test]
fn a_throttle_with_a_wait_or_a_kind_pauses_whatever_the_status_is() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let after = json!({"retry-after": "7"});
    for (number, said) in [
        json!({"status": 403, "retry_after_ms": 7_000}),
        json!({"status": 403, "kind": "quota", "headers": after}),
        json!({"status": 403, "headers": after}),
        json!({"status": 400, "kind": "quota", "headers": after, "body": "{}"}),
    ]
    .into_iter()
    .enumerate()
    {
        let pool = format!("shop/api{number}");
        let id = reserved(&daemon, &pool);
        commit(&daemon, &id, &json!({})).ok(200);
        let mut said = said;
        said["pool"] = json!(pool);
        let response = daemon.post("/v1/throttle", &said).ok(200);
        let paused = response["paused_for_ms"].as_u64().unwrap_or(0);
        assert!((5_000..=7_000).contains(&paused), "{said}: {response}");
    }
}

#[test]
fn usage_is_read_from_the_body_and_stated_figures_count_first() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let body = r#"{"type":"message","usage":{"input_tokens":120,"output_tokens":30}}"#;
    let limits = json!({"input_tokens": "100k/h", "output_tokens": "100k/h"});
    let ask = json!({"pool": "anthropic/sonnet", "limits": limits,
                     "cost": {"input_tokens": 900, "output_tokens": 900}});
    let used = |unit: &str| limit(&home.status("anthropic/sonnet"), unit)["used"].clone();
    let id = lease(&daemon.reserve(&ask));
    let answer_body = commit(&daemon, &id, &json!({"status": 200, "body": body})).ok(200);
    assert_eq!(answer_body["meaning"], "served");
    assert_eq!((used("input_tokens"), used("output_tokens")), (json!(120), json!(30)));
    let id = lease(&daemon.reserve(&ask));
    commit(&daemon, &id, &json!({"used": {"input_tokens": 1}, "body": body})).ok(200);
    assert_eq!((used("input_tokens"), used("output_tokens")), (json!(121), json!(60)));
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":\
        {\"input_tokens\":9,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\
        \"message_delta\",\"usage\":{\"output_tokens\":5}}\n\n";
    let id = lease(&daemon.reserve(&ask));
    commit(&daemon, &id, &json!({"status": 200, "body": stream})).ok(200);
    assert_eq!((used("input_tokens"), used("output_tokens")), (json!(130), json!(65)));
}

#[test]
fn a_body_is_never_stored_logged_or_in_an_error() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let marked = |text: &str| text.replace("MARK", "zq-private-zq");
    let mut answers = Vec::new();
    for body in [
        r#"{"error":{"message":"MARK","code":"rate_limit_exceeded"}}"#,
        r#"{"error":{"message":"MARK: Please try again in MARK","type":"MARK"}}"#,
        r#"{"usage":{"input_tokens":"MARK","total_tokens":-5,"MARK":1}}"#,
        "MARK rate limit",
    ] {
        for status in [200, 403, 429] {
            let id = reserved(&daemon, "openai/gpt");
            let said = json!({"status": status, "body": marked(body)});
            answers.push(commit(&daemon, &id, &said));
            let said = json!({"pool": "openai/gpt", "status": status, "body": marked(body)});
            answers.push(daemon.post("/v1/throttle", &said));
            let resume = json!({"pool": "openai/gpt"});
            daemon.post("/v1/resume", &resume).ok(200);
        }
    }
    for body in [json!({"a": marked("MARK")}), json!([marked("MARK")]), json!(17_171_717)] {
        let id = reserved(&daemon, "openai/gpt");
        let wrong = commit(&daemon, &id, &json!({"body": body}));
        wrong.problem(400, "invalid");
        answers.push(wrong);
    }
    let large = json!({"pool": "openai/gpt", "body": marked("MARK").repeat(20_000)});
    let wrong = daemon.post("/v1/throttle", &large);
    wrong.problem(413, "too_large");
    answers.push(wrong);
    let small_enough = json!({"pool": "openai/gpt", "body": " ".repeat(128 * 1_024)});
    daemon.post("/v1/throttle", &small_enough).ok(200);
    let fits_the_call_only = json!({"pool": "openai/gpt", "body": "x".repeat(128 * 1_024 + 1)});
    let wrong = daemon.post("/v1/throttle", &fits_the_call_only).problem(413, "too_large");
    assert!(wrong["detail"].as_str().unwrap().contains("`body`"), "{wrong}");
    for answer in &answers {
        let text = answer.text();
        assert!(!text.contains("zq-private") && !text.contains("17171717"), "{text}");
    }
    assert!(!daemon.log().contains("zq-private"), "{}", daemon.log());
    daemon.stop();
    for (path, text) in files(&home) {
        assert!(!text.contains("zq-private"), "{} has the body", path.display());
    }
}

#[test]
fn progress_goes_without_an_answer_and_the_document_has_the_body() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let id = reserved(&daemon, "openai/gpt");
    commit(&daemon, &id, &json!({"progress": true, "body": "{}"})).problem(400, "invalid");
    let document = daemon.get("/openapi.json").json();
    for name in ["CommitRequest", "ThrottleRequest", "ObserveRequest"] {
        let body = &document["components"]["schemas"][name]["properties"]["body"];
        assert_eq!(body["maxLength"], 131_072, "{name}: {body}");
    }
}

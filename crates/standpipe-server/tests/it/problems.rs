//! What cannot be done: each with its status, one shape, and what to do.

use serde_json::{Value, json};

use crate::support::{Daemon, Home, lease};

const JSON: &str = "content-type: application/json";

#[test]
fn invalid_bodies_are_rejected_with_the_reason() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (body, says) in [
        ("", "the body is empty"),
        ("{", "not valid JSON"),
        ("[]", "object"),
        (r#"["my/api",null,null,null,null,null,null,null,null,null,null,null]"#, "object"),
        ("\"my/api\"", "object"),
        ("{}", "pool"),
        (r#"{"pool":"my/api","colour":"red"}"#, "colour"),
        (r#"{"pool":"my/api","pool":"my/api"}"#, "the field `pool` is given twice"),
        (r#"{"pool":3}"#, "`pool` must be a string, not 3"),
        (r#"{"pool":"my"}"#, "`my`"),
        (r#"{"pool":"my/api","limits":{"requests":"60/m"}}"#, "60/m"),
        (r#"{"pool":"my/api","limits":{"parallel":0}}"#, "parallel"),
        (r#"{"pool":"my/api","limits":{"parallel":-1}}"#, "a limit is a rate"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"cost":{"Tokens":1}}"#, "Tokens"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"cost":{"tokens":1.5}}"#, "1.5"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"agent":"a b"}"#, "a b"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"priority":"high"}"#, "high"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"timeout_ms":3600001}"#, "timeout_ms"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"timeout_ms":-1}"#, "-1"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"ttl_ms":0}"#, "ttl_ms"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"ttl_ms":34560000001}"#, "ttl_ms"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"id":""}"#, "id"),
        (r#"{"pool":"my/api","limits":{"parallel":1},"retry_of":"x"}"#, "lease"),
    ] {
        let answer = daemon.ask("POST", "/v1/leases", &[JSON], body.as_bytes());
        let problem = answer.problem(400, "invalid");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "`{says}` of {body} is not said: {problem}");
    }
    let not_text = daemon.ask("POST", "/v1/leases", &[JSON], b"{\"pool\":\"my/\xff\"}");
    not_text.problem(400, "invalid");
    let pools = daemon.get("/v1/pools").ok(200);
    assert_eq!(pools["pools"], json!([]), "nothing came of all that: {pools}");
}

#[test]
fn a_rejected_request_leaves_no_pool_behind() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (body, says) in [
        (json!({"pool": "my/a", "limits": {"request": "60/min"}}), "limits.request"),
        (
            json!({"pool": "my/a", "limits": {"requests": "60/min"}, "cost": {"tokenz": 5}}),
            "has no unit `tokenz`",
        ),
        (
            json!({"pool": "my/a", "limits": {"requests": "60/min", "gpu": "5/min"}}),
            "limits.gpu limits nothing: the call uses no `gpu`",
        ),
        (
            json!({"pool": "my/a", "limits": {"gpu": "5/min"}, "dry_run": true}),
            "limits.gpu limits nothing",
        ),
    ] {
        let problem = daemon.reserve(&body).problem(400, "invalid");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{body}: {problem}");
    }
    let never = json!({"pool": "my/a", "limits": {"tokens": "5/min"}, "cost": {"tokens": 9}});
    daemon.reserve(&never).problem(422, "never");
    // The units of the cost are still checked, as nothing configured the pool.
    let unknown = json!({"pool": "my/a", "limits": {"requests": "9/min"}, "cost": {"tokenz": 5}});
    daemon.reserve(&unknown).problem(400, "invalid");
    lease(&daemon.reserve(&json!({"pool": "my/a", "limits": {"requests": "60/min"}})));
    let limits = daemon.pool("my/a")["limits"].clone();
    assert_eq!(limits.as_array().unwrap().len(), 1, "{limits}");
}

#[test]
fn a_call_that_can_never_fit_does_not_tighten_the_pool() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let call = |requests: &str, tokens: u64| {
        json!({"pool": "my/a", "limits": {"requests": requests, "tokens": "90/min"},
               "cost": {"tokens": tokens}})
    };
    lease(&daemon.reserve(&call("60/min", 5)));
    daemon.reserve(&call("30/min", 91)).problem(422, "never");
    let pool = daemon.pool("my/a");
    let amounts = pool["limits"].as_array().unwrap().iter().map(|limit| &limit["amount"]);
    assert_eq!(amounts.collect::<Vec<_>>(), [60, 90], "{pool}");
}

#[test]
fn what_does_not_say_that_it_is_json_is_not_read() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let body = json!({"pool": "my/api", "limits": {"parallel": 1}}).to_string();
    for headers in [&[][..], &["content-type: text/plain"], &["content-type: application/jsonx"]] {
        let answer = daemon.ask("POST", "/v1/leases", headers, body.as_bytes());
        answer.problem(415, "not_json");
    }
    let id = lease(&daemon.ask(
        "POST",
        "/v1/leases",
        &["content-type: Application/JSON"],
        body.as_bytes(),
    ));
    let commit = format!("/v1/leases/{id}/commit");
    let plain = ["content-type: text/plain"];
    daemon.ask("POST", &commit, &plain, b"{}").problem(415, "not_json");
    assert_eq!(daemon.pool("my/api")["in_flight"], 1, "it was not settled by that");
}

#[test]
fn a_path_or_method_that_is_not_there_is_a_problem_too() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for path in ["/v1", "/v1/", "/v2/pools", "/v1/leases/a/b/c", "/ui/nothing.js", "/ui/../x"] {
        let problem = daemon.get(path).problem(404, "not_found");
        let is_named = problem["detail"] == format!("there is no path `{path}`");
        assert!(is_named || path.starts_with("/ui/"), "{problem}");
    }
    for (path, meant) in [
        ("/v1/lease", "POST /v1/leases"),
        ("/pools", "GET /v1/pools"),
        ("/v1/reserve", "POST /v1/leases"),
        ("/v1/status", "GET /v1/pools"),
        ("/v1/commit", "POST /v1/leases/{id}/commit"),
        ("/health", "GET /healthz"),
        ("/v1/leases/01-abc/comit", "POST /v1/leases/{id}/commit"),
        ("/v1/lease/01-abc/cancel", "POST /v1/leases/{id}/cancel"),
    ] {
        let problem = daemon.get(path).problem(404, "not_found");
        let hint = format!("did you mean `{meant}`?");
        assert!(problem["hint"].as_str().unwrap().starts_with(&hint), "{problem}");
    }
    for (path, whole) in [
        ("/v1/chat/completions", "/openai/v1/chat/completions"),
        ("/v1/messages", "/anthropic/v1/messages"),
    ] {
        let hint = daemon.get(path).problem(404, "not_found")["hint"].clone();
        assert_eq!(hint, format!("the proxy's paths begin with a provider: {whole}"));
    }
    let pool = daemon.get("/v1/pools/my/slots").problem(404, "not_found");
    assert!(pool["hint"].as_str().unwrap().contains("GET /v1/pools?pool="), "{pool}");
    let commit = daemon.ask("POST", "/v1/leases/commit", &[JSON], b"");
    let commit = commit.problem(405, "method_not_allowed");
    assert_eq!(commit["hint"], "name the lease in the path: POST /v1/leases/{id}/commit");
    for (method, path) in [
        ("GET", "/v1/leases"),
        ("PUT", "/v1/pools"),
        ("POST", "/metrics"),
        ("DELETE", "/healthz"),
        ("GET", "/v1/leases/x/commit"),
        ("POST", "/"),
        ("PATCH", "/ui/app.js"),
        ("OPTIONS", "/v1/leases"),
    ] {
        let answer = daemon.ask(method, path, &[JSON], b"");
        let problem = answer.problem(405, "method_not_allowed");
        let names = format!("`{path}` does not support {method}");
        assert_eq!(problem["detail"], names.as_str());
        let allowed = if path.starts_with("/v1/leases") { "use POST" } else { "use GET" };
        assert_eq!(problem["hint"], allowed, "{method} {path}");
        assert!(answer.header("allow").is_some_and(|all| !all.is_empty()), "{method} {answer:?}");
    }
}

#[test]
fn invalid_ids_differ_from_ended_leases() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/slots", "limits": {"parallel": 1}});
    let id = lease(&daemon.reserve(&ask));
    for wrong in ["x", "%20", "%ff", "%00", "a%2Fb", "..", "%2e%2e%2fetc", &"9".repeat(5_000)] {
        for how in ["commit", "cancel", "heartbeat"] {
            let answer = daemon.ask("POST", &format!("/v1/leases/{wrong}/{how}"), &[], b"");
            let kind = if answer.status == 404 { "not_found" } else { "invalid" };
            answer.problem(if kind == "invalid" { 400 } else { 404 }, kind);
        }
    }
    let percent: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
    daemon.settle(&percent, "heartbeat").ok(200);
    daemon.settle(&percent, "commit").ok(200);
    daemon.settle(&id, "commit").problem(410, "lease_gone");
    // As it would be called on a pool that is not there.
    let other = Home::new();
    let elsewhere = other.reserve("no/where", "parallel=1");
    daemon.settle(&elsewhere, "commit").problem(410, "lease_gone");
    assert_eq!(daemon.get("/v1/pools").ok(200)["pools"].as_array().unwrap().len(), 1);
}

#[test]
fn a_rejected_value_is_named_with_an_example() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (path, detail, hint) in [
        ("/v1/events?kind=party", "there is no kind of event `party`", "use one of: wait"),
        ("/v1/events?kind=trottle", "there is no kind of event", "did you mean `throttle`?"),
        ("/v1/events?limit=x", "`limit` must be a whole number, 0 or more, not x", "limit=100"),
        ("/v1/events?limit=0", "`limit` is 0, out of range", "use 1 to 10000"),
        ("/v1/explain", "the parameter `pool` is missing", "pool=anthropic/sonnet"),
    ] {
        let problem = daemon.get(path).problem(400, "invalid");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
        assert!(problem["hint"].as_str().unwrap().contains(hint), "{problem}");
    }
    for (body, detail, hint) in [
        (json!({"pool": 3}), "`pool` must be a string, not 3", "\"pool\": \"anthropic/sonnet\""),
        (json!({"pool": "a/b", "cost": 3}), "`cost` must be an object", "{\"tokens\": 1200}"),
        (json!({"pool": "a/b", "pools": ["a/b"]}), "`a/b` is named twice", "once"),
        (json!({"pool": "a/b", "retry_of": "x"}), "`x` is not a lease id", "lease1_"),
        (json!({"pool": "a/b", "timeout_ms": 9_999_999}), "`timeout_ms` is 9999999", "an hour"),
        (json!({"pool": "a/b", "ttl_ms": 0}), "`ttl_ms` is 0", "heartbeat"),
    ] {
        let problem = daemon.reserve(&body).problem(400, "invalid");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
        assert!(problem["hint"].as_str().unwrap().contains(hint), "{problem}");
    }
}

#[test]
fn refusals_say_why_and_when() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let limits = json!({"tokens": "1000/h", "parallel": 1});
    let call = |tokens: u64, timeout: u64| {
        let cost = json!({"tokens": tokens});
        json!({"pool": "my/api", "cost": cost, "limits": limits, "timeout_ms": timeout})
    };
    let never = daemon.reserve(&call(1_001, 60_000));
    assert_eq!(never.header("retry-after"), None, "{never:?}");
    let never = never.problem(422, "never");
    assert_eq!((&never["reason"], &never["short_by"]), (&json!("never"), &json!(1)), "{never}");
    assert!(never["limit"].as_str().unwrap().contains("tokens"));

    let id = lease(&daemon.reserve(&call(800, 0)));
    daemon.settle(&id, "commit").ok(200);
    let full = daemon.reserve(&call(10, 0));
    let seconds: u64 = full.header("retry-after").unwrap().parse().unwrap();
    let full = full.problem(429, "not_in_time");
    assert_eq!((&full["reason"], &full["short_by"]), (&json!("limit"), &json!(10)), "{full}");
    let millis = full["retry_after_ms"].as_u64().unwrap();
    assert_eq!(seconds, millis.div_ceil(1_000), "rounded up");
    assert!(full["until"].is_string() && full["limit"].is_string(), "{full}");
    assert_eq!(daemon.pool("my/api")["waiting"], 0, "0 never waits");

    let nobody_knows = daemon.reserve(&json!({"pool": "my/unknown"}));
    let nobody_knows = nobody_knows.problem(404, "no_pool");
    assert!(nobody_knows["hint"].as_str().unwrap().contains("limits"));
    let near = daemon.reserve(&json!({"pool": "my/apy"})).problem(404, "no_pool");
    assert_eq!(near["hint"], "did you mean `my/api`?", "{near}");
    let unknown = daemon.get("/v1/events?sinc=1h").problem(400, "invalid");
    assert_eq!(unknown["detail"], "there is no parameter `sinc`", "{unknown}");
    let stop = json!({"pool": "my/api", "kind": "terminal"});
    daemon.post("/v1/throttle", &stop).ok(200);
    daemon.reserve(&call(1, 60_000)).problem(429, "terminal");
}

#[test]
fn invalid_queries_are_rejected() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    home.reserve("my/api", "requests=1000/h");
    for path in [
        "/v1/pools?colour=red",
        "/v1/pools?rows=-1",
        "/v1/pools?rows=many",
        "/v1/pools?pool=my",
        "/v1/pools?pool=my/api&pool=my/api",
        "/v1/pools?pool=%ff%fe",
        "/v1/history?pool=my",
        "/v1/agents?pool=%00",
        "/v1/explain",
        "/v1/explain?pool=my/api&cost=tokens",
        "/v1/explain?pool=my/api&cost=tokens%3Dmany",
        "/v1/explain?pool=my/api&priority=high",
        "/v1/explain?pool=my/api&agent=a%20b",
        "/v1/events?since=yesterday",
        "/v1/events?kind=party",
        "/v1/events?limit=0",
        "/v1/events?limit=10001",
        "/v1/events?after=x",
        "/v1/events?pool=my",
    ] {
        daemon.get(path).problem(400, "invalid");
    }
    let near = daemon.get("/v1/pools?pool=my/apy").problem(404, "no_pool");
    assert!(near["hint"].as_str().unwrap().contains("`my/api`"), "{near}");
    daemon.get("/v1/explain?pool=no/where").problem(404, "no_pool");
    let wrong: Value = json!({"pool": "my/api", "for_ms": 0});
    daemon.post("/v1/pause", &wrong).problem(400, "invalid");
    let wrong: Value = json!({"pool": "my/api", "for_ms": 34_560_000_001_u64});
    daemon.post("/v1/pause", &wrong).problem(400, "invalid");
    let wrong: Value = json!({"pool": "my/api", "status": 99, "headers": {}});
    daemon.post("/v1/observe", &wrong).problem(400, "invalid");
}

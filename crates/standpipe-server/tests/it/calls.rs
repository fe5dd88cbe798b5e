//! Calls that ask and leases that end, over both sockets: what is answered when all is well.

use std::time::Duration;

use serde_json::{Value, json};
use standpipe::{Reason, Request};

use crate::support::{Client, Daemon, Home, lease, limit, until};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Runs a test over TCP and over the Unix socket, each on a daemon of its own.
fn over_both(test: impl Fn(&Home, &Daemon, &dyn Fn() -> Client)) {
    let (home, other) = (Home::new(), Home::new());
    let (first, second) = (Daemon::up(&home), Daemon::up(&other));
    test(&home, &first, &|| first.tcp());
    test(&other, &second, &|| second.unix());
}

#[test]
fn a_call_is_admitted_and_settled() {
    over_both(|home, _, connect| {
        // All of it on one connection.
        let mut client = connect();
        let ask = json!({
            "pool": "my/api", "agent": "blog", "cost": {"tokens": 5}, "ttl_ms": 30_000,
            "limits": {"tokens": "1000/h", "parallel": 3}, "model": "m", "task": "t",
            "priority": "critical", "timeout_ms": 0
        });
        let granted = client.post("/v1/leases", &ask).ok(201);
        assert_eq!(
            keys(&granted),
            [
                "schema",
                "lease",
                "pool",
                "agent",
                "cost",
                "expires_at",
                "ttl_ms",
                "waited_ms",
                "zone",
                "settled",
                "advice"
            ]
        );
        assert_eq!((&granted["pool"], &granted["agent"]), (&json!("my/api"), &json!("blog")));
        assert_eq!(granted["cost"], json!({"requests": 1, "tokens": 5}));
        assert_eq!((&granted["ttl_ms"], &granted["settled"]), (&json!(30_000), &json!(false)));
        assert_eq!(granted["zone"], "green");
        let status = home.status("my/api");
        let there = &status["leases"][0];
        assert_eq!(there["id"], granted["lease"], "the library sees it: {status}");
        assert_eq!((&there["model"], &there["task"]), (&json!("m"), &json!("t")));
        assert_eq!((&there["priority"], &there["holder"]), (&json!("critical"), &json!("ttl")));

        let path = format!("/v1/leases/{}", granted["lease"].as_str().unwrap());
        let answer_body =
            client.post(&format!("{path}/commit"), &json!({"used": {"tokens": 2}})).ok(200);
        assert_eq!(keys(&answer_body), ["schema", "lease", "pool", "settled"]);
        assert_eq!(
            (&answer_body["lease"], &answer_body["settled"]),
            (&granted["lease"], &json!(true))
        );
        let status = home.status("my/api");
        assert_eq!(status["in_flight"], 0);
        assert_eq!(limit(&status, "tokens")["used"], 2, "what was used is charged");
    });
}

#[test]
fn each_way_to_end_a_lease_ends_it_once() {
    over_both(|home, _, connect| {
        let limits = json!({"tokens": "1000/h", "parallel": 3});
        let ask = json!({"pool": "my/api", "cost": {"tokens": 10}, "limits": limits});
        let used = || limit(&home.status("my/api"), "tokens")["used"].as_u64().unwrap();
        let mut client = connect();
        for (method, how, charged) in
            [("POST", "/commit", 10), ("DELETE", "", 10), ("POST", "/cancel", 0)]
        {
            let before = used_or_nothing(home);
            let id = lease(&client.post("/v1/leases", &ask));
            let path = format!("/v1/leases/{id}{how}");
            client.start(method, &path, &[], b"");
            assert_eq!(client.answer().ok(200)["settled"], true, "{how}: without a body");
            assert_eq!(used() - before, charged, "{how}");
            client.start(method, &path, &[], b"");
            let gone = client.answer().problem(410, "lease_gone");
            assert_eq!((&gone["lease"], &gone["pool"]), (&json!(id), &json!("my/api")));
            assert_eq!(used() - before, charged, "{how}: twice changes nothing");
            client.start("POST", &format!("/v1/leases/{id}/heartbeat"), &[], b"");
            client.answer().problem(410, "lease_gone");
        }
    });
}

fn used_or_nothing(home: &Home) -> u64 {
    let there =
        home.library().pools().blocking().unwrap().iter().any(|pool| pool.as_str() == "my/api");
    if there { limit(&home.status("my/api"), "tokens")["used"].as_u64().unwrap() } else { 0 }
}

#[test]
fn progress_is_charged_and_the_lease_goes_on() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = json!({
        "pool": "my/api", "cost": {"output_tokens": 100}, "limits": {"output_tokens": "1000/h"}
    });
    let id = lease(&daemon.reserve(&ask));
    let path = format!("/v1/leases/{id}/commit");
    let answer_body =
        daemon.post(&path, &json!({"used": {"output_tokens": 30}, "progress": true})).ok(200);
    assert_eq!(answer_body["settled"], false);
    let limit = &home.status("my/api")["limits"][0];
    assert_eq!((&limit["used"], &limit["held"]), (&json!(30), &json!(70)), "{limit}");
    let both = json!({"used": {"output_tokens": 40}, "progress": true, "status": 200});
    let wrong = daemon.post(&path, &both).problem(400, "invalid");
    assert!(wrong["detail"].as_str().unwrap().contains("progress"), "{wrong}");
    daemon.post(&path, &json!({"used": {"output_tokens": 50}})).ok(200);
    let limit = &home.status("my/api")["limits"][0];
    assert_eq!((&limit["used"], &limit["held"]), (&json!(50), &json!(0)), "{limit}");
}

#[test]
fn a_heartbeat_extends_a_lease() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/slots", "limits": {"parallel": 1}, "ttl_ms": 600_000});
    let granted = daemon.reserve(&ask).ok(201);
    let id = granted["lease"].as_str().unwrap();
    let first = granted["expires_at"].as_str().unwrap();
    // Within one millisecond it is the same.
    let lives = until("it lives longer", || {
        let lives = daemon.settle(id, "heartbeat").ok(200);
        (lives["expires_at"].as_str().unwrap() > first).then_some(lives)
    });
    assert_eq!(keys(&lives), ["schema", "lease", "pool", "expires_at", "ttl_ms"]);
    assert!((590_000..=600_000).contains(&lives["ttl_ms"].as_u64().unwrap()), "{lives}");
}

#[test]
fn an_unsettled_lease_ends_at_its_ttl() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/slots", "limits": {"parallel": 1}, "ttl_ms": 50});
    let id = lease(&daemon.reserve(&ask));
    let next = daemon.reserve(&json!({"pool": "my/slots", "ttl_ms": 600_000})).ok(201);
    assert_ne!(next["lease"], id, "its place went on");
    daemon.settle(&id, "commit").problem(410, "lease_gone");
    assert_eq!(daemon.until_event("reclaim")["why"], "expired");
}

#[test]
fn the_same_id_is_answered_with_the_same_lease() {
    over_both(|home, _, connect| {
        let mut client = connect();
        let ask = json!({
            "pool": "my/slots", "agent": "blog", "id": "job-1", "limits": {"parallel": 1}
        });
        let first = client.post("/v1/leases", &ask).ok(201);
        let again = client.post("/v1/leases", &ask).ok(200);
        assert_eq!((&again["lease"], &again["settled"]), (&first["lease"], &json!(false)));
        assert_eq!(home.status("my/slots")["in_flight"], 1);
        let mut other = ask.clone();
        other["agent"] = json!("press");
        other["timeout_ms"] = json!(0);
        client.post("/v1/leases", &other).problem(429, "not_in_time");

        let id = first["lease"].as_str().unwrap();
        client.post(&format!("/v1/leases/{id}/commit"), &json!({})).ok(200);
        let over = client.post("/v1/leases", &ask).ok(200);
        assert_eq!((&over["lease"], &over["settled"]), (&first["lease"], &json!(true)));
        assert_eq!(home.status("my/slots")["in_flight"], 0, "nothing was taken for it");
    });
}

#[test]
fn a_dry_run_takes_nothing() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let mut ask = json!({"pool": "my/slots", "limits": {"parallel": 1}, "dry_run": true});
    let would = daemon.reserve(&ask).ok(200);
    assert_eq!(keys(&would), ["schema", "pool", "admitted", "dry_run"]);
    assert_eq!(would["admitted"], true);
    assert_eq!(daemon.get("/v1/pools").ok(200)["pools"], json!([]), "not even a pool came of it");

    ask["dry_run"] = json!(false);
    let id = lease(&daemon.reserve(&ask));
    ask["dry_run"] = json!(true);
    let refused = daemon.reserve(&ask).problem(429, "not_in_time");
    assert_eq!(refused["limit"], "parallel");
    daemon.settle(&id, "cancel").ok(200);
    for _ in 0..3 {
        daemon.reserve(&ask).ok(200);
    }
    assert_eq!(daemon.pool("my/slots")["in_flight"], 0);
    daemon.reserve(&json!({"pool": "no/where", "dry_run": true})).problem(404, "no_pool");
}

#[test]
fn second_tries_draw_on_the_budget_of_retries() {
    let home = Home::new();
    home.configure("version = 1\n[pool.\"my/api\"]\nrequests = \"1000/h\"\n");
    let daemon = Daemon::up(&home);
    let first = lease(&daemon.reserve(&json!({"pool": "my/api"})));
    daemon.settle(&first, "commit").ok(200);
    let again = json!({"pool": "my/api", "retry_of": first, "timeout_ms": 0});
    for _ in 0..3 {
        let id = lease(&daemon.reserve(&again));
        daemon.settle(&id, "commit").ok(200);
    }
    let spent = daemon.reserve(&again).problem(429, "not_in_time");
    assert_eq!(spent["reason"], "retry_budget", "{spent}");
    daemon.reserve(&json!({"pool": "my/api", "timeout_ms": 0})).ok(201);
}

#[test]
fn who_asks_is_said_or_seen() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let body = json!({"pool": "my/slots", "limits": {"parallel": 9}}).to_string();
    let json = "content-type: application/json";
    for (header, agent) in [
        ("user-agent: curl/8.5", "curl"),
        ("x-standpipe-agent: blog", "blog"),
        ("accept: */*", "http"),
        ("content-type: application/json; charset=utf-8", "http"),
    ] {
        let headers =
            if header.starts_with("content-type") { vec![header] } else { vec![json, header] };
        let answer = daemon.ask("POST", "/v1/leases", &headers, body.as_bytes());
        assert_eq!(answer.ok(201)["agent"], agent, "{header}");
    }
}

#[test]
fn a_refusing_status_pauses_every_caller() {
    over_both(|home, daemon, connect| {
        let mut client = connect();
        let limits = json!({"requests": "1000/h"});
        let id = lease(&client.post("/v1/leases", &json!({"pool": "my/api", "limits": limits})));
        let other = lease(&client.post("/v1/leases", &json!({"pool": "my/api"})));
        let said = json!({"status": 429, "headers": {"Retry-After": "120"}});
        let answer_body = client.post(&format!("/v1/leases/{id}/commit"), &said).ok(200);
        assert_eq!(
            (&answer_body["settled"], &answer_body["meaning"]),
            (&json!(true), &json!("refused"))
        );
        let refused = client
            .post("/v1/leases", &json!({"pool": "my/api", "timeout_ms": 1000}))
            .problem(429, "not_in_time");
        assert_eq!(refused["reason"], "pause", "{refused}");
        assert!(refused["retry_after_ms"].as_u64().unwrap() > 100_000, "{refused}");
        assert!(refused["until"].is_string(), "{refused}");
        let pool = home.library().pool("my/api").unwrap();
        let request = Request::new().timeout(Duration::ZERO);
        let refused = pool.reserve(request).blocking().unwrap_err();
        assert_eq!(refused.as_refused().unwrap().reason, Reason::Pause, "{refused}");
        assert_eq!(daemon.until_event("throttle")["retry_after_ms"], 120_000);
        assert_eq!(daemon.until_event("pause")["pool"], "my/api");
        client.post(&format!("/v1/leases/{other}/commit"), &json!({"status": 200})).ok(200);
        let answer_body = client.post("/v1/resume", &json!({"pool": "my/api"})).ok(200);
        assert_eq!(answer_body["paused_until"], Value::Null);
        let id = lease(&client.post("/v1/leases", &json!({"pool": "my/api"})));
        client.post(&format!("/v1/leases/{id}/cancel"), &json!({})).ok(200);
    });
}

#[test]
fn refusals_headers_and_pauses_are_reported_to_pools() {
    over_both(|home, _, connect| {
        let mut client = connect();
        home.reserve("my/api", "requests=1000/h");
        let about = json!({"pool": "my/api"});
        let with = |more: Value| {
            let mut all = about.clone();
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        let pause = with(json!({"for_ms": 60_000, "agent": "ops"}));
        let paused = client.post("/v1/pause", &pause).ok(200);
        assert_eq!(keys(&paused), ["schema", "pool", "paused_until", "paused_for_ms"], "{paused}");
        assert!(paused["paused_for_ms"].as_u64().unwrap() > 50_000);
        let shorter = client.post("/v1/pause", &with(json!({"for_ms": 1}))).ok(200);
        assert!(shorter["paused_for_ms"].as_u64().unwrap() > 50_000, "never shortened");
        let seen = home.status("my/api")["pause"].clone();
        assert_eq!(seen["by"], "ops", "who ordered it: {seen}");
        assert!(seen["at"].is_string(), "{seen}");
        let refused = client.post("/v1/leases", &with(json!({"timeout_ms": 0})));
        let refused = refused.problem(429, "not_in_time");
        assert_eq!(refused["paused"]["by"], "ops", "{refused}");
        let invalid = with(json!({"for_ms": 60_000, "agent": "a b"}));
        client.post("/v1/pause", &invalid).problem(400, "invalid");
        client.post("/v1/resume", &about).ok(200);

        let said = with(json!({"retry_after_ms": 90_000, "agent": "blog", "kind": "quota"}));
        let response = client.post("/v1/throttle", &said).ok(200);
        assert!(response["paused_for_ms"].as_u64().unwrap() > 80_000, "{response}");
        assert_eq!(home.status("my/api")["trouble"]["incident"]["agent"], "blog");
        client.post("/v1/resume", &about).ok(200);
        let said = with(json!({"status": 429, "headers": {"retry-after": ["30"]}}));
        let response = client.post("/v1/throttle", &said).ok(200);
        assert_eq!(response["meaning"], "refused", "{response}");
        client.post("/v1/resume", &about).ok(200);

        let headers = json!({"x-ratelimit-limit": "100", "x-ratelimit-remaining": "40",
                             "x-ratelimit-reset": "60"});
        let response = client.post("/v1/observe", &with(json!({"headers": headers}))).ok(200);
        assert_eq!(response["meaning"], "served", "{response}");
        assert!(response["limits"].as_u64().unwrap() >= 1, "{response}");
        for path in ["/v1/pause", "/v1/throttle", "/v1/observe", "/v1/resume"] {
            let body = json!({"pool": "no/where", "for_ms": 1, "headers": {}});
            let mut body = body.as_object().unwrap().clone();
            if path != "/v1/pause" {
                body.remove("for_ms");
            }
            if path != "/v1/observe" {
                body.remove("headers");
            }
            client.post(path, &Value::Object(body)).problem(404, "no_pool");
        }
    });
}

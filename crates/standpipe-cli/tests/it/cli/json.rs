//! JSON output: its schema version and its keys.

use serde_json::Value;

use crate::support::Home;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_lease_has_the_agreed_keys() {
    let home = Home::new();
    let args = ["reserve", "my/api", "--limit", "tokens=1000/h", "--cost", "tokens=5", "--json"];
    let lease = home.run(args.into_iter().chain(["--as", "blog", "--ttl", "30s"])).json();
    let agreed =
        ["schema", "lease", "pool", "agent", "cost", "expires_at", "ttl_ms", "zone", "advice"];
    assert_eq!(keys(&lease), agreed);
    assert_eq!(lease["pool"], "my/api");
    assert_eq!(lease["agent"], "blog");
    assert_eq!(lease["cost"], serde_json::json!({"requests": 1, "tokens": 5}));
    assert_eq!(lease["ttl_ms"], 30_000);
    assert!(lease["expires_at"].as_str().unwrap().ends_with('Z'));
    let id = lease["lease"].as_str().unwrap();
    assert_eq!(home.run(["commit", id, "--json"]).json()["settled"], true);
}

#[test]
fn a_lease_that_the_pool_shortens_has_its_real_end() {
    let home = Home::new();
    let words = ["reserve", "my/rate", "--limit", "requests=60/min", "--ttl", "5d", "--json"];
    let ran = home.run(words);
    let lease = ran.json();
    assert!((3_500_000..=3_600_000).contains(&lease["ttl_ms"].as_u64().unwrap()), "{lease}");
    let left = home.status("my/rate")["leases"][0]["expires_ms"].clone();
    assert!(left.as_u64().unwrap() <= lease["ttl_ms"].as_u64().unwrap(), "{left} {lease}");
    let note = "standpipe: the lease ends in 1 h, not in 5 d (--ttl): `longest_lease` of the pool";
    assert!(ran.err.contains(note), "{ran:?}");
    // Nothing bounds a lease of slots alone.
    let words = ["reserve", "my/slots", "--limit", "parallel=1", "--ttl", "5d", "--json"];
    let ran = home.run(words);
    assert_eq!(ran.json()["ttl_ms"], 432_000_000);
    assert_eq!(ran.err, "");
}

#[test]
fn a_refusal_is_a_problem_on_stdout_and_an_error_on_stderr() {
    let home = Home::new();
    let limit = ["--limit", "tokens=1000/h", "--json"];
    let ran = home.run(["reserve", "my/api", "--cost", "tokens=1001"].into_iter().chain(limit));
    ran.failed(65, &["never"]);
    let problem = ran.json();
    assert_eq!(problem["type"], "never");
    assert_eq!(problem["reason"], "never");
    assert_eq!(problem["short_by"], 1);
    assert_eq!(problem["until"], Value::Null);

    home.run(["reserve", "my/api", "--cost", "tokens=800"].into_iter().chain(limit)).json();
    let more = ["reserve", "my/api", "--cost", "tokens=800", "--timeout", "0"];
    let ran = home.run(more.into_iter().chain(limit));
    ran.failed(75, &["tokens"]);
    let problem = ran.json();
    for key in ["type", "title", "detail", "hint", "reason", "limit", "short_by", "until"] {
        assert!(!problem[key].is_null(), "{key} in {problem}");
    }
    assert_eq!(problem["type"], "not_in_time");
    assert_eq!(problem["reason"], "limit");
    assert!(problem["retry_after_ms"].as_u64().unwrap() > 3_000_000);
}

#[test]
fn other_failures_are_problems_too() {
    let home = Home::new();
    let gone = home.run(["commit", "garbage", "--json"]);
    gone.failed(66, &[]);
    assert_eq!(gone.json()["type"], "no_lease");
    home.configure("[pool.\"a/b\"]\nrequests = \"60/m\"\n");
    let config = home.run(["reserve", "a/b", "--json"]);
    config.failed(78, &["standpipe.toml:2"]);
    assert_eq!(config.json()["problems"][0]["line"], 2);
    let usage = home.run(["hold", "a/b", "--json", "--tiemout", "5s", "--", "true"]);
    usage.failed(2, &["unknown option `--tiemout`"]);
    assert_eq!(usage.json()["hint"], "did you mean `--timeout`?");
    let usage = home.run(["hold", "a/b", "--tiemout", "5s", "--", "curl", "--json"]);
    usage.failed(2, &["--tiemout"]);
    assert_eq!(usage.out, "", "the word is the command's");
}

#[test]
fn every_change_prints_an_object() {
    let home = Home::new();
    let written = home.run(["config", "init", "here.toml", "--json"]);
    assert_eq!((&written.json()["file"], written.err.as_str()), (&"here.toml".into(), ""));
    home.run(["hold", "my/api", "--limit", "requests=9/h", "--", "true"]).printed();
    for (args, key) in [
        (&["pause", "my/api", "--for", "1s"][..], "paused_ms"),
        (&["resume", "my/api"], "resumed"),
        (&["throttle", "my/api", "--retry-after", "1ms"], "noted"),
        (&["observe", "my/api", "--header", "x-ratelimit-limit: 9"], "limits"),
        (&["store", "reset", "my/api", "--yes"], "reset"),
    ] {
        let ran = home.run(args.iter().copied().chain(["--json"]));
        let object = ran.json();
        assert_eq!((object["pool"].as_str(), ran.err.as_str()), (Some("my/api"), ""), "{args:?}");
        assert!(!object[key].is_null(), "{key} in {object}");
    }
}

#[test]
fn a_pool_has_limits_leases_and_tickets() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let whole = home.run(["status", "--json"]).json();
    assert_eq!(keys(&whole), ["schema", "store", "pools", "backpressure"]);
    let pool = &whole["pools"][0];
    assert_eq!(pool["pool"], "my/slots");
    assert_eq!(pool["limits"][0]["unit"], "parallel");
    assert_eq!(pool["limits"][0]["left"], 0);
    assert_eq!(pool["leases"][0]["agent"], "holder");
    assert_eq!(pool["leases"][0]["holder"], "session");
    assert_eq!(pool["leases"][0]["pid"], holder.child.id());
    assert_eq!(pool["tickets"], serde_json::json!([]));
    assert_eq!(holder.end().code, Some(0));
}

#[test]
fn check_exits_by_whether_there_is_room() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let full = home.run(["status", "my/slots", "--check", "--json"]);
    assert_eq!((full.code, &full.json()["room"]), (Some(75), &Value::Bool(false)));
    assert_eq!(holder.end().code, Some(0));
    let free = home.run(["status", "my/slots", "--check", "--json"]);
    assert_eq!((free.code, &free.json()["room"]), (Some(0), &Value::Bool(true)));
}

#[test]
fn an_explanation_names_the_refusing_step() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let shown = home.run(["explain", "my/slots", "--as", "blog", "--json"]).json();
    assert_eq!(shown["agent"], "blog");
    assert_eq!(shown["verdict"], "waits");
    assert!(shown["steps"].as_array().unwrap().len() >= 6);
    let text = home.run(["explain", "my/slots", "--as", "blog"]);
    assert!(text.printed().contains("It would wait"), "{text:?}");
    assert_eq!(holder.end().code, Some(0));
    let text = home.run(["explain", "my/slots", "--as", "blog"]);
    assert!(text.printed().contains("It would be admitted now"), "{text:?}");
}

#[test]
fn events_are_lines_of_json() {
    let home = Home::new();
    home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "true"]).printed();
    home.run(["pause", "my/slots", "--for", "1h"]).printed();
    let ran = home.run(["events", "--kind", "pause", "--json"]);
    let lines: Vec<Value> =
        ran.printed().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{ran:?}");
    assert_eq!(lines[0]["schema"], 1);
    assert_eq!(lines[0]["kind"], "pause");
    assert_eq!(lines[0]["pool"], "my/slots");
}

#[test]
fn store_ping_reports_the_store() {
    let home = Home::new();
    home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "true"]).printed();
    let ping = home.run(["store", "ping", "--json"]).json();
    assert_eq!(ping["pools"], serde_json::json!(["my/slots"]));
    assert!(ping["store"].as_str().unwrap().contains("state"));
    let dumped = home.run(["store", "dump", "my/slots"]).json();
    assert_eq!(dumped["pools"][0]["limits"][0]["kind"], "parallel");
    assert_eq!(home.run(["store", "dump", "--json"]).json()["pools"][0]["pool"], "my/slots");
    assert!(home.run(["store", "upgrade"]).printed().contains("1 pool"));
    home.run(["store", "reset", "my/slots"]).failed(2, &["--yes", "nothing was changed"]);
    home.run(["store", "move", "--to", "file:/nowhere"]).failed(2, &["--yes"]);
}

#[test]
fn a_pool_can_be_forgotten() {
    let home = Home::new();
    home.run(["hold", "my/api", "--limit", "requests=5/d", "--", "true"]).printed();
    assert_eq!(home.status("my/api")["limits"][0]["used"], 1);
    home.run(["store", "reset", "my/api", "--yes"]).printed();
    assert!(home.run(["status"]).printed().starts_with("No pools yet"), "it is not listed");
    home.run(["status", "my/api"]).failed(78, &["there is no pool `my/api`"]);
    home.run(["hold", "my/api", "--limit", "requests=5/d", "--", "true"]).printed();
    assert_eq!(home.status("my/api")["limits"][0]["used"], 1, "the first no longer counts");
}

#[test]
fn an_unused_pool_moves_with_its_state() {
    let home = Home::new();
    home.run(["hold", "my/api", "--limit", "requests=5/d", "--", "true"]).printed();
    let there = home.path.join("there");
    let to = format!("file:{}", there.display());
    let holder = home.hold_the_slot();
    let moved = ["store", "move", "--to", &to, "--yes"];
    home.run(moved).failed(75, &["my/slots", "in use"]);
    assert_eq!(holder.end().code, Some(0));
    home.run(moved).printed();
    assert_eq!(home.run(["status", "--json"]).json()["pools"].as_array().unwrap().len(), 0);
    let arrived = home.run(["status", "my/api", "--json", "--store", &to]).json();
    assert_eq!(arrived["pools"][0]["limits"][0]["used"], 1);
}

/// What happens is shown as it happens.
#[test]
fn events_are_followed() {
    let home = Home::new();
    home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "true"]).printed();
    home.run(["pause", "my/slots", "--for", "1h"]);
    let follow = ["events", "--follow", "--since", "1h", "--kind", "pause", "--json"];
    let mut following = home.start(follow);
    let next = |following: &mut crate::support::Running| -> Value {
        serde_json::from_str(&following.line()).unwrap()
    };
    assert_eq!(next(&mut following)["kind"], "pause", "what was there first");
    home.run(["pause", "my/slots", "--for", "2h"]);
    assert!(next(&mut following)["for_ms"].as_u64().unwrap() > 7_000_000, "then what came");
    following.child.kill().unwrap();
    following.child.wait().unwrap();
}

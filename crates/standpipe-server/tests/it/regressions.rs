//! What people found who tried the daemon and did not spare it.

use serde_json::json;

use crate::support::{Daemon, Home, until};

#[test]
fn what_was_used_is_counted_also_when_nothing_more_happens() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/api", "agent": "blog", "limits": {"requests": "60/min"}});
    daemon.reserve(&ask).ok(201);
    let line = "standpipe_agent_admitted_total{pool=\"my/api\",agent=\"blog\"";
    until("the one call is counted", || {
        let metrics = daemon.get("/metrics");
        let mut lines = metrics.text().lines();
        lines.any(|text| text.starts_with(line) && text.ends_with(" 1")).then_some(())
    });
}

#[test]
fn the_dashboard_may_be_linked_to_and_nothing_else_may() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let click = ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate"];
    assert_eq!(daemon.ask("GET", "/", &click, b"").status, 200);
    daemon.ask("GET", "/v1/pools", &click, b"").problem(403, "forbidden");
}

#[test]
fn other_limits_than_those_in_force_get_a_notice() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = |rate: &str| json!({"pool": "my/api", "limits": {"requests": rate}});
    assert!(daemon.reserve(&ask("60/min")).ok(201)["notice"].is_null());
    let answer_body = daemon.reserve(&ask("6000/min")).ok(201);
    assert!(
        answer_body["notice"].as_str().unwrap().contains("other limits are in force"),
        "{answer_body}"
    );
}

#[test]
fn a_lease_says_how_long_it_lives() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/api", "limits": {"requests": "60/min"}, "ttl_ms": 86_400_000});
    let granted = daemon.reserve(&ask).ok(201);
    assert!(granted["ttl_ms"].as_u64().unwrap() <= 3_600_000, "no lease outlives an hour");
}

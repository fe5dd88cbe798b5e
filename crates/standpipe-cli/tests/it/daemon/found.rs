//! What people found who tried the daemon and did not spare it.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::daemon::support::{Daemon, until};
use crate::support::Home;

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
fn a_token_file_that_is_no_file_is_refused_at_once() {
    let home = Home::new();
    for odd in ["/dev/zero", "/dev/null", "/tmp"] {
        let config = home.configure(&format!("[server]\ntoken_file = \"{odd}\"\n"));
        let config = config.to_str().unwrap();
        let words = ["--config", config, "up", "--listen", "127.0.0.1:0"];
        home.run(words).failed(78, &["token_file", "no file"]);
    }
}

#[test]
fn a_link_in_the_place_of_its_files_is_not_followed() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let directory = daemon.socket.parent().unwrap().to_path_buf();
    assert!(daemon.stop().success());
    let victim = directory.join("victim");
    std::fs::write(&victim, "mine").unwrap();
    std::fs::remove_file(directory.join("daemon.pid")).unwrap();
    symlink(&victim, directory.join("daemon.pid")).unwrap();
    home.run(["up", "--listen", "127.0.0.1:0"]).failed(69, &["daemon.pid"]);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
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
fn who_states_other_limits_than_those_that_count_is_told() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = |rate: &str| json!({"pool": "my/api", "limits": {"requests": rate}});
    assert!(daemon.reserve(&ask("60/min")).ok(201)["notice"].is_null());
    let told = daemon.reserve(&ask("6000/min")).ok(201);
    assert!(told["notice"].as_str().unwrap().contains("other limits count"), "{told}");
}

#[test]
fn a_lease_says_how_long_it_lives() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/api", "limits": {"requests": "60/min"}, "ttl_ms": 86_400_000});
    let granted = daemon.reserve(&ask).ok(201);
    assert!(granted["ttl_ms"].as_u64().unwrap() <= 3_600_000, "no lease outlives an hour");
}

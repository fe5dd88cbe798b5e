//! Calls that draw on several pools, over HTTP.

use serde_json::json;

use crate::support::{Daemon, Home, lease};

const FAMILY: &str = "[pool.\"my/org\"]\nparallel = 2\nrequests = \"100/h\"\nmargin = 0\n\
                      [pool.\"my/model\"]\nrequests = \"100/h\"\nmargin = 0\nwithin = \"my/org\"\n\
                      [pool.\"my/search\"]\nparallel = 1\n";

fn up() -> (Home, Daemon) {
    let home = Home::new();
    home.configure(FAMILY);
    let daemon = Daemon::up(&home);
    (home, daemon)
}

fn in_flight(daemon: &Daemon) -> [usize; 3] {
    ["my/model", "my/org", "my/search"]
        .map(|pool| daemon.pool(pool)["leases"].as_array().unwrap().len())
}

#[test]
fn one_lease_on_all_pools_is_settled_by_its_id() {
    let (_home, daemon) = up();
    for settle in ["commit", "cancel"] {
        let body = json!({"pool": "my/model", "pools": ["my/search"], "timeout_ms": 0});
        let granted = daemon.reserve(&body);
        assert_eq!(granted.json()["pools"], json!(["my/model", "my/org", "my/search"]));
        assert_eq!(in_flight(&daemon), [1, 1, 1]);
        assert_eq!(daemon.pool("my/org")["leases"][0]["part_of"], "my/model");
        assert_eq!(daemon.pool("my/model")["within"], "my/org");
        let id = lease(&granted);
        daemon.settle(&id, "heartbeat").ok(200);
        daemon.settle(&id, settle).ok(200);
        assert_eq!(in_flight(&daemon), [0, 0, 0]);
        daemon.settle(&id, settle).problem(410, "lease_gone");
    }
}

#[test]
fn problems_name_the_pool_that_lacks_room() {
    let (_home, daemon) = up();
    daemon.reserve(&json!({"pool": "my/search"})).ok(201);
    let body = json!({"pool": "my/model", "pools": ["my/search"], "timeout_ms": 0});
    let problem = daemon.post("/v1/leases", &body).problem(429, "not_in_time");
    assert_eq!((&problem["pool"], &problem["limit"]), (&json!("my/search"), &json!("parallel")));
    assert_eq!(in_flight(&daemon), [0, 0, 1]);
    let dry = json!({"pool": "my/model", "pools": ["my/search"], "dry_run": true});
    assert_eq!(daemon.post("/v1/leases", &dry).problem(429, "not_in_time")["pool"], "my/search");
    for (pools, status, kind) in [
        (json!(["my/model"]), 400, "invalid"),
        (json!(["my/search", "my/search"]), 400, "invalid"),
        (json!(["nopool"]), 400, "invalid"),
        (json!("my/search"), 400, "invalid"),
    ] {
        let body = json!({"pool": "my/model", "pools": pools, "timeout_ms": 0});
        daemon.post("/v1/leases", &body).problem(status, kind);
    }
    let unknown = json!({"pool": "my/model", "pools": ["my/typo"], "timeout_ms": 0});
    assert!(daemon.post("/v1/leases", &unknown).status >= 400);
    assert_eq!(in_flight(&daemon), [0, 0, 1]);
}

#[test]
fn a_request_id_is_one_call_on_all_pools() {
    let (_home, daemon) = up();
    let body = json!({"pool": "my/model", "pools": ["my/search"], "id": "x", "agent": "blog"});
    let first = daemon.reserve(&body);
    let again = daemon.reserve(&body);
    assert_eq!(lease(&first), lease(&again));
    assert_eq!(in_flight(&daemon), [1, 1, 1]);
}

#[test]
fn explain_shows_all_pools() {
    let (_home, daemon) = up();
    let explained = daemon.get("/v1/explain?pool=my/model&agent=blog").ok(200);
    assert_eq!(explained["others"][0]["pool"], "my/org");
}

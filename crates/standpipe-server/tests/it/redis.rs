//! The daemon on Redis: the same calls, an outage of the server, and a password that no view shows.

use serde_json::json;
use standpipe_servers::{Options, Server};

use crate::support::{
    Daemon, Home, Start, files, lease, line_of, take_the_slot, until, wants_the_slot,
};

fn up(home: &Home, url: &str) -> Daemon {
    let listen = Some("127.0.0.1:0");
    Daemon::start(home, Start { listen, store: Some(url), ..Start::default() })
}

fn until_waiting(daemon: &Daemon, many: u64) -> serde_json::Value {
    until(&format!("{many} wait"), || {
        let pool = daemon.pool("my/slots");
        (pool["waiting"] == many).then_some(pool)
    })
}

#[test]
fn calls_wait_vanish_and_settle_as_on_files() {
    let server = Server::start();
    let (here, there) = (Home::new(), Home::new());
    let (first, second) = (up(&here, &server.url()), up(&there, &server.url()));
    let held = take_the_slot(&first);
    let gone = first.begin(&wants_the_slot("gone"));
    until_waiting(&second, 1);
    let mut next = second.begin(&wants_the_slot("next"));
    assert_eq!(line_of(&until_waiting(&first, 2)), ["gone", "next"]);
    drop(gone);
    assert_eq!(line_of(&until_waiting(&second, 1)), ["next"]);
    second.settle(&held, "commit").ok(200);
    let id = lease(&next.answer());
    assert_eq!(first.pool("my/slots")["in_flight"], 1);
    let mut ask = wants_the_slot("late");
    ask["timeout_ms"] = json!(0);
    first.reserve(&ask).problem(429, "not_in_time");
    first.settle(&id, "heartbeat").ok(200);
    first.settle(&id, "commit").ok(200);
    second.settle(&id, "commit").problem(410, "lease_gone");
}

#[test]
fn views_show_the_last_known_state_until_the_server_answers_again() {
    let mut server = Server::start_with(Options { persistent: true, ..Options::default() });
    let home = Home::new();
    let daemon = up(&home, &server.url());
    let held = take_the_slot(&daemon);
    daemon.get("/readyz").ok(200);
    assert_eq!(daemon.get("/v1/pools").ok(200)["pools"][0]["in_flight"], 1, "is known now");
    server.kill();
    daemon.get("/healthz").ok(200);
    daemon.get("/readyz").problem(503, "store");
    let mut ask = wants_the_slot("late");
    ask["timeout_ms"] = json!(0);
    daemon.reserve(&ask).problem(503, "store");
    daemon.settle(&held, "commit").problem(503, "store");
    let shown = daemon.get("/v1/pools").ok(200);
    assert_eq!(shown["pools"][0]["pool"], "my/slots", "the last known state: {shown}");
    assert!(shown["age_ms"].is_u64(), "and its age: {shown}");
    assert!(shown["store_error"].is_string(), "and why: {shown}");
    let agents = daemon.get("/v1/agents").ok(200);
    assert_eq!(agents["agents"][0]["name"], "holder", "{agents}");
    assert!(agents["age_ms"].is_u64(), "{agents}");
    assert_eq!(sample(&daemon, "standpipe_store_up"), "0");
    assert_eq!(sample(&daemon, "standpipe_in_flight{pool=\"my/slots\"}"), "1");
    assert_eq!(sample(&daemon, "standpipe_cut_off{pool=\"my/slots\"}"), "0");
    daemon.until_said("the store is unavailable: ");
    server.start_again();
    until("it is ready again", || (daemon.get("/readyz").status == 200).then_some(()));
    daemon.until_said("the store answers again");
    // The commit above is sent when the server answers again, so the lease may be gone by now.
    let settled = || matches!(daemon.settle(&held, "commit").status, 200 | 410).then_some(());
    until("the lease is settled", settled);
    assert_eq!(daemon.pool("my/slots")["in_flight"], 0);
    let id = lease(&daemon.reserve(&wants_the_slot("next")));
    daemon.settle(&id, "commit").ok(200);
    let shown = daemon.get("/v1/pools").ok(200);
    assert!(shown.get("age_ms").is_none(), "what is read now has no age: {shown}");
    assert_eq!(sample(&daemon, "standpipe_store_up"), "1");
}

/// The value of a series.
#[track_caller]
fn sample(daemon: &Daemon, series: &str) -> String {
    let answer = daemon.get("/metrics");
    assert_eq!(answer.status, 200, "{answer:?}");
    let line = answer.text().lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
    line.unwrap_or_else(|| panic!("no {series} in {}", answer.text())).to_owned()
}

#[test]
fn without_the_server_leases_of_a_share_are_granted_settled_and_handed_over() {
    let mut server = Server::start_with(Options { persistent: true, ..Options::default() });
    let home = Home::new();
    let limits = "requests = \"100/h\"\ntokens = \"300/h\"\nmargin = 0\n";
    let share = "on_store_failure = \"share\"\n";
    home.configure(&format!("[pool.\"my/share\"]\n{limits}{share}"));
    let daemon = up(&home, &server.url());
    let cost = json!({"tokens": 60});
    let ask = |timeout: u64| {
        let who = "blog";
        json!({"pool": "my/share", "agent": who, "timeout_ms": timeout, "cost": cost})
    };
    let before = lease(&daemon.reserve(&ask(0)));
    server.kill();
    // From the second call on the quota would run out soon: advice is due, without the store.
    let granted: Vec<String> = (0..3)
        .map(|_| {
            let answer = daemon.reserve(&ask(30_000));
            assert_eq!(answer.status, 201, "{}", answer.text());
            lease(&answer)
        })
        .collect();
    let ready = daemon.get("/readyz").ok(200);
    assert_eq!((&ready["status"], &ready["store_up"]), (&json!("ready"), &json!(false)));
    assert_eq!(sample(&daemon, "standpipe_cut_off{pool=\"my/share\"}"), "1");
    assert_eq!(sample(&daemon, "standpipe_store_up"), "0");
    let shown = daemon.get("/v1/pools").ok(200);
    assert!(shown["pools"][0]["cut_off"].is_object() && shown["age_ms"].is_u64(), "{shown}");
    daemon.settle(&granted[0], "heartbeat").ok(200);
    let used = json!({"used": {"tokens": 50}});
    let answer_body = daemon.post(&format!("/v1/leases/{}/commit", granted[0]), &used).ok(200);
    assert_eq!(answer_body["settled"], true);
    daemon.settle(&granted[0], "commit").problem(410, "lease_gone");
    daemon.settle(&granted[1], "cancel").ok(200);
    daemon.settle(&before, "commit").ok(200);
    let refused = daemon.reserve(&json!({"pool": "my/share", "agent": "blog", "timeout_ms": 0,
        "cost": {"tokens": 200}}));
    refused.problem(429, "not_in_time");
    server.start_again();
    let pool = until("the store is back", || {
        let answer = daemon.get("/v1/pools?pool=my/share");
        let pool = (answer.status == 200).then(|| answer.ok(200)["pools"][0].clone())?;
        pool["cut_off"].is_null().then_some(pool)
    });
    assert_eq!(pool["in_flight"], 1, "{pool}");
    let limits = pool["limits"].as_array().unwrap();
    let tokens = limits.iter().find(|limit| limit["limit"].as_str().unwrap().contains("tokens"));
    assert_eq!(tokens.unwrap()["used"], 60 + 50 + 60, "{pool}");
    daemon.settle(&granted[2], "commit").ok(200);
    assert_eq!(daemon.pool("my/share")["in_flight"], 0);
}

#[test]
fn in_an_outage_each_pool_has_what_it_does_and_the_figures_of_one_reading() {
    let server = &mut Server::start_with(Options { persistent: true, ..Options::default() });
    let home = Home::new();
    let pool = |name: &str, mode: &str| {
        format!("[pool.\"{name}\"]\nrequests = \"60/min\"\non_store_failure = \"{mode}\"\n")
    };
    let modes = ["closed", "open", "share"];
    home.configure(&modes.map(|mode| pool(&format!("my/{mode}"), mode)).concat());
    let daemon = up(&home, &server.url());
    for mode in modes {
        let ask = json!({"pool": format!("my/{mode}"), "agent": "blog", "ttl_ms": 600_000});
        daemon.reserve(&ask).ok(201);
    }
    let before = daemon.get("/v1/pools").ok(200);
    assert!(before.get("on_store_failure").is_none(), "{before}");
    server.kill();
    // No call goes through the daemon, so it has decided nothing yet.
    let shown = until("the outage shows", || {
        let shown = daemon.get("/v1/pools").ok(200);
        shown["age_ms"].is_u64().then_some(shown)
    });
    assert_eq!(shown["on_store_failure"], json!({"my/open": "open", "my/share": "share"}));
    let again = until("it is older", || {
        let later = daemon.get("/v1/pools").ok(200);
        (later["age_ms"].as_u64() > shown["age_ms"].as_u64()).then_some(later)
    });
    assert_eq!(shown["pools"], again["pools"], "what was read last stays as it was read");
    let pools = shown["pools"].as_array().unwrap();
    assert!(pools.iter().all(|pool| pool.get("unavailable").is_none()), "{shown}");
}

#[test]
fn a_password_in_the_address_is_never_shown() {
    let server = Server::start();
    server.run(&["CONFIG", "SET", "requirepass", "swordfish"]);
    let url = server.url().replace("redis://", "redis://:swordfish@");
    let home = Home::new();
    let daemon = up(&home, &url);
    take_the_slot(&daemon);
    let mut said = daemon.said.to_string();
    for path in ["/healthz", "/readyz", "/v1/pools", "/metrics", "/v1/events", "/openapi.json"] {
        said.push_str(daemon.get(path).text());
    }
    drop(server);
    daemon.get("/readyz").problem(503, "store");
    for path in ["/readyz", "/v1/pools", "/metrics", "/v1/agents"] {
        said.push_str(daemon.get(path).text());
    }
    daemon.signal(rustix::process::Signal::TERM);
    daemon.until_said("stopping");
    said.push_str(&daemon.log());
    assert!(!said.contains("swordfish"), "{said}");
    for (path, text) in files(&home) {
        assert!(!text.contains("swordfish"), "it is in {}", path.display());
    }
}

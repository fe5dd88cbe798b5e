//! The daemon on a server: the same calls, a server that goes away and comes back, and a password
//! that nobody is shown.

use serde_json::json;
use standpipe_servers::{Options, Server};

use crate::daemon::support::{Daemon, files, lease, line_of, take_the_slot, until, wants_the_slot};
use crate::support::Home;

fn up(home: &Home, url: &str) -> Daemon {
    Daemon::of(home, &["--json", "--store", url, "up"], &["--listen", "127.0.0.1:0"])
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
fn a_server_that_is_away_is_told_and_one_that_is_back_is_used() {
    let mut server = Server::start_with(Options { persistent: true, ..Options::default() });
    let home = Home::new();
    let daemon = up(&home, &server.url());
    let held = take_the_slot(&daemon);
    daemon.get("/readyz").ok(200);
    server.kill();
    daemon.get("/healthz").ok(200);
    daemon.get("/readyz").problem(503, "store");
    let mut ask = wants_the_slot("late");
    ask["timeout_ms"] = json!(0);
    daemon.reserve(&ask).problem(503, "store");
    daemon.settle(&held, "commit").problem(503, "store");
    daemon.get("/v1/pools").problem(503, "store");
    server.start_again();
    until("it is ready again", || (daemon.get("/readyz").status == 200).then_some(()));
    until("the lease is settled", || (daemon.settle(&held, "commit").status == 200).then_some(()));
    let id = lease(&daemon.reserve(&wants_the_slot("next")));
    daemon.settle(&id, "commit").ok(200);
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
    daemon.settle(&granted[0], "heartbeat").ok(200);
    let used = json!({"used": {"tokens": 50}});
    let told = daemon.post(&format!("/v1/leases/{}/commit", granted[0]), &used).ok(200);
    assert_eq!(told["settled"], true);
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
    for path in ["/readyz", "/v1/pools", "/metrics"] {
        let away = daemon.get(path);
        away.problem(503, "store");
        said.push_str(away.text());
    }
    daemon.signal(rustix::process::Signal::TERM);
    daemon.until_said("stopping");
    said.push_str(&daemon.log());
    assert!(!said.contains("swordfish"), "{said}");
    for (path, text) in files(&home) {
        assert!(!text.contains("swordfish"), "it is in {}", path.display());
    }
}

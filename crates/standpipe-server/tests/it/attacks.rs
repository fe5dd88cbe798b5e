//! Hostile or broken clients, files and machines: other clients are served, and nothing is left.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    Client, Daemon, Home, files, lease, raise_file_limit, take_the_slot, until_waiting,
    wants_the_slot,
};

const JSON: &str = "content-type: application/json";
/// More than the daemon holds over TCP and over the Unix socket.
const MANY_TCP: usize = 4_200;
const MANY_UNIX: usize = 1_100;

/// Connections that have sent half a head.
fn half_sent(connect: impl Fn() -> Client, many: usize) -> Vec<Client> {
    let start = |_| {
        let mut client = connect();
        // The oldest of them may be closed by then.
        let _closed = client.try_send(b"GET /v1/po");
        client
    };
    (0..many).map(start).collect()
}

#[test]
fn half_sent_heads_give_way_to_new_connections() {
    raise_file_limit();
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let mut busy = daemon.tcp();
    busy.get("/healthz").ok(200);
    let tcp = half_sent(|| daemon.tcp(), MANY_TCP);
    for _ in 0..3 {
        daemon.get("/healthz").ok(200);
        daemon.unix().get("/healthz").ok(200);
    }
    busy.get("/healthz").ok(200);
    drop(tcp);
    let _unix = half_sent(|| daemon.unix(), MANY_UNIX);
    for _ in 0..3 {
        daemon.unix().get("/healthz").ok(200);
        daemon.get("/healthz").ok(200);
    }
    busy.get("/healthz").ok(200);
}

#[test]
fn a_rejected_request_creates_no_pool() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    // A provider that is known: its pool would be created without limits.
    let pool = "anthropic/new";
    let leases = [
        json!({"pool": pool, "agent": "not a name"}),
        json!({"pool": pool, "cost": {"tokns": 1}}),
        json!({"pool": pool, "id": ""}),
        json!({"pool": pool, "model": "\u{0}"}),
        json!({"pool": pool, "task": "x".repeat(200)}),
        json!({"pool": pool, "cost": {"tokens": u64::MAX}}),
        json!({"pool": pool, "limits": {"parallel": 1}, "agent": "not a name"}),
    ];
    for body in &leases {
        daemon.reserve(body).problem(400, "invalid");
    }
    let elsewhere = Home::new().reserve("my/other", "parallel=1");
    let headers = json!({"retry-after": "1"});
    for body in [
        json!({"pool": pool, "agent": "not a name"}),
        json!({"pool": pool, "lease": "x"}),
        json!({"pool": pool, "lease": elsewhere}),
        json!({"pool": pool, "status": 99}),
        json!({"pool": pool, "status": 429, "headers": headers, "agent": "not a name"}),
    ] {
        daemon.post("/v1/throttle", &body).problem(400, "invalid");
    }
    let bad = "x-standpipe-agent: not a name";
    let body = json!({"pool": pool, "headers": headers}).to_string();
    daemon.ask("POST", "/v1/observe", &[JSON, bad], body.as_bytes()).problem(400, "invalid");
    assert_eq!(daemon.get("/v1/pools").ok(200)["pools"], json!([]));
    let made: Vec<_> = files(&home).into_iter().map(|(path, _)| path).collect();
    let of_pool = |path: &std::path::PathBuf| path.to_string_lossy().contains("anthropic");
    assert!(!made.iter().any(of_pool), "{made:?}");
}

#[test]
fn duplicate_keys_are_rejected_by_name() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let id = lease(&daemon.reserve(&json!({"pool": "my/api", "limits": {"tokens": "9k/min"}})));
    let commit = format!("/v1/leases/{id}/commit");
    for (path, body, key) in [
        ("/v1/leases", r#"{"pool":"my/api","cost":{"tokens":1,"tokens":9}}"#, "`tokens`"),
        ("/v1/leases", r#"{"pool":"my/x","limits":{"tokens":"1/s","tokens":"9/s"}}"#, "`tokens`"),
        (
            "/v1/leases",
            r#"{"pool":"my/x","limits":{"tokens":{"rate":"1/s","rate":"9/s"}}}"#,
            "`rate`",
        ),
        ("/v1/leases", r#"{"pool":"my/api","pool":"my/api"}"#, "`pool`"),
        (&commit, r#"{"used":{"tokens":1,"requests":1,"tokens":9}}"#, "`tokens`"),
        (
            &commit,
            r#"{"status":200,"headers":{"retry-after":"1","retry-after":"9"}}"#,
            "`retry-after`",
        ),
        ("/v1/throttle", r#"{"pool":"my/api","headers":{"a":"1","a":["9"]}}"#, "`a`"),
        ("/v1/observe", r#"{"pool":"my/api","headers":{"a":"1","a":"9"}}"#, "`a`"),
    ] {
        let problem = daemon.ask("POST", path, &[JSON], body.as_bytes()).problem(400, "invalid");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("twice") && detail.contains(key), "{body}: {problem}");
    }
    let pool = daemon.pool("my/api");
    assert_eq!((&pool["in_flight"], &pool["pause"]), (&json!(1), &json!(null)), "{pool}");
}

#[test]
fn a_stopped_daemon_grants_no_call_whose_timeout_is_over() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = take_the_slot(&daemon);
    let mut ask = wants_the_slot("late");
    ask["timeout_ms"] = json!(1_000);
    let mut late = daemon.begin(&ask);
    until_waiting(&home, "my/slots", 1);
    // The daemon has begun to count before its ticket is seen.
    let waits_since = Instant::now();
    daemon.suspend();
    home.lease(&held).commit([]).blocking().unwrap();
    // The timeout and the tolerance after it pass while the daemon is stopped.
    let over = waits_since + Duration::from_millis(3_500);
    std::thread::sleep(over.saturating_duration_since(Instant::now()));
    daemon.signal(Signal::CONT);
    late.answer().problem(429, "not_in_time");
    let pool = daemon.pool("my/slots");
    assert_eq!((&pool["in_flight"], &pool["waiting"]), (&json!(0), &json!(0)), "{pool}");
}

#[test]
fn a_token_file_that_others_may_read_is_warned_of() {
    let home = Home::new();
    let file = home.path.join("token");
    std::fs::write(&file, "swordfish-0123456789abcdef\n").unwrap();
    home.configure(&format!("[server]\ntoken_file = \"{}\"\n", file.display()));
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    let daemon = Daemon::up(&home);
    daemon.until_said(&format!("chmod 600 {}", file.display()));
    assert!(!daemon.log().contains("swordfish"));
    assert!(daemon.stop().success());
    mode(0o600);
    let daemon = Daemon::up(&home);
    daemon.signal(Signal::TERM);
    daemon.until_said("stopping");
    assert!(!daemon.log().contains("chmod"), "{}", daemon.log());
}

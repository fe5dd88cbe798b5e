//! The daemon's life: it begins once per home, reads its file again, stops in good order.

use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    Client, Daemon, Home, Start, lease, take_the_slot, until, until_waiting, wants_the_slot,
};

/// A pool of so many slots, as a file says it.
fn slots(many: u64) -> String {
    format!("[pool.\"my/slots\"]\nparallel = {many}\n")
}

#[test]
fn signals_count_from_the_moment_it_is_ready() {
    let home = Home::new();
    for _ in 0..5 {
        let daemon = Daemon::up(&home);
        daemon.signal(Signal::HUP);
        daemon.signal(Signal::TERM);
        let ended = daemon.ended();
        assert!(ended.success(), "{ended}");
    }
}

#[test]
fn at_sigterm_waiting_requests_get_503() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    take_the_slot(&daemon);
    let mut waiting: Vec<Client> = (0..3).map(|_| daemon.begin(&wants_the_slot("waits"))).collect();
    until_waiting(&home, "my/slots", 3);
    // It has begun to ask, and has not said all.
    let mut asking = daemon.tcp();
    let body = wants_the_slot("late").to_string();
    let length = body.len();
    let head = "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                expect: 100-continue\r\n";
    asking.send(format!("{head}content-length: {length}\r\n\r\n").as_bytes());
    // The daemon reads its body: before that it may close the connection as idle.
    assert_eq!(asking.head().unwrap().status, 100);
    let mut idle = daemon.tcp();
    idle.get("/healthz").ok(200);
    daemon.signal(Signal::TERM);
    daemon.until_said("stopping");
    for client in &mut waiting {
        client.answer().problem(503, "stopping");
    }
    asking.send(body.as_bytes());
    asking.answer().problem(503, "stopping");
    assert!(idle.is_closed() && asking.is_closed());
    let (address, socket) = (daemon.address, daemon.socket.clone());
    assert_eq!(daemon.ended().code(), Some(0));
    assert!(std::net::TcpStream::connect(address).is_err(), "the port is closed");
    assert!(!socket.exists() && !home.path.join("state/daemon.json").exists());
    assert_eq!(home.status("my/slots")["waiting"], 0, "their tickets are gone");
    assert!(standpipe_server::running(&home.state()).is_none());
}

#[test]
fn at_a_second_signal_it_stops_at_once() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    // Somebody who never says what it wants would be waited for.
    let mut silent = daemon.tcp();
    silent.send(b"POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n");
    silent.send(b"content-type: application/json\r\n\r\n");
    let mut stream = daemon.stream("/v1/events", &[]);
    daemon.signal(Signal::TERM);
    stream.expect("bye");
    daemon.signal(Signal::TERM);
    daemon.until_said("second signal");
    assert!(daemon.ended().success());
}

#[test]
fn a_raised_limit_admits_who_waits_by_signal_and_by_itself() {
    for by_signal in [true, false] {
        let home = Home::new();
        home.configure(&slots(1));
        let daemon = Daemon::up(&home);
        daemon.reserve(&json!({"pool": "my/slots", "ttl_ms": 3_600_000})).ok(201);
        let mut waits = daemon.begin(&wants_the_slot("next"));
        until_waiting(&home, "my/slots", 1);
        home.configure(&slots(2));
        if by_signal {
            daemon.signal(Signal::HUP);
        }
        lease(&waits.answer());
        daemon.until_said("configuration reloaded");
        assert_eq!(daemon.pool("my/slots")["limits"][0]["amount"], 2);
    }
}

#[test]
fn an_invalid_file_changes_nothing_and_is_logged() {
    let home = Home::new();
    let listen = |port: u16| format!("listen = \"127.0.0.1:{port}\"\n");
    home.configure(&(listen(0) + &slots(1)));
    let daemon = Daemon::start(&home, Start::default());
    let amount = || daemon.pool("my/slots")["limits"][0]["amount"].clone();
    let store = home.path.join("elsewhere");
    let elsewhere = format!("store = \"file:{}\"\n", store.display());
    for (text, says) in [
        (slots(2) + "nonsense", "not TOML"),
        (slots(0), "admits no call"),
        (listen(1) + &slots(2), "`listen` has changed"),
        (listen(0) + &elsewhere + &slots(2), "`store` has changed"),
        (listen(0) + "[server]\nsocket = \"/nowhere/x\"\n" + &slots(2), "`socket` has changed"),
        (listen(0) + "[server]\ntoken_file = \"/nowhere\"\n" + &slots(2), "/nowhere"),
    ] {
        home.configure(&text);
        daemon.signal(Signal::HUP);
        daemon.until_said(says);
        assert!(daemon.log().contains("not applied"), "{}", daemon.log());
        assert_eq!(amount(), 1, "{says}");
        let rejected = until("it is shown as rejected", || {
            let rejected = daemon.get("/v1/pools").ok(200)["config_rejected"].clone();
            rejected["errors"][0].as_str()?.contains(says).then_some(rejected)
        });
        assert!(rejected["file"].as_str().unwrap().ends_with(".toml"), "{rejected}");
        assert_eq!(daemon.get("/readyz").ok(200)["config_rejected_at"], rejected["at"]);
    }
    home.configure(&(listen(0) + &slots(3)));
    daemon.signal(Signal::HUP);
    daemon.until_said("1 pools configured");
    assert_eq!(amount(), 3);
    until("it is no longer rejected", || {
        let ready = daemon.get("/readyz").ok(200);
        ready.get("config_rejected_at").is_none().then_some(())
    });
    assert_eq!(daemon.get("/v1/pools").ok(200).get("config_rejected"), None);
}

/// Who adds a pool and calls at once does not meet the old file.
#[test]
fn a_pool_that_was_added_a_moment_ago_is_found() {
    let home = Home::new();
    home.configure(&slots(1));
    let daemon = Daemon::up(&home);
    for number in 0..5 {
        let pool = format!("my/new{number}");
        let added = format!("{}[pool.\"{pool}\"]\nparallel = 1\n", slots(1));
        home.configure(&added);
        lease(&daemon.reserve(&json!({"pool": pool})));
    }
    daemon.reserve(&json!({"pool": "my/none"})).problem(404, "no_pool");
}

#[test]
fn a_file_that_is_empty_for_a_moment_is_not_applied() {
    let home = Home::new();
    home.configure(&slots(1));
    let daemon = Daemon::up(&home);
    home.configure("");
    daemon.reserve(&json!({"pool": "my/none"})).problem(404, "no_pool");
    home.configure(&slots(2));
    daemon.until_said("configuration reloaded");
    assert_eq!(daemon.pool("my/slots")["limits"][0]["amount"], 2);
}

#[test]
fn a_file_that_appears_later_is_applied_if_it_is_valid() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    home.configure("nonsense");
    daemon.until_said("not applied");
    home.configure(&slots(4));
    daemon.until_said("configuration reloaded");
    assert_eq!(daemon.pool("my/slots")["limits"][0]["amount"], 4);
    lease(&daemon.reserve(&json!({"pool": "my/slots"})));
}

#[test]
fn a_file_that_stays_invalid_is_logged_once() {
    let home = Home::new();
    let file: PathBuf = home.path.join("own.toml");
    std::fs::write(&file, slots(1)).unwrap();
    let start = Start { listen: Some("127.0.0.1:0"), config: Some(&file), ..Start::default() };
    let daemon = Daemon::start(&home, start);
    std::fs::remove_file(&file).unwrap();
    daemon.until_said("not applied");
    // It is looked at every second; a sample of the limits is taken every other.
    let samples = || {
        let past = daemon.get("/v1/history").ok(200);
        past["pools"][0]["limits"][0]["samples"].as_array().map_or(0, Vec::len)
    };
    let before = samples();
    until("some seconds have gone by", || (samples() >= before + 3).then_some(()));
    let times = daemon.log().matches("not applied").count();
    assert_eq!(times, 1, "{}", daemon.log());
    std::fs::write(&file, slots(5)).unwrap();
    daemon.until_said("configuration reloaded");
    assert_eq!(daemon.pool("my/slots")["limits"][0]["amount"], 5);
}

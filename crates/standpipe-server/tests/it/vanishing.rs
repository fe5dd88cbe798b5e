//! Clients that disconnect: a waiting call is cancelled unless it has an id; an answered call keeps
//! its lease.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{
    Client, Daemon, Home, lease, line_of, take_the_slot, until, until_waiting, wants_the_slot,
};

/// A way to disconnect, and its name.
type Way = (&'static str, fn(Client));

const WAYS: [Way; 2] = [("closed", drop), ("reset", Client::reset)];

#[test]
fn a_waiting_client_that_disconnects_leaves_nothing() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (way, leave) in WAYS {
        for unix in [false, true] {
            let held = take_the_slot(&daemon);
            let mut gone = if unix { daemon.unix() } else { daemon.tcp() };
            gone.start_json("/v1/leases", &wants_the_slot("gone"));
            until_waiting(&home, "my/slots", 1);
            let mut next = daemon.begin(&wants_the_slot("next"));
            let status = until_waiting(&home, "my/slots", 2);
            assert_eq!(line_of(&status), ["gone", "next"]);
            leave(gone);
            assert_eq!(line_of(&until_waiting(&home, "my/slots", 1)), ["next"], "{way}");
            daemon.settle(&held, "commit").ok(200);
            let id = lease(&next.answer());
            assert_eq!(home.status("my/slots")["in_flight"], 1, "{way}: nothing else is leased");
            daemon.settle(&id, "commit").ok(200);
        }
    }
}

/// Behind bytes that are not read yet the end of a connection is easily overlooked.
#[test]
fn a_client_that_sent_more_and_disconnects_leaves_nothing() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = take_the_slot(&daemon);
    for more in ["\r\n", "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
        let mut gone = daemon.unix();
        gone.start_json("/v1/leases", &wants_the_slot("gone"));
        gone.send(more.as_bytes());
        until_waiting(&home, "my/slots", 1);
        drop(gone);
        until_waiting(&home, "my/slots", 0);
    }
    daemon.settle(&held, "commit").ok(200);
}

#[test]
fn a_program_that_is_killed_while_it_waits_leaves_nothing() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = take_the_slot(&daemon);
    let mut curl = Command::new("curl");
    curl.args(["-s", "-H", "content-type: application/json", "-d"]);
    curl.arg(wants_the_slot("curl").to_string());
    curl.arg(format!("http://{}/v1/leases", daemon.address)).stdout(Stdio::null());
    let mut curl = curl.spawn().unwrap();
    until_waiting(&home, "my/slots", 1);
    let mut next = daemon.begin(&wants_the_slot("next"));
    until_waiting(&home, "my/slots", 2);
    curl.kill().unwrap();
    curl.wait().unwrap();
    assert_eq!(line_of(&until_waiting(&home, "my/slots", 1)), ["next"]);
    daemon.settle(&held, "commit").ok(200);
    lease(&next.answer());
    assert_eq!(home.status("my/slots")["in_flight"], 1);
}

#[test]
fn with_an_id_the_place_is_kept_for_who_comes_back() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (way, leave) in WAYS {
        let held = take_the_slot(&daemon);
        let mut ask = wants_the_slot("early");
        ask["id"] = json!(format!("job-{way}"));
        let early = daemon.begin(&ask);
        until_waiting(&home, "my/slots", 1);
        let mut between = daemon.begin(&wants_the_slot("between"));
        until_waiting(&home, "my/slots", 2);
        leave(early);
        // The daemon knows that it is gone when it has no more connections than ours.
        until("the connection is gone", || (connections(&daemon) == 2).then_some(()));
        let status = home.status("my/slots");
        assert_eq!(line_of(&status), ["early", "between"], "{way}: its ticket stays");
        let mut back = daemon.begin(&ask);
        until("it has come back", || (connections(&daemon) == 3).then_some(()));
        assert_eq!(home.status("my/slots")["waiting"], 2, "{way}: in its own place");
        daemon.settle(&held, "commit").ok(200);
        let id = lease(&back.answer());
        assert_eq!(
            line_of(&home.status("my/slots")),
            ["between"],
            "{way}: ahead of who came between"
        );
        daemon.settle(&id, "commit").ok(200);
        let id = lease(&between.answer());
        daemon.settle(&id, "commit").ok(200);
    }
}

/// How many connections the daemon has, with the one that asks.
fn connections(daemon: &Daemon) -> u64 {
    let text = daemon.get("/metrics").text().to_owned();
    let line = text.lines().find(|line| line.starts_with("standpipe_http_connections "));
    let line = line.unwrap_or_else(|| panic!("no figure of connections in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_kept_place_that_is_not_claimed_blocks_no_other_call() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = take_the_slot(&daemon);
    let mut ask = wants_the_slot("early");
    ask["id"] = json!("job");
    let early = daemon.begin(&ask);
    until_waiting(&home, "my/slots", 1);
    let mut next = daemon.begin(&wants_the_slot("next"));
    until_waiting(&home, "my/slots", 2);
    drop(early);
    daemon.settle(&held, "commit").ok(200);
    let id = lease(&next.answer());
    assert_eq!(line_of(&home.status("my/slots")), ["early"]);
    daemon.settle(&id, "commit").ok(200);
    let granted = daemon.reserve(&ask).ok(201);
    assert_eq!(granted["agent"], "early");
    assert_eq!(home.status("my/slots")["waiting"], 0);
}

/// One after another, their tickets would each keep the slot from others until they lapse.
#[test]
fn clients_with_an_id_that_disconnect_leave_the_slot_to_others_at_once() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = take_the_slot(&daemon);
    let ask = |number: usize| {
        let mut ask = wants_the_slot("early");
        ask["id"] = json!(format!("job-{number}"));
        ask
    };
    let early: Vec<Client> = (0..4).map(|number| daemon.begin(&ask(number))).collect();
    until_waiting(&home, "my/slots", 4);
    drop(early);
    until("the connections are gone", || (connections(&daemon) == 1).then_some(()));
    daemon.settle(&held, "commit").ok(200);
    let mut now = wants_the_slot("next");
    now["timeout_ms"] = json!(0);
    let id = lease(&daemon.reserve(&now));
    assert_eq!(line_of(&home.status("my/slots")), ["early"; 4], "they keep their places");
    let mut back = daemon.begin(&ask(2));
    until("it waits", || (connections(&daemon) == 2).then_some(()));
    daemon.settle(&id, "commit").ok(200);
    let id = lease(&back.answer());
    daemon.settle(&id, "commit").ok(200);
}

#[test]
fn a_client_that_disconnects_after_its_answer_keeps_its_lease() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (_, leave) in WAYS {
        let held = take_the_slot(&daemon);
        let mut ask = wants_the_slot("next");
        ask["ttl_ms"] = json!(3_600_000);
        let mut waits = daemon.begin(&ask);
        until_waiting(&home, "my/slots", 1);
        daemon.settle(&held, "commit").ok(200);
        let id = lease(&waits.answer());
        leave(waits);
        until("the connection is gone", || (connections(&daemon) == 1).then_some(()));
        assert_eq!(home.status("my/slots")["leases"][0]["id"], id.as_str(), "it lives");
        home.lease(&id).commit([]).blocking().unwrap();
        assert_eq!(home.status("my/slots")["in_flight"], 0);
    }
}

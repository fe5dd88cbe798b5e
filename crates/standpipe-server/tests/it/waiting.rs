//! Waiting calls: admitted in order, or refused at their timeout with the reason.

use serde_json::json;
use standpipe::{Priority, Request};

use crate::support::{Daemon, Home, lease, line_of, take_the_slot, until_waiting, wants_the_slot};

#[test]
fn a_call_that_times_out_gets_its_position() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    take_the_slot(&daemon);
    let first = daemon.begin(&wants_the_slot("first"));
    until_waiting(&home, "my/slots", 1);
    let mut ask = wants_the_slot("second");
    ask["timeout_ms"] = json!(30);
    let late = daemon.reserve(&ask).problem(429, "not_in_time");
    assert_eq!(late["position"], 2, "{late}");
    assert_eq!(late["limit"], "parallel", "{late}");
    ask["timeout_ms"] = json!(0);
    let at_once = daemon.reserve(&ask).problem(429, "not_in_time");
    assert_eq!(at_once["pool"], "my/slots");
    let status = until_waiting(&home, "my/slots", 1);
    assert_eq!(line_of(&status), ["first"], "the refused call is no longer queued");
    drop(first);
}

#[test]
fn critical_goes_before_standard_before_background() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = take_the_slot(&daemon);
    let mut waiting = Vec::new();
    for (turn, tier) in ["background", "standard", "critical"].iter().enumerate() {
        let mut ask = wants_the_slot(tier);
        ask["priority"] = json!(tier);
        waiting.push(daemon.begin(&ask));
        until_waiting(&home, "my/slots", turn as u64 + 1);
    }
    let pool = home.library().pool("my/slots").unwrap();
    let request = Request::by("library").priority(Priority::Critical);
    let library = std::thread::spawn(move || pool.reserve(request).blocking().unwrap());
    let status = until_waiting(&home, "my/slots", 4);
    assert_eq!(line_of(&status), ["critical", "library", "standard", "background"]);
    let mut lease_of = |who: usize| lease(&waiting[who].answer());
    daemon.settle(&held, "commit").ok(200);
    let held = lease_of(2);
    daemon.settle(&held, "commit").ok(200);
    let by_library = library.join().unwrap();
    assert_eq!(line_of(&home.status("my/slots")), ["standard", "background"]);
    by_library.commit([]).blocking().unwrap();
    let held = lease_of(1);
    daemon.settle(&held, "commit").ok(200);
    let held = lease_of(0);
    daemon.settle(&held, "commit").ok(200);
}

#[test]
fn several_that_wait_are_all_admitted_when_there_is_room_for_all() {
    let home = Home::new();
    home.configure("version = 1\n[pool.\"my/api\"]\nrequests = \"4/s\"\nmargin = 0\n");
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/api", "timeout_ms": 600_000});
    let mut calls: Vec<_> = (0..12).map(|_| daemon.begin(&ask)).collect();
    for call in &mut calls {
        let id = lease(&call.answer());
        daemon.settle(&id, "commit").ok(200);
    }
    let status = home.status("my/api");
    assert_eq!((&status["in_flight"], &status["waiting"]), (&json!(0), &json!(0)));
}

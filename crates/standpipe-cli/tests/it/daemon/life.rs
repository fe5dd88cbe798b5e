//! The daemon's life: it begins once per home, reads its file again, stops in good order.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::json;

use crate::daemon::support::{
    Client, Daemon, lease, line_of, take_the_slot, until, until_waiting, wants_the_slot,
};
use crate::support::Home;

/// A pool of so many slots, as a file says it.
fn slots(many: u64) -> String {
    format!("[pool.\"my/slots\"]\nparallel = {many}\n")
}

#[test]
fn a_second_daemon_of_a_home_is_refused_and_told_of_the_first() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let (pid, url) = (daemon.pid().to_string(), format!("http://{}", daemon.address));
    for words in [&["up", "--listen", "127.0.0.1:0"][..], &["up", "--detach"]] {
        let ran = home.run(words.iter().copied());
        ran.failed(69, &["a daemon runs here already", &pid, &url, "standpipe down"]);
    }
    daemon.get("/healthz").ok(200);
    daemon.unix().get("/healthz").ok(200);
}

#[test]
fn a_port_that_is_taken_is_told_with_who_has_it() {
    let (home, other) = (Home::new(), Home::new());
    let program = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = program.local_addr().unwrap().to_string();
    let ran = home.run(["up", "--listen", &address]);
    let own = format!("process {}", std::process::id());
    ran.failed(69, &[&address, "taken by", &own, "--listen"]);
    let daemon = Daemon::up(&other);
    let ran = home.run(["up", "--listen", &daemon.address.to_string()]);
    let pid = format!("process {}", daemon.pid());
    ran.failed(69, &["another standpipe daemon", &pid]);
    assert!(!home.path.join("state/daemon.json").exists(), "nothing is left of those that failed");
    drop(Daemon::up(&home));
}

#[test]
fn a_file_that_is_wrong_is_told_and_nothing_begins() {
    let home = Home::new();
    home.configure("[pool.\"my/slots\"]\nparalel = 1\nwhat = 1\n");
    let ran = home.run(["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.err.contains("what"), "{ran:?}");
    let ran = home.run(["up", "--detach", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(78), "{ran:?}");
    let ran = home.run(["up", "--listen", "192.0.2.1:0"]);
    assert_eq!(ran.code, Some(78), "{ran:?}");
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
fn told_to_stop_it_sends_everybody_away_in_good_order() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    take_the_slot(&daemon);
    let mut waiting: Vec<Client> = (0..3).map(|_| daemon.begin(&wants_the_slot("waits"))).collect();
    until_waiting(&home, "my/slots", 3);
    // It has begun to ask, and has not said all.
    let mut asking = daemon.tcp();
    let body = wants_the_slot("late").to_string();
    let length = body.len();
    let head = "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    asking.send(format!("{head}content-length: {length}\r\n\r\n{{").as_bytes());
    let mut idle = daemon.tcp();
    idle.get("/healthz").ok(200);
    daemon.signal(Signal::TERM);
    daemon.until_said("stopping");
    for client in &mut waiting {
        client.answer().problem(503, "stopping");
    }
    asking.send(&body.as_bytes()[1..]);
    asking.answer().problem(503, "stopping");
    assert!(idle.is_closed() && asking.is_closed());
    let (address, socket) = (daemon.address, daemon.socket.clone());
    assert_eq!(daemon.ended().code(), Some(0));
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens");
    assert!(!socket.exists() && !home.path.join("state/daemon.json").exists());
    assert_eq!(home.status("my/slots")["waiting"], 0, "their tickets are gone");
    home.run(["down"]).failed(69, &["no daemon runs", "standpipe up"]);
}

#[test]
fn a_place_with_an_id_is_kept_while_the_daemon_restarts() {
    let home = Home::new();
    let held = home.run(["reserve", "my/slots", "--limit", "parallel=1", "--ttl", "1h"]);
    let held = held.printed();
    let daemon = Daemon::up(&home);
    let mut ask = wants_the_slot("early");
    ask["id"] = json!("job");
    let mut early = daemon.begin(&ask);
    until_waiting(&home, "my/slots", 1);
    let script = "echo held; read -r line; exit 0";
    let mut between = home.start(["hold", "my/slots", "--as", "between", "--", "sh", "-c", script]);
    until_waiting(&home, "my/slots", 2);
    daemon.signal(Signal::TERM);
    early.answer().problem(503, "stopping");
    assert!(daemon.ended().success());
    assert_eq!(line_of(&home.status("my/slots")), ["early", "between"]);
    let daemon = Daemon::up(&home);
    let mut back = daemon.unix();
    back.start_json("/v1/leases", &ask);
    until("it waits here again", || {
        let status = daemon.pool("my/slots");
        (status["tickets"][0]["pid"] == daemon.pid()).then_some(())
    });
    home.run(["commit", held]).printed();
    let id = lease(&back.answer());
    assert_eq!(line_of(&home.status("my/slots")), ["between"]);
    daemon.settle(&id, "commit").ok(200);
    assert_eq!(between.line(), "held");
    assert_eq!(between.end().code, Some(0));
}

#[test]
fn told_twice_it_ends_at_once() {
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
    daemon.until_said("told twice");
    assert!(daemon.ended().success());
}

/// A daemon in the background, stopped when dropped.
struct Background<'a>(&'a Home);

impl Drop for Background<'_> {
    fn drop(&mut self) {
        let _stopped_already = self.0.run(["down"]);
    }
}

#[test]
fn in_the_background_it_is_ready_when_the_command_returns() {
    let home = Home::new();
    let _stopped = Background(&home);
    let said = home.run(["up", "--detach", "--json", "--listen", "127.0.0.1:0"]).json();
    let url = said["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let address = url.parse().unwrap();
    let alive = Client::tcp(address).get("/healthz").ok(200);
    assert_eq!(alive["pid"], said["pid"]);
    Client::unix(Path::new(said["socket"].as_str().unwrap())).get("/healthz").ok(200);
    let log = home.path.join("state/daemon.log");
    let mode = std::fs::metadata(&log).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "its log is private");
    let down = home.run(["down", "--json"]).json();
    assert_eq!((&down["pid"], &down["stopped"]), (&said["pid"], &json!(true)));
    assert!(std::net::TcpStream::connect(address).is_err());
    assert!(std::fs::read_to_string(&log).unwrap().contains("stopping"));
    let shown = home.run(["up", "--detach", "--listen", "127.0.0.1:0"]);
    assert!(shown.printed().contains("standpipe down"), "{shown:?}");
    home.run(["down"]).printed();
}

#[test]
fn down_stops_it_and_waits() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ran = home.run(["down"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(std::net::TcpStream::connect(daemon.address).is_err());
    assert_eq!(daemon.ended().code(), Some(0));
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
        daemon.until_said("read again");
        assert_eq!(daemon.pool("my/slots")["limits"][0]["amount"], 2);
    }
}

#[test]
fn a_file_that_cannot_be_taken_changes_nothing_and_is_told() {
    let home = Home::new();
    let listen = |port: u16| format!("listen = \"127.0.0.1:{port}\"\n");
    home.configure(&(listen(0) + &slots(1)));
    let daemon = Daemon::up_with(&home, &[]);
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
        assert!(daemon.log().contains("not taken over"), "{}", daemon.log());
        assert_eq!(amount(), 1, "{says}");
    }
    home.configure(&(listen(0) + &slots(3)));
    daemon.signal(Signal::HUP);
    daemon.until_said("1 pools were told");
    assert_eq!(amount(), 3);
}

#[test]
fn a_file_that_appears_later_is_taken_and_a_broken_one_is_told() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    home.configure("nonsense");
    daemon.until_said("not taken over");
    home.configure(&slots(4));
    daemon.until_said("read again");
    assert_eq!(daemon.pool("my/slots")["limits"][0]["amount"], 4);
    lease(&daemon.reserve(&json!({"pool": "my/slots"})));
}

#[test]
fn a_file_that_stays_wrong_is_told_once() {
    let home = Home::new();
    let file: PathBuf = home.path.join("own.toml");
    std::fs::write(&file, slots(1)).unwrap();
    let named = ["--json", "--config", file.to_str().unwrap(), "up"];
    let daemon = Daemon::of(&home, &named, &["--listen", "127.0.0.1:0"]);
    std::fs::remove_file(&file).unwrap();
    daemon.until_said("not taken over");
    // It is looked at every second; a sample of the limits is taken every other.
    let samples = || {
        let past = daemon.get("/v1/history").ok(200);
        past["pools"][0]["limits"][0]["samples"].as_array().map_or(0, Vec::len)
    };
    let before = samples();
    until("some seconds have gone by", || (samples() >= before + 3).then_some(()));
    let times = daemon.log().matches("not taken over").count();
    assert_eq!(times, 1, "{}", daemon.log());
    std::fs::write(&file, slots(5)).unwrap();
    daemon.until_said("read again");
    assert_eq!(daemon.pool("my/slots")["limits"][0]["amount"], 5);
}

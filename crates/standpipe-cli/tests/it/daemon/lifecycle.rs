//! `up` and `down`: one daemon per home, in front and in the background.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::daemon::support::{
    Client, Daemon, lease, line_of, until, until_waiting, wants_the_slot,
};
use crate::support::Home;

#[test]
fn a_second_daemon_of_a_home_is_refused_and_told_of_the_first() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let (pid, url) = (daemon.pid().to_string(), format!("http://{}", daemon.address));
    for words in [&["up", "--listen", "127.0.0.1:0"][..], &["up", "--detach"]] {
        let ran = home.run(words.iter().copied());
        ran.failed(69, &["a daemon is already running", &pid, &url, "standpipe down"]);
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
    ran.failed(69, &[&address, "in use by", &own, "--listen"]);
    let daemon = Daemon::up(&other);
    let ran = home.run(["up", "--listen", &daemon.address.to_string()]);
    let pid = format!("process {}", daemon.pid());
    let stop = format!("STANDPIPE_HOME={} standpipe down", other.path.join("state").display());
    ran.failed(69, &["another standpipe daemon", &pid, &stop]);
    assert!(!home.path.join("state/daemon.json").exists(), "nothing is left of those that failed");
    drop(Daemon::up(&home));
}

#[test]
fn a_detached_daemon_prints_and_logs_its_warnings() {
    let home = Home::new();
    let token = home.path.join("token");
    std::fs::write(&token, "0123456789abcdef0123").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    home.configure(&format!("[server]\ntoken_file = \"{}\"\n", token.display()));
    let ran = home.run(["up", "--detach", "--listen", "127.0.0.1:0"]);
    home.run(["down"]).printed();
    let warning = "is readable by every user; run: chmod 600";
    assert!(ran.printed().contains("is up") && ran.err.contains(warning), "{ran:?}");
    let log = std::fs::read_to_string(home.path.join("state/daemon.log")).unwrap();
    assert!(log.contains(warning), "{log}");
    // `run` cannot send a token.
    assert!(ran.out.contains("x-standpipe-token") && !ran.out.contains("standpipe run"));
}

#[test]
fn the_commands_of_the_welcome_work() {
    let home = Home::new();
    let ran = home.run(["up", "--detach", "--listen", "127.0.0.1:0"]);
    let (_, after) = ran.printed().split_once("commit it afterwards:").unwrap();
    let (commands, _) = after.split_once("Or from a shell:").unwrap();
    let output = std::process::Command::new("sh").args(["-ec", commands]).output().unwrap();
    home.run(["down"]).printed();
    assert!(output.status.success(), "{output:?}");
    let settled: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(settled["type"], serde_json::Value::Null, "{settled}");
    assert_eq!(home.status("demo/slots")["in_flight"], 0);
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

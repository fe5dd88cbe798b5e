//! The daemon's views are those of the command line.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::daemon::support::{Client, Daemon, until};
use crate::support::Home;

/// A daemon with a pool on which somebody calls and somebody waits.
fn busy(home: &Home) -> (Daemon, Client) {
    let daemon = Daemon::up(home);
    let limits = json!({"parallel": 1, "requests": "100/h"});
    let ask = json!({"pool": "my/slots", "agent": "first", "limits": limits, "ttl_ms": 600_000});
    daemon.reserve(&ask).ok(201);
    let waits =
        daemon.begin(&json!({"pool": "my/slots", "agent": "second", "timeout_ms": 600_000}));
    until("one waits", || (daemon.pool("my/slots")["waiting"] == 1).then_some(()));
    (daemon, waits)
}

/// All keys of a value, wherever they are.
fn shape(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            shape(value, &format!("{path}.{key}"), found);
        }),
        Value::Array(all) => all.iter().for_each(|value| shape(value, &format!("{path}[]"), found)),
        _ => drop(found.insert(path.to_owned())),
    }
}

#[test]
fn pools_are_shown_as_the_command_line_shows_them() {
    let home = Home::new();
    let (daemon, _waits) = busy(&home);
    let printed = home.run(["status", "--json"]).json();
    let mut wanted = BTreeSet::new();
    shape(&printed, "", &mut wanted);
    for mut client in [daemon.tcp(), daemon.unix()] {
        let shown = client.get("/v1/pools").ok(200);
        let mut found = BTreeSet::new();
        shape(&shown, "", &mut found);
        // What only its pages need.
        assert!(found.remove(".store_label"));
        assert_eq!(found, wanted);
        assert_eq!(shown["store"], printed["store"]);
        for key in ["pool", "in_flight", "waiting", "origin", "zone", "position"] {
            assert_eq!(shown["pools"][0][key], printed["pools"][0][key], "{key}");
        }
        assert_eq!(client.get("/v1/pools?pool=my/slots").ok(200)["pools"][0]["pool"], "my/slots");
    }
    let few = daemon.get("/v1/pools?rows=0").ok(200)["pools"][0].clone();
    assert_eq!((&few["in_flight"], &few["waiting"]), (&json!(1), &json!(1)), "whole counts");
    for rows in ["leases", "tickets", "agents"] {
        assert_eq!(few[rows], json!([]), "{rows}");
    }
}

/// The daemon writes what its calls used every ten seconds. An audit right after a call has it.
#[test]
fn an_audit_has_the_calls_of_a_running_daemon() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let limits = json!({"requests": "100/h"});
    let call = json!({"pool": "my/api", "agent": "blog", "limits": limits, "ttl_ms": 600_000});
    let lease = daemon.reserve(&call).ok(201)["lease"].clone();
    let commit = format!("/v1/leases/{}/commit", lease.as_str().unwrap());
    daemon.post(&commit, &json!({})).ok(200);
    let audit = home.run(["audit", "my/api", "--json"]).json();
    let pool = &audit["pools"][0];
    assert_eq!((&pool["calls"], &pool["complete_until"]), (&json!(1), &Value::Null), "{audit}");
}

#[test]
fn doctor_reports_a_daemon_that_does_not_answer() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    assert!(home.run(["doctor"]).out.contains("runs at http://127.0.0.1:"));
    daemon.suspend();
    let shown = home.run(["doctor"]).out;
    daemon.signal(rustix::process::Signal::CONT);
    let kill = format!("kill -CONT {}", daemon.pid());
    assert!(shown.contains("does not answer") && shown.contains(&kill), "{shown}");
}

#[test]
fn a_call_is_explained_as_the_command_line_explains_it() {
    let home = Home::new();
    let (daemon, _waits) = busy(&home);
    let asked = "/v1/explain?pool=my/slots&agent=third&priority=background&cost=requests%3D2";
    let shown = daemon.get(asked).ok(200);
    let words = ["explain", "my/slots", "--as", "third", "--priority", "background"];
    let printed = home.run(words.into_iter().chain(["--cost", "requests=2", "--json"])).json();
    let (mut found, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    shape(&shown, "", &mut found);
    shape(&printed, "", &mut wanted);
    assert_eq!(found, wanted);
    assert_eq!(daemon.pool("my/slots")["waiting"], 1, "nothing was taken");
}

/// The counters of a pool are forgotten with it, and not only when the daemon restarts.
#[test]
fn metrics_have_no_lines_of_a_pool_that_was_reset() {
    let home = Home::new();
    let hold = ["hold", "my/slots", "--limit", "parallel=1", "--", "true"];
    let daemon = Daemon::up(&home);
    home.run(hold).printed();
    let lines = || {
        let metrics = daemon.get("/metrics");
        let own = metrics.text().lines().filter(|line| line.contains("pool=\"my/slots\""));
        own.map(str::to_owned).collect::<Vec<_>>()
    };
    let is_counted =
        |line: &String| line.starts_with("standpipe_agent_admitted_total") && line.ends_with(" 1");
    until("its call is counted", || lines().iter().any(is_counted).then_some(()));
    home.run(["store", "reset", "my/slots", "--yes"]).printed();
    until("its lines are gone", || lines().is_empty().then_some(()));
}

/// Calls through the daemon and calls of commands are counted apart then. A view of one store does
/// not show that.
#[test]
fn a_daemon_on_another_store_is_reported() {
    let home = Home::new();
    let up = ["--store", "memory", "up", "--detach", "--listen", "127.0.0.1:0", "-q"];
    home.run(up).printed();
    let status = home.run(["status"]);
    let doctor = home.run(["doctor"]);
    let named = home.run(["--store", "memory", "status"]);
    home.run(["down"]).printed();
    assert!(status.err.contains("the running daemon uses memory, and this command file:"));
    let text = doctor.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the running daemon uses memory") && text.contains("[store]"), "{text}");
    assert_eq!(named.err, "", "another store on purpose");
}

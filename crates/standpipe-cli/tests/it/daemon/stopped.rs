//! A process that is stopped at any point of a step delays callers of its own pool and no others.

use std::process::{Child, Stdio};

use serde_json::{Value, json};
use standpipe_store_file::failpoint;

use crate::daemon::support::{Daemon, lease, until};
use crate::support::Home;

/// A `hold` that stops itself at a labelled point; `None` if it never reaches the point.
fn stopped_at(home: &Home, label: &str) -> Option<Child> {
    let hold = ["hold", "my/held", "--limit", "parallel=4", "--timeout", "0", "--", "true"];
    let mut command = home.command(hold);
    command.env("STANDPIPE_STOP_AT", label).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    let is_stopped = until("it is stopped or has ended", || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
        match state {
            Some('T' | 't') => Some(true),
            Some('Z' | 'X') | None => Some(false),
            _ => None,
        }
    });
    if !is_stopped {
        child.wait().unwrap();
        return None;
    }
    Some(child)
}

fn ask(pool: &str, timeout_ms: u64) -> Value {
    json!({"pool": pool, "limits": {"parallel": 4}, "timeout_ms": timeout_ms})
}

#[test]
fn b93_a_process_stopped_at_any_point_of_a_step_stalls_no_other_pool() {
    let mut stops = 0;
    for label in failpoint::ALL {
        let home = Home::new();
        let daemon = Daemon::up(&home);
        for pool in ["my/held", "my/free"] {
            let id = lease(&daemon.post("/v1/leases", &ask(pool, 0)));
            daemon.settle(&id, "commit").ok(200);
        }
        let mut stream = daemon.stream("/v1/events", &[]);
        let Some(mut stopped) = stopped_at(&home, label) else { continue };
        stops += 1;
        // Many callers of the locked pool, on every event loop.
        let mut held: Vec<_> = (0..16).map(|_| daemon.begin(&ask("my/held", 500))).collect();
        // While none of them has its answer, the others go on: more often than there are callers.
        let mut other = daemon.unix();
        for _ in 0..50 {
            other.get("/healthz").ok(200);
            let id = lease(&other.post("/v1/leases", &ask("my/free", 0)));
            other.post(&format!("/v1/leases/{id}/commit"), &json!({})).ok(200);
        }
        other.get("/v1/pools?pool=my/free").ok(200);
        // A stream that was open before goes on.
        other.post("/v1/pause", &json!({"pool": "my/free", "for_ms": 60_000})).ok(200);
        while stream.next().expect("the stream is open").event != "pause" {}
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&stopped),
            rustix::process::Signal::CONT,
        )
        .unwrap();
        stopped.wait().unwrap();
        for caller in &mut held {
            // Admitted, or not in time: but answered.
            assert!(matches!(caller.answer().status, 201 | 429 | 503), "{label}");
        }
    }
    assert!(stops >= 5, "only {stops} points were reached");
}

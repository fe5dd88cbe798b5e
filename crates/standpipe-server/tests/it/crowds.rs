//! Many clients at once: each is served or refused, and nothing grows without bound.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use crate::support::{
    Client, Daemon, Home, files, lease, raise_file_limit, take_the_slot, until, until_waiting,
    wants_the_slot,
};

const MANY: u64 = 500;
/// In KiB; a daemon built for release has far less.
const MEMORY: u64 = 200 * 1024;

#[test]
fn five_hundred_wait_at_once_and_leave_nothing() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = take_the_slot(&daemon);
    let ask = wants_the_slot("crowd");
    // Which of many that come at once is first is for the daemon's threads to say.
    let mut crowd: Vec<Client> = vec![daemon.begin(&ask)];
    until_waiting(&home, "my/slots", 1);
    crowd.extend((1..MANY).map(|_| daemon.begin(&ask)));
    let waiting = |many: u64| {
        until(&format!("{many} wait"), || {
            let few = daemon.get("/v1/pools?pool=my/slots&rows=3").ok(200)["pools"][0].clone();
            (few["waiting"] == many).then_some(few)
        })
    };
    let few = waiting(MANY);
    assert_eq!(few["tickets"].as_array().unwrap().len(), 3, "a bounded answer");
    let all = daemon.pool("my/slots");
    assert_eq!(all["tickets"].as_array().unwrap().len() as u64, MANY, "all are listed");
    assert!(daemon.get("/metrics").text().contains("standpipe_http_waiting 500"));
    daemon.get("/healthz").ok(200);
    let other = json!({"pool": "my/other", "limits": {"parallel": 1}, "timeout_ms": 0});
    let id = lease(&daemon.reserve(&other));
    daemon.settle(&id, "commit").ok(200);
    let memory = daemon.memory();
    println_memory(memory);
    assert!(memory < MEMORY, "{memory} KiB");

    daemon.settle(&held, "commit").ok(200);
    let first = lease(&crowd[0].answer());
    // Half of them close, the others are reset.
    for (number, client) in crowd.drain(1..).enumerate() {
        if number % 2 == 0 { drop(client) } else { client.reset() }
    }
    waiting(0);
    assert_eq!(daemon.pool("my/slots")["in_flight"], 1, "nothing was leased to who is gone");
    daemon.settle(&first, "commit").ok(200);
    assert_eq!(daemon.pool("my/slots")["in_flight"], 0);
}

#[expect(clippy::print_stderr, reason = "a figure to look at, not one to assert")]
fn println_memory(memory: u64) {
    eprintln!("{MANY} wait in {memory} KiB");
}

#[test]
fn ten_thousand_names_of_agents_are_bounded_everywhere() {
    const NAMES: usize = 10_000;
    const CONNECTIONS: usize = 4;
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let limits = json!({"requests": "1000000/h"});
    let ask = json!({"pool": "my/api", "limits": limits, "ttl_ms": 1, "timeout_ms": 0});
    daemon.reserve(&ask).ok(201);
    std::thread::scope(|scope| {
        for part in 0..CONNECTIONS {
            let daemon = &daemon;
            scope.spawn(move || {
                let mut client = daemon.unix();
                for number in (part..NAMES).step_by(CONNECTIONS) {
                    let agent = format!("agent-{number}");
                    let ask =
                        json!({"pool": "my/api", "agent": agent, "ttl_ms": 1, "timeout_ms": 0});
                    client.post("/v1/leases", &ask).ok(201);
                }
            });
        }
    });
    let agents = daemon.get("/v1/agents").ok(200);
    let agents = agents["agents"].as_array().unwrap();
    assert!(agents.len() <= 1_026, "{} agents", agents.len());
    assert!(agents.iter().any(|agent| agent["name"] == "other"), "further ones count as `other`");
    let few = daemon.get("/v1/pools?rows=10");
    assert!(few.body.len() < 20_000, "{} bytes", few.body.len());
    assert_eq!(few.ok(200)["pools"][0]["limits"][0]["used"], NAMES as u64 + 1);
    let metrics = daemon.get("/metrics");
    assert!(metrics.body.len() < 2_000_000, "{} bytes", metrics.body.len());
    until("no lease is left", || (daemon.pool("my/api")["in_flight"] == 0).then_some(()));
    assert!(daemon.memory() < MEMORY, "{} KiB", daemon.memory());
}

#[test]
fn names_of_pools_that_are_none_leave_nothing() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let mut client = daemon.unix();
    for number in 0..500 {
        let ask = json!({"pool": format!("my/p{number}"), "timeout_ms": 0});
        client.post("/v1/leases", &ask).problem(404, "no_pool");
        client.get(&format!("/v1/explain?pool=my/p{number}")).problem(404, "no_pool");
    }
    assert_eq!(daemon.get("/v1/pools").ok(200)["pools"], json!([]));
    assert!(!files(&home).iter().any(|(path, _)| path.to_string_lossy().contains("p499")));
}

/// How often each thread of the daemon has waited, by thread.
fn waits(daemon: &Daemon) -> BTreeMap<PathBuf, u64> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
    let of = |thread: PathBuf| {
        let status = std::fs::read_to_string(thread.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        (thread, line.map_or(0, |count| count.trim().parse().unwrap()))
    };
    threads.map(|thread| of(thread.unwrap().path())).collect()
}

#[test]
fn an_answer_wakes_no_other_thread() {
    const PAIRS: u64 = 500;
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let mut client = daemon.unix();
    let ask = json!({"pool": "my/api", "limits": {"requests": "1000000/s"}, "timeout_ms": 0});
    lease(&client.post("/v1/leases", &ask));
    let before = waits(&daemon);
    for _ in 0..PAIRS {
        let id = lease(&client.post("/v1/leases", &json!({"pool": "my/api", "timeout_ms": 0})));
        client.post(&format!("/v1/leases/{id}/commit"), &json!({})).ok(200);
    }
    let after = waits(&daemon);
    let since = |thread: &PathBuf| before.get(thread).copied().unwrap_or(0);
    let mut woken: Vec<u64> = after.iter().map(|(thread, all)| all - since(thread)).collect();
    woken.sort_unstable();
    // The thread of the connection waits for every request; the others for their own clocks only.
    woken.pop();
    assert!(woken.iter().sum::<u64>() < PAIRS / 2, "{woken:?}");
}

#[test]
fn streams_beyond_the_bound_get_503() {
    const MOST: usize = 128;
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let paths = ["/v1/pools", "/v1/events"];
    let mut streams: Vec<_> = (0..MOST).map(|turn| daemon.stream(paths[turn % 2], &[])).collect();
    for path in paths {
        let full = daemon.ask("GET", path, &["accept: text/event-stream"], b"");
        full.problem(503, "queue_full");
    }
    daemon.get("/v1/pools").ok(200);
    drop(streams.pop());
    let mut again = until("its place is free", || {
        let mut client = daemon.tcp();
        client.start("GET", "/v1/pools", &["accept: text/event-stream"], b"");
        (client.head().unwrap().status == 200).then_some(client)
    });
    assert!(again.chunk().is_some());
    streams.clear();
    assert!(daemon.get("/metrics").status == 200);
}

#[test]
fn waiting_calls_beyond_the_bound_get_503() {
    const MOST: usize = 2_048;
    raise_file_limit();
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = take_the_slot(&daemon);
    let ask = wants_the_slot("crowd");
    let mut crowd: Vec<Client> = (0..MOST).map(|_| daemon.begin(&ask)).collect();
    let waiting = |many: usize| {
        until(&format!("{many} wait"), || {
            let few = daemon.get("/v1/pools?rows=0").ok(200);
            (few["pools"][0]["waiting"] == many).then_some(())
        });
    };
    waiting(MOST);
    daemon.reserve(&ask).problem(503, "queue_full");
    drop(crowd.pop());
    waiting(MOST - 1);
    let another = daemon.begin(&ask);
    waiting(MOST);
    drop((crowd, another));
    waiting(0);
    daemon.settle(&held, "commit").ok(200);
}

#[test]
fn connections_beyond_the_bound_get_503() {
    const MOST: usize = 4_096;
    raise_file_limit();
    let home = Home::new();
    let daemon = Daemon::up(&home);
    // An answer proves that a connection was accepted and counted; without it the late one could
    // overtake another in the accept queue.
    let accepted = || {
        let mut client = daemon.tcp();
        client.get("/healthz").ok(200);
        client
    };
    let mut silent: Vec<Client> = (0..MOST).map(|_| accepted()).collect();
    let mut late = daemon.tcp();
    let answer_body = late.answer();
    assert_eq!(
        (answer_body.status, answer_body.header("retry-after")),
        (503, Some("1")),
        "{answer_body:?}"
    );
    assert!(late.is_closed());
    silent[0].get("/healthz").ok(200);
    drop(silent);
    until("there is room again", || {
        let mut client = daemon.tcp();
        // A refused connection may be closed before the request is sent.
        client.try_send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").ok()?;
        client.answer_if_any().filter(|answer| answer.status == 200)
    });
}

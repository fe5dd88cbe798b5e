//! A daemon that is killed, and all faces at work on one pool at the same time.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde_json::json;
use standpipe::{Error, Request};

use crate::daemon::support::{
    Client, Daemon, lease, library, line_of, take_the_slot, until, until_waiting, wants_the_slot,
};
use crate::support::Home;

#[test]
fn tickets_at_a_killed_daemon_are_gone_at_once() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let held = home.run(["reserve", "my/slots", "--limit", "parallel=1", "--ttl", "1h"]);
    let mut gone = daemon.begin(&wants_the_slot("gone"));
    until_waiting(&home, "my/slots", 1);
    let script = "echo held; read -r line; exit 0";
    let mut next = home.start(["hold", "my/slots", "--as", "next", "--", "sh", "-c", script]);
    let status = until_waiting(&home, "my/slots", 2);
    assert_eq!(line_of(&status), ["gone", "next"]);
    daemon.kill();
    assert!(gone.answer_if_any().is_none());
    home.run(["commit", held.printed()]).printed();
    assert_eq!(next.line(), "held", "who waits elsewhere is served");
    assert_eq!(home.status("my/slots")["waiting"], 0);
    assert_eq!(next.end().code, Some(0));
}

#[test]
fn leases_outlive_a_killed_daemon_and_the_next_one_settles_them() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let id = take_the_slot(&daemon);
    let mut ask = wants_the_slot("early");
    ask["id"] = json!("job");
    let _waits = daemon.begin(&ask);
    until_waiting(&home, "my/slots", 1);
    let socket = daemon.socket.clone();
    daemon.kill();
    let state = home.path.join("state");
    assert!(socket.exists() && state.join("daemon.json").exists(), "it could not clear up");
    home.run(["down"]).failed(69, &["no daemon runs"]);
    assert_eq!(home.status("my/slots")["leases"][0]["id"], id.as_str(), "the lease lives");

    let daemon = Daemon::up(&home);
    assert_eq!(daemon.pool("my/slots")["in_flight"], 1);
    let mut back = daemon.unix();
    back.start_json("/v1/leases", &ask);
    daemon.settle(&id, "heartbeat").ok(200);
    daemon.settle(&id, "commit").ok(200);
    daemon.settle(&id, "commit").problem(410, "lease_gone");
    let id = lease(&back.answer());
    daemon.settle(&id, "commit").ok(200);
    let status = home.status("my/slots");
    assert_eq!((&status["in_flight"], &status["waiting"]), (&json!(0), &json!(0)));
}

#[test]
fn others_go_on_while_the_daemon_dies_and_comes_back() {
    let home = Home::new();
    let pool = library(&home).pool("my/api").unwrap();
    home.run(["reserve", "my/api", "--limit", "requests=100000/h", "--ttl", "1ms"]).printed();
    let calls = AtomicU64::new(0);
    let done = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let (done, calls) = (&done, &calls);
        scope.spawn(move || {
            while done.load(Ordering::Relaxed) == 0 {
                pool.reserve(Request::by("library"))
                    .blocking()
                    .unwrap()
                    .commit([])
                    .blocking()
                    .unwrap();
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..3 {
            let daemon = Daemon::up(&home);
            let before = calls.load(Ordering::Relaxed);
            let mut client = daemon.unix();
            for _ in 0..20 {
                let id = lease(&client.post("/v1/leases", &json!({"pool": "my/api"})));
                client.post(&format!("/v1/leases/{id}/commit"), &json!({})).ok(200);
            }
            daemon.kill();
            let after = calls.load(Ordering::Relaxed);
            until("the library goes on", || {
                (calls.load(Ordering::Relaxed) > after.max(before)).then_some(())
            });
        }
        done.store(1, Ordering::Relaxed);
    });
    let status = home.status("my/api");
    assert_eq!((&status["in_flight"], &status["waiting"]), (&json!(0), &json!(0)), "{status}");
    let all = calls.load(Ordering::Relaxed) + 61;
    assert_eq!(status["limits"][0]["used"], all, "every call is charged once");
}

/// Asks over and over until the window is full. Answers how often it was admitted.
fn drain_by_http(socket: &Path) -> u64 {
    let mut client = Client::unix(socket);
    let mut admitted = 0;
    loop {
        let answer = client.post("/v1/leases", &json!({"pool": "my/api", "timeout_ms": 0}));
        if answer.status == 429 {
            return admitted;
        }
        admitted += 1;
        let path = format!("/v1/leases/{}/commit", lease(&answer));
        client.post(&path, &json!({})).ok(200);
    }
}

#[test]
fn a_window_is_never_exceeded_by_all_faces_together() {
    const WHOLE: u64 = 120;
    let home = Home::new();
    let limit = format!("requests = \"{WHOLE}/h\"");
    let file = format!("version = 1\n[pool.\"my/api\"]\n{limit}\nmargin = 0\n");
    home.configure(&file);
    let daemon = Daemon::up(&home);
    // The library here knows no file: the daemon has told the pool.
    until("the pool is told", || (daemon.pool("my/api")["limits"] != json!([])).then_some(()));
    let admitted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (home, daemon, admitted) = (&home, &daemon, &admitted);
        for _ in 0..2 {
            scope.spawn(|| admitted.fetch_add(drain_by_http(&daemon.socket), Ordering::Relaxed));
            scope.spawn(|| {
                loop {
                    let ran = home.run(["reserve", "my/api", "--timeout", "0"]);
                    if ran.code == Some(75) {
                        break;
                    }
                    home.run(["commit", ran.printed()]).printed();
                    admitted.fetch_add(1, Ordering::Relaxed);
                }
            });
            scope.spawn(|| {
                let pool = library(home).pool("my/api").unwrap();
                let request = Request::by("library").timeout(std::time::Duration::ZERO);
                loop {
                    match pool.reserve(request.clone()).blocking() {
                        Ok(lease) => lease.commit([]).blocking().unwrap(),
                        Err(Error::Refused(_)) => break,
                        Err(error) => panic!("{error}"),
                    }
                    admitted.fetch_add(1, Ordering::Relaxed);
                    // Others get their turn, too.
                    std::thread::yield_now();
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), WHOLE, "all of it, and not one more");
    let status = home.status("my/api");
    assert_eq!(status["limits"][0]["used"], WHOLE);
    assert_eq!((&status["in_flight"], &status["waiting"]), (&json!(0), &json!(0)));
}

/// While a call is in flight its file is there: nobody ever sees more than there may be.
struct Room<'a> {
    directory: &'a Path,
    most: usize,
}

impl Room<'_> {
    fn enter(&self, name: &str) {
        let file = self.directory.join(name);
        std::fs::write(&file, "").unwrap();
        let there = std::fs::read_dir(self.directory).unwrap().count();
        assert!(there <= self.most, "{there} at once");
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn parallel_is_never_exceeded_by_all_faces_together() {
    const MOST: usize = 2;
    const ROUNDS: usize = 15;
    let home = Home::new();
    home.configure(&format!("version = 1\n[pool.\"my/slots\"]\nparallel = {MOST}\n"));
    let daemon = Daemon::up(&home);
    until("the pool is told", || (daemon.pool("my/slots")["limits"] != json!([])).then_some(()));
    let directory = home.path.join("held");
    std::fs::create_dir(&directory).unwrap();
    let room = Room { directory: &directory, most: MOST };
    std::thread::scope(|scope| {
        let (home, daemon, room) = (&home, &daemon, &room);
        for worker in 0..2 {
            scope.spawn(move || {
                let mut client = daemon.tcp();
                for _ in 0..ROUNDS {
                    let id = lease(&client.post("/v1/leases", &wants_the_slot("http")));
                    room.enter(&format!("http-{worker}"));
                    client.post(&format!("/v1/leases/{id}/commit"), &json!({})).ok(200);
                }
            });
            scope.spawn(move || {
                let pool = library(home).pool("my/slots").unwrap();
                for _ in 0..ROUNDS {
                    let lease = pool.reserve(Request::by("library")).blocking().unwrap();
                    room.enter(&format!("library-{worker}"));
                    lease.commit([]).blocking().unwrap();
                }
            });
            scope.spawn(move || {
                let file = room.directory.join(format!("cli-{worker}"));
                let (file, all) = (file.display(), room.directory.display());
                let script = format!("touch {file} && ls {all} | wc -l && rm {file}");
                for _ in 0..ROUNDS {
                    let ran = home.run(["hold", "my/slots", "--", "sh", "-c", &script]);
                    assert!(ran.printed().trim().parse::<usize>().unwrap() <= MOST, "{ran:?}");
                }
            });
        }
    });
    let status = home.status("my/slots");
    assert_eq!((&status["in_flight"], &status["waiting"]), (&json!(0), &json!(0)));
    let all: Vec<String> =
        (0..MOST).map(|_| lease(&daemon.reserve(&wants_the_slot("x")))).collect();
    assert_eq!(all.len(), MOST, "capacity is whole");
}

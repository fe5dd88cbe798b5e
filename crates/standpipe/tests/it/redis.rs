//! The library on a real server: the taps of two processes, tasks, and a server that is
//! unavailable.
//!
//! Taps of one process on one address are one session; a proxy before the server has another
//! address.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Hand, at_once, file, patient, until};
use standpipe::{Pool, Standpipe, StoreUrl, Unit};
use standpipe_servers::{Gate, Server};

const FILE: &str = "[pool.\"t/api\"]\nparallel = 4\nrequests = \"100/h\"\nmargin = 0\n\
                    on_store_failure = \"share\"\n[pool.\"t/wide\"]\nparallel = 100\n";

/// A state directory of its own, not made yet.
fn home() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("standpipe-tap-{}-{number}", std::process::id()))
}

pub(crate) struct Tap {
    tap: Standpipe,
    home: PathBuf,
}

impl Tap {
    pub(crate) fn new(url: &str) -> Self {
        Self::at_home(url, home())
    }

    fn at_home(url: &str, home: PathBuf) -> Self {
        let url: StoreUrl = url.parse().unwrap();
        let builder = Standpipe::builder().settings(file(FILE, 1)).store(url).home(&home);
        Self { tap: builder.agent("tests").open().unwrap(), home }
    }

    pub(crate) fn pool(&self) -> Pool {
        self.tap.pool("t/api").unwrap()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

#[test]
fn a_waiter_is_served_by_a_commit_elsewhere() {
    let server = Server::start();
    let gate = Gate::before(&server);
    let (one, other) = (Tap::new(&server.url()), Tap::new(&gate.url()));
    let held: Vec<_> = (0..4).map(|_| one.pool().reserve(at_once()).blocking().unwrap()).collect();
    let theirs = other.pool();
    let mut task = Hand::new(theirs.reserve(patient()));
    assert!(task.poll().is_pending());
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| theirs.reserve(patient()).blocking().unwrap());
        until("both wait", || one.pool().status().blocking().unwrap().tickets.len() == 2);
        drop(held);
        task.run().unwrap().cancel().blocking().unwrap();
        blocked.join().unwrap().cancel().blocking().unwrap();
    });
    until("all is settled", || one.pool().status().blocking().unwrap().leases.is_empty());
}

#[test]
fn tasks_cost_the_server_few_calls() {
    let server = Server::start();
    let tap = Tap::new(&server.url());
    let pool = tap.tap.pool("t/wide").unwrap();
    pool.reserve(at_once()).blocking().unwrap().cancel().blocking().unwrap();
    server.run(&["CONFIG", "RESETSTAT"]);
    // While the server is stopped the tasks gather; one step serves all of them.
    server.pause();
    let mut tasks: Vec<_> = (0..60).map(|_| Hand::new(pool.reserve(patient()))).collect();
    for task in &mut tasks {
        assert!(task.poll().is_pending(), "no task blocks");
    }
    server.resume();
    let granted: Vec<_> = tasks.into_iter().map(|task| task.run().unwrap()).collect();
    let stats = server.run(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.trim().strip_prefix("cmdstat_evalsha:calls="));
    let calls: u32 = line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap();
    assert!(calls <= 20, "{calls} calls for 60 tasks");
    for lease in granted {
        Hand::new(lease.commit([(Unit::Requests, 1)])).run().unwrap();
    }
    assert_eq!(pool.status().blocking().unwrap().leases, []);
}

#[test]
fn a_process_without_the_store_admits_its_share_and_hands_it_over() {
    let server = Server::start();
    let gate = Gate::before(&server);
    let (one, other) = (Tap::new(&gate.url()), Tap::new(&server.url()));
    let (pool, theirs) = (one.pool(), other.pool());
    theirs.reserve(at_once()).blocking().unwrap().cancel().blocking().unwrap();
    pool.reserve(at_once()).blocking().unwrap().cancel().blocking().unwrap();
    gate.cut();
    let own: Vec<_> = (0..2).map(|_| pool.reserve(patient()).blocking().unwrap()).collect();
    assert!(own.iter().all(standpipe::Lease::is_local), "half of four, by this process alone");
    assert!(pool.reserve(at_once()).blocking().is_err(), "and no more");
    gate.heal();
    until("the store decides again", || {
        pool.status().blocking().is_ok_and(|status| status.cut_off.is_none())
    });
    assert_eq!(theirs.status().blocking().unwrap().leases.len(), 2, "handed over");
    let rest: Vec<_> = (0..2).map(|_| theirs.reserve(at_once()).blocking().unwrap()).collect();
    assert!(theirs.reserve(at_once()).blocking().is_err(), "together they are four");
    drop((own, rest));
    until("all is settled", || theirs.status().blocking().unwrap().leases.is_empty());
    let journal = one.tap.journal();
    for text in ["the store is unavailable; each of 2", "the store is available again"] {
        let found = || journal.events(None, None).any(|event| format!("{event:?}").contains(text));
        until(text, found);
    }
}

/// How many scripts the server failed, for example because they write.
fn failed_scripts(server: &Server) -> u64 {
    let stats = server.run(&["INFO", "commandstats"]);
    let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:"));
    let count = line.and_then(|line| line.split("failed_calls=").nth(1)?.trim().parse().ok());
    count.unwrap_or(0)
}

#[test]
fn a_server_without_memory_grants_one_share() {
    let server = Server::start();
    refuses_writes(
        &server,
        &["CONFIG", "SET", "maxmemory", "1"],
        &["CONFIG", "SET", "maxmemory", "0"],
    );
}

#[test]
fn a_server_without_its_replicas_grants_one_share() {
    let server = Server::start();
    refuses_writes(
        &server,
        &["CONFIG", "SET", "min-replicas-to-write", "1"],
        &["CONFIG", "SET", "min-replicas-to-write", "0"],
    );
}

#[test]
fn a_server_that_became_a_replica_grants_one_share() {
    let server = Server::start();
    refuses_writes(&server, &["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]);
}

/// The server answers reads and refuses writes from the first command on until the second one.
fn refuses_writes(server: &Server, refuses: &[&str], takes: &[&str]) {
    let gate = Gate::before(server);
    let (one, other) = (Tap::new(&gate.url()), Tap::new(&server.url()));
    let (pool, theirs) = (one.pool(), other.pool());
    theirs.reserve(at_once()).blocking().unwrap().cancel().blocking().unwrap();
    pool.reserve(at_once()).blocking().unwrap().cancel().blocking().unwrap();
    server.run(refuses);
    let mut own: Vec<_> = (0..2).map(|_| pool.reserve(patient()).blocking().unwrap()).collect();
    let before = failed_scripts(server);
    until("it tried to write again", || failed_scripts(server) >= before + 3);
    assert!(pool.status().blocking().unwrap().cut_off.is_some(), "a read does not end it");
    own.extend((0..50).filter_map(|_| pool.reserve(at_once()).blocking().ok()));
    assert_eq!(own.len(), 2, "half of four for each of two, and no second share");
    let settled = own.pop().unwrap();
    settled.commit([(Unit::Requests, 1)]).blocking().unwrap();
    server.run(takes);
    until("the store decides again", || {
        pool.status().blocking().is_ok_and(|status| status.cut_off.is_none())
    });
    let status = theirs.status().blocking().unwrap();
    assert_eq!(status.leases.len(), 1, "what is in flight is handed over");
    let used = status.limits.iter().find(|limit| limit.limit.contains("requests")).unwrap().used;
    assert_eq!(used, 2, "and what was used, once");
    drop(own);
    until("all is settled", || theirs.status().blocking().unwrap().leases.is_empty());
}

#[test]
fn a_tap_that_is_dropped_has_sent_everything() {
    let server = Server::start();
    let (one, other) = (Tap::new(&server.url()), Gate::before(&server));
    let pool = one.pool();
    drop(pool.reserve(at_once()).blocking().unwrap());
    drop((pool, one));
    let viewer = Tap::new(&other.url());
    assert_eq!(
        viewer.pool().status().blocking().unwrap().leases,
        [],
        "settled before the process went on"
    );
}

#[test]
fn a_state_directory_that_cannot_be_used_is_reported() {
    let (server, home) = (Server::start(), home());
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o777)).unwrap();
    let tap = Tap::at_home(&server.url(), home);
    tap.pool().reserve(at_once()).blocking().unwrap().commit([]).blocking().unwrap();
    let news = tap.tap.take_messages().unwrap();
    let [warning] = news.as_slice() else { panic!("{news:?}") };
    for part in ["mode 777", "chmod", "killed", "2 min"] {
        assert!(warning.contains(part), "no `{part}` in: {warning}");
    }
    assert_eq!(tap.tap.take_messages().unwrap(), [] as [String; 0], "once");
    let sound = Tap::new(&server.url());
    assert_eq!(sound.tap.take_messages().unwrap(), [] as [String; 0]);
}

//! The library on a real server: two processes' worth of taps, tasks, and a server that is away.
//!
//! Taps of one process on one address are one session; a gate before the server is another address.

#![expect(clippy::unwrap_used, reason = "helpers of tests assert, too")]

mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use standpipe::{Pool, Standpipe, StoreUrl, Unit};
use standpipe_servers::{Gate, Server};
use support::{Hand, at_once, file, patient, until};

const FILE: &str = "[pool.\"t/api\"]\nparallel = 4\nrequests = \"100/h\"\nheadroom = 1.0\n\
                    on_store_failure = \"share\"\n[pool.\"t/wide\"]\nparallel = 100\n";

struct Tap {
    tap: Standpipe,
    home: PathBuf,
}

impl Tap {
    fn new(url: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-tap-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let url: StoreUrl = url.parse().unwrap();
        let builder = Standpipe::builder().settings(file(FILE, 1)).store(url).home(&home);
        Self { tap: builder.agent("tests").open().unwrap(), home }
    }

    fn pool(&self) -> Pool {
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
        until("both wait", || one.pool().status().unwrap().tickets.len() == 2);
        drop(held);
        task.run().unwrap().cancel().unwrap();
        blocked.join().unwrap().cancel().unwrap();
    });
    until("all is settled", || one.pool().status().unwrap().leases.is_empty());
}

#[test]
fn tasks_cost_the_server_few_calls() {
    let server = Server::start();
    let tap = Tap::new(&server.url());
    let pool = tap.tap.pool("t/wide").unwrap();
    pool.reserve(at_once()).blocking().unwrap().cancel().unwrap();
    server.run(&["CONFIG", "RESETSTAT"]);
    // While the server is stopped they gather; it is asked once for all that did.
    server.pause();
    let mut tasks: Vec<_> = (0..60).map(|_| Hand::new(pool.reserve(patient()))).collect();
    for task in &mut tasks {
        assert!(task.poll().is_pending(), "nobody blocks");
    }
    server.resume();
    let granted: Vec<_> = tasks.into_iter().map(|task| task.run().unwrap()).collect();
    let stats = server.run(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.trim().strip_prefix("cmdstat_evalsha:calls="));
    let calls: u32 = line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap();
    assert!(calls <= 20, "{calls} calls for 60 tasks");
    for lease in granted {
        Hand::new(lease.commit_async([(Unit::Requests, 1)])).run().unwrap();
    }
    assert_eq!(pool.status().unwrap().leases, []);
}

#[test]
fn who_is_cut_off_admits_its_share_and_hands_it_over() {
    let server = Server::start();
    let gate = Gate::before(&server);
    let (one, other) = (Tap::new(&gate.url()), Tap::new(&server.url()));
    let (pool, theirs) = (one.pool(), other.pool());
    theirs.reserve(at_once()).blocking().unwrap().cancel().unwrap();
    pool.reserve(at_once()).blocking().unwrap().cancel().unwrap();
    gate.cut();
    let own: Vec<_> = (0..2).map(|_| pool.reserve(patient()).blocking().unwrap()).collect();
    assert!(own.iter().all(standpipe::Lease::is_local), "half of four, decided on here");
    assert!(pool.reserve(at_once()).blocking().is_err(), "and no more");
    gate.heal();
    until("it is back", || pool.status().is_ok_and(|status| status.cut_off.is_none()));
    assert_eq!(theirs.status().unwrap().leases.len(), 2, "handed over");
    let rest: Vec<_> = (0..2).map(|_| theirs.reserve(at_once()).blocking().unwrap()).collect();
    assert!(theirs.reserve(at_once()).blocking().is_err(), "together they are four");
    drop((own, rest));
    until("all is settled", || theirs.status().unwrap().leases.is_empty());
    let journal = one.tap.journal();
    for word in ["the store is away; each of 2", "the store is back"] {
        let said = || journal.events(None, None).any(|event| format!("{event:?}").contains(word));
        until(word, said);
    }
}

#[test]
fn a_tap_that_is_dropped_has_said_everything() {
    let server = Server::start();
    let (one, other) = (Tap::new(&server.url()), Gate::before(&server));
    let pool = one.pool();
    drop(pool.reserve(at_once()).blocking().unwrap());
    drop((pool, one));
    let looks = Tap::new(&other.url());
    assert_eq!(looks.pool().status().unwrap().leases, [], "settled before the process went on");
}

//! When keys expire: all of a pool at one moment, not before nothing in them counts any more, and
//! pushed on by use.

use standpipe_core::Span;
use standpipe_servers::{Options as ServerOptions, Server};
use standpipe_store::engine::Message;
use standpipe_store::{Log, Store};

use crate::support::{
    Scratch, beat, configure, insist, key, member, pool, requests, server_time, store, store_with,
    take_all, until,
};

const DAY: u64 = 86_400_000;
const PERIOD: Span = Span::secs(30 * 86_400);

/// When each of the four keys expires, in milliseconds.
fn ends(server: &Server) -> Vec<u64> {
    let parts = ["head", "log", "snapshot", "previous"];
    parts.map(|part| server.run(&["PEXPIRETIME", &key(part)]).parse().unwrap()).to_vec()
}

fn now(server: &Server) -> u64 {
    server_time(server) / 1_000
}

fn movable() -> Server {
    Server::start_with(ServerOptions { movable_clock: true, ..ServerOptions::default() })
}

#[test]
fn b14_b15_keys_expire_together_when_nothing_counts_and_use_pushes_them_on() {
    let server = movable();
    let store = store(&server.url());
    let mut member = member(&store);
    insist(&mut member, vec![configure(vec![requests(5, PERIOD)])]);
    for _ in 0..2 {
        insist(&mut member, vec![beat(); 100]);
        store.pool_log(&pool()).write_snapshot(&member.replica().snapshot()).unwrap();
    }
    let first = ends(&server);
    assert!(first.iter().all(|end| *end == first[0]), "one moment for all: {first:?}");
    let least = 8 * DAY + PERIOD.0 / 1_000;
    assert!(first[0] > now(&server) + least - DAY / 24, "{} ms", first[0] - now(&server));
    // Snapshots and what is let go of keep the moment; use after a while pushes it on.
    for days in [10, 20, 45] {
        server.set_clock(&format!("+{days}d"));
        let before = ends(&server);
        insist(&mut member, vec![beat(); 100]);
        let after = ends(&server);
        assert!(after[0] > before[0] + DAY, "pushed on after {days} days");
        assert!(after[0] > now(&server) + least * 7 / 8);
        store.pool_log(&pool()).write_snapshot(&member.replica().snapshot()).unwrap();
        let kept = ends(&server);
        assert!(kept.iter().all(|end| *end == after[0]), "one moment for all: {kept:?}");
    }
}

#[test]
fn b14_the_shortest_periods_expire_no_sooner() {
    let server = Server::start();
    let mut member = member(&store(&server.url()));
    insist(&mut member, vec![configure(vec![requests(1_000, Span::millis(1))])]);
    let left: u64 = server.run(&["PTTL", &key("head")]).parse().unwrap();
    assert!(left > 8 * DAY - DAY / 24, "{left} ms");
    assert_eq!(
        server.run(&["PEXPIRETIME", &key("head")]),
        server.run(&["PEXPIRETIME", &key("log")])
    );
}

#[test]
fn a_pool_that_expired_is_new_and_not_lost() {
    let (server, scratch) = (movable(), Scratch::new());
    let options = || standpipe_store_redis::Options {
        marker_dir: Some(scratch.0.clone()),
        ..standpipe_store_redis::Options::default()
    };
    let limits = || vec![configure(vec![requests(5, Span::secs(3_600))])];
    let before = store_with(&server.url(), options());
    let mut early = member(&before);
    insist(&mut early, limits());
    assert_eq!(take_all(&mut early, 9).len(), 5);
    drop(early);
    server.set_clock("+30d");
    until("the keys have expired", || server.run(&["EXISTS", &key("head"), &key("log")]) == "0");
    let after = store_with(&server.url(), options());
    assert_eq!(after.pools().unwrap(), Vec::new(), "an expired pool is not listed");
    let mut late = member(&after);
    insist(&mut late, limits());
    assert_eq!(take_all(&mut late, 9).len(), 5, "all of it is there");
    assert_eq!(after.take_messages(), Vec::<Message>::new());
}

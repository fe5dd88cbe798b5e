//! A split brain: two servers take writes for one pool. With the settings that prevent it the side
//! that is cut off admits nobody; without them each side admits the limit once.

use standpipe_core::Span;
use standpipe_servers::{Pair, Server};
use standpipe_store::Participant;
use standpipe_store_redis::{Options, RedisLog, RedisStore};

use crate::support::{
    HOUR, call, configure, failed, insist, member, requests, reserve, store, store_with, take_all,
    until, wait_for,
};

const LIMIT: usize = 20;
const BEFORE: usize = 8;

/// A pair in step, and a process on its master that has made some calls.
fn world(options: Options) -> (Pair, Participant<RedisLog>) {
    let pair = Pair::start();
    let mut process = member(&store_with(&pair.master.url(), options));
    insist(&mut process, vec![configure(vec![requests(LIMIT as u64, HOUR)])]);
    assert_eq!(take_all(&mut process, BEFORE).len(), BEFORE);
    pair.in_step();
    (pair, process)
}

/// The replica takes writes although its master lives. Answers who uses it.
fn promote(pair: &Pair) -> (RedisStore, Participant<RedisLog>) {
    pair.replica.run(&["REPLICAOF", "NO", "ONE"]);
    let store = store(&pair.replica.url());
    let process = member(&store);
    (store, process)
}

/// All that can be had on the other side, once its pause is over.
fn take_there((store, mut process): (RedisStore, Participant<RedisLog>)) -> usize {
    match wait_for(&mut process, &store, call(Span::secs(30))) {
        Some(_) => 1 + take_all(&mut process, 2 * LIMIT).len(),
        None => 0,
    }
}

fn refuses_writes(server: &Server) -> bool {
    server.try_run(&["SET", "probe", "1"]).is_err_and(|error| error.starts_with("NOREPLICAS"))
}

#[test]
fn with_min_replicas_to_write_a_master_that_is_cut_off_admits_nobody() {
    let (pair, mut cut_off) = world(Options::default());
    pair.master.run(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    pair.master.run(&["CONFIG", "SET", "min-replicas-max-lag", "1"]);
    pair.hold_back();
    until("the master refuses writes", || refuses_writes(&pair.master));
    let other_side = promote(&pair);
    let error = failed(cut_off.submit(vec![reserve()]));
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("`min-replicas-to-write`"), "{error}");
    let there = take_there(other_side);
    assert!(failed(cut_off.resend()).is_transient(), "nor later");
    assert_eq!(BEFORE + there, LIMIT, "all of it, once");
}

#[test]
fn with_wait_replicas_a_master_that_is_cut_off_admits_nobody_from_the_first_moment() {
    let (pair, mut cut_off) = world(Options { wait_replicas: 1, ..Options::default() });
    pair.hold_back();
    let error = failed(cut_off.submit(vec![reserve()]));
    assert!(error.is_transient(), "{error}");
    let there = take_there(promote(&pair));
    assert!(failed(cut_off.resend()).is_transient(), "nor later");
    assert_eq!(BEFORE + there, LIMIT, "all of it, once");
}

#[test]
fn without_such_settings_each_side_admits_the_limit_once_and_no_more() {
    let (pair, mut cut_off) = world(Options::default());
    pair.hold_back();
    let here = take_all(&mut cut_off, 2 * LIMIT).len();
    let there = take_there(promote(&pair));
    assert_eq!((BEFORE + here, BEFORE + there), (LIMIT, LIMIT));
}

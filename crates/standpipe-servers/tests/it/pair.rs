//! A master and its replica: what is lost in a failover is what was held back, no more.

use standpipe_servers::{Flavour, Options, Pair, Sentinel};

#[test]
fn a_replica_that_was_held_back_lacks_the_last_writes_after_a_failover() {
    let mut pair = Pair::start();
    pair.master.run(&["SET", "early", "1"]);
    pair.in_step();
    assert_eq!(pair.replica.run(&["GET", "early"]), "1");
    pair.hold_back();
    pair.master.run(&["SET", "late", "1"]);
    assert_eq!(pair.master.run(&["WAIT", "1", "100"]), "0", "the replica confirms nothing");
    pair.fail_over();
    assert_eq!(pair.replica.run(&["EXISTS", "early"]), "1");
    assert_eq!(pair.replica.run(&["EXISTS", "late"]), "0");
    assert_eq!(pair.replica.run(&["SET", "new", "1"]), "OK", "it serves");
    pair.master.start_again();
    assert_eq!(pair.master.run(&["EXISTS", "late"]), "0", "it kept nothing");
}

#[test]
fn a_replica_that_is_let_go_gets_what_it_missed() {
    let pair = Pair::start();
    pair.hold_back();
    pair.master.run(&["SET", "late", "1"]);
    assert_eq!(pair.replica.run(&["EXISTS", "late"]), "0");
    pair.let_go();
    pair.in_step();
    assert_eq!(pair.replica.run(&["EXISTS", "late"]), "1");
}

#[test]
fn sentinels_promote_the_replica() {
    let mut watched = Sentinel::start();
    let master = |watched: &Sentinel, index: usize| {
        watched.sentinels[index].run(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"])
    };
    assert_eq!(master(&watched, 0), format!("127.0.0.1\n{}", watched.master.port()));
    let url = watched.url();
    assert!(url.starts_with("redis+sentinel://127.0.0.1:") && url.ends_with("/mymaster"), "{url}");
    watched.master.run(&["SET", "key", "value"]);
    assert_eq!(watched.master.run(&["WAIT", "1", "10000"]), "1");
    watched.fail_over();
    for index in 0..3 {
        assert_eq!(master(&watched, index), format!("127.0.0.1\n{}", watched.replica.port()));
    }
    assert_eq!(watched.replica.run(&["GET", "key"]), "value");
    assert_eq!(watched.replica.run(&["SET", "key", "other"]), "OK");
}

#[test]
fn other_flavours_pair_too() {
    for flavour in [Flavour::Valkey, Flavour::Old] {
        let mut pair = Pair::start_with(&Options { flavour, ..Options::default() });
        pair.hold_back();
        pair.master.run(&["SET", "late", "1"]);
        pair.fail_over();
        assert_eq!(pair.replica.run(&["EXISTS", "late"]), "0");
    }
}

#[test]
fn sentinels_of_valkey_promote_too() {
    let flavour = Flavour::Valkey;
    let mut watched = Sentinel::start_with(&Options { flavour, ..Options::default() });
    watched.fail_over();
    assert_eq!(watched.replica.run(&["SET", "key", "value"]), "OK");
}

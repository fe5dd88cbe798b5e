//! Changes of server in quick succession: each one may have lost entries, so each one pauses the
//! pool until living processes have put back what they hold.

use std::time::Duration;

use standpipe::config::{Settings, StoreUrl};
use standpipe::{Error, Request, Standpipe};
use standpipe_core::{Decision, Found, PoolConfig, Reason, Span};
use standpipe_servers::{Gate, Options as ServerOptions, Pair, Server};

use crate::support::{
    Scratch, admitted, ask, beat, call, commit, configure, insist, member, parallel, pass, pool,
    read_anew, store, until, wait_for,
};

/// Longer than the pause after a change of server.
const AFTER: Span = Span::secs(3);

/// A server that follows the one behind the gate, in step with it.
fn follower(of: &Server, link: &Gate) -> Server {
    let options = ServerOptions { replica_of: Some(link.port()), ..ServerOptions::default() };
    let replica = Server::start_with(options);
    until("the replica is in step", || {
        let up = replica.info("master_link_status").is_some_and(|status| status == "up");
        up && replica.info("slave_repl_offset") == of.info("master_repl_offset")
    });
    replica
}

fn lead_over(gate: &Gate, to: &Server) {
    gate.lead_to(to);
    gate.cut();
    gate.heal();
}

#[test]
fn b58_a_second_failover_soon_after_the_first_leaves_a_holder_its_slot() {
    let mut pair = Pair::start();
    let gate = Gate::before(&pair.master);
    let (ours, theirs) = (store(&gate.url()), store(&gate.url()));
    let (mut holder, mut other) = (member(&ours), member(&theirs));
    for process in [&mut holder, &mut other] {
        insist(process, vec![configure(vec![parallel(1)])]);
    }
    pair.in_step();
    pair.fail_over();
    lead_over(&gate, &pair.replica);
    for process in [&mut holder, &mut other] {
        insist(process, vec![beat()]);
    }
    let link = Gate::before(&pair.replica);
    let third = follower(&pair.replica, &link);
    link.stall();
    let lease = wait_for(&mut holder, &ours, call(Span::secs(60))).unwrap();
    pair.replica.kill();
    third.run(&["REPLICAOF", "NO", "ONE"]);
    lead_over(&gate, &third);
    // It is the first to come, to a server that does not know of the lease.
    let decision = ask(&mut other);
    assert_eq!(admitted(&decision), None, "the slot is held");
    insist(&mut holder, vec![beat()]);
    assert_eq!(read_anew(&ours).state().find(lease), Found::Lease, "put back");
    pass(&third, AFTER);
    assert_eq!(admitted(&ask(&mut other)), None, "the slot is held after the pause, too");
    insist(&mut holder, vec![commit(lease)]);
    assert!(wait_for(&mut other, &theirs, call(Span::secs(60))).is_some());
}

#[test]
fn b58_each_restart_within_a_minute_pauses_the_pool() {
    for gap in [1, 2, 30, 59] {
        let options =
            ServerOptions { persistent: true, movable_clock: true, ..ServerOptions::default() };
        let mut server = Server::start_with(options);
        let store = store(&server.url());
        let (mut holder, mut other) = (member(&store), member(&store));
        insist(&mut holder, vec![configure(vec![parallel(1)])]);
        let lease = admitted(&ask(&mut holder)).unwrap();
        server.kill();
        server.start_again();
        insist(&mut other, vec![beat()]);
        let pause = read_anew(&store).state().facts().pause;
        assert!(pause.is_some(), "the first one pauses");
        server.set_clock(&format!("+{gap}s"));
        // The lease, the pause and the beat are lost.
        store.pool_log(&pool()).lose(3).unwrap();
        server.kill();
        server.start_again();
        match ask(&mut other) {
            Decision::Refuse(refusal) => assert_eq!(refusal.reason, Reason::Pause, "{gap} s apart"),
            other => panic!("{gap} s apart: {other:?}"),
        }
        insist(&mut holder, vec![beat()]);
        server.set_clock(&format!("+{}s", gap + 5));
        assert_eq!(admitted(&ask(&mut other)), None, "{gap} s apart: the slot is held");
        assert_eq!(read_anew(&store).state().find(lease), Found::Lease, "{gap} s apart");
    }
}

/// A process of the library, on an address of its own.
fn tap(url: String, scratch: &Scratch) -> Standpipe {
    let builder = Standpipe::builder().settings(Settings::default()).home(&scratch.0);
    builder.store(StoreUrl::Redis(url)).open().unwrap()
}

#[test]
fn b58_a_holder_that_does_nothing_puts_its_slot_back_after_each_of_two_restarts() {
    let options =
        ServerOptions { persistent: true, movable_clock: true, ..ServerOptions::default() };
    let mut server = Server::start_with(options);
    let (gate, ours, theirs) = (Gate::before(&server), Scratch::new(), Scratch::new());
    let (holder, other) = (tap(gate.url(), &ours), tap(server.url(), &theirs));
    let config = PoolConfig { lease_ttl: Span::secs(1), ..PoolConfig::new(vec![parallel(1)]) };
    let pool_of = |tap: &Standpipe| tap.pool(pool().as_str()).unwrap();
    pool_of(&holder).change(config).blocking().unwrap();
    let store = store(&server.url());
    let before = read_anew(&store).position().number;
    let lease = pool_of(&holder).reserve(Request::new()).blocking().unwrap();
    let at_once = || pool_of(&other).reserve(Request::new().timeout(Duration::ZERO)).blocking();
    for seconds in [10, 20] {
        // While its clock is behind, no time passes on the server: the pause does not end.
        server.set_clock("-1h");
        // The holder loses its connection first. Otherwise it could put its lease back before the
        // server ends, and the pool would pause only when somebody next appends.
        gate.cut();
        store.pool_log(&pool()).lose_after(before).unwrap();
        server.kill();
        server.start_again();
        until("the other process is refused", || match at_once() {
            Err(Error::Refused(refused)) => {
                assert_eq!(refused.reason, Reason::Pause, "it is the first to come");
                true
            }
            Err(Error::Store(_)) => false,
            answer => panic!("{answer:?}"),
        });
        gate.heal();
        until("the holder has put its lease back", || {
            read_anew(&store).state().facts().leases.len() == 1
        });
        server.set_clock(&format!("+{seconds}s"));
        let answer = at_once();
        assert!(matches!(answer, Err(Error::Refused(_))), "the slot is held: {answer:?}");
    }
    lease.commit([]).blocking().unwrap();
    at_once().unwrap().commit([]).blocking().unwrap();
}

//! A store that is unavailable: each pool does what its configuration states, and no usage is lost
//! when the store is available again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{Actor, Hand, World, assert_whole, at_once, file, patient, refused, until};
use standpipe::{Error, Pool, Request, Span, Store};

fn process(world: &World, limits: &str, mode: &str) -> Actor {
    let text = format!(
        "[pool.\"t/api\"]\n{limits}\nmargin = 0\nslack = 0\non_store_failure = \"{mode}\"\n"
    );
    world.process_with(file(&text, 1))
}

fn fail_store(process: &Actor) {
    process.store.unavailable.store(true, Ordering::SeqCst);
}

fn restore_store(process: &Actor, pool: &Pool) {
    process.store.unavailable.store(false, Ordering::SeqCst);
    process.store.interrupt();
    until("the store decides again", || {
        pool.status().blocking().is_ok_and(|status| status.cut_off.is_none())
    });
}

#[test]
fn with_share_each_admits_its_part_and_hands_it_over() {
    let world = World::new();
    let (one, other) =
        (process(&world, "parallel = 5", "share"), process(&world, "parallel = 5", "share"));
    let (pool, theirs) = (one.pool("t/api"), other.pool("t/api"));
    // Both count as alive.
    pool.reserve(at_once()).blocking().unwrap().commit([]).blocking().unwrap();
    theirs.reserve(at_once()).blocking().unwrap().commit([]).blocking().unwrap();
    pool.status().blocking().unwrap();
    fail_store(&one);
    let first = pool.reserve(patient()).blocking().unwrap();
    let second = pool.reserve(patient()).blocking().unwrap();
    assert!(first.is_local() && second.is_local(), "granted by this process alone");
    let status = pool.status().blocking().unwrap();
    let offline = status.cut_off.unwrap();
    assert_eq!((offline.mode.as_str(), offline.among), ("share", 2));
    let limit = &status.limits[0];
    assert_eq!((limit.effective, limit.left), (2, 0), "two of five for each");
    let no = refused(pool.reserve(at_once()).blocking());
    assert_eq!(no.reason, standpipe::Reason::Limit);
    // A process that still has the store uses the whole limit: never more than the limit and a
    // share.
    let others: Vec<_> = (0..5).map(|_| theirs.reserve(at_once()).blocking().unwrap()).collect();
    assert!(theirs.reserve(at_once()).blocking().is_err());
    second.commit([]).blocking().unwrap();
    restore_store(&one, &pool);
    assert_eq!(
        theirs.status().blocking().unwrap().leases.len(),
        6,
        "leases in flight are restored, above the limit"
    );
    assert!(theirs.reserve(at_once()).blocking().is_err());
    first.commit([]).blocking().unwrap();
    drop(others);
    assert_whole(&pool);
    assert!(!pool.reserve(at_once()).blocking().unwrap().is_local());
}

#[test]
fn usage_during_an_outage_counts_when_it_is_over() {
    let world = World::new();
    let actor = process(&world, "requests = \"10/h\"", "share");
    let pool = actor.pool("t/api");
    pool.reserve(at_once()).blocking().unwrap().commit([]).blocking().unwrap();
    fail_store(&actor);
    for _ in 0..4 {
        pool.reserve(patient()).blocking().unwrap().commit([]).blocking().unwrap();
    }
    pool.reserve(patient()).blocking().unwrap().cancel().blocking().unwrap();
    restore_store(&actor, &pool);
    assert_eq!(
        pool.status().blocking().unwrap().limits[0].used,
        5,
        "one before the outage and four during it"
    );
}

#[test]
fn with_open_everything_is_admitted_and_counted_afterwards() {
    let world = World::new();
    let actor = process(&world, "requests = \"3/h\"", "open");
    let pool = actor.pool("t/api");
    pool.reserve(at_once()).blocking().unwrap().commit([]).blocking().unwrap();
    fail_store(&actor);
    for call in 0..5 {
        let lease = pool.reserve(patient()).blocking().unwrap();
        assert_eq!(lease.instead_of().is_some(), call >= 3, "the refusal it replaced");
        lease.commit([]).blocking().unwrap();
    }
    assert_eq!(pool.status().blocking().unwrap().cut_off.unwrap().mode.as_str(), "open");
    restore_store(&actor, &pool);
    assert_eq!(pool.status().blocking().unwrap().limits[0].used, 6, "above the limit: debt");
    assert!(pool.reserve(at_once()).blocking().is_err());
}

#[test]
fn a_caller_that_waits_for_a_share_is_served_by_the_store_after_the_outage() {
    let world = World::new();
    let actor = process(&world, "parallel = 2", "share");
    let other = process(&world, "parallel = 2", "share");
    let (pool, theirs) = (actor.pool("t/api"), other.pool("t/api"));
    theirs.reserve(at_once()).blocking().unwrap().commit([]).blocking().unwrap();
    pool.reserve(at_once()).blocking().unwrap().commit([]).blocking().unwrap();
    fail_store(&actor);
    let held = pool.reserve(patient()).blocking().unwrap();
    let mut waiter = Hand::new(pool.reserve(patient()));
    assert!(waiter.poll().is_pending());
    until("it waits here", || {
        pool.status().blocking().is_ok_and(|status| status.tickets.len() == 1)
    });
    restore_store(&actor, &pool);
    let lease = waiter.run().unwrap();
    assert!(!lease.is_local(), "the store has room for both");
    drop((held, lease));
    assert_whole(&pool);
}

#[test]
fn a_call_larger_than_a_share_waits_for_the_store() {
    let world = World::new();
    let actor = process(&world, "tokens = \"100/h\"", "share");
    let other = process(&world, "tokens = \"100/h\"", "share");
    let large = || Request::by("large").unit("tokens", 60);
    let (pool, theirs) = (actor.pool("t/api"), other.pool("t/api"));
    theirs.reserve(at_once().unit("tokens", 1)).blocking().unwrap().cancel().blocking().unwrap();
    pool.reserve(at_once().unit("tokens", 1)).blocking().unwrap().cancel().blocking().unwrap();
    fail_store(&actor);
    let error = pool.reserve(large().timeout(Duration::from_millis(1_500))).blocking();
    assert!(matches!(error, Err(Error::Store(_))), "{error:?}");
    let mut waiter = Hand::new(pool.reserve(large()));
    assert!(waiter.poll().is_pending());
    actor.store.unavailable.store(false, Ordering::SeqCst);
    waiter.run().unwrap().cancel().blocking().unwrap();
    assert_whole(&pool);
}

#[test]
fn a_process_that_never_reached_its_store_waits_for_it() {
    let world = World::new();
    let actor = process(&world, "parallel = 2", "share");
    fail_store(&actor);
    let pool = actor.pool("t/api");
    let brief = Request::by("brief").timeout(Duration::from_millis(1_200));
    let error = pool.reserve(brief).blocking();
    assert!(matches!(error, Err(Error::Store(_))), "the number of sharers is unknown: {error:?}");
}

#[test]
fn a_process_with_a_share_pool_sends_heartbeats_although_it_is_idle() {
    let world = World::new();
    let actor = process(&world, "parallel = 2", "share");
    let pool = actor.pool("t/api");
    pool.reserve(at_once()).blocking().unwrap().cancel().blocking().unwrap();
    for _ in 0..3 {
        let before = actor.store.appends.load(Ordering::SeqCst);
        world.passes(Span::secs(31), &[&actor]);
        until("it beats", || actor.store.appends.load(Ordering::SeqCst) > before);
    }
}

#[test]
fn a_lease_that_the_store_granted_is_settled_without_it() {
    for mode in ["share", "open"] {
        let world = World::new();
        let (actor, other) =
            (process(&world, "parallel = 3", mode), process(&world, "parallel = 3", mode));
        let (pool, theirs) = (actor.pool("t/api"), other.pool("t/api"));
        let leases = [(); 3].map(|()| pool.reserve(at_once()).blocking().unwrap());
        fail_store(&actor);
        let [first, second, third] = leases;
        first.commit([]).blocking().unwrap();
        second.progress([]).blocking().unwrap();
        let id = third.keep(Duration::from_secs(60)).blocking().unwrap();
        let third = actor.tap.lease(&id).unwrap();
        third.heartbeat().blocking().unwrap();
        third.cancel().blocking().unwrap();
        assert_eq!(pool.status().blocking().unwrap().leases.len(), 1, "{mode}");
        restore_store(&actor, &pool);
        until("the store has it", || theirs.status().blocking().unwrap().leases.len() == 1);
        second.commit([]).blocking().unwrap();
        assert_whole(&theirs);
    }
}

#[test]
fn a_lease_of_an_outage_is_settled_by_its_id_before_and_after_its_end() {
    let world = World::new();
    let actor = process(&world, "parallel = 3\nrequests = \"9/h\"", "share");
    let pool = actor.pool("t/api");
    pool.reserve(at_once()).blocking().unwrap().cancel().blocking().unwrap();
    fail_store(&actor);
    let long = || patient().ttl(Duration::from_secs(600));
    let ids: Vec<_> = (0..3).map(|_| pool.reserve(long()).blocking().unwrap().into_id()).collect();
    let handle = |at: usize| actor.tap.lease(&ids[at]).unwrap();
    handle(0).commit([]).blocking().unwrap();
    assert!(matches!(handle(0).commit([]).blocking(), Err(Error::LeaseGone { .. })));
    handle(1).heartbeat().blocking().unwrap();
    handle(1).cancel().blocking().unwrap();
    restore_store(&actor, &pool);
    assert_eq!(pool.status().blocking().unwrap().leases.len(), 1);
    handle(2).commit([]).blocking().unwrap();
    let status = pool.status().blocking().unwrap();
    assert_eq!(status.leases, []);
    let used = status.limits.iter().find(|limit| limit.limit.contains("requests")).unwrap().used;
    assert_eq!(used, 2);
}

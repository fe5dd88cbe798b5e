//! A pool whose store does not answer delays its own callers and no others.

use std::sync::atomic::Ordering;
use std::time::Duration;

use standpipe::{Error, Request};

use crate::support::{Hand, World, assert_whole, at_once, parallel, patient, until};

/// A task on a pool that another process keeps locked is not the executor's problem.
#[test]
fn b93_a_locked_pool_blocks_no_executor_and_no_other_pool() {
    for remote in [false, true] {
        let world = World::new();
        let process = world.process();
        process.store.remote.store(remote, Ordering::SeqCst);
        let held = process.limited("t/held", vec![parallel(1)]);
        let free = process.limited("t/free", vec![parallel(1)]);
        let lease = held.reserve(patient()).blocking().unwrap();
        let on_free = free.reserve(patient()).blocking().unwrap();
        process.store.held.set(true);
        // Each of these returns although the lock is not released.
        let mut reserve = Hand::new(held.reserve(patient()));
        assert!(reserve.poll().is_pending());
        let mut commit = Hand::new(lease.commit([]));
        assert!(commit.poll().is_pending());
        let mut status = Hand::new(held.status());
        assert!(status.poll().is_pending());
        drop(Hand::new(held.reserve(patient())));
        // The other pool goes on, with what its waiters need of the maintenance thread.
        let waiter = Hand::new(free.reserve(patient()));
        Hand::new(on_free.commit([])).run().unwrap();
        let served = waiter.run().unwrap();
        Hand::new(free.status()).run().unwrap();
        Hand::new(served.commit([])).run().unwrap();
        process.store.held.set(false);
        commit.run().unwrap();
        status.run().unwrap();
        reserve.run().unwrap().cancel().blocking().unwrap();
        assert_whole(&held);
    }
}

/// A dropped lease or future does not wait for the lock either.
#[test]
fn b93_dropping_on_a_locked_pool_returns_and_gives_back_later() {
    let world = World::new();
    let process = world.process();
    let held = process.limited("t/held", vec![parallel(2)]);
    let lease = held.reserve(patient()).blocking().unwrap();
    let _second = held.reserve(patient()).blocking().unwrap();
    let mut waits = Hand::new(held.reserve(patient()));
    assert!(waits.poll().is_pending());
    process.store.held.set(true);
    drop(lease);
    drop(waits);
    process.store.held.set(false);
    until("both are given back", || {
        let status = held.status().blocking().unwrap();
        (status.in_flight, status.waiting) == (1, 0)
    });
}

/// Each caller that tried by itself would wait for one timeout after the other.
#[test]
fn b94_callers_behind_a_failing_step_share_its_failure() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(100)]);
    let leases: Vec<_> = (0..20).map(|_| pool.reserve(patient()).blocking().unwrap()).collect();
    process.store.slow.set(true);
    let before = process.store.appends.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        let commits: Vec<_> = leases
            .into_iter()
            .map(|lease| scope.spawn(move || lease.commit([]).blocking()))
            .collect();
        until("one is at the store", || process.store.slow.count() == 1);
        // Its answer is lost; from then on nothing gets through.
        process.store.faults.push(standpipe_store::fault_injection::Fault::LoseAnswer);
        process.store.unavailable.store(true, Ordering::SeqCst);
        process.store.slow.set(false);
        for commit in commits {
            assert!(matches!(commit.join().unwrap(), Err(Error::Store(_)) | Ok(())));
        }
    });
    assert_eq!(process.store.appends.load(Ordering::SeqCst), before + 1);
    process.store.unavailable.store(false, Ordering::SeqCst);
    until("the commits are sent later", || pool.status().blocking().unwrap().in_flight == 0);
}

/// A task that arrives during a step that fails does not wait for another timeout.
#[test]
fn b94_a_task_behind_a_failing_step_shares_its_failure() {
    let world = World::new();
    let process = world.process();
    process.store.remote.store(true, Ordering::SeqCst);
    let pool = process.limited("t/slots", vec![parallel(2)]);
    let lease = pool.reserve(patient()).blocking().unwrap();
    process.store.slow.set(true);
    let mut commit = Hand::new(lease.commit([]));
    assert!(commit.poll().is_pending());
    until("the commit is at the store", || process.store.slow.count() == 1);
    let mut reserve = Hand::new(pool.reserve(at_once()));
    assert!(reserve.poll().is_pending());
    process.store.faults.push(standpipe_store::fault_injection::Fault::LoseAnswer);
    process.store.slow.set(false);
    let shared = reserve.run();
    assert!(matches!(shared, Err(Error::Store(_))), "an attempt of its own succeeds: {shared:?}");
    commit.run().unwrap();
    assert_whole(&pool);
}

#[test]
fn b95_a_known_pool_is_shown_with_its_age_while_the_store_is_unavailable() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(2)]);
    let _lease = pool.reserve(at_once()).blocking().unwrap();
    assert!(pool.status().blocking().unwrap().unavailable.is_none());
    process.store.unavailable.store(true, Ordering::SeqCst);
    let status = pool.status().blocking().unwrap();
    assert_eq!(status.in_flight, 1);
    let unavailable = status.unavailable.expect("the store did not answer");
    assert!(unavailable.detail.contains("on purpose"), "{}", unavailable.detail);
    let snapshot = process.tap.snapshot(&[pool]).blocking().unwrap();
    assert_eq!((snapshot.pools.len(), snapshot.unreadable.len()), (1, 0));
    let unknown = process.pool("t/never-read").status().blocking();
    assert!(matches!(unknown, Err(Error::Store(_))), "{unknown:?}");
}

/// The limits of a request go with it.
#[test]
fn limits_and_reserve_are_one_append() {
    let world = World::new();
    let process = world.process();
    let pool = process.pool("t/one-step");
    let request = Request::by("blog").limits([parallel(1)]).timeout(Duration::ZERO);
    let lease = pool.reserve(request.clone()).blocking().unwrap();
    assert_eq!(process.store.appends.load(Ordering::SeqCst), 1);
    assert_eq!(lease.limits_in_force(), Some(true));
    assert!(pool.reserve(request).blocking().is_err(), "they count");
    // One that may wait does not overtake its limits either.
    let patient = patient().limits([parallel(1)]);
    drop(process.pool("t/patient").reserve(patient).blocking().unwrap());
    let invalid = Request::by("blog").limits([parallel(0)]);
    let error = pool.reserve(invalid).blocking().unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
}

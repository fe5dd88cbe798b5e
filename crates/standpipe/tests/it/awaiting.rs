//! Tasks on a store across a network: the pool's worker takes the steps for all of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};

use crate::support::{
    Actor, Hand, Stuck, World, assert_whole, at_once, parallel, patient, per_minute, until,
};
use standpipe::{Error, Pool, Request, Store, Unit};
use standpipe_store::Liveness;

fn across_a_network(world: &World) -> Actor {
    let process = world.process();
    process.store.remote.store(true, Ordering::SeqCst);
    process
}

#[test]
fn a_crowd_that_awaits_costs_the_store_few_calls() {
    let world = World::new();
    let process = across_a_network(&world);
    let pool = process.limited("t/slots", vec![parallel(500)]);
    let before = process.store.appends.load(Ordering::SeqCst);
    process.store.slow.set(true);
    let mut first = Hand::new(pool.reserve(patient()));
    assert!(first.poll().is_pending());
    until("the worker is at the store", || process.store.slow.count() == 1);
    let mut crowd: Vec<_> = (0..400).map(|_| Hand::new(pool.reserve(patient()))).collect();
    for task in &mut crowd {
        assert!(task.poll().is_pending(), "no task blocks");
    }
    process.store.slow.set(false);
    let leases: Vec<_> = crowd.into_iter().map(|task| task.run().unwrap()).collect();
    let first = first.run().unwrap();
    let calls = process.store.appends.load(Ordering::SeqCst) - before;
    assert!(calls <= 4, "{calls} calls for 401 reserves");
    // The same when they settle.
    process.store.slow.set(true);
    let mut last = Hand::new(first.commit([]));
    assert!(last.poll().is_pending());
    until("the worker is at the store", || process.store.slow.count() == 1);
    let mut settling: Vec<_> =
        leases.into_iter().map(|lease| Hand::new(lease.commit([]))).collect();
    for task in &mut settling {
        assert!(task.poll().is_pending(), "no task blocks");
    }
    process.store.slow.set(false);
    for task in settling {
        task.run().unwrap();
    }
    last.run().unwrap();
    let calls = process.store.appends.load(Ordering::SeqCst) - before;
    assert!(calls <= 8, "{calls} calls for 401 reserves and 401 commits");
    assert_whole(&pool);
}

#[test]
fn a_task_that_waits_is_served_when_its_turn_comes() {
    let world = World::new();
    let process = across_a_network(&world);
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let held = pool.reserve(at_once()).blocking().unwrap();
    let mut waiter = Hand::new(pool.reserve(patient()));
    assert!(waiter.poll().is_pending());
    until("it has a ticket", || pool.status().blocking().unwrap().tickets.len() == 1);
    held.commit([]).blocking().unwrap();
    waiter.run().unwrap().commit([]).blocking().unwrap();
    assert_whole(&pool);
}

#[test]
fn a_dropped_task_leaves_nothing_whether_it_waits_or_was_granted() {
    let world = World::new();
    let process = across_a_network(&world);
    let pool = process.limited("t/slots", vec![parallel(1), per_minute(Unit::Requests, 9)]);
    let mut granted = Hand::new(pool.reserve(patient()));
    // The worker must not answer within this poll.
    process.store.slow.set(true);
    assert!(granted.poll().is_pending());
    process.store.slow.set(false);
    until("it is granted", || pool.status().blocking().unwrap().leases.len() == 1);
    let mut waits = Hand::new(pool.reserve(patient()));
    assert!(waits.poll().is_pending());
    until("it has a ticket", || pool.status().blocking().unwrap().tickets.len() == 1);
    drop(waits);
    until("its ticket is gone", || pool.status().blocking().unwrap().tickets.is_empty());
    drop(granted);
    until("its lease is gone", || pool.status().blocking().unwrap().leases.is_empty());
    assert_whole(&pool);
}

#[test]
fn refusals_and_errors_reach_a_task() {
    let world = World::new();
    let process = across_a_network(&world);
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let held = pool.reserve(at_once()).blocking().unwrap();
    let no = crate::support::refused(Hand::new(pool.reserve(at_once())).run());
    assert_eq!(no.reason, standpipe::Reason::Limit);
    let id = held.id().clone();
    process.tap.lease(&id).unwrap().cancel().blocking().unwrap();
    let gone = Hand::new(held.commit([])).run().unwrap_err();
    assert!(matches!(gone, Error::LeaseGone { .. }), "{gone}");
    process.store.unavailable.store(true, Ordering::SeqCst);
    let brief = Request::by("brief").timeout(std::time::Duration::from_millis(30));
    let error = Hand::new(pool.reserve(brief)).run().unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
    process.store.unavailable.store(false, Ordering::SeqCst);
    assert_whole(&pool);
}

#[test]
fn a_dropped_lease_is_settled_without_blocking() {
    let world = World::new();
    let process = across_a_network(&world);
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let lease = pool.reserve(at_once()).blocking().unwrap();
    process.store.slow.set(true);
    drop(lease);
    until("the worker is at the store", || process.store.slow.count() == 1);
    process.store.slow.set(false);
    until("it is settled", || pool.status().blocking().unwrap().leases.is_empty());
}

/// A waker that does not return while it is stuck.
struct SlowWaker(Arc<Stuck>);

impl Wake for SlowWaker {
    fn wake(self: Arc<Self>) {
        self.0.pass();
    }
}

/// Polls until it is ready, and returns its output while the thread that woke it has not yet
/// returned from that.
fn polled<T>(store: &Stuck, woken: &Arc<Stuck>, future: impl Future<Output = T>) -> T {
    let mut future = Box::pin(future);
    let waker = Waker::from(Arc::new(SlowWaker(Arc::clone(woken))));
    let mut context = Context::from_waker(&waker);
    store.set(true);
    woken.set(true);
    assert!(future.as_mut().poll(&mut context).is_pending());
    store.set(false);
    until("it is woken", || woken.count() == 1);
    match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it was woken for nothing"),
    }
}

/// Asserts that the session has ended when `act` returns. A process may end as soon as it has its
/// answer. If the thread that brought the answer still held the store then, the session would not
/// be ended and the journal would lose its last lines.
fn ends_the_session(act: impl FnOnce(&Stuck, &Arc<Stuck>, &Pool)) {
    let world = World::new();
    let process = across_a_network(&world);
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let (store, woken) = (Arc::clone(&process.store), Arc::<Stuck>::default());
    let session = store.sessions.lock().unwrap()[0];
    act(&store.slow, &woken, &pool);
    drop((pool, process));
    assert_eq!(store.liveness(session), Liveness::Dead);
    woken.set(false);
}

#[test]
fn an_admitted_caller_holds_the_last_handle() {
    ends_the_session(|store, woken, pool| {
        let lease = polled(store, woken, pool.reserve(at_once())).unwrap();
        lease.cancel().blocking().unwrap();
    });
}

#[test]
fn a_caller_that_settled_holds_the_last_handle() {
    ends_the_session(|store, woken, pool| {
        let lease = pool.reserve(at_once()).blocking().unwrap();
        polled(store, woken, lease.commit([])).unwrap();
    });
}

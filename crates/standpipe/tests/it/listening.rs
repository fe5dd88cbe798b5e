//! Which thread sleeps in the store's wait: a blocked caller, and the next one after it.

use std::thread::ThreadId;
use std::time::Duration;

use crate::support::{
    Actor, Hand, World, assert_whole, at_once, parallel, patient, refused, until,
};
use standpipe::{Lease, Pool, Reason, Request};

/// A process whose maintenance thread is stuck: everything else happens without it.
struct HeldUp<'a> {
    process: &'a Actor,
    lease: Option<Lease>,
}

impl<'a> HeldUp<'a> {
    fn new(process: &'a Actor) -> Self {
        let pool = process.limited("t/stuck", vec![parallel(1)]);
        let lease = Some(pool.reserve(at_once()).blocking().unwrap());
        process.store.stuck.set(true);
        until("the maintenance thread is stuck", || {
            // While the process has a lease, the thread checks the pool whenever it wakes.
            standpipe::Store::interrupt(&*process.store);
            process.store.stuck.count() == 1
        });
        Self { process, lease }
    }
}

impl Drop for HeldUp<'_> {
    fn drop(&mut self) {
        self.process.store.stuck.set(false);
        drop(self.lease.take());
    }
}

/// Two slots, held by another process.
fn two_held(holder: &Actor) -> (Pool, [Lease; 2]) {
    let pool = holder.limited("t/slots", vec![parallel(2)]);
    let held = [(); 2].map(|()| pool.reserve(at_once()).blocking().unwrap());
    (pool, held)
}

/// A slot on each of two pools, held by another process.
fn two_pools_held(holder: &Actor) -> ([Pool; 2], [Lease; 2]) {
    let pools = ["t/here", "t/there"].map(|name| holder.limited(name, vec![parallel(1)]));
    let held = [0, 1].map(|one: usize| pools[one].reserve(at_once()).blocking().unwrap());
    (pools, held)
}

fn listens(process: &Actor, thread: ThreadId) {
    until("that thread listens", || process.store.listens() == Some(thread));
}

/// Waits until this many callers wait and have had the time to fall asleep.
fn wait(pool: &Pool, count: usize) {
    until("they wait", || pool.status().blocking().unwrap().tickets.len() == count);
    std::thread::sleep(Duration::from_millis(20));
}

#[test]
fn a_blocked_thread_listens_and_the_next_one_does_when_it_leaves() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let ([here, there], [first, second]) = two_pools_held(&other);
    let held_up = HeldUp::new(&one);
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| one.pool("t/here").reserve(patient()).blocking().unwrap());
        listens(&one, leader.thread().id());
        // On another pool, so that nothing but the hand-over wakes it.
        let next = scope.spawn(|| one.pool("t/there").reserve(patient()).blocking().unwrap());
        wait(&there, 1);
        first.commit([]).blocking().unwrap();
        drop(leader.join().unwrap());
        listens(&one, next.thread().id());
        second.commit([]).blocking().unwrap();
        drop(next.join().unwrap());
    });
    drop(held_up);
    assert_whole(&here);
    assert_whole(&there);
}

#[test]
fn a_listener_that_times_out_leaves_it_to_the_next() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let ([_, there], [first, second]) = two_pools_held(&other);
    let held_up = HeldUp::new(&one);
    std::thread::scope(|scope| {
        let brief = Request::by("brief").timeout(Duration::from_secs(1));
        let leader = scope.spawn(|| one.pool("t/here").reserve(brief).blocking());
        listens(&one, leader.thread().id());
        let next = scope.spawn(|| one.pool("t/there").reserve(patient()).blocking().unwrap());
        wait(&there, 1);
        assert_eq!(refused(leader.join().unwrap()).reason, Reason::Deadline);
        listens(&one, next.thread().id());
        second.commit([]).blocking().unwrap();
        drop(next.join().unwrap());
    });
    drop((held_up, first));
    assert_whole(&there);
}

#[test]
fn a_listener_wakes_the_others_on_its_pool() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let (small, [first, second]) = two_held(&other);
    let held_up = HeldUp::new(&one);
    std::thread::scope(|scope| {
        let pool = one.pool("t/slots");
        let late = patient().priority(standpipe::Priority::Background);
        let leader = scope.spawn(move || pool.reserve(late).blocking().unwrap());
        listens(&one, leader.thread().id());
        let urgent = scope.spawn(|| one.pool("t/slots").reserve(patient()).blocking().unwrap());
        wait(&small, 2);
        first.commit([]).blocking().unwrap();
        let lease = urgent.join().unwrap();
        assert!(!leader.is_finished(), "the other came first");
        second.commit([]).blocking().unwrap();
        drop((lease, leader.join().unwrap()));
    });
    drop(held_up);
    assert_whole(&small);
}

#[test]
fn a_listener_has_the_others_on_other_pools_woken() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let ([here, there], [first, second]) = two_pools_held(&other);
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| one.pool("t/here").reserve(patient()).blocking().unwrap());
        listens(&one, leader.thread().id());
        let next = scope.spawn(|| one.pool("t/there").reserve(patient()).blocking().unwrap());
        wait(&there, 1);
        second.commit([]).blocking().unwrap();
        drop(next.join().unwrap());
        first.commit([]).blocking().unwrap();
        drop(leader.join().unwrap());
    });
    assert_whole(&here);
    assert_whole(&there);
}

#[test]
fn a_release_in_its_own_process_wakes_a_thread_that_listens() {
    let world = World::new();
    let one = world.process();
    let (pool, [first, second]) = two_held(&one);
    let held_up = HeldUp::new(&one);
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| pool.reserve(patient()).blocking().unwrap());
        listens(&one, leader.thread().id());
        first.commit([]).blocking().unwrap();
        drop(leader.join().unwrap());
    });
    drop((held_up, second));
    assert_whole(&pool);
}

#[test]
fn the_maintenance_thread_listens_for_a_future_when_a_thread_leaves() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let (pool, [first, second]) = two_held(&other);
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| one.pool("t/slots").reserve(patient()).blocking().unwrap());
        let thread = leader.thread().id();
        listens(&one, thread);
        let mut future = Hand::new(one.pool("t/slots").reserve(patient()));
        assert!(future.poll().is_pending());
        first.commit([]).blocking().unwrap();
        let lease = leader.join().unwrap();
        until("the maintenance thread listens", || {
            one.store.listens().is_some_and(|other| other != thread)
        });
        second.commit([]).blocking().unwrap();
        drop((lease, future.run().unwrap()));
    });
    assert_whole(&pool);
}

#[test]
fn a_thread_beside_a_future_is_woken_by_the_maintenance_thread() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let (pool, [first, second]) = two_held(&other);
    let mut future = Hand::new(one.pool("t/slots").reserve(patient()));
    assert!(future.poll().is_pending());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| one.pool("t/slots").reserve(patient()).blocking().unwrap());
        wait(&pool, 2);
        // The future is dropped and cancels its ticket; only the thread waits.
        drop(future);
        first.commit([]).blocking().unwrap();
        drop(waiter.join().unwrap());
    });
    drop(second);
    assert_whole(&pool);
}

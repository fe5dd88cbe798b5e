//! Who listens at the store: a thread that blocks, and who after it.

use std::thread::ThreadId;
use std::time::Duration;

use crate::support::{
    Actor, Hand, World, assert_whole, at_once, parallel, patient, refused, until,
};
use standpipe::{Lease, Pool, Reason, Request};

/// The keeper of a process, held up for good: what happens meanwhile happens without it.
struct HeldUp<'a> {
    process: &'a Actor,
    lease: Option<Lease>,
}

impl<'a> HeldUp<'a> {
    fn new(process: &'a Actor) -> Self {
        let pool = process.limited("t/stuck", vec![parallel(1)]);
        let lease = Some(pool.reserve(at_once()).blocking().unwrap());
        process.store.stuck.set(true);
        until("the keeper is stuck", || {
            // While it holds something it beats whenever it is awake.
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

/// Two slots, and who holds them in another process.
fn two_held(holder: &Actor) -> (Pool, [Lease; 2]) {
    let pool = holder.limited("t/slots", vec![parallel(2)]);
    let held = [(); 2].map(|()| pool.reserve(at_once()).blocking().unwrap());
    (pool, held)
}

/// A slot on each of two pools, and who holds them in another process.
fn two_pools_held(holder: &Actor) -> ([Pool; 2], [Lease; 2]) {
    let pools = ["t/here", "t/there"].map(|name| holder.limited(name, vec![parallel(1)]));
    let held = [0, 1].map(|one: usize| pools[one].reserve(at_once()).blocking().unwrap());
    (pools, held)
}

fn listens(process: &Actor, thread: ThreadId) {
    until("that thread listens", || process.store.listens() == Some(thread));
}

/// So many wait, and have had the time to fall asleep.
fn wait(pool: &Pool, count: usize) {
    until("they wait", || pool.status().unwrap().tickets.len() == count);
    std::thread::sleep(Duration::from_millis(20));
}

#[test]
fn a_thread_that_blocks_listens_and_when_it_leaves_the_next_one_does() {
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
        first.commit([]).unwrap();
        drop(leader.join().unwrap());
        listens(&one, next.thread().id());
        second.commit([]).unwrap();
        drop(next.join().unwrap());
    });
    drop(held_up);
    assert_whole(&here);
    assert_whole(&there);
}

#[test]
fn a_thread_that_listens_in_vain_leaves_it_to_the_next() {
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
        second.commit([]).unwrap();
        drop(next.join().unwrap());
    });
    drop((held_up, first));
    assert_whole(&there);
}

#[test]
fn who_listens_tells_the_others_on_its_pool() {
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
        first.commit([]).unwrap();
        let lease = urgent.join().unwrap();
        assert!(!leader.is_finished(), "the other came first");
        second.commit([]).unwrap();
        drop((lease, leader.join().unwrap()));
    });
    drop(held_up);
    assert_whole(&small);
}

#[test]
fn who_listens_has_the_others_elsewhere_told() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let ([here, there], [first, second]) = two_pools_held(&other);
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| one.pool("t/here").reserve(patient()).blocking().unwrap());
        listens(&one, leader.thread().id());
        let next = scope.spawn(|| one.pool("t/there").reserve(patient()).blocking().unwrap());
        wait(&there, 1);
        second.commit([]).unwrap();
        drop(next.join().unwrap());
        first.commit([]).unwrap();
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
        first.commit([]).unwrap();
        drop(leader.join().unwrap());
    });
    drop((held_up, second));
    assert_whole(&pool);
}

#[test]
fn the_keeper_listens_for_a_future_when_a_thread_leaves() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let (pool, [first, second]) = two_held(&other);
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| one.pool("t/slots").reserve(patient()).blocking().unwrap());
        let thread = leader.thread().id();
        listens(&one, thread);
        let mut future = Hand::new(one.pool("t/slots").reserve(patient()));
        assert!(future.poll().is_pending());
        first.commit([]).unwrap();
        let lease = leader.join().unwrap();
        until("the keeper listens", || one.store.listens().is_some_and(|other| other != thread));
        second.commit([]).unwrap();
        drop((lease, future.run().unwrap()));
    });
    assert_whole(&pool);
}

#[test]
fn a_thread_beside_a_future_is_told_by_the_keeper() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let (pool, [first, second]) = two_held(&other);
    let mut future = Hand::new(one.pool("t/slots").reserve(patient()));
    assert!(future.poll().is_pending());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| one.pool("t/slots").reserve(patient()).blocking().unwrap());
        wait(&pool, 2);
        // The future is dropped and gives back its place; the thread is left alone.
        drop(future);
        first.commit([]).unwrap();
        drop(waiter.join().unwrap());
    });
    drop(second);
    assert_whole(&pool);
}

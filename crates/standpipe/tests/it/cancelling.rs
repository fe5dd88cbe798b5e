//! Callers that give up at any poll, with any answer lost, by panic, or in storms: no lease and no
//! ticket stays.

use std::task::Poll;

use crate::support::{Actor, Hand, World, assert_whole, at_once, parallel, patient, per_minute};
use standpipe::{Request, Span, Unit};
use standpipe_store::fault_injection::Fault;

/// What happens between two polls of the future that will be dropped.
type Turn<'a> = Box<dyn FnOnce() + 'a>;

#[test]
fn b30_a_future_dropped_after_any_number_of_polls_leaves_capacity_whole() {
    const TURNS: usize = 5;
    for polls in 0..=TURNS {
        let world = World::new();
        let (one, other) = (world.process(), world.process());
        let pool = one.limited("t/slots", vec![parallel(1)]);
        let held = other.pool("t/slots").reserve(at_once()).blocking().unwrap();
        let mut future = Hand::new(pool.reserve(patient()));
        let turns: [Turn<'_>; TURNS] = [
            Box::new(|| ()),
            Box::new(|| world.passes(Span::secs(1), &[&one])),
            Box::new(|| pool.pause(std::time::Duration::from_secs(5)).blocking().unwrap()),
            Box::new(|| pool.resume().blocking().unwrap()),
            Box::new(|| held.commit([]).blocking().unwrap()),
        ];
        let mut lease = None;
        // What no longer happens is dropped, and with it the other's lease.
        for turn in turns.into_iter().take(polls) {
            if let Poll::Ready(granted) = future.poll() {
                lease = Some(granted.unwrap());
                break;
            }
            turn();
        }
        drop((future, lease));
        pool.resume().blocking().unwrap();
        assert_whole(&pool);
    }
}

#[test]
fn b30_a_future_dropped_with_any_answer_lost_leaves_capacity_whole() {
    for fault in [Fault::Cut, Fault::LoseAnswer] {
        for calls_before in 0..6 {
            for polls in 1..4 {
                let world = World::new();
                let (one, other) = (world.process(), world.process());
                let pool = one.limited("t/slots", vec![parallel(1)]);
                let held = other.pool("t/slots").reserve(at_once()).blocking().unwrap();
                for _ in 0..calls_before {
                    one.store.faults.push(Fault::None);
                }
                one.store.faults.push(fault);
                drop_after(polls, &pool, || held.commit([]).blocking().unwrap());
                assert_whole(&other.pool("t/slots").clone_after_quiet(&one));
            }
        }
    }
}

/// Polls a future so often, a release after the first, and drops it.
fn drop_after(polls: usize, pool: &standpipe::Pool, release: impl FnOnce()) {
    let mut future = Hand::new(pool.reserve(patient()));
    let mut release = Some(release);
    for _ in 0..polls {
        if let Poll::Ready(granted) = future.poll() {
            granted.unwrap().cancel().blocking().unwrap();
            break;
        }
        if let Some(release) = release.take() {
            release();
        }
    }
}

/// Sends what a process still has pending, with a read.
trait Quiet {
    fn clone_after_quiet(&self, process: &Actor) -> Self;
}

impl Quiet for standpipe::Pool {
    fn clone_after_quiet(&self, process: &Actor) -> Self {
        process.pool(self.name().as_str()).resume().blocking().unwrap();
        self.clone()
    }
}

#[test]
fn b30_a_panic_frees_the_slot() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let panicked = std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _lease = pool.reserve(at_once()).blocking().unwrap();
            panic!("in the middle of its call, on purpose");
        });
        holder.join().is_err()
    });
    assert!(panicked);
    assert_whole(&pool);
}

#[test]
fn b31_a_waiter_cancelled_after_it_was_granted_and_before_it_knows() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let held = pool.reserve(at_once()).blocking().unwrap();
    let mut first = Hand::new(pool.reserve(patient()));
    let mut second = Hand::new(pool.reserve(patient()));
    assert!(first.poll().is_pending() && second.poll().is_pending());
    held.commit([]).blocking().unwrap();
    // The slot is earmarked for the first, which never polls.
    first.wait();
    drop(first);
    drop(second.run().unwrap());
    assert_whole(&pool);
}

#[test]
fn b31_a_grant_whose_answer_was_lost_is_given_back_with_the_caller() {
    for drops in [true, false] {
        let world = World::new();
        let process = world.process();
        let pool = process.limited("t/slots", vec![parallel(1)]);
        process.store.faults.push(Fault::LoseAnswer);
        let mut future = Hand::new(pool.reserve(patient()));
        assert!(future.poll().is_pending(), "it was admitted and does not know");
        if drops {
            drop(future);
        } else {
            drop(future.run().unwrap());
        }
        assert_whole(&pool);
    }
}

#[test]
fn b31_after_a_storm_of_cancels_everything_is_free() {
    let world = World::new();
    let processes = [world.process(), world.process()];
    let limits = vec![parallel(3), per_minute(Unit::Tokens, 1_000_000)];
    let pool = processes[0].limited("t/storm", limits);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let pool = processes[thread as usize % 2].pool("t/storm");
            scope.spawn(move || storm(&pool, thread));
        }
    });
    let status = pool.status().blocking().unwrap();
    assert_eq!((status.leases.len(), status.tickets.len()), (0, 0));
    assert_eq!(status.limits[0].left, 3);
    assert_eq!((status.limits[1].used, status.limits[1].held), (0, 0), "all was given back");
}

/// Reserves, polls a few times, and drops the future or the lease in one of several ways.
fn storm(pool: &standpipe::Pool, seed: u64) {
    let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut roll = |sides: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % sides
    };
    for _ in 0..150 {
        let request = Request::by(format!("agent-{seed}")).unit("tokens", 1 + roll(50));
        let mut future = Hand::new(pool.reserve(request));
        for _ in 0..roll(4) {
            if let Poll::Ready(granted) = future.poll() {
                granted.unwrap().cancel().blocking().unwrap();
                break;
            }
        }
    }
}

/// A call that keeps its place for a later request with the same id.
fn with_id(id: &str) -> Request {
    patient().id(id).ttl(std::time::Duration::from_secs(60)).keeps_place()
}

#[test]
fn a_caller_that_disconnected_takes_over_its_place_by_its_id() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let held = other.pool("t/slots").reserve(at_once()).blocking().unwrap();
    let mut first = Hand::new(pool.reserve(with_id("first")));
    assert!(first.poll().is_pending());
    let mut between = Hand::new(pool.reserve(patient()));
    assert!(between.poll().is_pending());
    drop(first);
    assert_eq!(pool.status().blocking().unwrap().waiting, 2, "its place is kept");
    let mut again = Hand::new(pool.reserve(with_id("first")));
    assert!(again.poll().is_pending());
    held.commit([]).blocking().unwrap();
    let granted = again.run().unwrap();
    assert!(between.poll().is_pending(), "a later caller is served later");
    granted.commit([]).blocking().unwrap();
    between.run().unwrap().commit([]).blocking().unwrap();
    assert_whole(&pool);
}

#[test]
fn no_caller_waits_for_one_that_does_not_return() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let held = other.pool("t/slots").reserve(at_once()).blocking().unwrap();
    let mut gone = Hand::new(pool.reserve(with_id("gone")));
    assert!(gone.poll().is_pending());
    drop(gone);
    let mut next = Hand::new(pool.reserve(patient()));
    assert!(next.poll().is_pending());
    held.commit([]).blocking().unwrap();
    // Due and not claimed: after two seconds its units go to the next ticket.
    world.passes(Span::secs(3), &[&one]);
    next.run().unwrap().commit([]).blocking().unwrap();
}

#[test]
fn a_lease_that_is_detached_stays_until_it_is_settled() {
    let world = World::new();
    let one = world.process();
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let lease = pool.reserve(with_id("kept")).blocking().unwrap();
    assert!(lease.is_new());
    let id = lease.into_id();
    assert_eq!(pool.status().blocking().unwrap().in_flight, 1);
    world.passes(Span::secs(1), &[&one]);
    let same = pool.reserve(with_id("kept")).blocking().unwrap();
    assert!(!same.is_new());
    assert_eq!(same.into_id(), id);
    one.tap.lease(&id).unwrap().commit([]).blocking().unwrap();
    let settled = pool.reserve(with_id("kept")).blocking().unwrap();
    assert!(settled.is_settled());
    drop(settled);
    assert_whole(&pool);
}

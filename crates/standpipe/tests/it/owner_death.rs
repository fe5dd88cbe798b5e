//! Dead processes: what they held is free for the next caller, whether it waits or not.

use std::time::Duration;

use crate::support::{Actor, Hand, World, assert_whole, at_once, parallel, patient, refused};
use standpipe::{Pool, Request};

/// A pool of one slot in a living process; a process that was killed holds the slot.
fn held_by_a_dead_process(world: &World) -> (Actor, Pool) {
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    std::mem::forget(other.pool("t/slots").reserve(at_once()).blocking().unwrap());
    other.dies();
    std::mem::forget(other);
    (one, pool)
}

#[test]
fn a_caller_that_does_not_wait_gets_the_slot_of_a_dead_process() {
    let world = World::new();
    let (_one, pool) = held_by_a_dead_process(&world);
    drop(pool.reserve(at_once()).blocking().unwrap());
    assert_whole(&pool);
    let (_one, pool) = held_by_a_dead_process(&world);
    drop(Hand::new(pool.reserve(at_once())).run().unwrap());
}

#[test]
fn a_caller_with_a_short_timeout_gets_the_slot_of_a_dead_process() {
    let world = World::new();
    let (_one, pool) = held_by_a_dead_process(&world);
    let brief = Request::by("brief").timeout(Duration::from_millis(5));
    drop(pool.reserve(brief).blocking().unwrap());
    assert_whole(&pool);
}

#[test]
fn a_view_does_not_show_dead_processes() {
    let world = World::new();
    let (_one, pool) = held_by_a_dead_process(&world);
    assert!(pool.peek(&at_once()).blocking().unwrap().is_admitted());
    let (_one, pool) = held_by_a_dead_process(&world);
    assert_eq!(pool.explain(&at_once()).blocking().unwrap().verdict.as_str(), "admitted");
    let (_one, pool) = held_by_a_dead_process(&world);
    assert_whole(&pool);
}

#[test]
fn a_living_process_keeps_its_slot() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let held = other.pool("t/slots").reserve(at_once()).blocking().unwrap();
    refused(pool.reserve(at_once()).blocking());
    assert_eq!(pool.status().blocking().unwrap().leases.len(), 1);
    held.commit([]).blocking().unwrap();
}

/// Time stands still here: a dead ticket that is due would keep its units for ever.
#[test]
fn all_dead_tickets_in_front_end_at_once_due_or_not() {
    let world = World::new();
    let one = world.process();
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let held = pool.reserve(at_once()).blocking().unwrap();
    let others: Vec<Actor> = (0..4).map(|_| world.process()).collect();
    for other in &others {
        let mut dead = Hand::new(other.pool("t/slots").reserve(patient()));
        assert!(dead.poll().is_pending());
        std::mem::forget(dead);
    }
    let mut waiter = Hand::new(pool.reserve(patient()));
    assert!(waiter.poll().is_pending());
    for other in others {
        other.store.unavailable.store(true, std::sync::atomic::Ordering::SeqCst);
        other.dies();
        std::mem::forget(other);
    }
    held.commit([]).blocking().unwrap();
    drop(waiter.run().unwrap());
    assert_whole(&pool);
}

#[cfg(target_os = "linux")]
#[test]
fn one_dead_owner_among_six_hundred_is_found() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(600)]);
    let lives = std::process::id();
    let mut owner = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    for number in 0..600 {
        let pid = if number == 599 { owner.id() } else { lives };
        let request = at_once().ttl(Duration::from_secs(600)).owner(pid);
        std::mem::forget(pool.reserve(request).blocking().unwrap());
    }
    refused(pool.reserve(at_once()).blocking());
    owner.kill().unwrap();
    owner.wait().unwrap();
    drop(pool.reserve(at_once()).blocking().unwrap());
}

//! The dead: what they held is free for whoever asks next, waiting or not.

use std::time::Duration;

use crate::support::{Actor, Hand, World, assert_whole, at_once, parallel, patient, refused};
use standpipe::{Pool, Request};

/// A pool of one slot, seen by a living process, and the slot held by one that was killed.
fn held_by_the_dead(world: &World) -> (Actor, Pool) {
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    std::mem::forget(other.pool("t/slots").reserve(at_once()).blocking().unwrap());
    other.dies();
    std::mem::forget(other);
    (one, pool)
}

#[test]
fn who_will_not_wait_gets_the_slot_of_the_dead() {
    let world = World::new();
    let (_one, pool) = held_by_the_dead(&world);
    drop(pool.reserve(at_once()).blocking().unwrap());
    assert_whole(&pool);
    let (_one, pool) = held_by_the_dead(&world);
    drop(Hand::new(pool.reserve(at_once())).run().unwrap());
}

#[test]
fn who_waits_only_a_moment_gets_the_slot_of_the_dead() {
    let world = World::new();
    let (_one, pool) = held_by_the_dead(&world);
    let brief = Request::by("brief").timeout(Duration::from_millis(5));
    drop(pool.reserve(brief).blocking().unwrap());
    assert_whole(&pool);
}

#[test]
fn whoever_looks_does_not_see_the_dead() {
    let world = World::new();
    let (_one, pool) = held_by_the_dead(&world);
    assert!(pool.peek(&at_once()).unwrap().is_admitted());
    let (_one, pool) = held_by_the_dead(&world);
    assert_eq!(pool.explain(&at_once()).unwrap().verdict, "admitted");
    let (_one, pool) = held_by_the_dead(&world);
    assert_whole(&pool);
}

#[test]
fn the_living_are_not_taken_for_dead() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let held = other.pool("t/slots").reserve(at_once()).blocking().unwrap();
    refused(pool.reserve(at_once()).blocking());
    assert_eq!(pool.status().unwrap().leases.len(), 1);
    held.commit([]).unwrap();
}

/// Time stands still here: a dead one that is due would keep its turn for ever.
#[test]
fn the_dead_in_front_go_all_at_once_due_or_not() {
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
        other.store.away.store(true, std::sync::atomic::Ordering::SeqCst);
        other.dies();
        std::mem::forget(other);
    }
    held.commit([]).unwrap();
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

//! One process, one session: however many handles it has, and for as long as it lives.

mod support;

use std::sync::Arc;

use standpipe::{Error, Settings, Span, Standpipe, Store};
use support::{World, assert_whole, at_once, parallel};

#[test]
fn two_handles_on_one_store_are_one_session() {
    let world = World::new();
    let process = world.process();
    let on: Arc<dyn Store> = process.store.clone();
    let again = Standpipe::builder().settings(Settings::default()).on(on).open().unwrap();
    let pool = process.limited("t/slots", vec![parallel(2)]);
    let one = pool.reserve(at_once()).blocking().unwrap();
    let other = again.pool("t/slots").unwrap().reserve(at_once()).blocking().unwrap();
    assert_eq!(process.store.sessions.lock().unwrap().len(), 1);
    drop((one, other));
    assert_whole(&pool);
}

#[test]
fn opening_does_nothing_before_it_is_needed() {
    let world = World::new();
    let process = world.process();
    let _pool = process.pool("t/slots");
    assert_eq!(process.store.sessions.lock().unwrap().len(), 0);
    assert_eq!(process.tap.pools().unwrap(), []);
}

#[test]
fn the_session_ends_with_the_last_handle_and_not_before() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let lease = pool.reserve(at_once()).blocking().unwrap();
    let store = Arc::clone(&process.store);
    let session = store.sessions.lock().unwrap()[0];
    drop((process, pool));
    assert!(!store.is_gone(session), "a lease is out");
    drop(lease);
    assert!(store.is_gone(session));
}

#[test]
fn a_process_that_holds_something_beats() {
    let world = World::new();
    let (holder, other) = (world.process(), world.process());
    let pool = holder.limited("t/slots", vec![parallel(1)]);
    let lease = pool.reserve(at_once()).blocking().unwrap();
    let elsewhere = other.pool("t/slots");
    for _ in 0..8 {
        let before = elsewhere.status().unwrap().position;
        world.passes(Span::secs(31), &[&holder]);
        while elsewhere.status().unwrap().position == before {
            std::thread::yield_now();
        }
    }
    assert_eq!(elsewhere.status().unwrap().leases.len(), 1, "after four minutes of virtual time");
    lease.commit([]).unwrap();
    assert_whole(&pool);
}

#[test]
fn a_process_that_fell_silent_goes_on_under_a_new_session() {
    let world = World::new();
    let (silent, other) = (world.process(), world.process());
    let pool = silent.limited("t/slots", vec![parallel(1)]);
    let lease = pool.reserve(at_once()).blocking().unwrap();
    // The machine slept, and another process was faster to notice.
    world.passes(Span::secs(121), &[]);
    drop(other.pool("t/slots").reserve(at_once()).blocking().unwrap());
    assert!(matches!(lease.commit([]), Err(Error::LeaseGone { .. })), "it learns that it is lost");
    drop(pool.reserve(at_once()).blocking().unwrap());
    assert_whole(&pool);
}

#[test]
fn handles_go_to_other_threads() {
    const fn sendable<T: Send + Sync>() {}
    const fn movable<T: Send>() {}
    sendable::<Standpipe>();
    sendable::<standpipe::Pool>();
    sendable::<standpipe::Lease>();
    movable::<standpipe::Reserving>();
    movable::<standpipe::ReserveAll>();
}

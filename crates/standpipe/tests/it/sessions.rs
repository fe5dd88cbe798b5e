//! One session per process, for all its handles and as long as it lives.

use std::sync::Arc;

use crate::support::{World, assert_whole, at_once, parallel, refused};
use standpipe::{Settings, Span, Standpipe, Store};
use standpipe_store::Liveness;

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
    assert_eq!(process.tap.pools().blocking().unwrap(), []);
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
    assert_eq!(store.liveness(session), Liveness::Alive, "a lease is out");
    drop(lease);
    assert_eq!(store.liveness(session), Liveness::Dead);
}

#[test]
fn a_process_with_a_lease_sends_heartbeats() {
    let world = World::new();
    let (holder, other) = (world.process(), world.process());
    let pool = holder.limited("t/slots", vec![parallel(1)]);
    let lease = pool.reserve(at_once()).blocking().unwrap();
    let elsewhere = other.pool("t/slots");
    for _ in 0..8 {
        let before = elsewhere.status().blocking().unwrap().position;
        world.passes(Span::secs(31), &[&holder]);
        while elsewhere.status().blocking().unwrap().position == before {
            std::thread::yield_now();
        }
    }
    assert_eq!(
        elsewhere.status().blocking().unwrap().leases.len(),
        1,
        "after four minutes of virtual time"
    );
    lease.commit([]).blocking().unwrap();
    assert_whole(&pool);
}

#[test]
fn a_stopped_process_keeps_its_leases() {
    let world = World::new();
    let (silent, other) = (world.process(), world.process());
    let pool = silent.limited("t/slots", vec![parallel(1)]);
    let lease = pool.reserve(at_once()).blocking().unwrap();
    // It was stopped for longer than the silence after which others would be reported.
    world.passes(Span::secs(121), &[]);
    let no = refused(other.pool("t/slots").reserve(at_once()).blocking());
    assert_eq!(no.limit.as_deref(), Some("parallel"));
    lease.commit([]).blocking().unwrap();
    drop(other.pool("t/slots").reserve(at_once()).blocking().unwrap());
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

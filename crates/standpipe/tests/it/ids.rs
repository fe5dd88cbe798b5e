//! Many calls with one id: one lease, and exactly one caller that created it.

use std::sync::Barrier;
use std::time::Duration;

use standpipe::{Error, Lease, LeaseId, Pool, Request};
use standpipe_servers::{Gate, Server};

use crate::redis::Tap;
use crate::support::{Hand, World, at_once, parallel, patient};

const PROCESSES: usize = 4;
const CALLS: usize = 25;

fn with_the_id() -> Request {
    patient().id("one").ttl(Duration::from_secs(60)).keeps_place()
}

/// Returns how many of the callers created the lease; all of them must have the same one.
fn made(answers: &[(bool, LeaseId)]) -> usize {
    assert_eq!(answers.len(), PROCESSES * CALLS);
    assert!(answers.iter().all(|(_, id)| *id == answers[0].1), "one lease");
    answers.iter().filter(|(new, _)| *new).count()
}

/// Reserves on one thread per pool, all at the same moment.
fn ask_at_once(pools: &[Pool]) -> Vec<(bool, LeaseId)> {
    let start = Barrier::new(PROCESSES * CALLS);
    let ask = |pool: &Pool| {
        start.wait();
        let lease = pool.reserve(with_the_id()).blocking().unwrap();
        (lease.is_new(), lease.into_id())
    };
    std::thread::scope(|scope| {
        let callers = pools.iter().flat_map(|pool| (0..CALLS).map(move |_| pool));
        let callers: Vec<_> = callers.map(|pool| scope.spawn(|| ask(pool))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    })
}

/// Runs every call to its end on a thread of its own.
fn run_all<F>(callers: Vec<Hand<F>>) -> Vec<(bool, LeaseId)>
where
    F: Future<Output = Result<Lease, Error>> + Send,
{
    let run = |call: Hand<F>| {
        let lease = call.run().unwrap();
        (lease.is_new(), lease.into_id())
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            callers.into_iter().map(|call| scope.spawn(move || run(call))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    })
}

#[test]
fn of_callers_that_wait_with_one_id_exactly_one_creates_the_lease() {
    let world = World::new();
    let processes: Vec<_> = (0..PROCESSES).map(|_| world.process()).collect();
    let pools: Vec<Pool> =
        processes.iter().map(|process| process.limited("t/slots", vec![parallel(1)])).collect();
    let held = pools[0].reserve(at_once()).blocking().unwrap();
    let waits = |pool: &Pool| {
        let mut call = Hand::new(pool.reserve(with_the_id()));
        assert!(call.poll().is_pending());
        call
    };
    let callers = pools.iter().flat_map(|pool| (0..CALLS).map(move |_| pool));
    let callers: Vec<_> = callers.map(waits).collect();
    held.commit([]).blocking().unwrap();
    assert_eq!(made(&run_all(callers)), 1);
}

#[test]
fn of_concurrent_callers_with_one_id_exactly_one_creates_the_lease() {
    let world = World::new();
    let processes: Vec<_> = (0..PROCESSES).map(|_| world.process()).collect();
    let pools: Vec<Pool> =
        processes.iter().map(|process| process.limited("t/slots", vec![parallel(1)])).collect();
    assert_eq!(made(&ask_at_once(&pools)), 1);
}

#[test]
fn on_a_server_of_callers_with_one_id_exactly_one_creates_the_lease() {
    let server = Server::start();
    let gates: Vec<Gate> = (0..PROCESSES).map(|_| Gate::before(&server)).collect();
    let taps: Vec<Tap> = gates.iter().map(|gate| Tap::new(&gate.url())).collect();
    let pools: Vec<Pool> = taps.iter().map(Tap::pool).collect();
    for pool in &pools {
        pool.reserve(at_once()).blocking().unwrap().cancel().blocking().unwrap();
    }
    // While the server is stopped the calls of a process gather, and are sent together.
    server.pause();
    let asks = |pool: &Pool| {
        let mut call = Hand::new(pool.reserve(with_the_id()));
        assert!(call.poll().is_pending());
        call
    };
    let callers = pools.iter().flat_map(|pool| (0..CALLS).map(move |_| pool));
    let callers: Vec<_> = callers.map(asks).collect();
    server.resume();
    assert_eq!(made(&run_all(callers)), 1);
}

//! Several pools at once: in the order of names, all or none.

use std::time::Duration;

use crate::support::{Actor, Hand, World, assert_whole, at_once, parallel, patient, refused};
use standpipe::{Pool, Reason, Request};

fn pools(process: &Actor) -> [Pool; 3] {
    ["t/a", "t/b", "t/c"].map(|name| process.limited(name, vec![parallel(1)]))
}

#[test]
fn pools_are_reserved_in_the_order_of_names_and_returned_in_the_callers() {
    let world = World::new();
    let process = world.process();
    let [a, b, c] = pools(&process);
    let held = b.reserve(at_once()).blocking().unwrap();
    let all = vec![(c.clone(), patient()), (a.clone(), patient()), (b.clone(), patient())];
    let mut all = Hand::new(process.tap.reserve_all(all));
    assert!(all.poll().is_pending());
    let counts = [&a, &b, &c].map(|pool| {
        let status = pool.status().blocking().unwrap();
        (status.leases.len(), status.tickets.len())
    });
    assert_eq!(counts, [(1, 0), (1, 1), (0, 0)], "the first by name is held, the last not asked");
    held.commit([]).blocking().unwrap();
    let leases = all.run().unwrap();
    let order: Vec<&str> = leases.iter().map(|lease| lease.pool().as_str()).collect();
    assert_eq!(order, ["t/c", "t/a", "t/b"]);
    drop(leases);
    [a, b, c].iter().for_each(assert_whole);
}

#[test]
fn when_one_is_refused_the_others_are_cancelled() {
    let world = World::new();
    let process = world.process();
    let [a, b, c] = pools(&process);
    let held = c.reserve(at_once()).blocking().unwrap();
    let both = || vec![(a.clone(), at_once()), (c.clone(), at_once()), (b.clone(), at_once())];
    for by_hand in [true, false] {
        let all = process.tap.reserve_all(both());
        let outcome = if by_hand { Hand::new(all).run() } else { all.blocking() };
        assert_eq!(refused(outcome).reason, Reason::Limit);
        assert_whole(&a);
        assert_whole(&b);
    }
    held.cancel().blocking().unwrap();
    drop(process.tap.reserve_all(both()).blocking().unwrap());
}

#[test]
fn dropped_at_any_poll_it_cancels_everything() {
    for polls in 0..3 {
        let world = World::new();
        let process = world.process();
        let [a, b, c] = pools(&process);
        let held = c.reserve(at_once()).blocking().unwrap();
        let all = vec![(a.clone(), patient()), (b.clone(), patient()), (c.clone(), patient())];
        let mut all = Hand::new(process.tap.reserve_all(all));
        for _ in 0..polls {
            assert!(all.poll().is_pending());
        }
        drop(all);
        held.cancel().blocking().unwrap();
        [a, b, c].iter().for_each(assert_whole);
    }
}

#[test]
fn two_callers_of_the_same_pools_do_not_deadlock() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let [a, b, _] = pools(&one);
    let wants = |process: &Actor, first: &str, second: &str| {
        let request = || Request::by("w").timeout(crate::support::LONG);
        let both = vec![(process.pool(first), request()), (process.pool(second), request())];
        process.tap.reserve_all(both)
    };
    std::thread::scope(|scope| {
        for (process, first, second) in [(&one, "t/a", "t/b"), (&other, "t/b", "t/a")] {
            scope.spawn(move || {
                for _ in 0..50 {
                    drop(wants(process, first, second).blocking().unwrap());
                }
            });
        }
    });
    assert_whole(&a);
    assert_whole(&b);
}

#[test]
fn all_requests_share_one_timeout() {
    let world = World::new();
    let process = world.process();
    let [a, b, _] = pools(&process);
    let _held = b.reserve(at_once()).blocking().unwrap();
    let brief = || Request::by("w").timeout(Duration::from_millis(5));
    let both = vec![(a.clone(), brief()), (b, brief())];
    assert_eq!(refused(process.tap.reserve_all(both).blocking()).reason, Reason::Deadline);
    assert_whole(&a);
    assert_eq!(process.tap.reserve_all(Vec::new()).blocking().unwrap().len(), 0);
}

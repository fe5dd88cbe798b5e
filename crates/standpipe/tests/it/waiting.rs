//! Waiting: which waiter is woken when and by what, and how waits end without a lease.

use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use crate::support::{Hand, World, assert_whole, at_once, parallel, patient, per_minute, refused};
use standpipe::{Error, Reason, Request, Span, Unit};

#[test]
fn a_release_wakes_a_thread_that_waits() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let first = pool.reserve(at_once()).blocking().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| pool.reserve(patient()).blocking().unwrap());
        while pool.status().blocking().unwrap().tickets.is_empty() {
            std::thread::yield_now();
        }
        first.commit([]).blocking().unwrap();
        let second = waiter.join().unwrap();
        assert_eq!(second.agent(), "patient");
    });
    assert_whole(&pool);
}

#[test]
fn a_release_in_another_process_wakes_a_thread_that_waits() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let first = pool.reserve(at_once()).blocking().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| other.pool("t/slots").reserve(patient()).blocking().unwrap());
        while pool.status().blocking().unwrap().tickets.is_empty() {
            std::thread::yield_now();
        }
        first.commit([]).blocking().unwrap();
        drop(waiter.join().unwrap());
    });
    assert_whole(&pool);
}

#[test]
fn a_release_wakes_a_future_that_waits() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    for holder in [&one, &other] {
        let first = holder.pool("t/slots").reserve(at_once()).blocking().unwrap();
        let mut second = Hand::new(pool.reserve(patient()));
        assert!(second.poll().is_pending());
        assert!(second.poll().is_pending(), "polling again asks for nothing more");
        assert_eq!(pool.status().blocking().unwrap().tickets.len(), 1);
        first.commit([]).blocking().unwrap();
        drop(second.run().unwrap());
        assert_whole(&pool);
    }
}

#[test]
fn the_first_caller_is_served_first_across_processes() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let mut held = pool.reserve(at_once()).blocking().unwrap();
    let mut waiters = Vec::new();
    for turn in 0..6 {
        let process = if turn % 2 == 0 { &one } else { &other };
        let request = Request::by(format!("agent-{turn}"));
        let mut waiter = Hand::new(process.pool("t/slots").reserve(request));
        assert!(waiter.poll().is_pending());
        waiters.push(waiter);
    }
    for (turn, waiter) in waiters.into_iter().enumerate() {
        held.commit([]).blocking().unwrap();
        held = waiter.run().unwrap();
        assert_eq!(held.agent(), format!("agent-{turn}"));
    }
    drop(held);
    assert_whole(&pool);
}

#[test]
fn time_alone_brings_a_waiter_its_units() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/rate", vec![per_minute(Unit::Requests, 1)]);
    drop(pool.reserve(at_once()).blocking().unwrap());
    let mut second = Hand::new(pool.reserve(patient().timeout(Duration::from_secs(600))));
    assert!(second.poll().is_pending());
    world.passes(Span::secs(59), &[&process]);
    second.wait();
    assert!(second.poll().is_pending(), "not before its instant");
    world.passes(Span::secs(1), &[&process]);
    let lease = second.run().unwrap();
    assert!(!lease.is_settled());
}

#[test]
fn with_a_zero_timeout_no_call_waits() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/rate", vec![per_minute(Unit::Requests, 1)]);
    drop(pool.reserve(at_once()).blocking().unwrap());
    let no = refused(pool.reserve(at_once()).blocking());
    assert_eq!((no.reason, no.short_by, no.position), (Reason::Limit, 1, None));
    assert_eq!(no.limit.as_deref(), Some("requests per 1min"));
    assert_eq!(no.retry_after, Some(Duration::from_secs(60)));
    assert!(no.to_string().contains("no room (short by 1); ask again in 1 min ("), "{no}");
    assert_eq!(pool.status().blocking().unwrap().tickets, []);
}

#[test]
fn a_wait_that_times_out_returns_why_and_leaves_nothing() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let held = pool.reserve(at_once()).blocking().unwrap();
    let mut waiter = Hand::new(pool.reserve(Request::by("late").timeout(Duration::from_secs(30))));
    assert!(waiter.poll().is_pending());
    world.passes(Span::secs(31), &[&process]);
    let no = refused(waiter.run());
    assert_eq!((no.reason, no.waited_for), (Reason::Deadline, Some(Reason::Limit)));
    assert!(no.to_string().starts_with("not in time on `t/slots`"), "{no}");
    assert_eq!(pool.status().blocking().unwrap().tickets, []);
    held.cancel().blocking().unwrap();
    assert_whole(&pool);
}

#[test]
fn a_short_timeout_ends_by_the_callers_own_clock() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let _held = pool.reserve(at_once()).blocking().unwrap();
    let brief = || Request::by("brief").timeout(Duration::from_millis(5));
    assert_eq!(refused(pool.reserve(brief()).blocking()).reason, Reason::Deadline);
    assert_eq!(refused(Hand::new(pool.reserve(brief())).run()).reason, Reason::Deadline);
    assert_eq!(pool.status().blocking().unwrap().tickets, []);
}

#[test]
fn a_pause_beyond_the_deadline_refuses_at_once() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let held = pool.reserve(at_once()).blocking().unwrap();
    let mut waiter = Hand::new(pool.reserve(Request::by("w").timeout(Duration::from_secs(30))));
    assert!(waiter.poll().is_pending());
    pool.pause(Duration::from_secs(300)).blocking().unwrap();
    let no = refused(waiter.run());
    assert_eq!(no.reason, Reason::Pause);
    assert_eq!(no.retry_after, Some(Duration::from_secs(300)));
    assert_eq!(pool.status().blocking().unwrap().pause.map(|pause| pause.for_ms), Some(300_000));
    pool.resume().blocking().unwrap();
    drop(held);
    drop(pool.reserve(at_once()).blocking().unwrap());
}

#[test]
fn a_dead_holder_gives_its_slot_to_a_waiter() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    std::mem::forget(other.pool("t/slots").reserve(at_once()).blocking().unwrap());
    let mut waiter = Hand::new(pool.reserve(patient()));
    assert!(waiter.poll().is_pending());
    other.dies();
    drop(waiter.run().unwrap());
}

#[test]
fn a_dead_holder_behind_a_dead_waiter_gives_its_slot_to_the_living() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    std::mem::forget(other.pool("t/slots").reserve(at_once()).blocking().unwrap());
    let mut dead = Hand::new(other.pool("t/slots").reserve(patient()));
    assert!(dead.poll().is_pending());
    let mut waiter = Hand::new(pool.reserve(patient()));
    assert!(waiter.poll().is_pending());
    other.dies();
    drop(waiter.run().unwrap());
    std::mem::forget(dead);
}

#[test]
fn a_call_that_can_never_fit_is_refused_at_once() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/rate", vec![per_minute(Unit::Tokens, 100)]);
    let no = refused(pool.reserve(patient().unit("tokens", 101)).blocking());
    assert!(no.is_never());
    assert_eq!(no.short_by, 1);
    assert!(no.to_string().contains("can never fit"), "{no}");
}

#[test]
fn the_error_for_a_pool_without_limits_names_the_ways_to_set_them() {
    let world = World::new();
    let process = world.process();
    let error = process.pool("t/bare").reserve(at_once()).blocking().unwrap_err();
    assert!(matches!(error, Error::NoLimits { .. }), "{error}");
    assert!(error.to_string().contains("--limit"), "{error}");
}

#[test]
fn a_store_that_recovers_in_time_is_retried_until_it_answers() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    process.store.unavailable.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut waiter = Hand::new(pool.reserve(patient()));
    assert!(waiter.poll().is_pending());
    process.store.unavailable.store(false, std::sync::atomic::Ordering::SeqCst);
    drop(waiter.run().unwrap());
    assert_whole(&pool);
}

#[test]
fn an_unavailable_store_is_reported_at_the_deadline_and_nothing_is_left() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    process.store.unavailable.store(true, std::sync::atomic::Ordering::SeqCst);
    let brief = Request::by("brief").timeout(Duration::from_millis(20));
    let error = pool.reserve(brief).blocking().unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
    process.store.unavailable.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_whole(&pool);
}

#[test]
fn a_call_that_never_waits_still_waits_for_the_lock_of_the_pool() {
    use standpipe_store::fault_injection::Fault;
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    for _ in 0..3 {
        process.store.faults.push(Fault::Busy);
    }
    let lease = pool.reserve(at_once()).blocking().expect("the lock was free on the fourth try");
    for _ in 0..3 {
        process.store.faults.push(Fault::Busy);
    }
    let no = refused(pool.reserve(at_once()).blocking());
    assert_eq!(no.limit.as_deref(), Some("parallel"), "a decision, not an error of the store");
    lease.commit([]).blocking().unwrap();
    assert_whole(&pool);
}

#[test]
fn a_place_in_the_queue_survives_a_lost_answer() {
    use standpipe_store::fault_injection::Fault;
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let held = pool.reserve(at_once()).blocking().unwrap();
    let mut first = Hand::new(other.pool("t/slots").reserve(patient()));
    assert!(first.poll().is_pending());
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let lease = pool.reserve(Request::by("second")).blocking().unwrap();
            sender.send("second").unwrap();
            drop(lease);
        });
        while pool.status().blocking().unwrap().tickets.len() < 2 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            other.store.faults.push(Fault::LoseAnswer);
        }
        held.commit([]).blocking().unwrap();
        let lease = first.run().unwrap();
        sender.send("first").unwrap();
        drop(lease);
    });
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["first", "second"]);
}

#[test]
fn polling_after_the_end_is_an_error_and_no_harm() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let mut once = Hand::new(pool.reserve(at_once()));
    let Poll::Ready(Ok(lease)) = once.poll() else { panic!("not admitted") };
    assert!(matches!(once.poll(), Poll::Ready(Err(Error::Invalid { .. }))));
    drop(lease);
    assert_whole(&pool);
}

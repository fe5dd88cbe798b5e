//! Leases: settled once, by any process, and what happens to those that are never settled.

use std::time::Duration;

use crate::support::{World, assert_whole, at_once, parallel, per_minute, refused};
use standpipe::observe::journal::EventKind;
use standpipe::{Error, LeaseId, Request, Span, Throttle, ThrottleKind, Unit};

fn used(pool: &standpipe::Pool) -> (u64, u64) {
    let limit = &pool.status().blocking().unwrap().limits[0];
    (limit.used, limit.held)
}

#[test]
fn a_dropped_lease_is_settled_at_its_estimate() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/rate", vec![per_minute(Unit::Tokens, 100)]);
    drop(pool.reserve(at_once().unit("tokens", 30)).blocking().unwrap());
    assert_eq!(used(&pool), (30, 0));
    assert_eq!(pool.status().blocking().unwrap().leases, []);
}

#[test]
fn a_commit_gives_the_difference_back_and_a_cancel_everything() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/rate", vec![per_minute(Unit::Tokens, 100)]);
    let lease = pool.reserve(at_once().unit("tokens", 30)).blocking().unwrap();
    lease.commit([(Unit::Tokens, 10)]).blocking().unwrap();
    assert_eq!(used(&pool), (10, 0));
    let lease = pool.reserve(at_once().unit("tokens", 30)).blocking().unwrap();
    lease.progress([(Unit::Tokens, 25)]).blocking().unwrap();
    lease.progress([(Unit::Tokens, 25)]).blocking().unwrap();
    assert_eq!(used(&pool), (35, 0));
    lease.commit([(Unit::Tokens, 25)]).blocking().unwrap();
    let lease = pool.reserve(at_once().unit("tokens", 30)).blocking().unwrap();
    lease.cancel().blocking().unwrap();
    assert_eq!(used(&pool), (35, 0));
}

/// A call that takes three slots leaves one of four; a call of none needs none.
#[test]
fn a_call_takes_as_many_slots_as_it_names() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(4)]);
    let three = pool.reserve(at_once().unit("parallel", 3)).blocking().unwrap();
    assert_eq!(used(&pool), (0, 3));
    let no = refused(pool.reserve(at_once().unit("parallel", 2)).blocking());
    assert_eq!((no.limit.as_deref(), no.short_by), (Some("parallel"), 1), "{no}");
    let one = pool.reserve(at_once()).blocking().unwrap();
    let none = pool.reserve(at_once().unit("parallel", 0)).blocking().unwrap();
    assert_eq!(used(&pool), (0, 4));
    let wrong = three.progress([(Unit::Parallel, 1)]).blocking().unwrap_err();
    assert!(wrong.to_string().contains("until it ends"), "{wrong}");
    drop((three, none));
    assert_eq!(used(&pool), (0, 1));
    let never = refused(pool.reserve(at_once().unit("parallel", 5)).blocking());
    assert!(never.is_never(), "{never}");
    drop(one);
}

#[test]
fn a_wrong_amount_is_an_error_and_the_lease_is_settled_by_its_drop() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/rate", vec![per_minute(Unit::Tokens, 100)]);
    let lease = pool.reserve(at_once().unit("tokens", 30)).blocking().unwrap();
    let wrong = lease.commit([(Unit::Tokens, 1), (Unit::Tokens, 2)]).blocking().unwrap_err();
    assert!(wrong.to_string().contains("named twice"), "{wrong}");
    assert_eq!(used(&pool), (30, 0));
}

#[test]
fn a_lease_is_settled_by_its_id_in_another_process_and_only_once() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let id = pool
        .reserve(at_once())
        .blocking()
        .unwrap()
        .keep(Duration::from_secs(60))
        .blocking()
        .unwrap();
    let id: LeaseId = id.to_string().parse().unwrap();
    let handle = other.tap.lease(&id).unwrap();
    handle.progress([]).blocking().unwrap();
    handle.commit([]).blocking().unwrap();
    let again = [handle.commit([]), handle.cancel(), handle.progress([])];
    for gone in again {
        let gone = gone.blocking().unwrap_err();
        assert!(matches!(&gone, Error::LeaseGone { lease } if *lease == id), "{gone}");
    }
    assert!(matches!(handle.heartbeat().blocking(), Err(Error::LeaseGone { .. })));
    assert_whole(&pool);
}

#[test]
fn a_lease_that_is_kept_outlives_its_process_until_its_time_is_up() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = other.limited("t/slots", vec![parallel(1)]);
    let lease = one.pool("t/slots").reserve(at_once()).blocking().unwrap();
    lease.keep(Duration::from_secs(60)).blocking().unwrap();
    drop(one);
    assert_eq!(pool.status().blocking().unwrap().leases[0].holder.as_str(), "ttl");
    world.passes(Span::secs(59), &[&other]);
    // When a call in flight ends is not known; its lease's expiry is no promise.
    assert_eq!(refused(pool.reserve(at_once()).blocking()).retry_after, None);
    world.passes(Span::secs(1), &[&other]);
    drop(pool.reserve(at_once()).blocking().unwrap());
}

#[test]
fn a_heartbeat_extends_a_lease_that_lives_by_itself() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(2)]);
    let request = || at_once().ttl(Duration::from_secs(60));
    let by_id = pool.reserve(request()).blocking().unwrap();
    let by_agent = pool.reserve(request()).blocking().unwrap();
    assert_eq!(by_id.ttl(), Some(Duration::from_secs(60)));
    for _ in 0..3 {
        world.passes(Span::secs(50), &[&process]);
        process.tap.lease(by_id.id()).unwrap().heartbeat().blocking().unwrap();
        let hasty = standpipe::AgentName::new("hasty").unwrap();
        assert_eq!(pool.heartbeat_agent(&hasty).blocking().unwrap(), 2);
    }
    by_agent.commit([]).blocking().unwrap();
    world.passes(Span::secs(61), &[&process]);
    assert!(
        matches!(by_id.commit([]).blocking(), Err(Error::LeaseGone { .. })),
        "the lease is lost"
    );
    assert_whole(&pool);
}

#[test]
fn an_id_makes_a_reserve_repeatable() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let first = pool.reserve(at_once().id("job-7")).blocking().unwrap();
    let again = pool.reserve(at_once().id("job-7")).blocking().unwrap();
    assert_eq!(first.id(), again.id());
    first.commit([]).blocking().unwrap();
    assert!(matches!(again.commit([]).blocking(), Err(Error::LeaseGone { .. })));
    let settled = pool.reserve(at_once().id("job-7")).blocking().unwrap();
    assert!(settled.is_settled(), "its call must not be made again");
    drop(settled);
    assert_whole(&pool);
}

#[test]
fn a_lease_on_another_pool_is_rejected() {
    let world = World::new();
    let process = world.process();
    let (here, there) = (process.limited("t/a", vec![parallel(1)]), process.pool("t/b"));
    let lease = here.reserve(at_once()).blocking().unwrap();
    let report = Throttle::default().lease(lease.id().clone());
    let wrong = there.throttle(&report).blocking().unwrap_err();
    assert!(wrong.to_string().contains("on `t/a`, not on `t/b`"), "{wrong}");
    assert_eq!(here.status().blocking().unwrap().leases.len(), 1, "nothing changed");
}

#[test]
fn a_refused_call_pauses_everyone_and_its_lease_ends() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(2)]);
    let lease = pool.reserve(at_once()).blocking().unwrap();
    lease.throttled(Throttle::default().retry_after(Duration::from_secs(20))).blocking().unwrap();
    let elsewhere = other.pool("t/slots");
    let no = refused(elsewhere.reserve(at_once()).blocking());
    assert_eq!(no.retry_after, Some(Duration::from_secs(20)));
    assert_eq!(elsewhere.status().blocking().unwrap().leases, []);
    elsewhere.throttle(&Throttle::new(ThrottleKind::Terminal)).blocking().unwrap();
    let stopped = refused(pool.reserve(at_once()).blocking());
    assert!(stopped.is_terminal() && stopped.until.is_none(), "{stopped}");
    pool.resume().blocking().unwrap();
    drop(pool.reserve(at_once()).blocking().unwrap());
}

#[test]
fn a_commit_during_an_outage_is_sent_after_it() {
    use std::sync::atomic::Ordering;
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let pool = one.limited("t/slots", vec![parallel(1)]);
    let lease = pool.reserve(at_once()).blocking().unwrap();
    one.store.unavailable.store(true, Ordering::SeqCst);
    drop(lease);
    assert_eq!(other.pool("t/slots").status().blocking().unwrap().leases.len(), 1);
    one.store.unavailable.store(false, Ordering::SeqCst);
    // The maintenance thread sends it again.
    drop(other.pool("t/slots").reserve(crate::support::patient()).blocking().unwrap());
    assert_whole(&pool);
}

#[cfg(target_os = "linux")]
#[test]
fn a_lease_ends_with_the_process_that_owns_it() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let mut owner = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let request = at_once().ttl(Duration::from_secs(600)).owner(owner.id());
    std::mem::forget(pool.reserve(request).blocking().unwrap());
    assert_eq!(pool.status().blocking().unwrap().leases[0].pid, Some(owner.id()));
    owner.kill().unwrap();
    owner.wait().unwrap();
    drop(pool.reserve(crate::support::patient()).blocking().unwrap());
    let gone = pool.reserve(at_once().ttl(Duration::from_secs(1)).owner(owner.id()));
    assert!(matches!(gone.blocking(), Err(Error::Invalid { .. })), "a dead process owns nothing");
}

#[test]
fn what_happened_is_in_the_journal_when_the_process_is_done() {
    let directory = std::env::temp_dir().join(format!("standpipe-story-{}", std::process::id()));
    let world = World::new();
    let other = world.process();
    let pool = other.limited("t/slots", vec![parallel(1)]);
    let store: std::sync::Arc<dyn standpipe::Store> = other.store.clone();
    // A tap of the same process has the same session and the same journal writer.
    let tap = standpipe::Standpipe::builder()
        .settings(standpipe::Settings::default())
        .on(store)
        .home(&directory)
        .open()
        .unwrap();
    let journal = tap.journal().clone();
    let held = pool.reserve(at_once()).blocking().unwrap();
    let brief = Request::by("blog").model("sonnet").timeout(Duration::from_millis(3));
    refused(pool.reserve(brief).blocking());
    held.throttled(Throttle::default().retry_after(Duration::from_secs(1))).blocking().unwrap();
    drop((tap, other, pool));
    let kinds: Vec<EventKind> = journal.events(None, None).map(|event| event.what.kind()).collect();
    for kind in [EventKind::Wait, EventKind::Throttle, EventKind::Pause] {
        assert!(kinds.contains(&kind), "{kind} is not among {kinds:?}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// The client of one pool may take the message of the store about another one.
#[test]
fn a_message_of_the_store_is_in_the_journal_under_its_own_pool() {
    let directory = std::env::temp_dir().join(format!("standpipe-news-{}", std::process::id()));
    let (world, lost) = (World::new(), "t/lost".parse::<standpipe::PoolName>().unwrap());
    let other = world.process();
    let pool = other.limited("t/slots", vec![parallel(1)]);
    let store: std::sync::Arc<dyn standpipe::Store> = other.store.clone();
    let builder = standpipe::Standpipe::builder().settings(standpipe::Settings::default());
    let tap = builder.on(store).home(&directory).open().unwrap();
    let journal = tap.journal().clone();
    other.store.messages.push(Some(&lost), "its ledger was deleted".to_owned());
    other.store.messages.push(None, "the list of pools starts again".to_owned());
    drop(pool.reserve(at_once()).blocking().unwrap());
    drop((tap, other, pool));
    let events = journal.events(None, Some(EventKind::Store));
    let pools: Vec<String> = events.map(|event| event.pool.clone()).collect();
    assert_eq!(pools, ["t/lost", "t/slots"]);
    std::fs::remove_dir_all(directory).unwrap();
}

//! Pools within pools: one lease to the caller, drawn from every pool, dated to the last grant.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{
    Actor, Hand, LONG, World, assert_whole, at_once, file, parallel, patient, refused,
};
use standpipe::{
    Error, Lease, Pool, PoolConfig, Priority, Reason, Reply, Request, Span, Throttle, Unit,
};
use standpipe_store::fault_injection::Fault;

/// A child with a rate of its own and a parent with slots.
const FAMILY: &str = "[pool.\"t/org\"]\nparallel = 1\nrequests = \"50/min\"\nmargin = 0\n\
                      slack = 0\n\
                      [pool.\"t/model\"]\nrequests = \"1/min\"\nmargin = 0\nslack = 0\n\
                      within = \"t/org\"\n";

fn family() -> (World, Actor, Pool, Pool) {
    family_of(FAMILY)
}

fn family_of(text: &str) -> (World, Actor, Pool, Pool) {
    let world = World::new();
    let process = world.process_with(file(text, 1));
    let (child, parent) = (process.pool("t/model"), process.pool("t/org"));
    (world, process, child, parent)
}

fn very_patient() -> Request {
    Request::by("patient").timeout(10 * LONG)
}

fn used(pool: &Pool) -> u64 {
    let status = pool.status().blocking().unwrap();
    status.limits.iter().find(|limit| limit.period_ms.is_some()).unwrap().used
}

fn in_flight(pool: &Pool) -> usize {
    pool.status().blocking().unwrap().leases.len()
}

#[test]
fn every_lease_of_a_child_draws_on_its_parent_and_is_one_lease() {
    let (_world, _process, child, parent) = family();
    let lease = child.reserve(at_once()).blocking().unwrap();
    assert_eq!(lease.pool().as_str(), "t/model");
    let pools: Vec<String> = lease.pools().map(ToString::to_string).collect();
    assert_eq!(pools, ["t/model", "t/org"]);
    assert_eq!((used(&child), used(&parent)), (1, 1));
    let shown = parent.status().blocking().unwrap().leases;
    assert_eq!(shown[0].part_of.as_deref(), Some("t/model"), "the parent shows whose call it is");
    assert_eq!(child.status().blocking().unwrap().leases[0].part_of, None);
    lease.cancel().blocking().unwrap();
    assert_whole(&child);
    assert_whole(&parent);
    // The parent can be used by itself.
    drop(parent.reserve(at_once()).blocking().unwrap());
    assert_eq!((used(&child), used(&parent)), (0, 1));
}

#[test]
fn another_process_settles_the_whole_lease_by_its_id() {
    let world = World::new();
    let (one, other) = (world.process_with(file(FAMILY, 1)), world.process());
    let (child, parent) = (one.pool("t/model"), one.pool("t/org"));
    for settle in 0..3 {
        let request = at_once().ttl(Duration::from_secs(30));
        let id = child.reserve(request).blocking().unwrap().into_id();
        let text = id.to_string();
        let lease = other.tap.lease(&text.parse().unwrap()).unwrap();
        assert_eq!((in_flight(&child), in_flight(&parent)), (1, 1));
        world.passes(Span::secs(20), &[&one, &other]);
        lease.heartbeat().blocking().unwrap();
        world.passes(Span::secs(20), &[&one, &other]);
        assert_eq!((in_flight(&child), in_flight(&parent)), (1, 1), "both were extended");
        match settle {
            0 => lease.commit([]).blocking().unwrap(),
            1 => lease.cancel().blocking().unwrap(),
            _ => world.passes(Span::secs(31), &[&one, &other]),
        }
        assert_eq!((in_flight(&child), in_flight(&parent)), (0, 0), "{settle}");
        assert!(matches!(lease.commit([]).blocking(), Err(Error::LeaseGone { .. })));
        world.passes(Span::secs(61), &[&one, &other]);
    }
}

#[test]
fn a_refusal_by_the_parent_names_it_and_gives_the_child_back() {
    let (_world, process, child, parent) = family();
    let held = parent.reserve(at_once()).blocking().unwrap();
    for by_hand in [true, false] {
        let reserving = child.reserve(at_once());
        let result = if by_hand { Hand::new(reserving).run() } else { reserving.blocking() };
        let refused = refused(result);
        assert_eq!(refused.pool.as_str(), "t/org");
        assert_eq!((refused.reason, refused.limit.as_deref()), (Reason::Limit, Some("parallel")));
        assert_whole(&child);
    }
    let mut waits = Hand::new(child.reserve(patient()));
    assert!(waits.poll().is_pending());
    assert_eq!((in_flight(&child), in_flight(&parent)), (1, 1));
    drop(waits);
    assert_whole(&child);
    drop(held);
    assert_eq!(process.pool("t/org").status().blocking().unwrap().tickets, []);
}

/// A call that waited 40 s for the parent is sent 40 s after the child admitted it.
#[test]
fn earlier_charges_are_dated_to_the_last_grant() {
    let (world, process, child, parent) = family();
    let held = parent.reserve(at_once()).blocking().unwrap();
    let mut waits = Hand::new(child.reserve(patient()));
    assert!(waits.poll().is_pending());
    world.passes(Span::secs(40), &[&process]);
    held.commit([]).blocking().unwrap();
    drop(waits.run().unwrap());
    world.passes(Span::secs(30), &[&process]);
    assert_eq!(used(&child), 1, "70 s after the child's grant, 30 s after the call");
    world.passes(Span::secs(30), &[&process]);
    assert_eq!(used(&child), 0);
}

/// After a whole period the child's unit may have been used by others, so the call asks again; it
/// does not hold the parent's slot meanwhile.
#[test]
fn a_pool_whose_period_has_passed_is_asked_again() {
    let (world, process, child, parent) = family();
    let held = parent.reserve(at_once()).blocking().unwrap();
    let mut first = Hand::new(child.reserve(very_patient()));
    assert!(first.poll().is_pending());
    world.passes(Span::secs(61), &[&process]);
    let mut second = Hand::new(child.reserve(very_patient()));
    assert!(second.poll().is_pending());
    world.passes(Span::secs(5), &[&process]);
    held.commit([]).blocking().unwrap();
    // The second took the only unit of the child, so the first waits for it without the parent.
    first.wait();
    assert!(first.poll().is_pending());
    let lease = second.run().unwrap();
    assert_eq!((in_flight(&child), in_flight(&parent)), (1, 1));
    lease.commit([]).blocking().unwrap();
    world.passes(Span::secs(61), &[&process]);
    drop(first.run().unwrap());
    assert_eq!((used(&child), in_flight(&parent)), (1, 0));
}

/// A call that waits for the parent gives the child back to a call of a higher priority.
#[test]
fn a_call_that_waits_for_the_parent_does_not_hold_up_a_critical_one() {
    let text = FAMILY.replace("requests = \"1/min\"", "parallel = 1");
    let (_world, _process, child, parent) = family_of(&text);
    let held = parent.reserve(at_once()).blocking().unwrap();
    let mut standard = Hand::new(child.reserve(patient()));
    assert!(standard.poll().is_pending());
    let critical = Request::by("urgent").priority(Priority::Critical).timeout(LONG);
    let mut critical = Hand::new(child.reserve(critical));
    assert!(critical.poll().is_pending());
    assert_eq!(child.status().blocking().unwrap().tickets.len(), 1);
    standard.wait();
    assert!(standard.poll().is_pending());
    critical.wait();
    assert!(critical.poll().is_pending());
    let tiers: Vec<_> = parent.status().blocking().unwrap().tickets;
    let tiers: Vec<&str> = tiers.iter().map(|ticket| ticket.priority.as_str()).collect();
    assert_eq!(tiers, ["critical", "standard"], "both wait for the parent, in order");
    held.commit([]).blocking().unwrap();
    let lease = critical.run().unwrap();
    assert_eq!(lease.agent(), "urgent");
    drop(lease);
    drop(standard.run().unwrap());
    assert_whole(&child);
}

#[test]
fn nothing_is_held_while_a_later_pool_is_paused() {
    let text = FAMILY.replace("requests = \"1/min\"", "parallel = 1");
    let (world, process, child, parent) = family_of(&text);
    parent.pause(Duration::from_secs(30)).blocking().unwrap();
    let mut waits = Hand::new(child.reserve(patient()));
    assert!(waits.poll().is_pending());
    assert_whole(&child);
    assert_eq!(parent.status().blocking().unwrap().tickets.len(), 1);
    world.passes(Span::secs(40), &[&process]);
    let lease = waits.run().unwrap();
    assert_eq!((in_flight(&child), in_flight(&parent)), (1, 1));
    drop(lease);
}

#[test]
fn a_child_pauses_while_its_parent_serves_others() {
    let text = format!("{FAMILY}[pool.\"t/other\"]\nparallel = 9\nwithin = \"t/org\"\n");
    let (world, process, child, parent) = family_of(&text);
    let other = process.pool("t/other");
    child.pause(Duration::from_secs(30)).blocking().unwrap();
    let mut waits = Hand::new(child.reserve(patient()));
    assert!(waits.poll().is_pending());
    for _ in 0..3 {
        drop(other.reserve(at_once()).blocking().unwrap());
    }
    assert_eq!(
        in_flight(&parent),
        0,
        "a call that waits for the child holds nothing of the parent"
    );
    world.passes(Span::secs(31), &[&process]);
    drop(waits.run().unwrap());
    // The other way round: a call that was granted before the pause is not sent into it.
    world.passes(Span::secs(60), &[&process]);
    let held = parent.reserve(at_once()).blocking().unwrap();
    let mut waits = Hand::new(child.reserve(patient()));
    assert!(waits.poll().is_pending());
    world.passes(Span::secs(1), &[&process]);
    child.pause(Duration::from_secs(30)).blocking().unwrap();
    held.commit([]).blocking().unwrap();
    waits.wait();
    assert!(waits.poll().is_pending());
    assert_eq!(in_flight(&parent), 0, "it gave the parent back");
    world.passes(Span::secs(31), &[&process]);
    drop(waits.run().unwrap());
}

#[test]
fn twenty_children_share_one_parent() {
    let mut text = "[pool.\"t/org\"]\nparallel = 3\n".to_owned();
    for child in 0..20 {
        let limits = "parallel = 2\nwithin = \"t/org\"\n";
        text.push_str(&format!("[pool.\"t/{child}\"]\n{limits}"));
    }
    let world = World::new();
    let processes: Vec<Actor> = (0..4).map(|_| world.process_with(file(&text, 1))).collect();
    let most = std::sync::atomic::AtomicUsize::new(0);
    let now = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for child in 0..20 {
            let (process, most, now) = (&processes[child % 4], &most, &now);
            scope.spawn(move || {
                let pool = process.pool(&format!("t/{child}"));
                for _ in 0..10 {
                    let lease = pool.reserve(Request::by("w").timeout(LONG)).blocking().unwrap();
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                    lease.commit([]).blocking().unwrap();
                }
            });
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
    for child in 0..20 {
        assert_whole(&processes[0].pool(&format!("t/{child}")));
    }
    assert_whole(&processes[0].pool("t/org"));
}

#[test]
fn a_crash_between_two_grants_leaks_nothing() {
    let world = World::new();
    let text = FAMILY.replace("requests = \"1/min\"", "parallel = 1");
    let (one, other) = (world.process_with(file(&text, 1)), world.process_with(file(&text, 1)));
    let held = other.pool("t/org").reserve(at_once()).blocking().unwrap();
    let mut waits = Hand::new(one.pool("t/model").reserve(patient()));
    assert!(waits.poll().is_pending());
    one.dies();
    held.commit([]).blocking().unwrap();
    let lease = other.pool("t/model").reserve(at_once()).blocking().unwrap();
    lease.commit([]).blocking().unwrap();
    assert_whole(&other.pool("t/model"));
    std::mem::forget(waits);
}

#[test]
fn pools_of_two_stores_are_refused_with_the_reason() {
    let (one, other) = (World::new(), World::new());
    let (one, other) = (one.process(), other.process());
    let a = one.limited("t/a", vec![parallel(1)]);
    let b = other.limited("t/b", vec![parallel(1)]);
    let both = vec![(a.clone(), at_once()), (b, at_once())];
    let error = one.tap.reserve_all(both).blocking().unwrap_err().to_string();
    assert!(error.contains("`t/a` and `t/b` are on different stores"), "{error}");
    assert_whole(&a);
}

/// The commit succeeds with the named pool; the parent's is sent again after the store failed.
#[test]
fn a_commit_does_not_half_fail() {
    let (_world, process, child, parent) = family();
    let lease = child.reserve(at_once()).blocking().unwrap();
    process.store.faults.push(Fault::None);
    process.store.faults.push(Fault::Cut);
    lease.commit([]).blocking().unwrap();
    assert_eq!((in_flight(&child), in_flight(&parent)), (0, 0));
    let lease = parent.reserve(at_once()).blocking().unwrap();
    lease.commit([]).blocking().unwrap();
}

#[test]
fn a_429_that_names_a_limit_only_the_parent_has_pauses_the_parent() {
    let text = "[pool.\"openai/org\"]\ntokens = \"30k/min\"\n\
                [pool.\"openai/gpt\"]\nrequests = \"60/min\"\nwithin = \"openai/org\"\n";
    let world = World::new();
    let process = world.process_with(file(text, 1));
    let (child, parent) = (process.pool("openai/gpt"), process.pool("openai/org"));
    let paused = |pool: &Pool| pool.paused().blocking().unwrap().is_some();
    let reply = || {
        let body = br#"{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM):
            Limit 30000, Used 29012, Requested 2100. Please try again in 2.224s.",
            "type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#;
        Reply::new(429).body(*body)
    };
    let request = || at_once().unit("tokens", 100);
    let answers: [&dyn Fn(Lease); 4] = [
        &|lease| drop(lease.answered(reply()).blocking().unwrap()),
        &|lease| {
            let hit = Throttle::default().hit(Unit::Tokens, Some(Duration::from_secs(60)));
            lease.throttled(hit).blocking().unwrap();
        },
        &|lease| {
            drop(child.observe_reply(&reply(), None).blocking().unwrap());
            drop(lease);
        },
        &|lease| {
            let handle = process.tap.lease(lease.id()).unwrap();
            handle.answered_using(reply(), []).blocking().unwrap();
            drop(lease);
        },
    ];
    for answer in answers {
        answer(child.reserve(request()).blocking().unwrap());
        assert_eq!((paused(&child), paused(&parent)), (false, true));
        assert_eq!((in_flight(&child), in_flight(&parent)), (0, 0));
        parent.resume().blocking().unwrap();
        world.passes(Span::secs(120), &[&process]);
    }
    // Without a limit, or with one of its own, the named pool pauses.
    for hit in [Throttle::default(), Throttle::default().hit(Unit::Requests, None)] {
        let lease = child.reserve(request()).blocking().unwrap();
        lease.throttled(hit).blocking().unwrap();
        assert_eq!((paused(&child), paused(&parent)), (true, false));
        child.resume().blocking().unwrap();
        world.passes(Span::secs(120), &[&process]);
    }
}

#[test]
fn a_header_about_a_limit_of_the_parent_is_observed_there() {
    let text = "[pool.\"anthropic/org\"]\ninput_tokens = \"80k/min\"\n\
                [pool.\"anthropic/sonnet\"]\nrequests = \"1000/min\"\nwithin = \"anthropic/org\"\n";
    let world = World::new();
    let process = world.process_with(file(text, 1));
    let (child, parent) = (process.pool("anthropic/sonnet"), process.pool("anthropic/org"));
    let lease = child.reserve(at_once().unit("input_tokens", 10)).blocking().unwrap();
    let reply = Reply::new(200)
        .header("anthropic-ratelimit-requests-limit", "900")
        .header("anthropic-ratelimit-input-tokens-limit", "70000");
    lease.answered(reply).blocking().unwrap();
    let stated = |pool: &Pool| {
        let limits = pool.status().blocking().unwrap().limits;
        limits.iter().map(|limit| limit.learned).collect::<Vec<_>>()
    };
    assert_eq!((stated(&child), stated(&parent)), (vec![Some(900)], vec![Some(70_000)]));
}

#[test]
fn an_id_is_one_call_on_all_pools() {
    let text = format!("{FAMILY}[pool.\"t/other\"]\nparallel = 9\nwithin = \"t/org\"\n");
    let text = text.replace("parallel = 1\n", "parallel = 4\n");
    let (_world, process, child, parent) = family_of(&text);
    let request = || at_once().id("x").ttl(Duration::from_secs(60));
    let first = child.reserve(request()).blocking().unwrap();
    let again = child.reserve(request()).blocking().unwrap();
    assert_eq!(first.id(), again.id());
    assert!(!again.is_new());
    drop(again.into_id());
    let other = process.pool("t/other").reserve(request()).blocking().unwrap();
    assert_eq!(in_flight(&parent), 2, "the same id on another child is another call");
    first.commit([]).blocking().unwrap();
    assert!(child.reserve(request()).blocking().unwrap().is_settled());
    drop(other);
    assert_eq!(in_flight(&parent), 0);
}

#[test]
fn an_id_whose_call_was_refused_by_the_parent_can_be_used_again() {
    let (_world, _process, child, parent) = family();
    let request = || at_once().id("x");
    let held = parent.reserve(at_once()).blocking().unwrap();
    assert_eq!(refused(child.reserve(request()).blocking()).pool.as_str(), "t/org");
    held.commit([]).blocking().unwrap();
    let lease = child.reserve(request()).blocking().unwrap();
    assert!(lease.is_new() && !lease.is_settled());
    lease.cancel().blocking().unwrap();
    // The same for a caller that gives up while it waits for the parent.
    let held = parent.reserve(at_once()).blocking().unwrap();
    let mut waits = Hand::new(child.reserve(patient().id("y")));
    assert!(waits.poll().is_pending());
    drop(waits);
    held.commit([]).blocking().unwrap();
    let lease = child.reserve(patient().id("y")).blocking().unwrap();
    assert!(lease.is_new() && !lease.is_settled());
}

#[test]
fn a_process_without_the_file_follows_the_ledger() {
    let world = World::new();
    let (one, other) = (world.process_with(file(FAMILY, 1)), world.process());
    let parent = one.pool("t/org");
    drop(one.pool("t/model").status().blocking().unwrap());
    drop(parent.status().blocking().unwrap());
    for by_hand in [true, false] {
        let reserving = other.pool("t/model").reserve(at_once());
        let lease = if by_hand { Hand::new(reserving).run() } else { reserving.blocking() };
        let lease = lease.unwrap();
        assert_eq!((lease.pools().count(), in_flight(&parent)), (2, 1));
        lease.cancel().blocking().unwrap();
        assert_whole(&parent);
    }
    let held = parent.reserve(at_once()).blocking().unwrap();
    let error = refused(other.pool("t/model").reserve(at_once()).blocking());
    assert_eq!(error.pool.as_str(), "t/org");
    assert_whole(&one.pool("t/model"));
    drop(held);
}

#[test]
fn a_parent_ignores_units_that_it_does_not_limit() {
    let text = "[pool.\"t/org\"]\nrequests = \"9/min\"\n\
                [pool.\"t/model\"]\nwithin = \"t/org\"\n\
                [pool.\"t/model\".units]\ngpu_ms = \"90/min\"\n";
    let (_world, _process, child, parent) = family_of(text);
    let lease = child.reserve(at_once().unit("gpu_ms", 50).unit("tokens", 9)).blocking().unwrap();
    lease.commit([(Unit::named("gpu_ms").unwrap(), 40)]).blocking().unwrap();
    assert_eq!((used(&child), used(&parent)), (40, 1));
}

#[test]
fn a_chain_of_three_is_taken_from_the_bottom_to_the_top() {
    // The names are in the opposite order.
    let text = "[pool.\"t/x\"]\nparallel = 1\n[pool.\"t/y\"]\nparallel = 1\nwithin = \"t/x\"\n\
                [pool.\"t/z\"]\nparallel = 1\nwithin = \"t/y\"\n";
    let world = World::new();
    let process = world.process_with(file(text, 1));
    let [x, y, z] = ["t/z", "t/y", "t/x"].map(|name| process.pool(name));
    let held = y.reserve(at_once()).blocking().unwrap();
    assert_eq!((in_flight(&x), in_flight(&y), in_flight(&z)), (0, 1, 1));
    let mut waits = Hand::new(x.reserve(patient()));
    assert!(waits.poll().is_pending());
    assert_eq!((in_flight(&x), in_flight(&y), in_flight(&z)), (1, 1, 1));
    assert_eq!(y.status().blocking().unwrap().tickets.len(), 1);
    held.cancel().blocking().unwrap();
    let lease = waits.run().unwrap();
    let pools: Vec<String> = lease.pools().map(ToString::to_string).collect();
    assert_eq!(pools, ["t/z", "t/y", "t/x"]);
    drop(lease);
    [x, y, z].iter().for_each(assert_whole);
}

#[test]
fn a_call_may_name_further_pools_and_is_one_lease() {
    let world = World::new();
    let process = world.process();
    let [a, b, c] = ["t/a", "t/b", "t/c"].map(|name| process.limited(name, vec![parallel(1)]));
    let lease = c.reserve(at_once().also("t/a").also("t/b")).blocking().unwrap();
    assert_eq!(lease.pool().as_str(), "t/c");
    assert_eq!(refused(b.reserve(at_once()).blocking()).pool.as_str(), "t/b");
    lease.commit([]).blocking().unwrap();
    [&a, &b, &c].into_iter().for_each(assert_whole);
    let invalid = |request: Request| match c.reserve(request).blocking() {
        Err(error @ Error::Invalid { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(invalid(at_once().also("t/c")).contains("`t/c` is named twice"));
    assert!(invalid(at_once().also("t/a").also("t/a")).contains("`t/a` is named twice"));
    assert!(invalid(at_once().also("nopool")).contains("cannot be the name of a pool"));
    let many = (0..8).fold(at_once(), |request, n| request.also(format!("t/{n}")));
    assert!(invalid(many).contains("more than 8 pools"));
    [&a, &b, &c].into_iter().for_each(assert_whole);
}

#[test]
fn reports_of_a_lease_reach_all_its_pools() {
    let text = FAMILY.replace("requests = \"1/min\"", "tokens = \"90/min\"");
    let text = text.replace("requests = \"50/min\"", "tokens = \"90/min\"");
    let (world, process, child, parent) = family_of(&text);
    let lease = child.reserve(at_once().unit("tokens", 50)).blocking().unwrap();
    lease.progress([(Unit::Tokens, 20)]).blocking().unwrap();
    assert_eq!((used(&child), used(&parent)), (20, 20));
    let id = lease.keep(Duration::from_secs(9)).blocking().unwrap();
    world.passes(Span::secs(8), &[&process]);
    assert_eq!((in_flight(&child), in_flight(&parent)), (1, 1));
    world.passes(Span::secs(2), &[&process]);
    assert_eq!((in_flight(&child), in_flight(&parent)), (0, 0), "both have the time to live");
    assert_eq!(id.pools().count(), 2);
}

/// A parent that the ledgers name in a circle ends the chain.
#[test]
fn a_circle_of_ledgers_is_followed_once() {
    let world = World::new();
    let process = world.process();
    for (name, within) in [("t/a", "t/b"), ("t/b", "t/a")] {
        let within = standpipe_core::PoolRef::new(within);
        let config = PoolConfig { within, ..PoolConfig::new(vec![parallel(1)]) };
        process.pool(name).change(config).blocking().unwrap();
    }
    let lease = process.pool("t/a").reserve(at_once()).blocking().unwrap();
    assert_eq!(lease.pools().count(), 2);
}

/// Across a network the steps of a task are taken by workers.
#[test]
fn a_task_on_a_remote_store_draws_on_all_pools() {
    let (world, process, child, parent) = family();
    process.store.remote.store(true, Ordering::SeqCst);
    let held = parent.reserve(at_once()).blocking().unwrap();
    let mut waits = Hand::new(child.reserve(patient()));
    assert!(waits.poll().is_pending());
    // When the child has granted, the next poll asks the parent.
    while !waits_at(&parent) {
        assert!(waits.poll().is_pending());
    }
    world.passes(Span::secs(40), &[&process]);
    held.commit([]).blocking().unwrap();
    let lease = waits.run().unwrap();
    assert_eq!((in_flight(&child), in_flight(&parent)), (1, 1));
    lease.commit([]).blocking().unwrap();
    assert_eq!((in_flight(&child), in_flight(&parent)), (0, 0));
    world.passes(Span::secs(30), &[&process]);
    assert_eq!(used(&child), 1, "dated to the last grant");
}

fn waits_at(pool: &Pool) -> bool {
    !pool.status().blocking().unwrap().tickets.is_empty()
}

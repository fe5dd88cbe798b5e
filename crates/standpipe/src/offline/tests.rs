//! Decisions of the offline ledger while the store takes no writes, in virtual time.

mod referee;
mod world;

use standpipe_core::Span;

use self::world::{Link, Process, World};

const SHARE: &str = "requests = \"10/min\"\ncontent = \"1M/d\"\non_store_failure = \"share\"";

/// Processes that are known to each other.
fn processes(world: &World, count: usize, pool: &str) -> Vec<Process> {
    let all: Vec<Process> = (0..count).map(|_| world.process(pool)).collect();
    for process in &all {
        process.call().unwrap().cancel().blocking().unwrap();
    }
    world.passes_with(Span::secs(31), &all);
    all
}

/// The first call of an outage fails; a second later the store counts as unavailable.
fn notices(world: &World, process: &Process) {
    assert!(process.call().is_err(), "not known yet");
    world.passes(Span::secs(1));
}

fn used(process: &Process, unit: &str) -> u64 {
    let status = process.pool.status().blocking().unwrap();
    assert!(status.cut_off.is_none());
    status.limits.iter().find(|limit| limit.limit.contains(unit)).unwrap().used
}

#[test]
fn a_store_that_answers_reads_and_refuses_writes_grants_one_share() {
    let world = World::new();
    let all = processes(&world, 2, SHARE);
    all[0].set(Link::NoWrites);
    notices(&world, &all[0]);
    let mut granted = 0;
    for _ in 0..50 {
        granted += all[0].calls(20);
        world.passes_with(Span::millis(500), &all);
        assert!(all[0].is_cut_off(), "a read does not end it");
    }
    assert_eq!(granted, 5, "half of ten within a minute");
}

#[test]
fn a_store_that_fails_repeatedly_grants_one_share() {
    let world = World::new();
    let all = processes(&world, 2, SHARE);
    let mut granted = 0;
    for _ in 0..8 {
        all[0].set(Link::Cut);
        notices(&world, &all[0]);
        granted += all[0].calls(20);
        all[0].set(Link::Up);
        all[0].maintain();
        all[0].maintain();
        assert!(!all[0].is_cut_off());
    }
    assert_eq!(granted, 5, "half of ten within a minute");
    assert_eq!(used(&all[1], "content"), 5, "each handed over once");
}

#[test]
fn idle_processes_count_as_sharers() {
    let world = World::new();
    let all = processes(&world, 8, &SHARE.replace("10/min", "80/h"));
    world.passes_with(Span::secs(130), &all);
    all[0].call().unwrap().cancel().blocking().unwrap();
    let mut granted = 0;
    for process in &all {
        process.set(Link::Cut);
        notices(&world, process);
        granted += process.calls(100);
        assert_eq!(process.among(), Some(8));
    }
    assert_eq!(granted, 80, "an eighth each");
}

#[test]
fn a_process_whose_last_write_is_old_waits_for_the_store() {
    let world = World::new();
    let all = processes(&world, 2, SHARE);
    // Stopped, for example: nothing of it runs.
    world.passes(Span::secs(61));
    all[0].set(Link::Cut);
    notices(&world, &all[0]);
    assert_eq!(all[0].calls(5), 0, "no other process counts it any more");
    all[0].set(Link::Up);
    assert_eq!(all[0].calls(5), 5);
    all[0].set(Link::Cut);
    notices(&world, &all[0]);
    all[0].calls(1);
    assert!(all[0].is_cut_off(), "it has written again");
}

#[test]
fn a_share_begins_with_own_usage_and_its_part_of_unowned_usage() {
    let world = World::new();
    let pool = SHARE.replace("10/min", "40/h");
    let all = processes(&world, 2, &pool);
    assert_eq!(all[0].calls(3), 3);
    assert_eq!(all[1].calls(12), 12);
    // A process that ended before the outage used five.
    let gone = world.process(&pool);
    assert_eq!(gone.calls(5), 5);
    drop(gone);
    world.passes_with(Span::secs(130), &all);
    all[0].set(Link::Cut);
    notices(&world, &all[0]);
    // Three sessions were alive at once: 13 each, less 3 of its own, less a third of five.
    assert_eq!(all[0].calls(30), 13 - 3 - 2);
    all[1].set(Link::Cut);
    notices(&world, &all[1]);
    assert_eq!(all[1].calls(30), 0, "it has used 12, and two of the unowned usage");
}

#[test]
fn a_call_that_the_store_admitted_is_settled_in_both_ledgers() {
    let world = World::new();
    let pool = format!("parallel = 2\n{SHARE}");
    let all = processes(&world, 2, &pool);
    let held = all[0].call().unwrap();
    all[0].set(Link::Cut);
    notices(&world, &all[0]);
    assert!(all[0].call().is_err(), "its only slot is in use");
    held.commit([]).blocking().unwrap();
    let lease = all[0].call().unwrap();
    assert!(lease.is_local());
    all[0].set(Link::Up);
    world.passes_with(Span::secs(2), &all);
    assert_eq!(
        all[1].pool.status().blocking().unwrap().leases.len(),
        1,
        "the first is settled there, too"
    );
    lease.commit([]).blocking().unwrap();
    assert_eq!(all[1].pool.status().blocking().unwrap().leases.len(), 0);
}

#[test]
fn a_long_outage_is_handed_over_whole() {
    const CALLS: usize = 20_000;
    let world = World::new();
    let pool = "requests = \"5/min\"\ncontent = \"1M/d\"\non_store_failure = \"open\"";
    let all = processes(&world, 2, pool);
    all[0].set(Link::NoWrites);
    notices(&world, &all[0]);
    let mut in_flight = Vec::new();
    for call in 0..CALLS {
        let lease = all[0].call_as(["blog", "news", "picard"][call % 3]).unwrap();
        // Every call that is in flight when the store is available again is handed over as a lease.
        match call % 40 {
            0 => in_flight.push(lease),
            1 => lease.cancel().blocking().unwrap(),
            _ => lease.commit([]).blocking().unwrap(),
        }
        world.passes(Span::millis(40));
        if call % 500 == 0 {
            all[0].maintain();
        }
    }
    all[0].set(Link::Up);
    world.passes_with(Span::secs(3), &all);
    assert!(!all[0].is_cut_off());
    assert_eq!(used(&all[1], "content"), (CALLS - CALLS / 40) as u64);
    assert_eq!(all[1].pool.status().blocking().unwrap().leases.len(), in_flight.len());
    drop(in_flight);
    world.passes_with(Span::secs(1), &all);
    assert_eq!(all[1].pool.status().blocking().unwrap().leases.len(), 0);
    assert_eq!(used(&all[1], "content"), (CALLS - CALLS / 40) as u64);
}

#[test]
fn a_hand_over_whose_answers_are_lost_counts_once() {
    let world = World::new();
    let all = processes(&world, 2, &SHARE.replace("10/min", "600/min"));
    all[0].set(Link::Cut);
    notices(&world, &all[0]);
    let held: Vec<_> = (0..200).map(|_| all[0].call().unwrap()).collect();
    assert_eq!(all[0].calls(100), 100);
    for answers in [1, 0] {
        all[0].loses_answers_after(answers);
        all[0].maintain();
        assert!(all[0].is_cut_off());
        all[0].set(Link::NoWrites);
        all[0].maintain();
        assert!(all[0].is_cut_off(), "only a write that is answered ends it");
    }
    all[0].set(Link::Up);
    world.passes_with(Span::secs(3), &all);
    assert!(!all[0].is_cut_off());
    assert_eq!(used(&all[1], "content"), 300);
    assert_eq!(all[1].pool.status().blocking().unwrap().leases.len(), 200);
    drop(held);
    world.passes_with(Span::secs(1), &all);
    assert_eq!(all[1].pool.status().blocking().unwrap().leases.len(), 0);
}

#[test]
fn a_hand_over_whose_answer_is_lost_counts_once_although_its_session_is_forgotten() {
    let world = World::new();
    let all = processes(&world, 2, &SHARE.replace("10/min", "600/h"));
    all[0].set(Link::Cut);
    notices(&world, &all[0]);
    assert_eq!(all[0].calls(50), 50);
    // A heartbeat succeeds, and then the answer to the hand-over is lost.
    all[0].loses_answers_after(1);
    all[0].maintain();
    all[0].set(Link::Cut);
    world.passes_with(Span::secs(200), &all);
    assert!(all[0].is_cut_off());
    all[0].set(Link::Up);
    world.passes_with(Span::secs(2), &all);
    assert!(!all[0].is_cut_off());
    assert_eq!(used(&all[1], "content"), 50);
}

#[test]
fn a_refusal_of_the_provider_during_an_outage_pauses_everyone_afterwards() {
    let world = World::new();
    let all = processes(&world, 2, SHARE);
    all[0].set(Link::Cut);
    notices(&world, &all[0]);
    let lease = all[0].call().unwrap();
    lease.throttled(crate::Throttle::new(crate::ThrottleKind::Quota)).blocking().unwrap();
    assert!(all[0].pool.status().blocking().unwrap().pause.is_some(), "here at once");
    assert!(all[0].call().is_err());
    all[0].set(Link::Up);
    world.passes_with(Span::secs(1), &all);
    assert!(all[1].pool.status().blocking().unwrap().pause.is_some(), "and there when it is known");
    assert_eq!(used(&all[1], "content"), 1);
}

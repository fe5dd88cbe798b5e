//! Workflows: who is downstream learns of a throttled agent, on whatever pool, and may have to
//! wait.

use std::time::Duration;

use standpipe::{Reason, Reply, Request, Span, Throttle};

use crate::support::{World, at_once, file};

const CHAIN: &str = "\
[pool.\"anthropic/sonnet\"]\nparallel = 9\n\
[pool.\"github/core\"]\nparallel = 9\n\
[workflow.issue-to-deploy]\nagents = [\"ralph\", \"picard\", \"data\"]\n";

fn hasty(agent: &str) -> Request {
    Request::by(agent).timeout(Duration::ZERO)
}

#[test]
fn everybody_downstream_is_told_with_the_next_answer() {
    let world = World::new();
    let (one, two) = (world.process_with(file(CHAIN, 1)), world.process_with(file(CHAIN, 1)));
    let (model, github) = (one.pool("anthropic/sonnet"), two.pool("github/core"));
    let lease = model.reserve(hasty("ralph")).blocking().unwrap();
    lease.answered(&Reply::new(429).header("retry-after", "60")).unwrap();

    for agent in ["picard", "data"] {
        let lease = github.reserve(hasty(agent)).blocking().unwrap();
        let told = lease.backpressure().expect("it is told");
        assert_eq!((&*told.agent, &*told.pool), ("ralph", "anthropic/sonnet"));
        assert_eq!(told.until_ms, 60_000);
        lease.commit([]).unwrap();
    }
    for agent in ["ralph", "stranger"] {
        let lease = github.reserve(hasty(agent)).blocking().unwrap();
        assert_eq!(lease.backpressure(), None, "{agent} works for nobody who is throttled");
        lease.commit([]).unwrap();
    }
    let no = model.reserve(hasty("data")).blocking().unwrap_err();
    let no = no.as_refused().unwrap();
    assert_eq!((no.reason, no.backpressure.is_some()), (Reason::Pause, true));
    assert_eq!(two.tap.backpressure().unwrap().len(), 1);
    assert!(two.tap.pools().unwrap().iter().all(|pool| !pool.as_str().starts_with("standpipe/")));

    world.passes(Span::secs(61), &[&one, &two]);
    let lease = github.reserve(hasty("data")).blocking().unwrap();
    assert_eq!(lease.backpressure(), None, "it comes down by itself");
}

/// A second refusal lengthens the note, and a resume takes it down.
#[test]
fn a_note_follows_the_pause() {
    let world = World::new();
    let process = world.process_with(file(CHAIN, 1));
    let (model, github) = (process.pool("anthropic/sonnet"), process.pool("github/core"));
    for after in [20, 90] {
        let report = Throttle::default().agent("picard").retry_after(Duration::from_secs(after));
        model.throttle(&report).unwrap();
        let notes = process.tap.backpressure().unwrap();
        let ends: Vec<u64> = notes.iter().map(|note| note.until_ms).collect();
        assert_eq!(ends, [after * 1_000]);
    }
    model.resume().unwrap();
    assert_eq!(process.tap.backpressure().unwrap(), []);
    assert!(github.reserve(hasty("data")).blocking().unwrap().backpressure().is_none());
}

/// Where the workflow says so, those downstream wait, on pools that have all the room.
#[test]
fn a_held_workflow_waits_and_blocks_nobody() {
    let world = World::new();
    let process = world.process_with(file(&format!("{CHAIN}hold = true\n"), 1));
    let (model, github) = (process.pool("anthropic/sonnet"), process.pool("github/core"));
    let report = Throttle::default().agent("ralph").retry_after(Duration::from_secs(30));
    model.throttle(&report).unwrap();
    let no = github.reserve(hasty("data")).blocking().unwrap_err();
    let no = no.as_refused().unwrap();
    assert_eq!((no.reason, no.retry_after), (Reason::Hold, Some(Duration::from_secs(30))));
    github.reserve(at_once()).blocking().unwrap().commit([]).unwrap();
    world.passes(Span::secs(30), &[&process]);
    github.reserve(hasty("data")).blocking().unwrap().commit([]).unwrap();
}

/// Without a workflow nothing is pinned, and there is no board.
#[test]
fn nobody_is_told_without_a_workflow() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("a/b", vec![crate::support::parallel(1)]);
    pool.throttle(&Throttle::default().agent("ralph")).unwrap();
    assert_eq!(process.tap.backpressure().unwrap(), []);
    let no = process.tap.pool("standpipe/board").unwrap_err();
    assert!(no.to_string().contains("another name"), "{no}");
}

/// Who is held is let go when what it waits for is lifted by hand, and a look knows of the hold.
#[test]
fn a_resume_lets_those_downstream_go() {
    let world = World::new();
    let process = world.process_with(file(&format!("{CHAIN}hold = true\n"), 1));
    let (model, github) = (process.pool("anthropic/sonnet"), process.pool("github/core"));
    let report = Throttle::default().agent("ralph").retry_after(Duration::from_secs(3_000));
    model.throttle(&report).unwrap();
    let held = github.peek(&Request::by("data")).unwrap();
    assert_eq!(held.why().map(|why| why.reason), Some(Reason::Hold));
    let patient = Request::by("data").timeout(Duration::from_secs(4_000));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| github.reserve(patient).blocking());
        crate::support::until("it waits", || github.status().unwrap().tickets.len() == 1);
        model.resume().unwrap();
        waiting.join().unwrap().unwrap().commit([]).unwrap();
    });
}

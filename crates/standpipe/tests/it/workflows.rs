//! Workflows: agents downstream receive which agent is throttled, on any pool, and may have to
//! wait.

use std::time::Duration;

use standpipe::{Reason, Reply, Request, Span, Throttle};

use crate::support::{Hand, LONG, World, at_once, file, until};

const CHAIN: &str = "\
[pool.\"anthropic/sonnet\"]\nparallel = 9\n\
[pool.\"github/core\"]\nparallel = 9\n\
[workflow.issue-to-deploy]\nagents = [\"ralph\", \"picard\", \"data\"]\n";

fn hasty(agent: &str) -> Request {
    Request::by(agent).timeout(Duration::ZERO)
}

#[test]
fn every_agent_downstream_receives_backpressure_with_its_next_answer() {
    let world = World::new();
    let (one, two) = (world.process_with(file(CHAIN, 1)), world.process_with(file(CHAIN, 1)));
    let (model, github) = (one.pool("anthropic/sonnet"), two.pool("github/core"));
    let lease = model.reserve(hasty("ralph")).blocking().unwrap();
    lease.answered(Reply::new(429).header("retry-after", "60")).blocking().unwrap();

    for agent in ["picard", "data"] {
        let lease = github.reserve(hasty(agent)).blocking().unwrap();
        let pressure = lease.backpressure().expect("an agent upstream is throttled");
        assert_eq!((&*pressure.agent, &*pressure.pool), ("ralph", "anthropic/sonnet"));
        assert_eq!(pressure.until_ms, 60_000);
        lease.commit([]).blocking().unwrap();
    }
    for agent in ["ralph", "stranger"] {
        let lease = github.reserve(hasty(agent)).blocking().unwrap();
        assert_eq!(lease.backpressure(), None, "{agent} has no throttled agent upstream");
        lease.commit([]).blocking().unwrap();
    }
    let no = model.reserve(hasty("data")).blocking().unwrap_err();
    let no = no.as_refused().unwrap();
    assert_eq!((no.reason, no.backpressure.is_some()), (Reason::Pause, true));
    assert_eq!(two.tap.backpressure().blocking().unwrap().len(), 1);
    assert!(
        two.tap
            .pools()
            .blocking()
            .unwrap()
            .iter()
            .all(|pool| !pool.as_str().starts_with("standpipe/"))
    );

    world.passes(Span::secs(61), &[&one, &two]);
    let lease = github.reserve(hasty("data")).blocking().unwrap();
    assert_eq!(lease.backpressure(), None, "the entry expires");
}

/// A second refusal extends the entry, and a resume removes it.
#[test]
fn an_entry_lasts_as_long_as_the_pause() {
    let world = World::new();
    let process = world.process_with(file(CHAIN, 1));
    let (model, github) = (process.pool("anthropic/sonnet"), process.pool("github/core"));
    for after in [20, 90] {
        let report = Throttle::default().agent("picard").retry_after(Duration::from_secs(after));
        model.throttle(&report).blocking().unwrap();
        let entries = process.tap.backpressure().blocking().unwrap();
        let ends: Vec<u64> = entries.iter().map(|entry| entry.until_ms).collect();
        assert_eq!(ends, [after * 1_000]);
    }
    model.resume().blocking().unwrap();
    assert_eq!(process.tap.backpressure().blocking().unwrap(), []);
    assert!(github.reserve(hasty("data")).blocking().unwrap().backpressure().is_none());
}

/// With `hold`, agents downstream wait, even on pools that have room.
#[test]
fn a_held_call_waits_and_blocks_no_other() {
    let world = World::new();
    let process = world.process_with(file(&format!("{CHAIN}hold = true\n"), 1));
    let (model, github) = (process.pool("anthropic/sonnet"), process.pool("github/core"));
    let report = Throttle::default().agent("ralph").retry_after(Duration::from_secs(30));
    model.throttle(&report).blocking().unwrap();
    let no = github.reserve(hasty("data")).blocking().unwrap_err();
    let no = no.as_refused().unwrap();
    assert_eq!((no.reason, no.retry_after), (Reason::Hold, Some(Duration::from_secs(30))));
    github.reserve(at_once()).blocking().unwrap().commit([]).blocking().unwrap();
    world.passes(Span::secs(30), &[&process]);
    github.reserve(hasty("data")).blocking().unwrap().commit([]).blocking().unwrap();
}

#[test]
fn the_views_name_the_agent_that_a_call_is_held_for() {
    let world = World::new();
    let process = world.process_with(file(&format!("{CHAIN}hold = true\n"), 1));
    let (model, github) = (process.pool("anthropic/sonnet"), process.pool("github/core"));
    let report = Throttle::default().agent("ralph").retry_after(Duration::from_secs(30));
    model.throttle(&report).blocking().unwrap();
    let mut held = Hand::new(github.reserve(Request::by("data").timeout(LONG)));
    assert!(held.poll().is_pending());
    let waiting = || github.status().blocking().unwrap().waiting;
    until("the call waits", || waiting() == 1);
    let why = "it is delayed because ralph, which it depends on, is throttled";
    let seen = process.tap.snapshot(std::slice::from_ref(&github)).blocking().unwrap();
    assert_eq!(seen.pools[0].tickets[0].why().unwrap().to_string(), why);
    let explanation = github.explain(&Request::by("data")).blocking().unwrap();
    let no = explanation.steps.iter().flat_map(|step| &step.noes).next().unwrap();
    assert_eq!(no.why().to_string(), why);
    // A delayed retry is held for no agent.
    model.resume().blocking().unwrap();
    held.run().unwrap().commit([]).blocking().unwrap();
    let first = github.reserve(hasty("data")).blocking().unwrap();
    let retry = Request::by("data").retry_of(first.id().clone()).hold(Duration::from_secs(9));
    let mut delayed = Hand::new(github.reserve(retry.timeout(LONG)));
    let before = waiting();
    assert!(delayed.poll().is_pending());
    until("the retry waits", || waiting() > before);
    let seen = process.tap.snapshot(std::slice::from_ref(&github)).blocking().unwrap();
    let tickets = seen.pools[0].tickets.iter().filter_map(|ticket| ticket.why());
    let whys: Vec<String> = tickets.map(|why| why.to_string()).collect();
    assert!(whys.contains(&"it is delayed before a retry".to_owned()), "{whys:?}");
}

/// Without a workflow nothing is recorded, and the log's pool does not exist.
#[test]
fn without_a_workflow_there_is_no_backpressure() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("a/b", vec![crate::support::parallel(1)]);
    pool.throttle(&Throttle::default().agent("ralph")).blocking().unwrap();
    assert_eq!(process.tap.backpressure().blocking().unwrap(), []);
    let no = process.tap.pool("standpipe/board").unwrap_err();
    assert!(no.to_string().contains("another name"), "{no}");
}

/// A held call is admitted when the pause upstream is ended by hand, and a peek shows the hold.
#[test]
fn a_resume_releases_calls_downstream() {
    let world = World::new();
    let process = world.process_with(file(&format!("{CHAIN}hold = true\n"), 1));
    let (model, github) = (process.pool("anthropic/sonnet"), process.pool("github/core"));
    let report = Throttle::default().agent("ralph").retry_after(Duration::from_secs(3_000));
    model.throttle(&report).blocking().unwrap();
    let held = github.peek(&Request::by("data")).blocking().unwrap();
    assert_eq!(held.why().map(|why| why.reason), Some(Reason::Hold));
    let patient = Request::by("data").timeout(Duration::from_secs(4_000));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| github.reserve(patient).blocking());
        crate::support::until("it waits", || {
            github.status().blocking().unwrap().tickets.len() == 1
        });
        model.resume().blocking().unwrap();
        waiting.join().unwrap().unwrap().commit([]).blocking().unwrap();
    });
}

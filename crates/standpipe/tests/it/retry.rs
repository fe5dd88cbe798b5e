//! The retry loop: what is retried, how often, and what is not.

use std::time::Duration;

use standpipe::policy::{Policy, RetryBudget};
use standpipe::{
    Attempt, Error, Limit, NotServed, Pool, PoolConfig, Reason, Reply, Request, Rule, Span,
    ThrottleKind, Unit,
};

use crate::support::{Hand, LONG, World, per_minute};

/// A pool whose refusals do not pause, so that the clock need not move.
fn pool(world: &World, name: &str) -> (crate::support::Actor, Pool) {
    let process = world.process();
    let pool = process.pool(name);
    let retries = Some(RetryBudget::USUAL);
    let policy = Policy { retries, ..Policy::NONE };
    let limits = vec![per_minute(Unit::Requests, 1_000)];
    pool.change(PoolConfig { policy, ..PoolConfig::new(limits) }).blocking().unwrap();
    (process, pool)
}

/// Calls that answer these statuses, one after the other, and how many there were.
fn tried(pool: &Pool, statuses: &[u16]) -> (Result<u16, NotServed<u16>>, usize) {
    let mut calls = 0;
    let served = pool.with_retry(Request::by("blog"), LONG, |_| {
        let status = statuses[calls.min(statuses.len() - 1)];
        calls += 1;
        Attempt::Answered(Reply::new(status), status)
    });
    (served, calls)
}

fn reason(not: &NotServed<u16>) -> Option<Reason> {
    not.why.as_refused().map(|refused| refused.reason)
}

#[test]
fn a_refused_call_is_tried_again() {
    let world = World::new();
    let (_process, pool) = pool(&world, "openai/one");
    let (served, calls) = tried(&pool, &[429, 429, 200]);
    assert_eq!((served.unwrap(), calls), (200, 3));
    let status = pool.status().blocking().unwrap();
    assert!(status.leases.is_empty() && status.tickets.is_empty(), "{status:?}");
}

/// The budget bounds retries whatever the number of callers.
#[test]
fn retries_end_with_the_budget() {
    let world = World::new();
    let (_process, pool) = pool(&world, "openai/budget");
    let (served, calls) = tried(&pool, &[429]);
    let not = served.unwrap_err();
    assert!(not.is_out_of_retries(), "{not}");
    assert_eq!((calls, not.tries, not.last), (4, 5, Some(429)), "one, and three again");
    let (served, calls) = tried(&pool, &[429]);
    assert_eq!((reason(&served.unwrap_err()), calls), (Some(Reason::RetryBudget), 1));
    let status = pool.status().blocking().unwrap();
    assert_eq!(status.trouble.retries.unwrap().left, 0);
}

#[test]
fn a_terminal_answer_is_final() {
    let world = World::new();
    let (_process, pool) = pool(&world, "openai/terminal");
    let mut calls = 0;
    let served = pool.with_retry(Request::by("blog"), LONG, |_| {
        calls += 1;
        let body = br#"{"error":{"code":"insufficient_quota","message":"no money"}}"#;
        Attempt::Answered(Reply::new(429).body(*body), ())
    });
    let not = served.unwrap_err();
    assert!(matches!(&not.why, Error::Refused(no) if no.is_terminal()), "{not}");
    assert_eq!(calls, 1);
    // Every other call is refused from now on.
    let verdict = pool.peek(&Request::by("news")).blocking().unwrap();
    let (no, theirs) = (not.why.as_refused().unwrap(), verdict.why().unwrap());
    assert_eq!((no.retry_after, no.exact), (theirs.retry_after, theirs.exact));
    let next = pool.with_retry(Request::by("news"), LONG, |_| Attempt::NotSent(()));
    let next = next.unwrap_err();
    assert!(next.last.is_none(), "no other call is admitted either: {next}");
}

/// An error of the caller's own is returned to it.
#[test]
fn an_error_that_a_retry_cannot_fix_is_returned() {
    let world = World::new();
    let (_process, pool) = pool(&world, "openai/own");
    for status in [200, 304, 400, 401, 404] {
        let (served, calls) = tried(&pool, &[status]);
        assert_eq!((served.unwrap(), calls), (status, 1));
    }
}

/// A failure other than quota is retried after a wait of its own; the clock moves whenever a call
/// waits.
#[test]
fn a_broken_call_is_retried_after_a_wait_and_counts() {
    let world = World::new();
    let (process, pool) = pool(&world, "openai/broken");
    let calls = std::thread::scope(|scope| {
        let trying = scope.spawn(|| {
            let mut calls = 0;
            let served = pool.with_retry(Request::by("blog"), LONG, |_| {
                calls += 1;
                match calls {
                    1 => Attempt::Broken(0),
                    2 => Attempt::NotSent(0),
                    3 => Attempt::Answered(Reply::new(502), 502),
                    _ => Attempt::Answered(Reply::new(200), 200),
                }
            });
            (served.unwrap(), calls)
        });
        while !trying.is_finished() {
            let waits = pool.status().blocking().unwrap().tickets;
            if waits.iter().any(|ticket| ticket.reason == Some(Reason::Hold.into())) {
                world.passes(Span::millis(500), &[&process]);
            }
            std::thread::yield_now();
        }
        trying.join().unwrap()
    });
    assert_eq!(calls, (200, 4));
    // The second was never sent: its request went back.
    assert_eq!(pool.status().blocking().unwrap().limits[0].used, 3);
}

/// A call whose deadline lies before the end of the pause is refused at once.
#[test]
fn a_pause_beyond_the_deadline_refuses_at_once() {
    let world = World::new();
    let (_process, pool) = pool(&world, "openai/late");
    let served = pool.with_retry(Request::by("blog"), Duration::from_secs(10), |_| {
        Attempt::Answered(Reply::new(429).header("retry-after", "60"), 429)
    });
    let not = served.unwrap_err();
    assert_eq!((reason(&not), not.last), (Some(Reason::Pause), Some(429)), "{not}");
}

#[test]
fn futures_are_tried_again_too() {
    let world = World::new();
    let (_process, pool) = pool(&world, "openai/async");
    let mut statuses = [429_u16, 200].into_iter();
    let served = Hand::new(pool.with_retry_async(Request::by("blog"), LONG, |_lease| {
        let status = statuses.next().unwrap();
        async move { Attempt::Answered(Reply::new(status), status) }
    }));
    assert_eq!(served.run().unwrap(), 200);
}

/// A refusal on one pool does not affect others.
#[test]
fn one_pools_429_never_delays_another() {
    let world = World::new();
    let process = world.process();
    let limits = || vec![Limit::new(Rule::Parallel { amount: 5 })];
    let (refused, other) = (process.pool("anthropic/sonnet"), process.pool("anthropic/haiku"));
    refused.limit(limits()).blocking().unwrap();
    other.limit(limits()).blocking().unwrap();
    let lease = refused.reserve(Request::by("blog")).blocking().unwrap();
    lease.answered(Reply::new(429).header("retry-after", "60")).blocking().unwrap();
    let hasty = || Request::by("blog").timeout(Duration::ZERO);
    let no = refused.reserve(hasty()).blocking().unwrap_err();
    assert_eq!(no.as_refused().unwrap().reason, Reason::Pause);
    other.reserve(hasty()).blocking().unwrap().commit([]).blocking().unwrap();
    assert_eq!(
        refused.status().blocking().unwrap().trouble.incident.unwrap().kind,
        ThrottleKind::Quota
    );
    assert!(other.status().blocking().unwrap().pause.is_none());
}

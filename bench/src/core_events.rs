//! One decision of the core: how fast, and whether it stays so as everything grows to its bound.

use standpipe_core::{Action, Amounts, Priority, Span, ThrottleKind, Throttled, Unit, bounds};

use crate::pool::{Pool, call};
use crate::table::nanos_per_step;

/// Pairs of reserve and commit in one round.
const PAIRS: u64 = 200_000;

pub(crate) fn run() {
    println!("## The core: one decision\n");
    println!(
        "An event is one `State::apply`; a pair is a reserve and the commit that refunds a part.\n"
    );
    println!("| what grows | to | pair, ns | refused, ns | asked and given up, ns | events/s |");
    println!("|---|---:|---:|---:|---:|---:|");
    row("nothing", 0, Pool::new(u64::MAX >> 20, 100_000));
    row("policies, nothing wrong", 0, Pool::new(u64::MAX >> 20, 100_000).with_policies());
    row("policies, after a refusal", 0, refused_once());
    row("policies, in the amber, background held back", 256, in_the_amber(256));
    for count in [bounds::WINDOW_SLICES as usize / 2, bounds::WINDOW_SLICES as usize, 1_000_000] {
        row("entries of a window", count, with_entries(count));
    }
    for count in [256, bounds::LEASES - 2] {
        row("leases in flight", count, with_leases(count));
    }
    for count in [256, bounds::TICKETS - 1] {
        row("tickets waiting", count, with_tickets(count));
    }
    for count in [256, bounds::AGENTS - 2] {
        row("agents", count, with_agents(count));
    }
    for count in [256, bounds::SESSIONS - 2] {
        row("sessions that hold something", count, with_sessions(count));
    }
    println!();
}

fn row(what: &str, count: usize, pool: Pool) {
    let pair = pairs(&mut pool.clone());
    let refused = refusals(&mut pool.clone());
    let given_up = given_up(&mut pool.clone());
    let per_second = 2e9 / pair;
    println!("| {what} | {count} | {pair:.0} | {refused:.0} | {given_up:.0} | {per_second:.0} |");
}

/// A critical call, so that it passes all tickets.
fn pairs(pool: &mut Pool) -> f64 {
    let mut call = call("bench", 10);
    call.priority = Some(Priority::Critical);
    let used = Amounts::new([(Unit::Tokens, 4)]).unwrap_or_default();
    nanos_per_step(PAIRS, |pairs| {
        for _ in 0..pairs {
            pool.now = pool.now + Span::micros(50);
            if let Some(lease) = pool.reserve(1, &call) {
                pool.commit(1, lease, used.clone());
            }
        }
    })
}

fn refusals(pool: &mut Pool) -> f64 {
    let mut call = call("bench", 2_000_000_000_000);
    call.priority = Some(Priority::Critical);
    nanos_per_step(PAIRS, |asks| {
        for _ in 0..asks {
            pool.now = pool.now + Span::micros(1);
            pool.reserve(1, &call);
        }
    })
}

/// A call that has to wait, and then no longer wants to.
fn given_up(pool: &mut Pool) -> f64 {
    let mut large = call("large", 900_000_000_000);
    large.priority = Some(Priority::Critical);
    pool.reserve(1, &large);
    large.patience = Span::secs(300);
    nanos_per_step(PAIRS / 10, |asks| {
        for _ in 0..asks {
            pool.now = pool.now + Span::micros(1);
            if let Some(lease) = pool.reserve(1, &large) {
                pool.send(1, Action::Cancel { lease });
            }
        }
    })
}

/// The pause is over, and the rates begin at half.
fn refused_once() -> Pool {
    let mut pool = Pool::new(u64::MAX >> 20, 100_000).with_policies();
    if let Some(lease) = pool.reserve(1, &call("bench", 1)) {
        let throttled = Throttled {
            lease: Some(lease),
            agent: None,
            kind: ThrottleKind::Quota,
            retry_after: None,
            hit: None,
        };
        pool.send(1, Action::Throttled(throttled));
    }
    pool.now = pool.now + Span::secs(30);
    pool
}

/// Under 40 % is left, a critical call is in flight, and so many wait in the background.
fn in_the_amber(count: usize) -> Pool {
    let mut pool = Pool::new(u64::MAX >> 20, 100_000).with_policies();
    let mut large = call("second", 560_000_000_000);
    large.priority = Some(Priority::Critical);
    large.ttl = Some(Span::secs(86_400));
    pool.reserve(1, &large);
    for number in 0..count {
        let mut waits = call("third", 10);
        waits.priority = Some(Priority::Background);
        waits.patience = Span::secs(86_400);
        pool.reserve(2 + number as u64, &waits);
    }
    pool
}

fn with_entries(count: usize) -> Pool {
    let mut pool = Pool::new(u64::MAX >> 20, 100_000);
    let call = call("filler", 1);
    for _ in 0..count {
        pool.now = pool.now + Span::micros(50_000_000 / count as u64);
        if let Some(lease) = pool.reserve(1, &call) {
            pool.commit(1, lease, Amounts::default());
        }
    }
    pool
}

fn with_leases(count: usize) -> Pool {
    let mut pool = Pool::new(u64::MAX >> 20, 100_000);
    for _ in 0..count {
        pool.reserve(2, &call("filler", 1));
    }
    pool
}

fn with_tickets(count: usize) -> Pool {
    let mut pool = Pool::new(u64::MAX >> 20, 100_000);
    pool.reserve(2, &call("filler", 999_900_000_000));
    let mut waits = call("waiter", 900_000_000);
    waits.patience = Span::secs(3_600);
    for _ in 0..count {
        pool.reserve(2, &waits);
    }
    pool
}

fn with_agents(count: usize) -> Pool {
    let mut pool = Pool::new(u64::MAX >> 20, 100_000);
    for n in 0..count {
        if let Some(lease) = pool.reserve(2, &call(&format!("agent-{n}"), 1)) {
            pool.commit(2, lease, Amounts::default());
        }
    }
    pool
}

fn with_sessions(count: usize) -> Pool {
    let mut pool = Pool::new(u64::MAX >> 20, 100_000);
    for session in 0..count {
        pool.reserve(10 + session as u64, &call("filler", 1));
    }
    pool
}

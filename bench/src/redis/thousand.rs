//! A thousand workers: ten processes of a hundred.

use std::time::Duration;

use super::Place;
use super::contest::{Contestant, find, take_turns};
use super::work::TOGETHER;
use crate::table::{aim, reached};

const PROCESSES: usize = 10;
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(2);
/// The peer's only round: it needs seconds for one pair of each of its workers.
const LONG: Duration = Duration::from_secs(15);

const OURS: &str = "Standpipe, tasks";
const THROTTLE: &str = "token-throttle";
/// It as it still works: a tenth of the workers.
const TENTH: &str = "token-throttle, one process";

pub(super) fn run(place: &Place) -> Result<(), String> {
    println!("### A thousand workers\n");
    println!(
        "{PROCESSES} processes of {TOGETHER} workers each, all in tight loops of reserve and \
         commit for {} s, {ROUNDS} rounds that took turns; the round in the middle. \
         token-throttle has one round of {} s, and what was under way at its end is not in its \
         figures. \
         p50 is of the process in the middle, p99 of the worst.\n",
        TIME.as_secs(),
        LONG.as_secs()
    );
    let ours = |kind: &'static str, pool: &'static str| move || place.ourselves(kind, pool);
    let tasks = "tokio, one thread";
    let mut all = vec![
        Contestant::start(OURS, tasks, PROCESSES, &ours("redis-tasks", "bench/tasks")),
        Contestant::start(
            "Standpipe, threads",
            "threads that block",
            PROCESSES,
            &ours("redis-threads", "bench/threads"),
        ),
    ];
    take_turns(&mut all, ROUNDS, TIME);
    let command = || place.python("token-throttle-tasks");
    for (name, processes) in [(TENTH, 1), (THROTTLE, PROCESSES)] {
        let mut peer = [Contestant::start(name, "asyncio", processes, &command)];
        take_turns(&mut peer, 1, LONG);
        all.extend(peer);
    }
    println!("| who | workers are | pairs/s | p50, ms | p99, ms | failed in a round |");
    println!("|---|---|---:|---:|---:|---:|");
    for each in &all {
        let (Some(rate), Some(p50), Some(p99)) = (each.rate(), each.p50(), each.p99()) else {
            println!("| {} | not measured: {} | | | | |", each.name, each.why());
            continue;
        };
        let failed = each.middle(|round| round.failed as f64).unwrap_or_default();
        let (p50, p99) = (p50 / 1e6, p99 / 1e6);
        println!(
            "| {} | {} | {rate:.0} | {p50:.1} | {p99:.1} | {failed:.0} |",
            each.name, each.what
        );
    }
    println!("\n| aim | reached | |\n|---|---:|---|");
    against(&all, THROTTLE, "at least 20 × token-throttle");
    against(&all, TENTH, "at least 20 × token-throttle with a tenth of the workers");
    let late = find(&all, OURS).and_then(Contestant::p99).map(|nanos| nanos / 1e6);
    let text = late.map(|late| format!("{late:.0} ms"));
    aim("p99 at most 300 ms", text, late.map(|late| late <= 300.0));
    println!();
    Ok(())
}

fn against(all: &[Contestant], peer: &str, text: &str) {
    let rate = |name: &str| find(all, name).and_then(Contestant::rate);
    let Some((ours, theirs)) = rate(OURS).zip(rate(peer)) else { return aim(text, None, None) };
    let done = find(all, peer).and_then(|peer| peer.middle(|round| round.done as f64));
    let done = done.unwrap_or_default();
    if done >= ENOUGH {
        let times = ours / theirs;
        return aim(text, Some(reached(times)), Some(times >= 20.0));
    }
    aim(text, Some(format!("no ratio: it finished {done:.0} in {} s", LONG.as_secs())), None);
}

/// A ratio to less than this would be a ratio to chance.
const ENOUGH: f64 = 100.0;

//! A thousand workers: ten processes of a hundred.

use std::time::Duration;

use super::Place;
use super::contest::{Contestant, find, take_turns};
use super::work::TOGETHER;
use crate::table::{aim, reached};

const PROCESSES: usize = 10;
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(2);

const OURS: &str = "Standpipe, tasks";
const THROTTLE: &str = "token-throttle";

pub(super) fn run(place: &Place) -> Result<(), String> {
    println!("### A thousand workers\n");
    println!(
        "{PROCESSES} processes of {TOGETHER} workers each, all in tight loops of reserve and \
         commit for {} s, {ROUNDS} rounds that took turns; the round in the middle. p50 is of the \
         process in the middle, p99 of the worst.\n",
        TIME.as_secs()
    );
    let ours = |kind: &'static str, pool: &'static str| move || place.ourselves(kind, pool);
    let tasks = "tokio, one thread";
    let mut all = [
        Contestant::start(OURS, tasks, PROCESSES, &ours("redis-tasks", "bench/tasks")),
        Contestant::start(
            "Standpipe, threads",
            "threads that block",
            PROCESSES,
            &ours("redis-threads", "bench/threads"),
        ),
        Contestant::start(THROTTLE, "asyncio", PROCESSES, &|| place.python("token-throttle-tasks")),
    ];
    take_turns(&mut all, ROUNDS, TIME);
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
    let rate = |name: &str| find(&all, name).and_then(Contestant::rate);
    let times = rate(OURS).zip(rate(THROTTLE)).map(|(ours, theirs)| ours / theirs);
    aim("at least 20 × token-throttle", times.map(reached), times.map(|times| times >= 20.0));
    let late = find(&all, OURS).and_then(Contestant::p99).map(|nanos| nanos / 1e6);
    let text = late.map(|late| format!("{late:.0} ms"));
    aim("p99 at most 300 ms", text, late.map(|late| late <= 300.0));
    println!();
    Ok(())
}

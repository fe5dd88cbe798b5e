//! One process, one call after the other.

use std::time::Duration;

use super::contest::{Contestant, find, take_turns};
use super::{FULL, Place, fill};
use crate::table::{aim, reached};
use crate::worker::pinned;

const ROUNDS: usize = 10;
const TIME: Duration = Duration::from_millis(200);

const OURS: &str = "Standpipe";
const OURS_FULL: &str = "Standpipe, full window";
const PAIR: &str = "Standpipe, pair";
const LEAST: &str = "minimal script";
const BOTTLENECK: &str = "Bottleneck";
const LEAST_FULL: &str = "minimal script, full window";

pub(super) fn run(place: &Place) -> Result<(), String> {
    println!("### One process\n");
    println!(
        "Everybody on one server, one call after the other, {ROUNDS} rounds of {} ms that took \
         turns; p50 and p99 are those of the round in the middle, the aims compare the p50 of the \
         best rounds. The minimal script: `TIME`, `ZREMRANGEBYSCORE`, `ZCARD`, `ZADD`, `PEXPIRE`, \
         called by `EVALSHA` with the same crate. A full window holds {FULL} admissions of the \
         last minute. One core: worker and server are held to the first, so that no call has to \
         wake the other.\n",
        TIME.as_millis()
    );
    let mut both = contestants(place, false)?;
    both.extend([
        Contestant::start("PyrateLimiter", "acquire only", 1, &|| place.python("pyrate")),
        Contestant::start("`limits`", "hit, moving window", 1, &|| place.python("limits")),
        Contestant::start(BOTTLENECK, "a job that does nothing", 1, &|| place.bottleneck()),
        Contestant::start("token-throttle", "reserve, refund", 1, &|| {
            place.python("token-throttle")
        }),
    ]);
    take_turns(&mut both, ROUNDS, TIME);
    place.keep_server_on("0")?;
    let mut one = contestants(place, true)?;
    take_turns(&mut one, ROUNDS, TIME);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    place.keep_server_on(&format!("0-{}", cores - 1))?;
    print(&[("both", &both), ("one", &one)]);
    aims(&both, &one);
    Ok(())
}

/// Ourselves and the minimal script, all on the first core or wherever the system puts them.
fn contestants(place: &Place, on_one_core: bool) -> Result<Vec<Contestant>, String> {
    let suffix = if on_one_core { "-one-core" } else { "" };
    let (pool, key) = (format!("bench/full{suffix}"), format!("bench-full{suffix}"));
    fill::window(&place.server.url(), &pool)?;
    fill::sorted_set(&place.server.url(), &key)?;
    let start = |name, what, kind: &str, pool: &str| {
        let command = || {
            let command = place.ourselves(kind, pool)?;
            Ok(if on_one_core { pinned(&command) } else { command })
        };
        Contestant::start(name, what, 1, &command)
    };
    let two = "two windows, through `standpipe::Pool`";
    Ok(vec![
        start(LEAST, "one window", "redis-script", &format!("bench-alone{suffix}")),
        start(OURS, two, "redis-reserve", &format!("bench/alone{suffix}")),
        start(LEAST_FULL, "the same", "redis-script", &key),
        start(OURS_FULL, "the same", "redis-reserve", &pool),
        start(PAIR, "reserve and commit", "redis-pair", &format!("bench/pair{suffix}")),
    ])
}

fn aims(both: &[Contestant], one: &[Contestant]) {
    println!("| aim | reached | |\n|---|---:|---|");
    for (cores, all) in [("both cores", both), ("one core", one)] {
        for (windows, ours, least) in [("", OURS, LEAST), ("full windows, ", OURS_FULL, LEAST_FULL)]
        {
            let times = best_ratio(all, ours, least);
            let text = format!("reserve, p50 at most 1.4 × the minimal script; {windows}{cores}");
            aim(&text, times.map(reached), times.map(|times| times <= 1.4));
        }
    }
    let times = best_ratio(both, BOTTLENECK, PAIR);
    aim("at least 3 × faster than Bottleneck", times.map(reached), times.map(|t| t >= 3.0));
    println!();
}

fn ratio(all: &[Contestant], one: &str, other: &str) -> Option<f64> {
    Some(find(all, one)?.p50()? / find(all, other)?.p50()?)
}

/// The ratio of the best rounds: what other programs take from a round is in neither of them.
fn best_ratio(all: &[Contestant], one: &str, other: &str) -> Option<f64> {
    Some(find(all, one)?.best_p50()? / find(all, other)?.best_p50()?)
}

fn print(blocks: &[(&str, &[Contestant])]) {
    println!("| who | what | cores | p50, µs | p50 of rounds | p99, µs | times minimal, p50 |");
    println!("|---|---|---|---:|---:|---:|---:|");
    for (cores, all) in blocks {
        for each in *all {
            let (Some(p50), Some(p99)) = (each.p50(), each.p99()) else {
                println!("| {} | not measured: {} | {cores} | | | | |", each.name, each.why());
                continue;
            };
            let rounds = || each.rounds.iter().map(|round| round.p50 / 1e3);
            let (low, high) =
                (rounds().fold(f64::INFINITY, f64::min), rounds().fold(0.0, f64::max));
            let least = if each.name == OURS_FULL { LEAST_FULL } else { LEAST };
            let times = ratio(all, each.name, least).map_or_else(String::new, reached);
            println!(
                "| {} | {} | {cores} | {:.0} | {low:.0} to {high:.0} | {:.0} | {times} |",
                each.name,
                each.what,
                p50 / 1e3,
                p99 / 1e3
            );
        }
    }
    println!();
}

//! One process, one call after the other.

use std::time::Duration;

use super::contest::{Contestant, find, take_turns};
use super::{FULL, Place, fill};
use crate::table::{aim, reached};

const ROUNDS: usize = 10;
const TIME: Duration = Duration::from_millis(200);

const OURS: &str = "Standpipe";
const OURS_FULL: &str = "Standpipe, full window";
const PAIR: &str = "Standpipe, pair";
const LEAST: &str = "minimal script";
const LEAST_FULL: &str = "minimal script, full window";

pub(super) fn run(place: &Place) -> Result<(), String> {
    println!("### One process\n");
    println!(
        "Everybody on one server, one call after the other, {ROUNDS} rounds of {} ms that took \
         turns; p50 and p99 are those of the round in the middle. The minimal script: `TIME`, \
         `ZREMRANGEBYSCORE`, `ZCARD`, `ZADD`, `PEXPIRE`, called by `EVALSHA` with the same crate. \
         A full window holds {FULL} admissions of the last minute.\n",
        TIME.as_millis()
    );
    let full = fill::window(place.server.url().as_str(), "bench/full");
    fill::sorted_set(&place.server.url(), "bench-full")?;
    let ours = |kind: &'static str, pool: &'static str| move || place.ourselves(kind, pool);
    let prepared = || full.clone().and_then(|()| place.ourselves("redis-reserve", "bench/full"));
    let two = "two windows, through `standpipe::Pool`";
    let acquire = "acquire only";
    let mut all = [
        Contestant::start(LEAST, "one window", 1, &ours("redis-script", "bench-one")),
        Contestant::start(OURS, two, 1, &ours("redis-reserve", "bench/one")),
        Contestant::start(LEAST_FULL, "the same", 1, &ours("redis-script", "bench-full")),
        Contestant::start(OURS_FULL, "the same", 1, &prepared),
        Contestant::start(PAIR, "reserve and commit", 1, &ours("redis-pair", "bench/pair")),
        Contestant::start("PyrateLimiter", acquire, 1, &|| place.python("pyrate")),
        Contestant::start("`limits`", "hit, moving window", 1, &|| place.python("limits")),
        Contestant::start("Bottleneck", "a job that does nothing", 1, &|| place.bottleneck()),
        Contestant::start("token-throttle", "reserve, refund", 1, &|| {
            place.python("token-throttle")
        }),
    ];
    take_turns(&mut all, ROUNDS, TIME);
    print(&all);
    println!("| aim | reached | |\n|---|---:|---|");
    for (text, ours, least) in [
        ("reserve, p50 at most 1.5 × the minimal script", OURS, LEAST),
        ("the same with full windows", OURS_FULL, LEAST_FULL),
    ] {
        let times = ratio(&all, ours, least);
        aim(text, times.map(reached), times.map(|times| times <= 1.5));
    }
    let times = ratio(&all, "Bottleneck", PAIR);
    aim("at least 3 × faster than Bottleneck", times.map(reached), times.map(|t| t >= 3.0));
    println!();
    Ok(())
}

fn ratio(all: &[Contestant], one: &str, other: &str) -> Option<f64> {
    Some(find(all, one)?.p50()? / find(all, other)?.p50()?)
}

fn print(all: &[Contestant]) {
    println!("| who | what | p50, µs | p99, µs | times the minimal script, p50 |");
    println!("|---|---|---:|---:|---:|");
    for each in all {
        let (Some(p50), Some(p99)) = (each.p50(), each.p99()) else {
            println!("| {} | not measured: {} | | | |", each.name, each.why());
            continue;
        };
        let least = if each.name == OURS_FULL { LEAST_FULL } else { LEAST };
        let times = ratio(all, each.name, least).map_or_else(String::new, reached);
        println!(
            "| {} | {} | {:.0} | {:.0} | {times} |",
            each.name,
            each.what,
            p50 / 1e3,
            p99 / 1e3
        );
    }
    println!();
}

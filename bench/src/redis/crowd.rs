//! Many processes in tight loops: how much all of them get, and how evenly.

use std::time::Duration;

use super::Place;
use super::contest::{Contestant, find, take_turns};
use crate::table::{aim, reached};

const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_millis(1_000);
const MANY: usize = 32;
const SOME: usize = 8;

const OURS: &str = "Standpipe";
const PAIR: &str = "Standpipe, pair";
const LEAST: &str = "minimal script";
const BOTTLENECK: &str = "Bottleneck";

pub(super) fn run(place: &Place) -> Result<(), String> {
    println!("### {MANY} processes\n");
    println!(
        "All in tight loops for {} ms, {ROUNDS} rounds that took turns; the round in the middle; \
         the aims compare the best rounds. A pair is two calls: reserve and commit.\n",
        TIME.as_millis()
    );
    let ours = |kind: &'static str, pool: &'static str| move || place.ourselves(kind, pool);
    let mut all = [
        Contestant::start(LEAST, "one window", MANY, &ours("redis-script", "bench-32")),
        Contestant::start(OURS, "reserve only", MANY, &ours("redis-let-go", "bench/32")),
        Contestant::start(PAIR, "reserve, commit", MANY, &ours("redis-pair", "bench/pair-32")),
    ];
    take_turns(&mut all, ROUNDS, TIME);
    print(&all);
    println!("| aim | reached | |\n|---|---:|---|");
    let part = ratio(&all, OURS, LEAST);
    let text = "reserves of all: at least 40 % of those of the minimal script";
    aim(text, part.map(percent), part.map(|part| part >= 0.4));
    println!();
    drop(all);
    some(place);
    Ok(())
}

fn some(place: &Place) {
    println!("### {SOME} processes, with peers\n");
    let ours = |kind: &'static str, pool: &'static str| move || place.ourselves(kind, pool);
    let mut all = [
        Contestant::start(LEAST, "one window", SOME, &ours("redis-script", "bench-8")),
        Contestant::start(PAIR, "reserve, commit", SOME, &ours("redis-pair", "bench/pair-8")),
        Contestant::start("PyrateLimiter", "acquire", SOME, &|| place.python("pyrate")),
        Contestant::start("`limits`", "hit, moving window", SOME, &|| place.python("limits")),
        Contestant::start(BOTTLENECK, "a job", SOME, &|| place.bottleneck()),
    ];
    take_turns(&mut all, ROUNDS, TIME);
    print(&all);
    println!("| aim | reached | |\n|---|---:|---|");
    let times = ratio(&all, PAIR, BOTTLENECK);
    aim("at least 3 × Bottleneck's total", times.map(reached), times.map(|times| times >= 3.0));
    println!();
}

fn ratio(all: &[Contestant], one: &str, other: &str) -> Option<f64> {
    Some(find(all, one)?.best_rate()? / find(all, other)?.best_rate()?)
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

fn print(all: &[Contestant]) {
    println!("| who | what | in all, /s | of the minimal script | least by most | p99, ms |");
    println!("|---|---|---:|---:|---:|---:|");
    for each in all {
        let even = each.middle(|round| round.least as f64 / round.most.max(1) as f64);
        let (Some(rate), Some(p99), Some(even)) = (each.rate(), each.p99(), even) else {
            println!("| {} | not measured: {} | | | | |", each.name, each.why());
            continue;
        };
        let part = ratio(all, each.name, LEAST).map_or_else(String::new, percent);
        println!(
            "| {} | {} | {rate:.0} | {part} | {even:.2} | {:.1} |",
            each.name,
            each.what,
            p99 / 1e6
        );
    }
    println!();
}

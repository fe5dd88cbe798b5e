//! The embedded store with 32 processes in tight loops: how much all of them get, and how evenly.

use std::process::Command;
use std::time::Duration;

use crate::peers::Python;
use crate::scratch::Scratch;
use crate::table::{aim, reached};
use crate::worker::{Round, Worker, ourselves, shown};

const PROCESSES: usize = 32;
const TIME: Duration = Duration::from_secs(2);
const ALONE: Duration = Duration::from_millis(700);
const ROUNDS: usize = 3;

/// What a crowd reached in one round.
#[derive(Clone, Copy)]
struct Crowd {
    /// Pairs per second of one of them alone, just before and just after.
    alone: f64,
    total: f64,
    fairness: f64,
}

pub(crate) fn run() -> Result<(), String> {
    println!("## The embedded store: {PROCESSES} processes\n");
    println!(
        "All in a tight loop for {} s, {ROUNDS} rounds that take turns; before and after each \
         round one of them runs alone. Fairness is the pairs of the slowest by those of the \
         fastest.\n",
        TIME.as_secs()
    );
    println!(
        "| engine | round | alone, pairs/s | {PROCESSES}, pairs/s | of one alone | fairness |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    let scratch = Scratch::new()?;
    let place = shown(scratch.path());
    let python = Python::prepare();
    let ours = || ourselves("standpipe", &place);
    let json = || match &python {
        Ok(python) => Ok(python.pairs("py-json-1000", scratch.path())),
        Err(missing) => Err(missing.clone()),
    };
    let (mut standpipe, mut recipe) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        standpipe.extend(crowd("Standpipe", round, &ours));
        recipe.extend(crowd("`fcntl` + JSON, 1,000", round, &json));
    }
    crowd("SQLite", 1, &|| ourselves("sqlite", &place));
    println!();
    aims(&standpipe, &recipe);
    Ok(())
}

/// Runs one round, prints its line, and answers it.
fn crowd(name: &str, round: usize, command: &dyn Fn() -> Result<Command, String>) -> Option<Crowd> {
    match gather(command) {
        Ok(found) => {
            println!(
                "| {name} | {round} | {:.0} | {:.0} | {:.0} % | {:.2} |",
                found.alone,
                found.total,
                100.0 * found.total / found.alone,
                found.fairness
            );
            Some(found)
        }
        Err(why) => {
            println!("| {name} | {round} | not measured: {why} | | | |");
            None
        }
    }
}

fn gather(command: &dyn Fn() -> Result<Command, String>) -> Result<Crowd, String> {
    let mut workers = Vec::new();
    for _ in 0..PROCESSES {
        workers.push(Worker::start(&mut command()?)?);
    }
    for worker in &mut workers {
        worker.wait_ready()?;
    }
    let before = one(&mut workers)?;
    for worker in &mut workers {
        worker.go(TIME)?;
    }
    let mut rounds = Vec::new();
    for worker in &mut workers {
        rounds.push(worker.round()?);
    }
    let after = one(&mut workers)?;
    let rate = |round: &Round| 1e9 / round.mean();
    let pairs = || rounds.iter().map(|round| round.pairs as f64);
    let fairness = pairs().fold(f64::INFINITY, f64::min) / pairs().fold(1.0, f64::max);
    let total = rounds.iter().map(rate).sum();
    Ok(Crowd { alone: rate(&before).max(rate(&after)), total, fairness })
}

fn one(workers: &mut [Worker]) -> Result<Round, String> {
    let worker = workers.first_mut().ok_or("no worker")?;
    worker.go(ALONE)?;
    worker.round()
}

fn aims(standpipe: &[Crowd], recipe: &[Crowd]) {
    println!("| aim | reached | |");
    println!("|---|---:|---|");
    let best = |figures: &mut dyn Iterator<Item = f64>| figures.reduce(f64::max);
    let kept = best(&mut standpipe.iter().map(|crowd| crowd.total / crowd.alone));
    let text = format!("{PROCESSES} processes together: at least 60 % of one alone");
    aim(&text, kept.map(|kept| format!("{:.0} %", 100.0 * kept)), kept.map(|kept| kept >= 0.6));
    let both = standpipe.iter().zip(recipe).map(|(ours, theirs)| ours.total / theirs.total);
    let times = best(&mut both.into_iter());
    let text = format!("at least 50 times the JSON recipe with {PROCESSES} processes");
    aim(&text, times.map(reached), times.map(|times| times >= 50.0));
    // Fairness has to hold in every round, so the worst one counts.
    let fair = standpipe.iter().map(|crowd| crowd.fairness).reduce(f64::min);
    aim(
        "slowest by fastest at least 0.5 in every round",
        fair.map(|fair| format!("{fair:.2}")),
        fair.map(|fair| fair >= 0.5),
    );
    println!();
}

//! The embedded store beside its peers: one pair in one process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::peers::{Python, Redis, redis_version};
use crate::scratch::Scratch;
use crate::table::{aim, reached};
use crate::worker::{Round, Worker, ourselves, pinned, shown};

/// One contestant.
struct Entry {
    name: &'static str,
    what: &'static str,
    pinned: bool,
    state: Result<Worker, String>,
    rounds: Vec<Round>,
}

/// Standpipe itself, which all others are compared with; its kind in the workers.
const OURS: &str = "Standpipe";
/// The floor of the embedded store, in the same directory.
const BARE: &str = "bare system calls";

/// The peers in Rust: name, kind, and what a pair of theirs is.
const RUST: [(&str, &str, &str); 6] = [
    (BARE, "bare", "two steps of `flock`, `pread`, two `pwrite`, unlock; nothing else"),
    (OURS, "standpipe", "reserve, commit: two windows and `parallel`"),
    ("Standpipe, full", "standpipe-full", "the same, 1,000,000 entries in 512 slices, 32 agents"),
    ("Standpipe, library", "library", "the same as the first, through `standpipe::Pool`"),
    ("SQLite", "sqlite", "the same in rows: WAL, NORMAL, `BEGIN IMMEDIATE`"),
    ("governor", "governor", "one check inside one process: the floor"),
];

/// The peers in Python.
const PYTHON: [(&str, &str, &str); 6] = [
    ("`fcntl` + JSON, 1,000", "py-json-1000", "acquire only, a window of 1,000 records"),
    ("`fcntl` + JSON, 80", "py-json-80", "acquire only, a window of 80 records"),
    ("PyrateLimiter", "py-pyrate", "acquire only, SQLite bucket with its file lock"),
    ("token-throttle", "py-token-throttle", "reserve, refund: SQLite backend"),
    ("portalocker", "py-portalocker", "a place among four, taken and given back"),
    ("filelock + JSON", "py-filelock", "a counter up, then down: two small steps"),
];

const ROUNDS: usize = 20;
const TIME: Duration = Duration::from_millis(75);

pub(crate) fn run() -> Result<(), String> {
    println!("## The embedded store: one process\n");
    let redis = redis_version();
    let python = Python::prepare();
    println!("{}", versions(&redis, &python));
    println!(
        "\nA pair is a reserve and its commit. p50 is the median pair; mean is the time of a round \
         by its pairs, with whatever an engine puts off and does now and then. Both are the best \
         of {ROUNDS} rounds that took turns. An aim is reached when both reach it.\n"
    );
    let scratch = Scratch::new()?;
    let servers = [false, true]
        .map(|on_one_core| redis.clone().and_then(|_| Redis::start(scratch.path(), on_one_core)));
    let mut entries = Vec::new();
    for (on_one_core, server) in [false, true].into_iter().zip(&servers) {
        rust(&mut entries, scratch.path(), on_one_core)?;
        let url = server.as_ref().map(Redis::url).map_err(Clone::clone);
        let command = url.and_then(|url| ourselves("redis", &url));
        entries.push(entry(
            "Redis",
            "the same by two scripts on one connection",
            on_one_core,
            command,
        ));
    }
    for (name, kind, what) in PYTHON {
        let command = python.as_ref().map(|python| python.pairs(kind, scratch.path()));
        entries.push(entry(name, what, false, command.map_err(Clone::clone)));
    }
    measure(&mut entries);
    print(&entries);
    aims(&entries);
    Ok(())
}

fn versions(redis: &Result<String, String>, python: &Result<Python, String>) -> String {
    let redis = redis.as_ref().unwrap_or_else(|missing| missing);
    let python = python.as_ref().map_or_else(Clone::clone, |python| python.versions.clone());
    format!("{redis}; SQLite {}; {python}.", rusqlite::version())
}

fn rust(entries: &mut Vec<Entry>, scratch: &Path, on_one_core: bool) -> Result<(), String> {
    for (name, kind, what) in RUST {
        let directory = scratch.join(format!("{kind}-{on_one_core}"));
        let made = std::fs::create_dir_all(&directory);
        made.map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        entries.push(entry(name, what, on_one_core, ourselves(kind, &shown(&directory))));
    }
    Ok(())
}

fn entry(
    name: &'static str,
    what: &'static str,
    on_one_core: bool,
    command: Result<Command, String>,
) -> Entry {
    let ready = |command: Command| {
        let mut command = if on_one_core { pinned(&command) } else { command };
        let mut worker = Worker::start(&mut command)?;
        worker.wait_ready().map(|()| worker)
    };
    Entry { name, what, pinned: on_one_core, state: command.and_then(ready), rounds: Vec::new() }
}

/// In each round the engines run one after the other.
fn measure(entries: &mut [Entry]) {
    for _ in 0..ROUNDS {
        for entry in entries.iter_mut() {
            let Ok(worker) = &mut entry.state else { continue };
            match worker.go(TIME).and_then(|()| worker.round()) {
                Ok(round) => entry.rounds.push(round),
                Err(error) => entry.state = Err(error),
            }
        }
    }
}

impl Entry {
    fn p50(&self) -> Option<f64> {
        self.rounds.iter().map(|round| round.p50).reduce(f64::min)
    }

    fn mean(&self) -> Option<f64> {
        self.rounds.iter().map(Round::mean).reduce(f64::min)
    }
}

fn find<'a>(entries: &'a [Entry], name: &str, on_one_core: bool) -> Option<&'a Entry> {
    entries.iter().find(|entry| entry.name == name && entry.pinned == on_one_core)
}

fn print(entries: &[Entry]) {
    println!("| engine | a pair is | cores | p50, µs | mean, µs | times Standpipe, p50 | mean |");
    println!("|---|---|---|---:|---:|---:|---:|");
    for entry in entries {
        let cores = if entry.pinned { "one" } else { "both" };
        let times = factor(entries, entry.name, entry.pinned);
        let (Some(p50), Some(mean), Some(times)) = (entry.p50(), entry.mean(), times) else {
            let why = entry.state.as_ref().err().map_or("no round", String::as_str);
            println!("| {} | not measured: {why} | {cores} | | | | |", entry.name);
            continue;
        };
        println!(
            "| {} | {} | {cores} | {:.2} | {:.2} | {:.2} | {:.2} |",
            entry.name,
            entry.what,
            p50 / 1e3,
            mean / 1e3,
            times.0,
            times.1,
        );
    }
    println!();
}

/// Times Standpipe's own, by the median and by the mean.
fn factor(entries: &[Entry], name: &str, on_one_core: bool) -> Option<(f64, f64)> {
    let ours = find(entries, OURS, on_one_core)?;
    let theirs = find(entries, name, on_one_core)?;
    Some((theirs.p50()? / ours.p50()?, theirs.mean()? / ours.mean()?))
}

fn aims(entries: &[Entry]) {
    println!("| aim | reached: by p50 (by mean) | |");
    println!("|---|---:|---|");
    for (on_one_core, cores) in [(false, "both cores"), (true, "one core")] {
        let bare = factor(entries, BARE, on_one_core).map(|(p50, mean)| (1.0 / p50, 1.0 / mean));
        let text = format!("at most 1.6 times the bare system calls, {cores}");
        at_most(&text, bare, 1.6);
        let full = factor(entries, "Standpipe, full", on_one_core);
        let text = format!("a full window and 32 agents: at most double, {cores}");
        at_most(&text, full, 2.0);
    }
    let rows = [
        ("≥ 4 times faster than SQLite", "SQLite", 4.0),
        ("≥ 100 times faster than `fcntl` + JSON", "`fcntl` + JSON, 1,000", 100.0),
    ];
    for (text, name, least) in rows {
        let found = factor(entries, name, false);
        aim(text, found.map(by_both), found.map(|(p50, mean)| p50.min(mean) >= least));
    }
    let redis = factor(entries, "Redis", false);
    aim("about 9 times faster than Redis follows from the first", redis.map(by_both), None);
    println!();
}

fn at_most(text: &str, found: Option<(f64, f64)>, most: f64) {
    aim(text, found.map(by_both), found.map(|(p50, mean)| p50.max(mean) <= most));
}

fn by_both((p50, mean): (f64, f64)) -> String {
    format!("{} ({})", reached(p50), reached(mean))
}

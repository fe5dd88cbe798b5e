//! The Rust library's own pair, which `bench/python/speed.py` runs in turns with Python's.
//!
//! Usage: `pair STORE`. It prints `ready`. For each line with a number of milliseconds on its input
//! it makes pairs for so long, and prints the nanoseconds of each on one line.

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use standpipe::config::text;
use standpipe::{Request, Settings, Standpipe, StoreUrl};

/// The limits and the agent of `speed.py`.
const LIMITS: [&str; 2] = ["requests=100M/min", "parallel=100"];
const AGENT: &str = "bench";

fn main() -> Result<(), String> {
    let store = std::env::args().nth(1).ok_or("usage: pair STORE")?;
    let url: StoreUrl = store.parse().map_err(|_| format!("`{store}` is no store"))?;
    let opened = Standpipe::builder().settings(Settings::default()).store(url).open();
    let pool = opened.and_then(|tap| tap.pool("bench/pair")).map_err(|error| error.to_string())?;
    let limits: Result<Vec<_>, _> = LIMITS.iter().map(|limit| text::limit(limit)).collect();
    let limits = limits.map_err(|wrong| wrong.what)?;
    pool.limit(limits).blocking().map_err(|error| error.to_string())?;
    let mut out = io::stdout();
    let mut say = |line: &str| writeln!(out, "{line}").and_then(|()| out.flush());
    say("ready").map_err(|error| error.to_string())?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let length = line.trim().parse().map_err(|_| format!("`{line}` is no number"))?;
        let (mut taken, ends) = (Vec::new(), Instant::now() + Duration::from_millis(length));
        while Instant::now() < ends {
            let began = Instant::now();
            let lease = pool.reserve(Request::by(AGENT)).blocking();
            let settled = lease.and_then(|lease| lease.commit([]).blocking());
            taken.push(began.elapsed().as_nanos().to_string());
            settled.map_err(|error| error.to_string())?;
        }
        say(&taken.join(" ")).map_err(|error| error.to_string())?;
    }
    Ok(())
}

//! Speed of Standpipe, measured: `cargo xtask bench [PART…]`, with the parts core, file, wake,
//! hold, redis, daemon, proxy and proxy-pinned.
//!
//! `redis:SECTION` runs one section of Redis: foreign, alone, crowd, thousand or flat.
//!
//! Prints tables in Markdown; `bench/RESULTS.md` keeps a run with its machine and versions. Timing
//! lives here and never in a test. What is compared is measured in the same run, in turns, because
//! only such ratios mean something on a machine that does other things too.

#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    reason = "a bench divides seconds and prints what it finds"
)]

mod core_events;
mod crowd;
mod daemon;
mod file;
mod hold;
mod pairs;
mod peers;
mod pool;
mod proxy;
mod redis;
mod scratch;
mod table;
mod wake;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["worker", kind, place] => work(kind, place),
        [part] if part.starts_with("redis:") => redis::run(part.strip_prefix("redis:")),
        _ => measure(&words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(kind: &str, place: &str) -> Result<(), String> {
    match kind {
        "waiter" => wake::wait(place),
        "bare-waiter" => wake::wait_bare(place),
        "echo" => wake::echo(),
        "json-handler" => daemon::serve_json(place),
        "proxy-backend" => proxy::serve_backend(),
        "proxy-plain" => proxy::serve_plain(place),
        _ if kind.starts_with("redis-") => redis::work(kind, place),
        _ => pairs::run(kind, place),
    }
}

/// All parts, or those that are named.
fn measure(wanted: &[&str]) -> Result<(), String> {
    const PARTS: [&str; 8] =
        ["core", "file", "wake", "hold", "redis", "daemon", "proxy", "proxy-pinned"];
    if let Some(unknown) = wanted.iter().find(|part| !PARTS.contains(part)) {
        return Err(format!("there is no part `{unknown}`; there are {}", PARTS.join(", ")));
    }
    println!("# Speed\n");
    println!("{}\n", table::machine());
    for part in PARTS.iter().filter(|part| wanted.is_empty() || wanted.contains(part)) {
        match *part {
            "core" => core_events::run(),
            "file" => {
                file::run()?;
                crowd::run()?;
            }
            "wake" => wake::run()?,
            "hold" => hold::run()?,
            "daemon" => daemon::run()?,
            "proxy" => proxy::run(false)?,
            "proxy-pinned" => proxy::run(true)?,
            _ => redis::run(None)?,
        }
    }
    Ok(())
}

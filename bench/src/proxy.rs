//! The proxy with the ledger on, beside nginx as a plain proxy, `LiteLLM`, and no proxy at all.
//!
//! All ways lead to the same backend and are measured in turns. Load is open: a request is due at
//! its instant whether or not the last one was answered, and its time counts from then, so that a
//! pause of the proxy counts for everyone who had to wait for it.

mod backend;
mod load;
mod plain;
mod servers;
mod streams;

use std::time::Duration;

pub(crate) use self::backend::serve as serve_backend;
use self::load::{Call, closed_loop, open_loop};
pub(crate) use self::plain::serve as serve_plain;
use self::servers::{Backend, Server};
use crate::table::aim;

/// How often each way is measured, in turns.
const ROUNDS: usize = 5;
/// Requests a second in the open load, and how long a round takes.
const RATE: f64 = 200.0;
const ROUND: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 8;
/// Requests of a round in which the processor time is counted.
const BURST: usize = 4_000;
/// Sizes of requests, in bytes; answers have 1 KB.
const SIZES: [usize; 3] = [1_000, 10_000, 400_000];

/// What one way showed: microseconds, one figure per round.
#[derive(Default)]
struct Found {
    p50: Vec<f64>,
    p99: Vec<f64>,
    per_cpu_second: Vec<f64>,
}

/// Measures all ways. Pinned, the proxies have one core, the backend and the callers the other.
pub(crate) fn run(pinned: bool) -> Result<(), String> {
    println!("## The proxy{}\n", if pinned { ", pinned" } else { "" });
    println!(
        "{ROUNDS} rounds of each way in turns; open load of {RATE} requests a second over \
         {CONNECTIONS} connections for {} s a round; chat completions, answers of 1 KB. Load of \
         the machine at the start: {}.\n",
        ROUND.as_secs(),
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
    );
    let backend = Backend::start(pinned)?;
    let mut ways = vec![Server::direct(&backend), Server::nginx(&backend)?];
    ways.push(Server::standpipe(&backend)?);
    ways.push(Server::plain(&backend)?);
    println!("| request | way | p50, µs | p99, µs | requests per CPU second |");
    println!("|---|---|---:|---:|---:|");
    let mut first = None;
    for size in SIZES {
        let found = measure(&ways, size)?;
        for (way, found) in ways.iter().zip(&found) {
            let cpu = median(&found.per_cpu_second);
            let cpu = if way.is_proxy() { format!("{cpu:.0}") } else { "–".to_owned() };
            let (p50, p99) = (median(&found.p50), median(&found.p99));
            println!("| {} KB | {} | {p50:.0} | {p99:.0} | {cpu} |", size / 1_000, way.name);
        }
        first.get_or_insert(found);
    }
    let streams = streams::measure(&ways[..3])?;
    let lite = lite_llm(&backend, &ways[2])?;
    let memory = streams::memory(&backend)?;
    println!("\n| aim | reached | |\n|---|---:|---|");
    if let Some([direct, nginx, ours, ..]) = first.as_deref() {
        print_aims(direct, nginx, ours);
    }
    streams.print();
    lite_aim(lite);
    let [idle, crowded] = memory;
    aim("40 MB resident when idle", Some(format!("{idle:.1} MB")), Some(idle <= 40.0));
    let text = format!("100 MB with {} open streams", streams::OPEN);
    aim(&text, Some(format!("{crowded:.1} MB")), Some(crowded <= 100.0));
    println!();
    Ok(())
}

fn measure(ways: &[Server], size: usize) -> Result<Vec<Found>, String> {
    let calls: Vec<Call> = ways.iter().map(|way| Call::new(way, size, &[])).collect();
    let mut all: Vec<Found> = ways.iter().map(|_| Found::default()).collect();
    for call in &calls {
        closed_loop(call, CONNECTIONS, 200)?;
    }
    // A body of 400 KB takes its time: the machine must not be full.
    let rate = if size > 100_000 { RATE / 4.0 } else { RATE };
    let burst = if size > 100_000 { BURST / 5 } else { BURST };
    for round in 0..ROUNDS {
        for at in 0..ways.len() {
            // Each round begins with another way.
            let at = (at + round) % ways.len();
            let (way, call, found) = (&ways[at], &calls[at], &mut all[at]);
            let mut took = open_loop(call, CONNECTIONS, rate, ROUND)?;
            found.p50.push(percentile(&mut took, 0.50));
            found.p99.push(percentile(&mut took, 0.99));
            let before = way.processor_seconds();
            closed_loop(call, CONNECTIONS, burst)?;
            found.per_cpu_second.push(burst as f64 / (way.processor_seconds() - before).max(1e-9));
        }
    }
    Ok(all)
}

fn print_aims(direct: &Found, nginx: &Found, ours: &Found) {
    let added = |of: fn(&Found) -> &Vec<f64>| {
        let each = of(direct).iter().zip(of(nginx)).zip(of(ours));
        let ratios: Vec<f64> = each.map(|((d, n), o)| (o - d) / (n - d).max(1.0)).collect();
        median(&ratios)
    };
    let (p50, p99) = (added(|found| &found.p50), added(|found| &found.p99));
    let text = "1 KB: added p50 at most 2 times what nginx adds (median of pairs)";
    aim(text, Some(format!("{p50:.2} ×")), Some(p50 <= 2.0));
    let text = "1 KB: added p99 at most 3 times what nginx adds (median of pairs)";
    aim(text, Some(format!("{p99:.2} ×")), Some(p99 <= 3.0));
    let each = ours.per_cpu_second.iter().zip(&nginx.per_cpu_second);
    let share = median(&each.map(|(ours, nginx)| ours / nginx).collect::<Vec<_>>());
    let text = "1 KB: requests per CPU second at least 0.4 times nginx";
    aim(text, Some(format!("{share:.2} ×")), Some(share >= 0.4));
}

/// Requests per CPU second of Standpipe and of `LiteLLM`, pairs in turns.
fn lite_llm(backend: &Backend, ours: &Server) -> Result<Option<f64>, String> {
    let Some(lite) = Server::lite_llm(backend)? else { return Ok(None) };
    let calls = [Call::new(ours, SIZES[0], &[]), Call::new(&lite, SIZES[0], &[])];
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let mut each = [0.0; 2];
        for (at, (way, many)) in [(ours, 600), (&lite, 60)].into_iter().enumerate() {
            let before = way.processor_seconds();
            closed_loop(&calls[at], CONNECTIONS, many)?;
            each[at] = many as f64 / (way.processor_seconds() - before).max(1e-9);
        }
        println!(
            "| 1 KB | LiteLLM, pair with Standpipe | – | – | {:.0} : {:.0} |",
            each[1], each[0]
        );
        ratios.push(each[0] / each[1]);
    }
    Ok(Some(median(&ratios)))
}

fn lite_aim(times: Option<f64>) {
    let text = "1 KB: requests per CPU second at least 20 times LiteLLM";
    let shown = times.map(|times| format!("{times:.0} ×"));
    aim(text, shown, times.map(|times| times >= 20.0));
}

fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * part) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

fn median(values: &[f64]) -> f64 {
    percentile(&mut values.to_vec(), 0.5)
}

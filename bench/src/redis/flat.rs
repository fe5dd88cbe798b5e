//! The server's own time for a call, as a pool's past grows.

use standpipe::Pool;

use super::work::{pair, pool_at, reserve_of_pair};
use super::{FULL, Place, fill};
use crate::table::{aim, reached};
use crate::worker::shown;

const ROUNDS: usize = 5;
const PAIRS: usize = 500;
const DEAD: usize = 100_000;

/// A pool, and what its rounds cost.
struct Past {
    name: &'static str,
    pool: Pool,
    /// Of the server for one call, and of the client for one reserve; in microseconds.
    server: Vec<f64>,
    client: Vec<f64>,
}

pub(super) fn run(place: &Place) -> Result<(), String> {
    println!("### The server's time, as the past grows\n");
    println!(
        "Time of the server in our scripts (`INFO commandstats`) for one call, snapshots \
         included, in {ROUNDS} rounds of {PAIRS} pairs that took turns; the round in the middle. \
         {DEAD} sessions have reserved and died; {FULL} admissions are in the full windows.\n"
    );
    let url = place.server.url();
    fill::dead_sessions(&url, "bench/dead", DEAD)?;
    fill::window(&url, "bench/full-again")?;
    let home = shown(place.home.path());
    let past = |name, pool| {
        let pool = pool_at(&url, pool, &home)?;
        Ok::<Past, String>(Past { name, pool, server: Vec::new(), client: Vec::new() })
    };
    let mut all = [
        past("a fresh pool", "bench/fresh")?,
        past("dead sessions", "bench/dead")?,
        past("full windows", "bench/full-again")?,
    ];
    for _ in 0..ROUNDS {
        for each in &mut all {
            each.round(place)?;
        }
    }
    println!("| pool | server, µs a call | times fresh | client, p50 of a reserve, µs | times |");
    println!("|---|---:|---:|---:|---:|");
    let fresh = all[0].middles();
    let mut most: f64 = 0.0;
    for each in &all {
        let (server, client) = each.middles();
        let times = (server / fresh.0, client / fresh.1);
        most = most.max(times.0);
        println!("| {} | {server:.1} | {:.2} | {client:.0} | {:.2} |", each.name, times.0, times.1);
    }
    println!("\n| aim | reached | |\n|---|---:|---|");
    aim("the server's time stays flat", Some(reached(most)), Some(most <= 1.25));
    println!();
    Ok(())
}

impl Past {
    fn round(&mut self, place: &Place) -> Result<(), String> {
        // The connection, the replica and the caches are of another round.
        pair(&self.pool);
        place.server.run(&["CONFIG", "RESETSTAT"]);
        let mut took: Vec<f64> =
            (0..PAIRS).map(|_| reserve_of_pair(&self.pool).as_secs_f64() * 1e6).collect();
        let stats = place.server.run(&["INFO", "commandstats"]);
        self.server.push(script_micros(&stats)? / (2 * PAIRS) as f64);
        took.sort_by(f64::total_cmp);
        self.client.push(took[took.len() / 2]);
        Ok(())
    }

    fn middles(&self) -> (f64, f64) {
        (middle(&self.server), middle(&self.client))
    }
}

fn middle(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// All microseconds that were spent in scripts.
fn script_micros(stats: &str) -> Result<f64, String> {
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
    let micros = line.and_then(|line| line.split(',').find_map(|word| word.strip_prefix("usec=")));
    micros.and_then(|micros| micros.parse().ok()).ok_or_else(|| format!("no scripts in {stats}"))
}

//! Contestants: each a number of processes of one kind, that have their turns.

use std::process::Command;
use std::time::Duration;

use crate::worker::{Round, Worker};

/// Processes of one kind, and what came of their rounds.
pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    state: Result<Vec<Worker>, String>,
    pub(super) rounds: Vec<Together>,
}

/// What all processes of a contestant reached in one round.
#[derive(Clone, Copy)]
pub(super) struct Together {
    /// Of all of them, in a second.
    pub(super) rate: f64,
    /// The least and the most that one of them did.
    pub(super) least: u64,
    pub(super) most: u64,
    /// In nanoseconds; of several processes the middle one's, and the worst one's.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// How many were done, and how many came to nothing.
    pub(super) done: u64,
    pub(super) failed: u64,
}

impl Contestant {
    pub(super) fn start(
        name: &'static str,
        what: &'static str,
        processes: usize,
        command: &dyn Fn() -> Result<Command, String>,
    ) -> Self {
        Self { name, what, state: workers(processes, command), rounds: Vec::new() }
    }

    fn turn(&mut self, time: Duration) {
        let Ok(workers) = &mut self.state else { return };
        match round(workers, time) {
            Ok(together) => self.rounds.push(together),
            Err(error) => self.state = Err(error),
        }
    }

    /// The round in the middle, by a figure.
    pub(super) fn middle(&self, figure: impl Fn(&Together) -> f64) -> Option<f64> {
        let mut figures: Vec<f64> = self.rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    }

    pub(super) fn p50(&self) -> Option<f64> {
        self.middle(|round| round.p50)
    }

    /// The p50 of the best round.
    pub(super) fn best_p50(&self) -> Option<f64> {
        self.rounds.iter().map(|round| round.p50).min_by(f64::total_cmp)
    }

    /// The rate of the best round.
    pub(super) fn best_rate(&self) -> Option<f64> {
        self.rounds.iter().map(|round| round.rate).max_by(f64::total_cmp)
    }

    pub(super) fn p99(&self) -> Option<f64> {
        self.middle(|round| round.p99)
    }

    pub(super) fn rate(&self) -> Option<f64> {
        self.middle(|round| round.rate)
    }

    pub(super) fn why(&self) -> &str {
        self.state.as_ref().err().map_or("no round", String::as_str)
    }
}

/// In each round the engines run one after the other. Every other round goes
/// backwards, so that no engine always follows the same one.
pub(super) fn take_turns(contestants: &mut [Contestant], rounds: usize, time: Duration) {
    for round in 0..rounds {
        let mut turns: Vec<&mut Contestant> = contestants.iter_mut().collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        for contestant in turns {
            contestant.turn(time);
        }
    }
}

pub(super) fn find<'a>(contestants: &'a [Contestant], name: &str) -> Option<&'a Contestant> {
    contestants.iter().find(|contestant| contestant.name == name)
}

fn workers(
    processes: usize,
    command: &dyn Fn() -> Result<Command, String>,
) -> Result<Vec<Worker>, String> {
    let mut workers = Vec::new();
    for _ in 0..processes {
        workers.push(Worker::start(&mut command()?)?);
    }
    for worker in &mut workers {
        worker.wait_ready()?;
    }
    Ok(workers)
}

fn round(workers: &mut [Worker], time: Duration) -> Result<Together, String> {
    for worker in workers.iter_mut() {
        worker.go(time)?;
    }
    let rounds: Result<Vec<Round>, String> = workers.iter_mut().map(Worker::round).collect();
    let rounds = rounds?;
    let mut p50: Vec<f64> = rounds.iter().map(|round| round.p50).collect();
    p50.sort_by(f64::total_cmp);
    Ok(Together {
        rate: rounds.iter().map(|round| 1e9 * round.pairs as f64 / round.nanos as f64).sum(),
        least: rounds.iter().map(|round| round.pairs).min().unwrap_or_default(),
        most: rounds.iter().map(|round| round.pairs).max().unwrap_or_default(),
        p50: p50.get(p50.len() / 2).copied().unwrap_or_default(),
        p99: rounds.iter().map(|round| round.p99).fold(0.0, f64::max),
        done: rounds.iter().map(|round| round.pairs).sum(),
        failed: rounds.iter().map(|round| round.failed).sum(),
    })
}

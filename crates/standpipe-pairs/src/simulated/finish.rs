//! The end of a pair in virtual time: whoever waits is served, and a new process can take all.

use std::sync::PoisonError;

use standpipe_core::Action;
use standpipe_store::Store;

use super::{Ask, DAYS, World, words};
use crate::setup::{LONG, Rule};

const BEAT: Action = Action::Heartbeat { lease: None, ttl: None };

impl World {
    /// Everybody settles, who waits is served, and a new process can take everything.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        for at in 0..self.processes.len() {
            self.processes[at].stopped = false;
            while !self.processes[at].held.is_empty() {
                self.settle(at, 0)?;
            }
        }
        for round in 0..55 {
            // Long enough for those whose death cannot be tested.
            self.pass(if round < 40 { 500_000 } else { 10_000_000 });
            for at in 0..self.processes.len() {
                self.claim(at)?;
                self.ask(at, Ask::of(DAYS))?;
                self.ask_paced(at)?;
                self.end_contest(at)?;
                self.end_sets(at)?;
                while !self.processes[at].held.is_empty() {
                    self.settle(at, 0)?;
                }
                // Every 20 s at the latest.
                if round % 2 == 0 {
                    self.beat(at)?;
                }
            }
        }
        self.start(self.boot_id)?;
        // Only a new process reads all of the file: it may be the first to find it damaged.
        self.pass(3_000_000);
        self.take_all()
    }

    /// A process shows that it lives, and makes a missing lock again.
    fn beat(&mut self, at: usize) -> Result<(), String> {
        let process = &mut self.processes[at];
        for member in &mut process.members {
            member.submit(vec![BEAT]).map_err(words)?;
        }
        let sessions = process.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.iter().for_each(|session| process.store.renew_session(*session));
        Ok(())
    }

    /// The last process takes the whole capacity of each pool.
    fn take_all(&mut self) -> Result<(), String> {
        let at = self.processes.len() - 1;
        let pools = self.setup().pools;
        for (pool, limits) in pools.iter().enumerate() {
            let amount = match limits.rule {
                // Only background is left, long after.
                _ if limits.name == LONG => continue,
                Rule::Parallel(amount) | Rule::Window(amount, _) => amount,
                Rule::Bucket(_, _, burst) => burst,
                // A day is too long to wait for.
                Rule::Day(..) | Rule::Absent => continue,
            };
            // What was taken from a pool counts at its parent, too.
            self.pass(2_100_000);
            for taken in 0..amount {
                if !self.ask(at, Ask::of(pool))? {
                    let last = self.calls.last().map_or("", |call| &call.words);
                    return Err(format!("{taken} of {amount} on {}: {last}", limits.name));
                }
            }
            while !self.processes[at].held.is_empty() {
                self.settle(at, 0)?;
            }
        }
        self.background_alone(at)
    }
}

//! The pools on which background is paced: calls of two priorities, and background alone in the
//! end.

use super::{Ask, World};
use crate::setup::{LONG, PACED, Rule};

impl World {
    /// Asks on a pool with a pace: mostly in background, which sometimes waits for a while.
    pub(super) fn ask_paced(&mut self, at: usize) -> Result<(), String> {
        let name = if self.extras.below(2) == 0 { LONG } else { PACED };
        let Some(pool) = self.pool_number(name) else { return Ok(()) };
        // So that no two calls there have the same instant: their order matters to the referee.
        self.pass(1);
        let background = self.extras.below(4) > 0;
        let waits = background && self.processes[at].waits.is_none() && self.extras.below(8) == 0;
        let timeout = if waits { 2_000 } else { 0 };
        self.ask(at, Ask { timeout, background, ..Ask::of(pool) }).map(|_| ())
    }

    /// When no other priority was active for a whole period, background is not paced.
    pub(super) fn background_alone(&mut self, at: usize) -> Result<(), String> {
        let Some(pool) = self.pool_number(LONG) else { return Ok(()) };
        let Rule::Window(amount, period) = self.setup().pools[pool].rule else { return Ok(()) };
        self.pass(period + 1_000_000);
        // More than the pace has at once.
        let many = amount / 10;
        for taken in 0..many {
            if !self.ask(at, Ask { background: true, ..Ask::of(pool) })? {
                let last = self.calls.last().map_or("", |call| &call.words);
                return Err(format!("background alone got {taken} of {many} on {LONG}: {last}"));
            }
        }
        Ok(())
    }
}

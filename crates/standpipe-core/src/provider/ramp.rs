//! The ramp after a refusal: the shortest rates are halved and double with every period.
//!
//! It ends by time alone. `config/compiled.rs` applies it to the rates.

use crate::state::State;
use crate::time::{Instant, Span};

/// A rate is halved at most this often: a 64th.
const MOST_HALVINGS: u8 = 6;

/// The shortest rates are halved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// How often they are halved.
    pub halvings: u8,
    /// Since when; one less a period later.
    pub since: Instant,
    /// Set while the provider reports too steep a ramp: requests are spread evenly, because a
    /// halved rate that is spent in one burst is too steep again.
    pub paced: bool,
}

impl State {
    /// Halves the shortest rates after a refusal, again for each refusal because of too steep
    /// growth. Nobody is admitted before `from`, so the ramp begins there.
    pub(crate) fn start_ramp(&mut self, again: bool, from: Instant) {
        if self.windows().is_none() {
            return;
        }
        let (before, paced) =
            self.facts.ramp.map_or((0, false), |ramp| (ramp.halvings, ramp.paced));
        let halvings = if again { before + 1 } else { before.max(1) };
        let (halvings, paced) = (halvings.min(MOST_HALVINGS), paced || again);
        self.facts.ramp = Some(Ramp { halvings, since: from, paced });
    }

    /// When the rates are doubled next: one period after the last step, whatever happens. If it
    /// took a success, floors and polling could prevent every success.
    pub(crate) fn ramp_next_step(&self) -> Option<Instant> {
        let ramp = self.facts.ramp?;
        Some(ramp.since + self.index.compiled.shortest_period().unwrap_or(Span::ZERO))
    }

    /// Takes the steps that are due; several if a change made the period shorter.
    pub(crate) fn advance_ramp(&mut self, now: Instant) {
        while let Some(since) = self.ramp_next_step().filter(|at| *at <= now) {
            let Some(ramp) = self.facts.ramp else { return };
            let halvings = ramp.halvings - 1;
            self.facts.ramp = (halvings > 0).then_some(Ramp { halvings, since, ..ramp });
            self.recompile(now);
        }
    }
}

//! The ramp after a refusal: for one period from the pause's end the shortest rates admit half of
//! what is usable. A refusal because of too steep growth halves again; each period undoes one
//! halving.
//!
//! It ends by time alone. `rules/ramp.rs` applies it to calls.

use crate::id::ConstraintId;
use crate::state::State;
use crate::time::{Instant, Span};

/// A rate is halved at most this often: a 64th.
pub(crate) const MAX_HALVINGS: u8 = 6;

/// The shortest rates are halved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// How often they are halved.
    pub halvings: u8,
    /// Since when; one less a period later. Only what is charged from then on counts.
    pub since: Instant,
    /// Set while the provider reports too steep a ramp: requests are spread evenly, because a
    /// halved rate that is spent in one burst is too steep again.
    pub paced: bool,
}

/// One period of a ramp on one constraint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RampStep {
    pub(crate) began: Instant,
    pub(crate) ends: Instant,
    /// The units it admits.
    pub(crate) budget: u64,
}

impl State {
    /// Halves the shortest rates after a refusal, again for each refusal because of too steep
    /// growth. Nothing is admitted before `from`, so the ramp begins there.
    pub(crate) fn start_ramp(&mut self, again: bool, from: Instant) {
        if self.windows().is_none() {
            return;
        }
        let (before, paced) =
            self.facts.ramp.map_or((0, false), |ramp| (ramp.halvings, ramp.paced));
        let halvings = if again { before + 1 } else { before.max(1) };
        let (halvings, paced) = (halvings.min(MAX_HALVINGS), paced || again);
        self.facts.ramp = Some(Ramp { halvings, since: from, paced });
    }

    /// Moves the ramp behind a pause that was lengthened.
    pub(crate) fn delay_ramp(&mut self, until: Instant) {
        if let Some(ramp) = &mut self.facts.ramp {
            ramp.since = ramp.since.max(until);
        }
    }

    /// The step of the ramp that applies to a constraint at an instant, if only time passes.
    pub(crate) fn ramp_step(&self, constraint: ConstraintId, at: Instant) -> Option<RampStep> {
        let declared = &self.index.compiled.constraints[constraint];
        let ramp = self.facts.ramp.filter(|_| declared.ramped)?;
        let period = declared.id.period()?;
        let undone = u8::try_from(at.since(ramp.since).0 / period.0.max(1)).ok()?;
        let halvings = ramp.halvings.checked_sub(undone).filter(|left| *left > 0)?;
        let began = ramp.since + Span(period.0.saturating_mul(u64::from(undone)));
        let budget = (declared.spec.usable_per_period() >> halvings).max(1);
        Some(RampStep { began, ends: began + period, budget })
    }

    /// When the rates are doubled next: one period after the last step, whatever happens. If it
    /// took a success, floors and polling could prevent every success.
    pub(crate) fn ramp_next_step(&self) -> Option<Instant> {
        let ramp = self.facts.ramp?;
        Some(ramp.since + self.index.compiled.ramp_period().unwrap_or(Span::ZERO))
    }

    /// The next step of a ramp that also paces requests.
    pub(crate) fn paced_ramp_step(&self) -> Option<Instant> {
        self.facts.ramp.filter(|ramp| ramp.paced).and_then(|_| self.ramp_next_step())
    }

    /// Takes the steps that are due; several if a change made the period shorter.
    pub(crate) fn advance_ramp(&mut self, now: Instant) {
        while let Some(since) = self.ramp_next_step().filter(|at| *at <= now) {
            let Some(ramp) = self.facts.ramp else { return };
            let halvings = ramp.halvings - 1;
            self.facts.ramp = (halvings > 0).then_some(Ramp { halvings, since, ..ramp });
            if ramp.paced {
                // The gap between requests depends on the step.
                self.recompile(now);
            }
        }
    }
}

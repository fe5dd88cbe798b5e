//! The ramp: after a pause the shortest rates admit half of what is usable for one period. A limit
//! of its own, so what was used before the pause does not count in it. A lower bound.
//!
//! Floors are shares of it. A call that is larger than the ramp passes when nothing else was
//! admitted under it, so a ramp never brings a pool to a standstill. `provider/ramp.rs` starts and
//! ends it.

use crate::config::mul_div;
use crate::id::ConstraintId;
use crate::outcome::Reason;
use crate::provider::ramp::{MAX_HALVINGS, RampStep};
use crate::rules::{Admits, ConstraintRule, Part};
use crate::state::State;
use crate::time::Instant;

pub(super) const RULE: ConstraintRule = ConstraintRule {
    reason: |_, _, _| Reason::Ramp,
    admits: |state, part, from| state.ramp_admits(part, from),
    short_by: |state, part, now| match state.ramp_step(part.constraint, now) {
        Some(step) => state.ramp_want(part, step, now).saturating_sub(step.budget).max(1),
        None => 0,
    },
};

impl State {
    fn ramp_admits(&self, part: &Part<'_>, from: Instant) -> Admits {
        let mut at = from;
        for _ in 0..=MAX_HALVINGS {
            match self.ramp_step(part.constraint, at) {
                Some(step) if !self.fits_ramp(part, step, at) => at = step.ends,
                _ => break,
            }
        }
        Admits::at(at, from)
    }

    fn fits_ramp(&self, part: &Part<'_>, step: RampStep, at: Instant) -> bool {
        let is_first = part.before == 0 && part.usage.history.charged_since(step.began) == 0;
        is_first || self.ramp_want(part, step, at) <= step.budget
    }

    /// What a step would have admitted with the call, and with what is kept for others.
    fn ramp_want(&self, part: &Part<'_>, step: RampStep, at: Instant) -> u64 {
        let used = part.usage.history.charged_since(step.began);
        let kept = self.kept_from_each(part.candidate, part.constraint, at, part.is_forecast);
        let kept = kept.map(|(owner, kept)| {
            let Some(floor) = self.floor_usage(owner, part.constraint) else { return 0 };
            let usable = part.usage.spec.usable_per_period();
            let share = mul_div(floor.floor, step.budget, usable.max(1));
            let own = self.agent_usage(Some(owner), floor).history.charged_since(step.began);
            kept.min(share.saturating_sub(own))
        });
        let kept = kept.fold(0, u64::saturating_add);
        used.saturating_add(part.need).saturating_add(part.before).saturating_add(kept)
    }

    /// What a ramp leaves of a constraint for tickets, and whether nothing was admitted under it.
    pub(crate) fn ramp_left(&self, constraint: ConstraintId, now: Instant) -> Option<(u64, bool)> {
        let step = self.ramp_step(constraint, now)?;
        let used = self.usage(constraint).history.charged_since(step.began);
        Some((step.budget.saturating_sub(used), used == 0))
    }
}

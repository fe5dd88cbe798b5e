//! Background yields while under 30 % of any rate is left and a higher tier is active on it. A
//! lower bound.
//!
//! It does not yield on a limit where every active agent of a higher tier has a floor, nor on one
//! where `rules/spread.rs` paces it.

use super::{Admits, CallRule, Effect, Named};
use crate::agents::activity::Who;
use crate::config::Priority;
use crate::config::compiled::ConstraintKind;
use crate::id::ConstraintId;
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::state::State;
use crate::time::Instant;

/// Background yields below this share, in thousandths.
const SCARCE: u64 = 300;

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::Yield,
    effect: Effect::Hold,
    admits: |state, candidate, from| state.yield_admits(candidate, from),
    names: |state, _, now| {
        let scarce = state.scarce(now).min_by_key(|at| state.left_of(*at, now));
        Named { limit: scarce.and_then(|at| state.limit_named(at)), short_by: 0 }
    },
};

impl State {
    fn yield_admits(&self, candidate: &Candidate<'_>, from: Instant) -> Admits {
        if candidate.tier() != Priority::Background {
            return Admits::Now;
        }
        let each = self.scarce(from).map(|at| {
            let enough = self.left_reaches(at, SCARCE, from);
            let superiors = self.superiors(Priority::Background, at, Who::WithoutFloor);
            self.while_active(&superiors, enough, from)
        });
        each.fold(Admits::Now, |all, one| all.and(one, from))
    }

    /// The rates of which so little is left that background yields.
    fn scarce(&self, now: Instant) -> impl Iterator<Item = ConstraintId> {
        let rates = self.index.compiled.constraints.rows();
        let rates = rates.filter(|(_, own)| {
            self.index.compiled.yields && own.kind == ConstraintKind::Rate && !own.spread
        });
        rates.map(|(at, _)| at).filter(move |at| {
            let superiors = self.superiors(Priority::Background, *at, Who::WithoutFloor);
            superiors.are_active(now) && self.left_of(*at, now) < SCARCE
        })
    }

    /// Whether background yields.
    pub(crate) fn is_yielding(&self, now: Instant) -> bool {
        self.scarce(now).next().is_some()
    }

    /// When time alone next ends the scarcity of a rate, or the activity that makes it matter.
    pub(crate) fn yield_next_event(&self, now: Instant) -> Option<Instant> {
        let ends = self.scarce(now).flat_map(|at| {
            let superiors = self.superiors(Priority::Background, at, Who::WithoutFloor);
            [Some(self.left_reaches(at, SCARCE, now)), superiors.end_of_activity()]
        });
        ends.flatten().filter(|at| *at > now && *at != Instant::NEVER).min()
    }
}

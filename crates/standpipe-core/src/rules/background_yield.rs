//! Background yields while under 30 % of any rate is left and a higher tier is active. A lower
//! bound.

use super::{Effect, Named, Rule};
use crate::config::Priority;
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::rules::zone::{SCARCE, ZoneScope};
use crate::state::State;
use crate::time::Instant;

pub(super) const RULE: Rule = Rule {
    reason: Reason::Yield,
    effect: Effect::Hold,
    admits: |state, candidate, from| {
        let enough = state.yield_ends(candidate, from);
        state.while_superiors_active(candidate.tier(), enough, from)
    },
    names: |state, _, now| Named { limit: state.scarcest(ZoneScope::Rates, now), short_by: 0 },
};

impl State {
    fn is_background(&self, candidate: &Candidate<'_>) -> bool {
        self.index.compiled.yields && candidate.tier() == Priority::Background
    }

    /// Whether so little is left that background yields.
    pub(crate) fn is_scarce(&self, now: Instant) -> bool {
        self.index.compiled.yields && self.left(ZoneScope::Rates, now) < SCARCE
    }

    /// When enough is left again, if only time passes.
    pub(crate) fn yield_ends(&self, candidate: &Candidate<'_>, from: Instant) -> Instant {
        if !self.is_background(candidate) {
            return from;
        }
        self.left_reaches(ZoneScope::Rates, SCARCE, from)
    }
}

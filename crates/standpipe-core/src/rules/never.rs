//! A cost that no limit can ever hold: above what is stated, above the agent's cap, or without any
//! limit at all.

use super::{Admits, CallRule, Effect, Named};
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::state::State;

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::Never,
    effect: Effect::Refuse,
    admits: |state, candidate, _| match state.never_fits(candidate) {
        Some(_) => Admits::Never,
        None => Admits::Now,
    },
    names: |state, candidate, _| state.never_fits(candidate).unwrap_or_default(),
};

impl State {
    /// What a cost exceeds for good, if it does.
    pub(crate) fn never_fits(&self, candidate: &Candidate<'_>) -> Option<Named> {
        let constraints = &self.index.compiled.constraints;
        if constraints.is_empty() {
            return Some(Named::default());
        }
        for constraint in constraints {
            let need = constraint.need(candidate.cost);
            if need > constraint.spec.stated {
                let limit = Some(constraint.id.clone());
                return Some(Named { limit, short_by: need - constraint.spec.stated });
            }
        }
        for usage in self.usages_of(candidate.rule).iter().filter(|usage| usage.capped) {
            let need = usage.need(constraints, candidate.cost);
            if need > usage.spec.effective {
                let (limit, short_by) = (self.limit_of(usage), need - usage.spec.effective);
                return Some(Named { limit, short_by });
            }
        }
        None
    }
}

//! An agent's own cap: the most it may use. Exact, unless calls in flight hold what it lacks.

use super::{Admits, CallRule, Effect, Named};
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::state::State;
use crate::time::Instant;

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::Cap,
    effect: Effect::Hold,
    admits: State::cap_admits,
    names: reached,
};

impl State {
    fn cap_admits(&self, candidate: &Candidate<'_>, from: Instant) -> Admits {
        let mut at = from;
        for usage in self.usages_of(candidate.rule).iter().filter(|usage| usage.capped) {
            let need = usage.need(&self.index.compiled.constraints, candidate.cost);
            if need > 0 {
                at = at.max(self.agent_usage(candidate.agent, usage).fits_from(need, from));
            }
        }
        Admits::at(at, from)
    }
}

/// The first of the agent's caps that is reached.
fn reached(state: &State, candidate: &Candidate<'_>, now: Instant) -> Named {
    for usage in state.usages_of(candidate.rule).iter().filter(|usage| usage.capped) {
        let need = usage.need(&state.index.compiled.constraints, candidate.cost);
        let taken = state.agent_usage(candidate.agent, usage).taken_at(now);
        let left = usage.spec.effective.saturating_sub(taken);
        if need > left {
            return Named { limit: state.limit_of(usage), short_by: need - left };
        }
    }
    Named::default()
}

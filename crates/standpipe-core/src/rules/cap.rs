//! An agent's own cap: the most it may use. Exact, unless calls in flight hold what it lacks.

use super::{Admits, Effect, Named, Rule};
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::state::State;
use crate::time::Instant;

pub(super) const RULE: Rule =
    Rule { reason: Reason::Cap, effect: Effect::Hold, admits: State::cap_admits, names: reached };

impl State {
    fn cap_admits(&self, candidate: &Candidate<'_>, from: Instant) -> Admits {
        let (usages, counters) =
            (self.usages_of(candidate.rule), self.counters_of(candidate.agent));
        let mut at = from;
        for (usage, counter) in usages.iter().zip(counters).filter(|(usage, _)| usage.capped) {
            let need = usage.need(&self.index.compiled.constraints, candidate.cost);
            if need > 0 {
                at = at.max(counter.fits_from(need, from, &usage.spec));
            }
        }
        Admits::at(at, from)
    }
}

/// The first of the agent's caps that is reached.
fn reached(state: &State, candidate: &Candidate<'_>, now: Instant) -> Named {
    let (usages, counters) = (state.usages_of(candidate.rule), state.counters_of(candidate.agent));
    for (usage, counter) in usages.iter().zip(counters).filter(|(usage, _)| usage.capped) {
        let need = usage.need(&state.index.compiled.constraints, candidate.cost);
        let left = usage.spec.effective.saturating_sub(counter.taken_at(now, &usage.spec));
        if need > left {
            return Named { limit: state.limit_of(usage), short_by: need - left };
        }
    }
    Named::default()
}

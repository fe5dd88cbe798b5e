//! Room: what is free of a limit or a pace, less what is earmarked for tickets before the call.
//! Exact, unless calls in flight hold what it lacks.

use crate::config::compiled::ConstraintKind;
use crate::outcome::Reason;
use crate::rules::{Admits, ConstraintRule, Part};
use crate::state::State;
use crate::time::Instant;

pub(super) const RULE: ConstraintRule =
    ConstraintRule { reason, admits: |state, part, from| state.has_room(part, from), short_by };

impl State {
    fn has_room(&self, part: &Part<'_>, from: Instant) -> Admits {
        if self.index.compiled.gate == Some(part.constraint) {
            return self.gate_admits(part, from);
        }
        let want = part.need.saturating_add(part.before);
        // A call above the effective limit passes alone, but not beside earmarked units.
        let never = part.before > 0 && want > part.usage.spec.effective;
        let room = if never { Instant::NEVER } else { part.usage.fits_from(want, from) };
        let probed = part.usage.probed_from(part.need, from).filter(|_| part.before == 0);
        Admits::at(room.min(probed.unwrap_or(Instant::NEVER)), from)
    }
}

fn reason(state: &State, part: &Part<'_>, now: Instant) -> Reason {
    match state.index.compiled.constraints[part.constraint].kind {
        ConstraintKind::Gate if state.index.compiled.gate == Some(part.constraint) => {
            state.gate_reason()
        }
        ConstraintKind::Gate => Reason::Pace,
        ConstraintKind::Slots if part.usage.unknown_until().is_some_and(|until| now < until) => {
            Reason::Learning
        }
        ConstraintKind::Slots | ConstraintKind::Rate => Reason::Limit,
    }
}

/// What floors keep is missing too.
pub(super) fn short_by(state: &State, part: &Part<'_>, now: Instant) -> u64 {
    let kept = state.kept(part, now);
    if part.need > part.usage.spec.effective && part.before == 0 && kept == 0 {
        return part.usage.taken_at(now).max(1);
    }
    let free = part.usage.free_at(now).saturating_sub(part.before);
    part.need.saturating_sub(free.saturating_sub(kept)).max(1)
}

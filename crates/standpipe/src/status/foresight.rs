//! Working out what is foreseen: what others use, what was spent, who is denied.

use standpipe_core::{Headroom, LimitId, State};

use super::Money;
use crate::moment::Now;

/// What others were seen to use of a limit.
pub(super) fn outside(state: &State, limit: &LimitId, now: &Now) -> u64 {
    let seen = state.outside(now.store).into_iter().find(|(of, _)| of == limit);
    seen.map_or(0, |(_, units)| units)
}

/// The share of a stated rate that is used, in thousandths; none for calls in flight.
pub(super) fn headroom(state: &State, limit: &LimitId) -> Option<u16> {
    let config = state.facts().config.as_ref()?;
    limit.period()?;
    let warmth = &state.facts().auto_margins;
    let tuned = warmth.iter().find(|warmth| warmth.limit == *limit);
    Some(match (config.headroom, tuned) {
        (Headroom::Auto, Some(tuned)) => tuned.per_mille,
        (headroom, _) => headroom.per_mille(),
    })
}

/// What the last day cost.
pub(super) fn money(state: &State, now: &Now) -> Option<Money> {
    let (spent, wasted) = state.money(now.store)?;
    Some(Money { spent_micro_usd: spent, wasted_micro_usd: wasted })
}

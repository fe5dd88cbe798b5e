//! Working out what is foreseen: what others use, what was spent, who is denied.

use standpipe_core::{LimitId, State};

use super::Money;
use crate::moment::Now;

/// What others were seen to use of a limit.
pub(super) fn outside(state: &State, limit: &LimitId, now: &Now) -> u64 {
    let seen = state.outside(now.store).into_iter().find(|(of, _)| of == limit);
    seen.map_or(0, |(_, units)| units)
}

/// What the last day cost.
pub(super) fn money(state: &State, now: &Now) -> Option<Money> {
    let (spent, wasted) = state.money(now.store)?;
    Some(Money { spent_micro_usd: spent, wasted_micro_usd: wasted })
}

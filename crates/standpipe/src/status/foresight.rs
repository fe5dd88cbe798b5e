//! Working out what is foreseen: what others use, what was spent, who is denied.

use standpipe_core::{LimitId, Margin, State};

use super::Money;
use crate::moment::Now;

/// What others were seen to use of a limit.
pub(super) fn outside(state: &State, limit: &LimitId, now: &Now) -> u64 {
    let seen = state.outside(now.store).into_iter().find(|(of, _)| of == limit);
    seen.map_or(0, |(_, units)| units)
}

/// The share of a stated rate that is left unused, in thousandths; none for calls in flight.
pub(super) fn margin(state: &State, limit: &LimitId) -> Option<u16> {
    let config = state.facts().config.as_ref()?;
    limit.period()?;
    let adjusted = state.facts().auto_margins.iter().find(|margin| margin.limit == *limit);
    Some(match (config.margin, adjusted) {
        (Margin::Auto, Some(adjusted)) => adjusted.per_mille,
        (margin, _) => margin.per_mille(),
    })
}

/// What the last day cost.
pub(super) fn money(state: &State, now: &Now) -> Option<Money> {
    let (spent, wasted) = state.money(now.store)?;
    Some(Money { spent_micro_usd: spent, wasted_micro_usd: wasted })
}

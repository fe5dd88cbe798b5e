//! Usage outside Standpipe and money, from a ledger's state.

use standpipe_core::{LimitId, State};

use super::Money;
use crate::time::Now;

/// Returns the usage of a limit that did not go through Standpipe.
pub(super) fn outside(state: &State, limit: &LimitId, now: &Now) -> u64 {
    let seen = state.outside(now.store).into_iter().find(|(of, _)| of == limit);
    seen.map_or(0, |(_, units)| units)
}

/// Returns what the last day cost.
pub(super) fn money(state: &State, now: &Now) -> Option<Money> {
    let (spent, wasted) = state.money(now.store)?;
    Some(Money { spent_micro_usd: spent, wasted_micro_usd: wasted })
}

//! The return window: after a pause each call comes back at an instant of its own. Exact.
//!
//! The windows and the instants are computed in `provider/return_windows.rs`. While the pause lasts
//! the instant is the one the call would get as the queue stands.

use super::{Admits, CallRule, Effect, Named};
use crate::outcome::Reason;

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::ReturnWindow,
    effect: Effect::HoldUntil,
    admits: |state, candidate, now| {
        let returns = match (state.facts.pause, state.windows()) {
            (Some(end), Some(windows)) => state.returns_at(candidate.queue_key, end, &windows),
            (Some(_), None) => now,
            (None, _) => candidate.returns,
        };
        Admits::at(returns, now)
    },
    names: Named::nothing,
};

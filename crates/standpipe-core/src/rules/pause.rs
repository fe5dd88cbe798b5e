//! The shared pause: while it lasts no call is admitted. Exact.
//!
//! How long a pause lasts is decided in `provider/throttle.rs`.

use super::{Admits, CallRule, Effect, Named};
use crate::outcome::Reason;

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::Pause,
    effect: Effect::HoldUntil,
    admits: |state, _, now| Admits::at(state.facts.pause.unwrap_or(now), now),
    names: Named::nothing,
};

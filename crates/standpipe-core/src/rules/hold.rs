//! The hold of a workflow: an agent upstream was throttled, so the call waits. Exact.
//!
//! The caller says how long; the ledger of one pool does not know other pools.

use super::{Admits, CallRule, Effect, Named};
use crate::outcome::Reason;

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::Hold,
    effect: Effect::HoldUntil,
    admits: |_, candidate, now| Admits::at(candidate.holds, now),
    names: Named::nothing,
};

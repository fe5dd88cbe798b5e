//! The rule that decides when a call is admitted, where that is not the first one that denies it.
//!
//! After a pause a call may still wait for a limit; a call that lacks a rate may lack a slot, too.

use serde::{Deserialize, Serialize};
use standpipe_core::{Instant, Reason, Refusal, Reserve, State};

use super::{Label, shortage, slot_holders};
use crate::refusal::{Why, limit_text, when};
use crate::time::Now;

/// A rule that denies a call for longer than the first one does.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NextReason {
    /// Why.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub reason: Label<Reason>,
    /// The limit it is about.
    pub limit: Option<String>,
    /// How many units are missing there.
    pub short_by: u64,
    /// The agents that hold the slots that the call waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_use_by: Vec<String>,
}

impl NextReason {
    /// Returns why the rule denies the call.
    #[must_use]
    pub fn why(&self) -> Why<'_> {
        Why {
            short_by: self.short_by,
            in_use_by: &self.in_use_by,
            ..Why::new(self.reason.as_str(), self.limit.as_deref())
        }
    }
}

/// Returns the rule that denies a call longest, if that is longer than `first` does.
pub(crate) fn next_reason(
    state: &State,
    call: &Reserve,
    first: &Refusal,
    now: &Now,
) -> Option<NextReason> {
    // An answer or a call in flight that must end comes last: when is not known.
    let ends = |no: &Refusal| when::instant(no).unwrap_or(Instant::NEVER);
    let is_first = |no: &Refusal| no.reason == first.reason && no.limit == first.limit;
    let steps = state.admission_steps(call, now.store);
    let all = &steps.refusals;
    let first_ends = all.iter().find(|no| is_first(no)).map(ends)?;
    let others = all.iter().filter(|no| !is_first(no) && decides_time(no.reason));
    let last = others.max_by_key(|no| ends(no)).filter(|no| ends(no) > first_ends)?;
    Some(NextReason {
        reason: last.reason.into(),
        limit: last.limit.as_ref().map(limit_text),
        short_by: shortage(&state.figures(now.store), &steps.cost, last),
        in_use_by: slot_holders(state, last),
    })
}

/// Whether a rule of this reason is worth naming behind another one.
const fn decides_time(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Zone
            | Reason::Yield
            | Reason::Spread
            | Reason::Cap
            | Reason::Limit
            | Reason::Floor
            | Reason::Ramp
            | Reason::Probe
            | Reason::Sequential
    )
}

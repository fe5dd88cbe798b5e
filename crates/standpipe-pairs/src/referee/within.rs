//! Pools within pools: a call is made when its last pool has granted, and the charges on the other
//! pools are dated to that instant. So the calls on a pool within another one keep its limit by the
//! instants of their grants, however long they waited for the parent.
//!
//! Only for virtual time, where the grant, the date and the record of both have one instant.

use super::{Call, Case, Era, Permitted};
use crate::setup::{CHILD, Rule};

/// Everything that was broken.
#[must_use]
pub fn judge(calls: &[Call], eras: &[Era], permitted: &Permitted) -> Vec<String> {
    let Some(case) = Case::each(CHILD, calls, eras, permitted).next() else { return Vec::new() };
    if case.permitted.forgets() {
        return Vec::new();
    }
    let granted = || case.granted.iter().filter(|call| !call.cancelled);
    let broken = granted().find_map(|call| {
        let (Some((Rule::Window(amount, period), _)), Some(at)) =
            (case.rule_for(call), call.answered)
        else {
            return None;
        };
        let counts =
            |other: &&&Call| other.answered.is_some_and(|other| other <= at && at - other < period);
        let count = granted().filter(counts).count() as u64;
        (count > amount).then(|| {
            format!("{count} calls of {amount} on {CHILD} in a period before {at}, by their grants")
        })
    });
    broken.into_iter().collect()
}

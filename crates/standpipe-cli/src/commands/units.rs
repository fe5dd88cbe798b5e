//! Rejects a limit of a unit that the call does not take: it would limit nothing.

use standpipe::config::nearest;
use standpipe::config::text::KNOWN_UNITS;
use standpipe::{Limit, Rule, Unit};

use crate::args::{Admission, Call, total};
use crate::failure::Failure;

/// Checks that each `--limit` is of a built-in unit or of one in the call's cost.
///
/// # Errors
/// When one is not.
pub(super) fn check_limits(call: &Call, admission: &Admission) -> Result<(), Failure> {
    let cost = total(&call.cost)?;
    let taken = |unit: &Unit| cost.iter().any(|(named, _)| named == unit);
    let own = admission.limit.iter().filter_map(unit_of).filter(|unit| is_own(unit));
    match own.into_iter().find(|unit| !taken(unit)) {
        None => Ok(()),
        Some(unit) => Err(Failure::usage(
            &format!("--limit {unit}=… limits nothing: the call uses no `{unit}`"),
            &match nearest(unit.name(), KNOWN_UNITS.into_iter().chain(["parallel"])) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("add --cost {unit}=1"),
            },
        )),
    }
}

const fn unit_of(limit: &Limit) -> Option<&Unit> {
    match &limit.rule {
        Rule::Window { unit, .. } | Rule::Bucket { unit, .. } => Some(unit),
        Rule::Parallel { .. } => None,
    }
}

const fn is_own(unit: &Unit) -> bool {
    matches!(unit, Unit::Other(_))
}

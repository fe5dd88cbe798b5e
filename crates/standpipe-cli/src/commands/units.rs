//! Rejects or notes a limit of a unit that the call does not take: it would limit nothing.

use standpipe::config::nearest;
use standpipe::config::text::KNOWN_UNITS;
use standpipe::{Amounts, Limit, Rule, Unit};

use crate::args::{Admission, Call, total};
use crate::failure::Failure;
use crate::printer::Printer;

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

/// Notes a limit of a built-in unit that the call does not name: without earlier calls to estimate
/// it from, one unit is charged, or none until a response reports it.
pub(super) fn note_uncounted(
    call: &Call,
    admission: &Admission,
    charged: &Amounts,
    printer: &Printer,
) {
    let Ok(cost) = total(&call.cost) else { return };
    // Both are estimates of tokens.
    if call.bytes.is_some() || call.max_output.is_some() {
        return;
    }
    let named = |unit: &Unit| *unit == Unit::Requests || cost.iter().any(|(own, _)| own == unit);
    let limited = admission.limit.iter().filter_map(unit_of).filter(|unit| !is_own(unit));
    for unit in limited.filter(|unit| !named(unit)) {
        let counts = match charged.of(unit) {
            Some(0) | None => "nothing".to_owned(),
            Some(1) => "only 1".to_owned(),
            // Estimated from earlier calls.
            Some(_) => continue,
        };
        printer.note(&format!(
            "--limit {unit}=… counts {counts} for this call, which names no {unit}; add --cost \
             {unit}=N"
        ));
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

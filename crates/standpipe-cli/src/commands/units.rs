//! Units that are probably slips: a limit of something the call does not take would limit nothing,
//! and a cost that nothing limits would be kept nowhere, both without a word.

use standpipe::config::nearest;
use standpipe::config::text::KNOWN_UNITS;
use standpipe::{Limit, Pool, Rule, Unit};

use crate::args::{Admission, Call, total};
use crate::failure::Failure;
use crate::printer::Printer;

/// Each limit of the command line is of a known unit, or of one that the call takes.
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
            &format!("--limit {unit}=… limits nothing: the call takes nothing of `{unit}`"),
            &match nearest(unit.name(), KNOWN_UNITS.into_iter().chain(["parallel"])) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("add --cost {unit}=1"),
            },
        )),
    }
}

/// Says which figures of the call nothing limits, of those that may be a slip.
pub(super) fn check_costs(call: &Call, pool: &Pool, printer: &Printer) -> Result<(), Failure> {
    let cost = total(&call.cost)?;
    let mut own = cost.iter().map(|(unit, _)| unit).filter(|unit| is_own(unit)).peekable();
    if own.peek().is_none() {
        return Ok(());
    }
    let limits = pool.config()?.map(|config| config.limits).unwrap_or_default();
    let limited: Vec<&str> = limits.iter().filter_map(unit_of).map(Unit::name).collect();
    for unit in own.filter(|unit| !limited.contains(&unit.name())) {
        let known = limited.iter().copied().chain(KNOWN_UNITS);
        let meant = match nearest(unit.name(), known) {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None => String::new(),
        };
        let pool = pool.name();
        printer.talk(&format!("`{pool}` has no limit of `{unit}`, so it is not counted{meant}"));
    }
    Ok(())
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

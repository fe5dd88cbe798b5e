//! Rejects or notes a limit of a unit that the call does not take, which would limit nothing, and
//! notes an estimate that is more than a limit allows.

use std::collections::BTreeSet;

use standpipe::config::text::KNOWN_UNITS;
use standpipe::config::{PoolSettings, nearest};
use standpipe::{Amounts, Limit, Pool, Rule, Unit};

use crate::args::{Admission, Call, total};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::amount::{amount, cost as taken};

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
    described: Option<&PoolSettings>,
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
    let limited = |limit: &&Limit| unit_of(limit).is_some_and(|unit| TOKENS.contains(unit));
    let limits = described.into_iter().flat_map(|pool| &pool.limits).filter(limited);
    let units: BTreeSet<&Unit> = limits.filter_map(unit_of).filter(|unit| !named(unit)).collect();
    for unit in units.into_iter().filter(|unit| charged.of(unit) == Some(1)) {
        printer.note(&format!(
            "`{}` limits {unit}, and this call, which names none, is charged only 1; add --cost \
             {unit}=N",
            call.pool
        ));
    }
}

/// What is charged as 1 if neither the call nor earlier calls say how large it is.
const TOKENS: [Unit; 3] = [Unit::Tokens, Unit::InputTokens, Unit::OutputTokens];

/// Notes an estimate that is more than a limit ever allows: the call is charged the limit, so that
/// it is not refused for good because of an estimate.
pub(super) fn note_cut_estimate(call: &Call, charged: &Amounts, pool: &Pool, printer: &Printer) {
    if call.bytes.is_none() && call.max_output.is_none() {
        return;
    }
    let Ok(cost) = total(&call.cost) else { return };
    let own = |unit: &Unit| cost.iter().find(|(own, _)| own == unit).map(|(_, amount)| *amount);
    let input = own(&Unit::InputTokens).or(call.bytes.map(|bytes| bytes.div_ceil(BYTES_PER_TOKEN)));
    let output = own(&Unit::OutputTokens).or(call.max_output);
    let both = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
    let estimates = [
        (Unit::InputTokens, input.unwrap_or(0)),
        (Unit::OutputTokens, output.unwrap_or(0)),
        (Unit::Tokens, both),
    ];
    let cut = |(unit, size): &(Unit, u64)| {
        own(unit).is_none() && charged.of(unit).is_some_and(|charged| charged < *size)
    };
    let cut: Vec<&(Unit, u64)> = estimates.iter().filter(|estimate| cut(estimate)).collect();
    // What earlier calls took may be less than the bounds as well.
    let config = if cut.is_empty() { None } else { pool.config().blocking().ok().flatten() };
    let limits = config.map(|config| config.limits).unwrap_or_default();
    for (unit, size) in cut {
        let most =
            limits.iter().filter(|limit| unit_of(limit) == Some(unit)).map(Limit::stated).min();
        if let Some(most) = most.filter(|most| charged.of(unit) == Some(*most)) {
            let (size, most) = (taken([(unit.name(), *size)]), amount(unit.name(), most));
            printer.note(&format!(
                "the estimate of {size} is more than a limit of `{}` ever allows, so {most} are \
                 reserved; split the call, or raise the limit",
                pool.name()
            ));
        }
    }
}

/// The bytes per token that are assumed before a ratio is learned.
const BYTES_PER_TOKEN: u64 = 4;

const fn unit_of(limit: &Limit) -> Option<&Unit> {
    match &limit.rule {
        Rule::Window { unit, .. } | Rule::Bucket { unit, .. } => Some(unit),
        Rule::Parallel { .. } => None,
    }
}

const fn is_own(unit: &Unit) -> bool {
    matches!(unit, Unit::Other(_))
}

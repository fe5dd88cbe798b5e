//! The pace of background: while a higher priority was active within one period of a limit,
//! background is admitted only while total use is within the pace (`docs/concepts/policies.md`).
//!
//! On a rolling limit that is a bucket of a twentieth of what is usable, refilled by the rest in
//! one period. Every call draws on it, so for any earlier instant the charges since then are fewer
//! than what it holds and what was refilled. On a limit that resets total use is within the elapsed
//! share of the window. Only charges that certainly came before a call count against it.

use super::{Call, Case, Era, Permitted, day_of, period};
use crate::setup::{DAY_PERIOD, LONG, PACED, Rule};

/// By how much announcements of a reset may differ without an effect.
const AGREES: u64 = 2_000_000;

/// Everything that was broken.
#[must_use]
pub fn judge(calls: &[Call], eras: &[Era], permitted: &Permitted) -> Vec<String> {
    let pools = [LONG, PACED].into_iter();
    let cases = pools.filter_map(|pool| Case::each(pool, calls, eras, permitted).next());
    // What a ledger remembers of the pace after a loss is not promised.
    let judged = cases.filter(|case| !case.permitted.forgets());
    judged.filter_map(|case| case.granted.iter().find_map(|call| unpaced(&case, call))).collect()
}

/// What is wrong with one grant.
fn unpaced(case: &Case<'_>, call: &Call) -> Option<String> {
    let (rule, _) = case.rule_for(call).filter(|_| call.background)?;
    let answered = call.answered?;
    if !is_paced(case, call, period(rule)) {
        return None;
    }
    let before = case.granted.iter().filter(|other| !other.cancelled);
    let before = before.filter(|other| other.answered.is_some_and(|at| at < call.asked));
    let mut charges: Vec<u64> = before.map(|other| other.asked).collect();
    charges.sort_unstable_by(|a, b| b.cmp(a));
    let pool = case.pool;
    match rule {
        Rule::Window(amount, period) => {
            let burst = (amount / 20).max(1);
            let refill = u128::from((amount - burst).max(1));
            charges.iter().zip(1_u64..).find_map(|(since, count)| {
                let elapsed = u128::from(answered + 1 - since);
                let most = u128::from(burst) * u128::from(period) + refill * elapsed;
                (u128::from(count) * u128::from(period) >= most).then(|| {
                    format!("background on {pool} at {answered}: {count} were used since {since}")
                })
            })
        }
        Rule::Day(amount, begins) => {
            let from = day_of(answered, begins);
            let used = charges.iter().filter(|at| **at > from).count() as u128;
            let elapsed = u128::from(answered - from + AGREES);
            (used * u128::from(DAY_PERIOD) > elapsed * u128::from(amount)).then(|| {
                format!("background on {pool} at {answered}: {used} were used since {from}")
            })
        }
        Rule::Parallel(_) | Rule::Bucket(..) | Rule::Absent => None,
    }
}

/// Whether the pace certainly held for a call: a higher priority was admitted within the period,
/// and neither floors nor an unenforced limit lift it.
fn is_paced(case: &Case<'_>, call: &Call, period: u64) -> bool {
    let is_enforced =
        |era: &Era| era.setup.pools.iter().all(|pool| pool.name != case.pool || pool.enforced);
    let is_higher = |other: &&&Call| {
        let active = other.answered.is_some_and(|at| at < call.asked && call.asked - at < period);
        active && !other.background
    };
    case.era_of(call).is_some_and(|at| {
        case.eras[..=at].iter().all(is_enforced) && !case.eras[at].setup.has_floors()
    }) && case.granted.iter().any(|other| is_higher(&other))
}

//! The cap of one agent: while it is configured, the agent's calls on each pool keep it too.

use super::{Call, Case, Era, Permitted, pools};
use crate::setup::{CAP, CAPPED, Rule};

/// Everything that was broken.
#[must_use]
pub fn judge(calls: &[Call], eras: &[Era], permitted: &Permitted) -> Vec<String> {
    // A process that started its own program anew has another record, and the same agent.
    let is_capped = |call: &&Call| CAPPED.contains(&call.worker.trim_end_matches('+'));
    let capped: Vec<Call> = calls.iter().filter(is_capped).cloned().collect();
    let eras: Vec<Era> = eras.iter().map(as_limit).collect();
    let mut broken = Vec::new();
    for pool in pools(&eras) {
        // What a ledger remembers of an agent after a loss is not promised.
        let cases = Case::each(pool, &capped, &eras, permitted);
        let mut found = cases.filter(|case| !case.permitted.forgets()).map(|case| case.over());
        let found = found.find(|found| !found.is_empty()).unwrap_or_default();
        broken.extend(found.iter().map(|text| format!("cap: {text}")));
    }
    broken
}

/// The era with the cap in the place of every limit, or with none.
fn as_limit(era: &Era) -> Era {
    let rule = if era.setup.has_cap() { Rule::Window(CAP.0, CAP.1) } else { Rule::Absent };
    let mut era = era.clone();
    era.setup.pools.iter_mut().for_each(|pool| pool.rule = rule);
    era
}

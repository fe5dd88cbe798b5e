//! The second witness: every call in the provider's log must have one grant in one record, and the
//! log itself must keep the limits.
//!
//! The provider counts a call when it arrives, the ledger when it is admitted, and calls can arrive
//! closer together than they were admitted. So the log is judged with the same bounds as the
//! records: a charge lies between the ask of the caller and the arrival at the provider.

use std::collections::{BTreeMap, BTreeSet};

use super::{Call, Era, Permitted, kept, pools};
use crate::provider::ProviderCall;

/// Everything that was broken according to the provider's log.
#[must_use]
pub fn judge(
    seen: &[ProviderCall],
    calls: &[Call],
    eras: &[Era],
    permitted: &Permitted,
) -> Vec<String> {
    let (grants, mut broken) = grants(calls);
    broken.extend(unexplained(seen, &grants));
    let counted: Vec<Call> = seen.iter().map(|seen| as_call(seen, &grants)).collect();
    for pool in pools(eras) {
        let found = kept(pool, &counted, eras, permitted);
        broken.extend(found.iter().map(|text| format!("the provider saw: {text}")));
    }
    broken
}

type Grants<'a> = BTreeMap<(&'a str, &'a str), &'a Call>;

/// The grants by pool and lease, and the leases that two calls were granted.
fn grants(calls: &[Call]) -> (Grants<'_>, Vec<String>) {
    let (mut grants, mut broken) = (Grants::new(), Vec::new());
    for call in calls.iter().filter(|call| call.granted && !call.lease.is_empty()) {
        if let Some(other) = grants.insert((&call.pool, &call.lease), call) {
            let Call { pool, lease, worker, .. } = call;
            let first = &other.worker;
            broken.push(format!("lease {lease} of {pool} was granted to {first} and {worker}"));
        }
    }
    (grants, broken)
}

/// Calls that were made without a lease in force, in the order of the log.
fn unexplained(seen: &[ProviderCall], grants: &Grants<'_>) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut broken = Vec::new();
    for seen in seen {
        let key = (seen.pool.as_str(), seen.lease.as_str());
        let wrong = match grants.get(&key) {
            // The grant is written before the call is made, so no kill explains its absence.
            None => Some("without a grant"),
            Some(_) if !used.insert(key) => Some("a second time"),
            Some(call) if call.answered.is_some_and(|at| seen.arrived < at) => Some("too early"),
            Some(call) if call.cancelled => Some("although the lease was cancelled"),
            Some(call) if is_answered(call) && seen.arrived > call.held_until => {
                Some("although the lease was settled")
            }
            Some(_) => None,
        };
        broken.extend(wrong.map(|wrong| {
            let ProviderCall { pool, lease, agent, .. } = seen;
            format!("{agent} called the provider on {pool} {wrong} (lease `{lease}`)")
        }));
    }
    broken
}

/// The caller had the provider's reply before it settled. Otherwise it died, or lost the
/// connection, and its slot was free while the provider still served the call.
fn is_answered(call: &Call) -> bool {
    call.settled && !call.unanswered
}

/// A call as the provider saw it, with what the caller's record adds: since when it asked.
fn as_call(seen: &ProviderCall, grants: &Grants<'_>) -> Call {
    let finished = seen.finished.unwrap_or(u64::MAX);
    let granted = grants.get(&(seen.pool.as_str(), seen.lease.as_str()));
    let held_until = match granted {
        Some(call) if !is_answered(call) => seen.arrived,
        _ => finished,
    };
    Call {
        worker: seen.agent.clone(),
        pool: seen.pool.clone(),
        lease: seen.lease.clone(),
        asked: granted.map_or(seen.arrived, |call| call.asked.min(seen.arrived)),
        slots: 1,
        background: false,
        timeout: 0,
        answered: Some(seen.arrived),
        granted: true,
        local: granted.is_some_and(|call| call.local),
        cancelled: false,
        unanswered: false,
        held_until,
        settled: true,
        last: granted.map_or(finished, |call| call.last),
        words: String::new(),
    }
}

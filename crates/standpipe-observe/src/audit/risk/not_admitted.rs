//! Calls that were not admitted for another reason than their timeout: one finding per reason.

use std::collections::BTreeMap;

use super::super::PoolAudit;
use super::waits::names;
use crate::finding::{Finding, counted, retry_budget};
use crate::refusal::Why;

/// A call that timed out has waited: that is another finding.
const TIMED_OUT: &str = "deadline";

pub(super) fn findings(audit: &PoolAudit, client_retries: bool) -> Vec<Finding> {
    let mut reasons: BTreeMap<&str, (u64, Vec<&str>)> = BTreeMap::new();
    for agent in &audit.agents {
        for (reason, count) in &agent.not_admitted_for {
            let (all, agents) = reasons.entry(reason).or_default();
            *all = all.saturating_add(*count);
            agents.push(&agent.agent);
        }
    }
    reasons.remove(TIMED_OUT);
    let finding = |(reason, (count, agents)): (&str, (u64, Vec<&str>))| {
        let (calls, who) = (counted(count, "call"), names(&agents));
        let verb = if count == 1 { "was" } else { "were" };
        let why = match reason {
            // Of many calls, on several limits.
            "order" => "other calls were ahead in the queue".to_owned(),
            _ => Why::new(reason, None).to_string(),
        };
        let what = format!("{calls} of {who} {verb} not admitted: {why}");
        Finding::note("not admitted", what).remedy(remedy(reason, audit, client_retries))
    };
    reasons.into_iter().map(finding).collect()
}

fn remedy(reason: &str, audit: &PoolAudit, client_retries: bool) -> String {
    let pool = &audit.pool;
    match reason {
        "terminal" => format!("fix the account at the provider, then `standpipe resume {pool}`"),
        "never" => "send smaller calls, or raise the limit".to_owned(),
        "retry_budget" => retry_budget(client_retries).to_owned(),
        "queue_full" => "send fewer calls at once".to_owned(),
        "store" => "`standpipe doctor` checks the store".to_owned(),
        _ => format!(
            "a longer --timeout lets such calls wait; `standpipe events --kind refuse` shows when \
             and by whom on {pool}"
        ),
    }
}

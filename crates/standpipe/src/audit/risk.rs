//! Who is at risk on a pool, and what to do about it: one function per risk.

use standpipe_core::Span;

use super::{AIM, AgentAudit, LimitAudit, PoolAudit};
use crate::finding::{Finding, Level};
use crate::moment::spoken;

/// A call that waits longer than this on the average is worth a word.
const LONG_MS: u64 = 5_000;
/// And so is one that waited this long, however short the others waited.
const LONGEST_MS: u64 = 60_000;
/// So many calls of a hundred that are not admitted in time are.
const GAVE_UP_PERCENT: u64 = 5;
/// More retries than this share of the calls are more than the ledger's budget.
const RETRIES_PERCENT: u64 = 10;

/// All that is found, or that nothing is.
pub(super) fn findings(audit: &PoolAudit, reclaimed: u64) -> Vec<Finding> {
    if audit.agents.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Finding> =
        audit.limits.iter().filter_map(|l| contention(audit, l)).collect();
    found.extend(alone(audit));
    found.extend(audit.agents.iter().filter_map(|agent| waits(audit, agent)));
    found.extend(refusals(audit));
    found.extend(retries(audit));
    found.extend(unsettled(reclaimed));
    found.extend(unstated(audit));
    if found.is_empty() {
        found.push(fine(audit));
    }
    found.into_iter().map(|finding| finding.on(&audit.pool)).collect()
}

/// All agents together come to more than 80 % of the quota.
fn contention(audit: &PoolAudit, limit: &LimitAudit) -> Option<Finding> {
    let (stated, aim) = (limit.stated?, limit.aim?);
    let name = &limit.limit;
    let over_on_average = limit.average.tenths > aim.saturating_mul(10);
    if over_on_average {
        let (sum, percent) = (limit.average, limit.average_percent?);
        let what = format!(
            "{name}: the agents' averages add up to {sum}, {percent} % of the {stated} stated; \
             active at once, they contend"
        );
        return Some(Finding::warning("contention", what).remedy(relief(audit)));
    }
    // A pool that holds calls back was at its peak by its own leave.
    if audit.enforce || limit.peak <= aim {
        return None;
    }
    let (peak, percent) = (limit.peak, limit.peak_percent?);
    let what = format!("{name}: {peak} in the busiest stretch, {percent} % of the {stated} stated");
    Some(Finding::warning("contention", what).remedy(relief(audit)))
}

fn relief(audit: &PoolAudit) -> &'static str {
    if audit.enforce {
        "give who must not wait a priority or a floor, run others at another time or on another \
         pool, or ask the provider for more"
    } else {
        "nobody is held back on this pool: write `enforce = true` in its table, and together they \
         stay below the quota"
    }
}

/// One agent takes so much that the others have little.
fn alone(audit: &PoolAudit) -> Vec<Finding> {
    let active = audit.agents.iter().filter(|agent| agent.calls > 0).count();
    if active < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, limit) in audit.limits.iter().enumerate() {
        let Some((stated, aim)) = limit.stated.zip(limit.aim) else { continue };
        for agent in &audit.agents {
            let Some(rate) = agent.rates.get(at).filter(|rate| rate.peak >= aim) else { continue };
            let (who, peak, name) = (&agent.agent, rate.peak, &limit.limit);
            let what =
                format!("{name}: {who} alone took {peak} of the {stated} stated at its peak");
            let remedy = format!(
                "cap it ([agent.{who}] cap = \"50%\"), or give the others a floor or a higher \
                 priority"
            );
            found.push(Finding::warning("one agent", what).remedy(remedy).by(who));
        }
    }
    found
}

/// An agent's calls waited long. Where only calls in flight are limited, that is what people want.
fn waits(audit: &PoolAudit, agent: &AgentAudit) -> Option<Finding> {
    let calls = agent.calls.saturating_add(agent.gave_up).max(1);
    let many = agent.gave_up.saturating_mul(100) >= calls.saturating_mul(GAVE_UP_PERCENT);
    let gave_up = agent.gave_up > 0 && many;
    if agent.waited_ms / calls < LONG_MS && agent.longest_ms < LONGEST_MS && !gave_up {
        return None;
    }
    let (who, waited) = (&agent.agent, length(agent.waited_ms));
    let longest = length(agent.longest_ms);
    let late = match agent.gave_up {
        0 => String::new(),
        n => format!("; {n} not admitted in time"),
    };
    let count = agent.calls;
    let what = format!("{who} waited {waited} for {count} call(s), the longest {longest}{late}");
    let finding = Finding::warning("waits", what).remedy(shorter_wait(agent)).by(who);
    let rates = audit.limits.iter().any(|limit| limit.stated.is_some());
    Some(Finding { level: if rates { Level::Warning } else { Level::Note }, ..finding })
}

fn shorter_wait(agent: &AgentAudit) -> &'static str {
    match agent.waited_for.as_deref() {
        Some("pause" | "return_window" | "probe" | "sequential") => {
            "mostly after refusals by the provider: see to those first"
        }
        Some("cap") => "mostly for its own cap: raise it",
        Some("floor") => "mostly for what is kept for others: give it a floor, or lower theirs",
        Some("hold") => "mostly for agents it depends on: see why those are throttled",
        Some("retry_budget") => "mostly for retries: too many calls are tried again",
        _ => {
            "give it a higher priority or a floor, let it ask for less, or ask the provider for \
             more"
        }
    }
}

/// The provider refused calls.
fn refusals(audit: &PoolAudit) -> Option<Finding> {
    if audit.refused == 0 {
        return None;
    }
    let most = audit.agents.iter().filter(|agent| agent.refused > 0);
    let most = most.max_by_key(|agent| agent.refused);
    let who = most.map(|agent| format!(", {} of {}", agent.refused, agent.agent));
    let what = format!("the provider refused {} call(s){}", audit.refused, who.unwrap_or_default());
    let remedy = "a limit is set too high, or somebody calls past the tap: lower the limit or its \
                  `headroom`; `standpipe doctor` says more";
    let finding = Finding::warning("429s", what).remedy(remedy);
    Some(match most {
        Some(agent) => finding.by(&agent.agent),
        None => finding,
    })
}

/// Many calls were other tries of earlier ones.
fn retries(audit: &PoolAudit) -> Option<Finding> {
    let (retries, calls) = (audit.retries, audit.calls);
    let many = retries.saturating_mul(100) > calls.saturating_mul(RETRIES_PERCENT);
    if retries < 3 || !many {
        return None;
    }
    let what = format!("{retries} of {calls} calls tried another again");
    let remedy = "see what they failed of: each try costs what the first did";
    Some(Finding::warning("retries", what).remedy(remedy))
}

/// Calls ended without a word of what they used.
fn unsettled(reclaimed: u64) -> Option<Finding> {
    if reclaimed == 0 {
        return None;
    }
    let what =
        format!("{reclaimed} lease(s) were taken back unsettled; what they used is missing here");
    let remedy = "settle each: commit or cancel, also when the call fails (`trap` in a script)";
    Some(Finding::note("unsettled", what).remedy(remedy))
}

/// There is nothing to compare with.
fn unstated(audit: &PoolAudit) -> Option<Finding> {
    if audit.limits.iter().any(|limit| limit.stated.is_some()) {
        return None;
    }
    let what = "no rate is stated for this pool, so there is nothing to compare with";
    let remedy = "write the provider's in standpipe.toml, for example requests = \"1000/min\"";
    Some(Finding::note("quota", what).remedy(remedy))
}

/// Nobody is at risk.
fn fine(audit: &PoolAudit) -> Finding {
    let shares = audit.limits.iter().filter_map(|l| Some((l.average_percent?, &l.limit)));
    let what = match shares.max() {
        Some((percent, limit)) => format!(
            "active at once, the agents come to {percent} % of the quota ({limit}), below {AIM} %"
        ),
        None => "nobody is at risk".to_owned(),
    };
    Finding::ok("contention", what).remedy("look again when you add the next agent")
}

fn length(ms: u64) -> String {
    spoken(Span::millis(ms))
}

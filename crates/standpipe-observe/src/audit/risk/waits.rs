//! Agents whose calls waited long, or wait now: one finding for all agents with the same cause.

use standpipe_core::Priority;

use super::super::{AgentAudit, PoolAudit};
use super::{Incidents, length};
use crate::finding::{Finding, Level, counted};

/// An agent whose calls wait longer than this on the average is a finding.
const LONG_MS: u64 = 5_000;
/// And so is a call that waited this long, however short the others waited.
const LONGEST_MS: u64 = 60_000;
/// So many calls of a hundred that are not admitted in time are.
const GAVE_UP_PERCENT: u64 = 5;
/// The most agents that are named.
const MAX_NAMED: usize = 8;

/// What to do about waits for calls in flight to end: no higher rate shortens them.
pub(super) const SLOTS: &str = "mostly for a call in flight to end: shorten the calls, run fewer \
                                at once, or raise `parallel` if the provider allows more; \
                                `standpipe status` shows who holds the slots";

/// What an agent's calls mostly waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Pauses,
    Spread,
    Pace,
    Cap,
    Floor,
    Hold,
    RetryBudget,
    Slots,
    Critical,
    Limits,
}

/// Where only calls in flight are limited, waits are what people want.
pub(super) fn findings(audit: &PoolAudit, incidents: &Incidents) -> Vec<Finding> {
    let mut groups: Vec<(Cause, Vec<&AgentAudit>)> = Vec::new();
    for agent in audit.agents.iter().filter(|agent| waited_long(agent)) {
        let cause = cause(agent);
        match groups.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, agents)) => agents.push(agent),
            None => groups.push((cause, vec![agent])),
        }
    }
    let has_rates = audit.limits.iter().any(|limit| limit.stated.is_some());
    let level = if has_rates { Level::Warning } else { Level::Note };
    let finding = |(cause, agents): (Cause, Vec<&AgentAudit>)| {
        let remedy = remedy(cause, agents.len(), || pauses(audit, incidents));
        let finding = Finding::warning("waits", what(&agents)).remedy(remedy);
        let finding = Finding { level, ..finding };
        match agents.as_slice() {
            [one] => finding.by(&one.agent),
            _ => finding,
        }
    };
    let found: Vec<Finding> = groups.into_iter().map(finding).collect();
    if found.is_empty() { waiting_now(audit).into_iter().collect() } else { found }
}

/// Calls wait now, although not for long yet.
fn waiting_now(audit: &PoolAudit) -> Option<Finding> {
    let waiting: Vec<&AgentAudit> = audit.agents.iter().filter(|agent| agent.waiting > 0).collect();
    let calls = waiting.iter().map(|agent| agent.waiting).fold(0, u64::saturating_add);
    let first = waiting.first()?;
    let for_slots = waiting.iter().any(|agent| agent.waits_for_slots);
    let running: Vec<&str> = audit
        .agents
        .iter()
        .filter(|agent| agent.in_flight > 0)
        .map(|agent| agent.agent.as_str())
        .collect();
    let used_by = match names(&running) {
        running if for_slots && !running.is_empty() => format!(" for a slot in use by {running}"),
        _ => String::new(),
    };
    let verb = if calls == 1 { "waits" } else { "wait" };
    let who = names(&waiting.iter().map(|agent| agent.agent.as_str()).collect::<Vec<_>>());
    let what = format!("{} of {who} {verb} now{used_by}", counted(calls, "call"));
    let remedy = format!("`standpipe status {}` shows why and until when", audit.pool);
    let finding = Finding::note("waits", what).remedy(remedy);
    Some(if waiting.len() == 1 { finding.by(&first.agent) } else { finding })
}

fn waited_long(agent: &AgentAudit) -> bool {
    let calls = agent.calls.saturating_add(agent.gave_up).saturating_add(agent.waiting).max(1);
    let many = agent.gave_up.saturating_mul(100) >= calls.saturating_mul(GAVE_UP_PERCENT);
    let gave_up = agent.gave_up > 0 && many;
    let waits = agent.waiting > 0 && agent.longest_ms >= LONG_MS;
    agent.waited_ms / calls >= LONG_MS || agent.longest_ms >= LONGEST_MS || gave_up || waits
}

/// `blog and data waited 40 s for 9 calls, the longest 22 s; 1 still waits`. The calls are those of
/// the table: a call that still waits is none yet.
fn what(agents: &[&AgentAudit]) -> String {
    let all = |figure: fn(&AgentAudit) -> u64| {
        agents.iter().map(|agent| figure(agent)).fold(0, u64::saturating_add)
    };
    let calls = match all(|agent| agent.calls) {
        0 => String::new(),
        calls => format!(" for {}", counted(calls, "call")),
    };
    let late = match all(|agent| agent.gave_up) {
        0 => String::new(),
        n => format!("; {n} not admitted in time"),
    };
    let now = match all(|agent| agent.waiting) {
        0 => String::new(),
        1 => "; 1 still waits".to_owned(),
        n => format!("; {n} still wait"),
    };
    let longest = agents.iter().map(|agent| agent.longest_ms).max().unwrap_or(0);
    let (waited, longest) = (length(all(|agent| agent.waited_ms)), length(longest));
    let who = names(&agents.iter().map(|agent| agent.agent.as_str()).collect::<Vec<_>>());
    format!("{who} waited {waited}{calls}, the longest {longest}{late}{now}")
}

/// `blog, data and 3 more`
pub(super) fn names(agents: &[&str]) -> String {
    let mut names: Vec<String> =
        agents.iter().take(MAX_NAMED).map(|agent| (*agent).to_owned()).collect();
    if agents.len() > MAX_NAMED {
        names.push(format!("{} more", agents.len() - MAX_NAMED));
    }
    match names.as_slice() {
        [some @ .., last] if !some.is_empty() => format!("{} and {last}", some.join(", ")),
        _ => names.concat(),
    }
}

fn cause(agent: &AgentAudit) -> Cause {
    match agent.waited_for.as_deref() {
        Some("pause" | "return_window" | "ramp" | "probe" | "sequential") => Cause::Pauses,
        Some("spread") => Cause::Spread,
        Some("pace") => Cause::Pace,
        Some("cap") => Cause::Cap,
        Some("hold") => Cause::Hold,
        Some("retry_budget") => Cause::RetryBudget,
        _ if agent.waits_for_slots => Cause::Slots,
        Some("floor") => Cause::Floor,
        _ if agent.priority.is_some_and(|priority| priority == Priority::Critical) => {
            Cause::Critical
        }
        _ => Cause::Limits,
    }
}

/// What to do about waits for pauses: they follow refusals, or were ordered.
fn pauses(audit: &PoolAudit, incidents: &Incidents) -> String {
    let refused = [audit.refused, audit.overloads, audit.stops, incidents.refusals];
    let refused = refused.iter().any(|count| *count > 0);
    let pool = &audit.pool;
    let by: Vec<&str> = incidents.paused_by.iter().map(String::as_str).take(MAX_NAMED).collect();
    let by = by.join(", ");
    match (refused, by.is_empty()) {
        (true, true) => "mostly after refusals by the provider: fix their cause first".to_owned(),
        (true, false) => format!(
            "mostly after refusals by the provider and for a pause by hand ({by}): fix the cause \
             of the refusals first"
        ),
        (false, false) => format!(
            "mostly for a pause by hand ({by}): `standpipe resume {pool}` ends one before its time"
        ),
        // For example after a copy replaced the ledger, or a refusal before this time.
        (false, true) => {
            "mostly for a pause: `standpipe events --kind pause` shows when it began".to_owned()
        }
    }
}

fn remedy(cause: Cause, agents: usize, pauses: impl FnOnce() -> String) -> String {
    let remedy = match cause {
        Cause::Pauses => return pauses(),
        Cause::Spread if agents > 1 => "mostly paced as background: give them a higher priority",
        Cause::Spread => "mostly paced as background: give it a higher priority",
        Cause::Pace => {
            "mostly for `pace`, the least time between two calls: shorten it in standpipe.toml if \
             the provider allows"
        }
        Cause::Cap if agents > 1 => "mostly for their own caps: raise them",
        Cause::Cap => "mostly for its own cap: raise it",
        Cause::Floor if agents > 1 => "mostly for the floors of other agents: lower those",
        Cause::Floor => "mostly for the floors of other agents: give it a floor, or lower theirs",
        Cause::Hold => "mostly for agents before them: find out why those are throttled",
        Cause::RetryBudget => "mostly for the retry budget: too many calls are retries",
        Cause::Slots => SLOTS,
        Cause::Critical => "let it or others request less, or ask the provider for a higher limit",
        Cause::Limits if agents > 1 => {
            "give those that must not wait a higher priority or a floor, let them request less, or \
             ask the provider for a higher limit"
        }
        Cause::Limits => {
            "give it a higher priority or a floor, let it request less, or ask the provider for a \
             higher limit"
        }
    };
    remedy.to_owned()
}

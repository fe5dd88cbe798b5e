//! The calls of a pool: leases with their owners, and tickets with the reason they wait.

use std::collections::BTreeMap;

use standpipe::escape;
use standpipe::observe::{AgentStatus, LeaseStatus, TicketStatus};

use crate::show::amount::{amount, cost};
use crate::show::duration::length;
use crate::show::style::{Style, TextRole};
use crate::show::table::table;

/// The most rows of a list; `--json` has all.
const MAX_ROWS: usize = 20;

pub(super) fn leases(style: Style, leases: &[LeaseStatus]) -> Vec<String> {
    let rows = leases.iter().take(MAX_ROWS).enumerate().map(|(at, lease)| {
        vec![
            title(style, at, "holds"),
            lease.agent.clone(),
            pid(style, lease.pid, lease.stopped),
            priority_label(lease.priority.as_str()),
            cost_text(&lease.cost),
            format!("for {}", length(lease.age_ms)),
            about(
                style,
                [of(&lease.part_of), lease.model.clone(), lease.task.clone(), expiry(lease)],
            ),
        ]
    });
    truncated(style, rows.collect(), leases.len())
}

pub(super) fn tickets(style: Style, tickets: &[TicketStatus]) -> Vec<String> {
    let rows = tickets.iter().take(MAX_ROWS).enumerate().map(|(at, ticket)| {
        vec![
            title(style, at, "waits"),
            ticket.agent.clone(),
            pid(style, ticket.pid, ticket.stopped),
            priority_label(ticket.priority.as_str()),
            cost_text(&ticket.cost),
            format!("for {}", length(ticket.waits_ms)),
            wait_reason(ticket),
            about(style, [of(&ticket.part_of), ticket.model.clone(), ticket.task.clone(), None]),
        ]
    });
    truncated(style, rows.collect(), tickets.len())
}

/// The agents with a floor, a cap, or a priority other than standard.
pub(super) fn agents(style: Style, agents: &[AgentStatus]) -> Vec<String> {
    let listed: Vec<&AgentStatus> = agents.iter().filter(|agent| is_listed(agent)).collect();
    let rows = listed.iter().take(MAX_ROWS).enumerate().map(|(at, agent)| {
        let share = |what: &str, shares: &[String]| match shares {
            [] => String::new(),
            some => format!("{what} {}", some.join(", ")),
        };
        let weight = agent.weight.map(|weight| format!("weight {weight}"));
        let cap = Some(share("cap", &agent.cap)).filter(|cap| !cap.is_empty());
        let cap_and_weight = cap.into_iter().chain(weight).collect::<Vec<_>>().join(", ");
        let last = format!("active {} ago", length(agent.active_ms));
        vec![
            title(style, at, "agents"),
            agent.name.clone(),
            priority_label(agent.priority.as_str()),
            share("floor", &agent.floor),
            cap_and_weight,
            style.paint(TextRole::Muted, &last),
        ]
    });
    truncated(style, rows.collect(), listed.len())
}

fn is_listed(agent: &AgentStatus) -> bool {
    let shares = !agent.floor.is_empty() || !agent.cap.is_empty();
    agent.priority.as_str() != "standard" || shares || agent.weight.is_some()
}

/// Why a call waits, and when it may be admitted or what must happen first.
pub(crate) fn wait_reason(ticket: &TicketStatus) -> String {
    let Some(reason) = ticket.reason else { return "it is next".to_owned() };
    let (limit, behind) = (ticket.limit.as_deref(), ticket.behind.as_deref());
    let why = behind_text(behind, limit)
        .unwrap_or_else(|| reason_text(reason.as_str(), limit, ticket.short_by));
    if ticket.when.is_empty() { why } else { format!("{why}, {}", ticket.when) }
}

/// Describes a place in fair order; `None` in order of arrival.
pub(crate) fn behind_text(agent: Option<&str>, limit: Option<&str>) -> Option<String> {
    Some(format!("behind {} by fair order for {}", agent?, limit.unwrap_or("a limit")))
}

/// Describes a reason of the admission rule.
pub(crate) fn reason_text(reason: &str, limit: Option<&str>, short_by: u64) -> String {
    let unknown = limit.is_none();
    let limit = limit.unwrap_or("a limit");
    let short_by = amount(limit.split(' ').next().unwrap_or_default(), short_by);
    match reason {
        "terminal" => "the provider said stop".to_owned(),
        "never" => format!("more than {limit} allows at all, by {short_by}"),
        "pause" => "the pool is paused".to_owned(),
        "return_window" => "waits for its return window after a pause".to_owned(),
        "zone" => format!("little is left of {limit}: its agent is slowed down"),
        "yield" => format!("little is left of {limit}: background yields"),
        "spread" => format!("paced: background waits so that {limit} lasts"),
        "hold" => "an agent it depends on is throttled".to_owned(),
        "probe" => "the first call after a pause has not ended yet".to_owned(),
        "sequential" => "one call at a time, since several agents were throttled".to_owned(),
        "retry_budget" => "too many of the last minute's calls were retries".to_owned(),
        "cap" => format!("its own cap on {limit} is reached"),
        "order" => format!("others come first for {limit}"),
        "limit" if short_by == "0" => format!("{limit} has no room"),
        "limit" => format!("{limit} has no room, short by {short_by}"),
        "floor" => format!("the rest of {limit} is kept for the floors of others"),
        "ramp" => format!("half of {limit} is usable at first after a pause, and that is used"),
        "pace" => format!("too soon after the last call ({limit})"),
        "learning" if unknown => "the provider's limits are being learned".to_owned(),
        "learning" => "the ledger is learning what is in flight".to_owned(),
        "queue_full" => "too many calls wait or are in flight".to_owned(),
        "deadline" => "its time is up".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the label of a priority; standard has none.
pub(crate) fn priority_label(priority: &str) -> String {
    if priority == "standard" { String::new() } else { priority.to_owned() }
}

/// Describes the cost of a call.
pub(crate) fn cost_text(figures: &BTreeMap<String, u64>) -> String {
    cost(figures.iter().map(|(unit, figure)| (unit.as_str(), *figure)))
}

/// Returns when a lease expires, if only its ttl ends it.
pub(crate) fn expiry(lease: &LeaseStatus) -> Option<String> {
    let ms = lease.expires_ms.filter(|_| lease.holder.as_str() == "ttl")?;
    Some(format!("ends in {}", length(ms)))
}

fn pid(style: Style, pid: Option<u32>, stopped: bool) -> String {
    let stopped = if stopped { " stopped" } else { "" };
    pid.map_or_else(String::new, |pid| style.paint(TextRole::Muted, &format!("pid {pid}{stopped}")))
}

/// The pool that the caller of a call named, if it is another one.
fn of(pool: &Option<String>) -> Option<String> {
    pool.as_ref().map(|pool| format!("for {}", escape::text(pool)))
}

fn about(style: Style, words: [Option<String>; 4]) -> String {
    let words: Vec<String> = words.into_iter().flatten().collect();
    style.paint(TextRole::Muted, &words.join(style.dot()))
}

fn title(style: Style, at: usize, title: &str) -> String {
    if at == 0 { style.paint(TextRole::Muted, title) } else { String::new() }
}

fn truncated(style: Style, rows: Vec<Vec<String>>, all: usize) -> Vec<String> {
    let mut lines = table(2, style.width, &rows);
    if all > MAX_ROWS {
        lines.push(format!("         and {} more; --json shows them all", all - MAX_ROWS));
    }
    lines
}

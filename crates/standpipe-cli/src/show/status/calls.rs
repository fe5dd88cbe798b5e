//! The calls of a pool: who holds what since when, and who waits for what, why and until when.

use std::collections::BTreeMap;

use standpipe::{AgentStatus, LeaseStatus, TicketStatus};

use crate::show::amount::{amount, cost};
use crate::show::length::length;
use crate::show::style::{Ink, Style};
use crate::show::table::table;

/// Longer lists are cut: `--json` has them all.
const SHOWN: usize = 20;

pub(super) fn holds(style: Style, leases: &[LeaseStatus]) -> Vec<String> {
    let rows = leases.iter().take(SHOWN).enumerate().map(|(at, lease)| {
        vec![
            title(style, at, "holds"),
            lease.agent.clone(),
            pid(style, lease.pid, lease.stopped),
            tier(lease.priority),
            words(&lease.cost),
            format!("for {}", length(lease.age_ms)),
            about(style, [lease.model.clone(), lease.task.clone(), ends(lease)]),
        ]
    });
    cut(style, rows.collect(), leases.len())
}

pub(super) fn waits(style: Style, tickets: &[TicketStatus]) -> Vec<String> {
    let rows = tickets.iter().take(SHOWN).enumerate().map(|(at, ticket)| {
        vec![
            title(style, at, "waits"),
            ticket.agent.clone(),
            pid(style, ticket.pid, ticket.stopped),
            tier(ticket.priority),
            words(&ticket.cost),
            format!("for {}", length(ticket.waits_ms)),
            waits_for(ticket),
            about(style, [ticket.model.clone(), ticket.task.clone(), None]),
        ]
    });
    cut(style, rows.collect(), tickets.len())
}

/// Those of whom something is said: what is kept for them, what they may use at most, who comes
/// last.
pub(super) fn agents(style: Style, agents: &[AgentStatus]) -> Vec<String> {
    let told: Vec<&AgentStatus> = agents.iter().filter(|agent| is_told_of(agent)).collect();
    let rows = told.iter().take(SHOWN).enumerate().map(|(at, agent)| {
        let share = |what: &str, shares: &[String]| match shares {
            [] => String::new(),
            some => format!("{what} {}", some.join(", ")),
        };
        let last = format!("active {} ago", length(agent.active_ms));
        vec![
            title(style, at, "agents"),
            agent.name.clone(),
            tier(agent.priority),
            share("floor", &agent.floor),
            share("cap", &agent.cap),
            style.ink(Ink::Dim, &last),
        ]
    });
    cut(style, rows.collect(), told.len())
}

fn is_told_of(agent: &AgentStatus) -> bool {
    agent.priority != "standard" || !agent.floor.is_empty() || !agent.cap.is_empty()
}

/// Why a call waits, and when it may be admitted or what must happen first.
pub(crate) fn waits_for(ticket: &TicketStatus) -> String {
    let Some(reason) = ticket.reason else { return "it is its turn".to_owned() };
    let why = why(reason, ticket.limit.as_deref(), ticket.short_by);
    if ticket.when.is_empty() { why } else { format!("{why}, {}", ticket.when) }
}

/// A reason of the admission rule, in words.
pub(crate) fn why(reason: &str, limit: Option<&str>, short_by: u64) -> String {
    let unknown = limit.is_none();
    let limit = limit.unwrap_or("a limit");
    let short_by = amount(limit.split(' ').next().unwrap_or_default(), short_by);
    match reason {
        "terminal" => "the provider said stop".to_owned(),
        "never" => format!("more than {limit} allows at all, by {short_by}"),
        "pause" => "everybody pauses".to_owned(),
        "return_window" => "comes back from a pause in its turn".to_owned(),
        "zone" => format!("little is left of {limit}: its agent keeps a distance"),
        "yield" => format!("little is left of {limit}: background gives way"),
        "hold" => "somebody it depends on was throttled".to_owned(),
        "probe" => "the first call after a pause is not answered yet".to_owned(),
        "sequential" => "one call at a time, since several agents were throttled".to_owned(),
        "retry_budget" => "too many of the last minute's calls were retries".to_owned(),
        "cap" => format!("its own cap on {limit} is reached"),
        "order" => format!("others come first for {limit}"),
        "limit" if short_by == "0" => format!("{limit} has no room"),
        "limit" => format!("{limit} has no room, short by {short_by}"),
        "floor" => format!("what is left of {limit} is kept for others"),
        "ramp" => format!("half of {limit} is usable at first after a pause, and that is used"),
        "pace" => format!("too soon after the last call ({limit})"),
        "learning" if unknown => "the provider's limits are being found out".to_owned(),
        "learning" => "the ledger is finding out what is in flight".to_owned(),
        "queue_full" => "too many calls wait or are in flight".to_owned(),
        "deadline" => "its time is up".to_owned(),
        other => other.to_owned(),
    }
}

/// The usual tier goes without saying.
pub(crate) fn tier(priority: &str) -> String {
    if priority == "standard" { String::new() } else { priority.to_owned() }
}

/// What a call takes, in words.
pub(crate) fn words(figures: &BTreeMap<String, u64>) -> String {
    cost(figures.iter().map(|(unit, figure)| (unit.as_str(), *figure)))
}

/// A lease that nobody's life ends is worth a word about when it ends.
pub(crate) fn ends(lease: &LeaseStatus) -> Option<String> {
    let ms = lease.expires_ms.filter(|_| lease.holder == "ttl")?;
    Some(format!("ends in {}", length(ms)))
}

fn pid(style: Style, pid: Option<u32>, stopped: bool) -> String {
    let stopped = if stopped { " stopped" } else { "" };
    pid.map_or_else(String::new, |pid| style.ink(Ink::Dim, &format!("pid {pid}{stopped}")))
}

fn about(style: Style, words: [Option<String>; 3]) -> String {
    let words: Vec<String> = words.into_iter().flatten().collect();
    style.ink(Ink::Dim, &words.join(style.dot()))
}

fn title(style: Style, at: usize, title: &str) -> String {
    if at == 0 { style.ink(Ink::Dim, title) } else { String::new() }
}

fn cut(style: Style, rows: Vec<Vec<String>>, all: usize) -> Vec<String> {
    let mut lines = table(2, style.width, &rows);
    if all > SHOWN {
        lines.push(format!("         and {} more; --json shows them all", all - SHOWN));
    }
    lines
}

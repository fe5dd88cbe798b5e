//! The calls of a pool: leases with their owners, and tickets with the reason they wait.

use std::collections::BTreeMap;

use standpipe::escape;
use standpipe::observe::{LeaseStatus, TicketStatus};

use crate::show::amount::cost;
use crate::show::duration::{length, remaining};
use crate::show::style::{Style, TextRole};
use crate::show::table::{table, table_with_notes};
use crate::show::when::wait_reason;

/// The most rows of a list; `--json` has all.
pub(super) const MAX_ROWS: usize = 20;

/// The calls in flight, with the processes that hold them.
pub(crate) fn leases(style: Style, leases: &[LeaseStatus]) -> Vec<String> {
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

/// The queued calls in their order: what each wants, and below it why it waits and until when.
pub(super) fn tickets(style: Style, tickets: &[TicketStatus]) -> Vec<String> {
    let shown = tickets.iter().take(MAX_ROWS);
    let rows = shown.clone().enumerate().map(|(at, ticket)| {
        vec![
            title(style, at, "waits"),
            format!("{}.", ticket.position),
            ticket.agent.clone(),
            pid(style, ticket.pid, ticket.stopped),
            priority_label(ticket.priority.as_str()),
            cost_text(&ticket.cost),
            format!("for {}", length(ticket.waits_ms)),
            about(style, [of(&ticket.part_of), ticket.model.clone(), ticket.task.clone(), None]),
        ]
    });
    let reasons: Vec<String> = shown.map(wait_reason).collect();
    let mut lines = table_with_notes(2, style.width, &rows.collect::<Vec<_>>(), &reasons);
    lines.extend(more(tickets.len()));
    lines
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
    Some(format!("ends in {}", remaining(ms)))
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

pub(super) fn title(style: Style, at: usize, title: &str) -> String {
    if at == 0 { style.paint(TextRole::Muted, title) } else { String::new() }
}

pub(super) fn truncated(style: Style, rows: Vec<Vec<String>>, all: usize) -> Vec<String> {
    let mut lines = table(2, style.width, &rows);
    lines.extend(more(all));
    lines
}

/// The note that not all rows are shown.
fn more(all: usize) -> Option<String> {
    let rest = all.checked_sub(MAX_ROWS).filter(|rest| *rest > 0)?;
    Some(format!("         and {rest} more; --json shows them all"))
}

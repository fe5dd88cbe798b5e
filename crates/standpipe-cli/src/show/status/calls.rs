//! The calls in flight with their owners, and what the lists of calls have in common.

use std::collections::BTreeMap;

use standpipe::escape;
use standpipe::observe::LeaseStatus;

use crate::show::amount::cost;
use crate::show::duration::{length, remaining};
use crate::show::style::{Style, TextRole};
use crate::show::table::table;

/// The most rows of a list; `--json` has all.
pub(super) const MAX_ROWS: usize = 20;

/// The calls in flight, with the processes that hold them.
pub(crate) fn leases(style: Style, leases: &[LeaseStatus]) -> Vec<String> {
    let rows = leases.iter().take(MAX_ROWS).enumerate().map(|(at, lease)| {
        vec![
            title(style, at, "holds"),
            lease.agent.clone(),
            process(style, lease.pid, lease.stopped, lease.daemon),
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

/// `pid 4711`, `pid 4711 stopped`, `through the daemon (pid 4711)`
pub(super) fn process(style: Style, pid: Option<u32>, stopped: bool, daemon: bool) -> String {
    let stopped = if stopped { " stopped" } else { "" };
    let text = |pid| match daemon {
        true => format!("through the daemon (pid {pid}{stopped})"),
        false => format!("pid {pid}{stopped}"),
    };
    pid.map_or_else(String::new, |pid| style.paint(TextRole::Muted, &text(pid)))
}

/// The pool that the caller of a call named, if it is another one.
pub(super) fn of(pool: &Option<String>) -> Option<String> {
    pool.as_ref().map(|pool| format!("for {}", escape::text(pool)))
}

pub(super) fn about(style: Style, words: [Option<String>; 4]) -> String {
    let words: Vec<String> = words.into_iter().flatten().collect();
    style.paint(TextRole::Muted, &words.join(style.dot()))
}

pub(super) fn title(style: Style, at: usize, title: &str) -> String {
    if at == 0 { style.paint(TextRole::Muted, title) } else { String::new() }
}

pub(super) fn truncated(style: Style, rows: Vec<Vec<String>>, all: usize) -> Vec<String> {
    let mut lines = table(2, style.width, &rows);
    lines.extend(more(all.saturating_sub(MAX_ROWS)));
    lines
}

/// The note that not all rows are shown.
pub(super) fn more(rest: usize) -> Option<String> {
    (rest > 0).then(|| format!("         and {rest} more; --json shows them all"))
}

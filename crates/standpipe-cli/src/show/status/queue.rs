//! The queued calls of a pool: what each wants, and below it why it waits and until when.
//!
//! Calls of one agent in a row that wait for the same reason are one row; `--json` has them all.

use standpipe::observe::TicketStatus;

use super::calls::{MAX_ROWS, about, cost_text, more, of, priority_label, process, title};
use crate::show::duration::length;
use crate::show::style::Style;
use crate::show::table::table_with_notes;
use crate::show::when::{wait_reason, wait_reason_of_all};

/// Fewer calls in a row are a row each.
const MIN_GROUP: usize = 3;

/// The queued calls in their order.
pub(super) fn tickets(style: Style, tickets: &[TicketStatus]) -> Vec<String> {
    let groups = groups(tickets);
    let shown: Vec<&[TicketStatus]> = groups.iter().take(MAX_ROWS).copied().collect();
    let rows = shown.iter().enumerate().filter_map(|(at, group)| row(style, at, group));
    let reasons = shown.iter().filter_map(|group| match group {
        [one] => Some(wait_reason(one)),
        [first, .., last] => Some(wait_reason_of_all(first, last)),
        [] => None,
    });
    let (rows, reasons): (Vec<_>, Vec<_>) = (rows.collect(), reasons.collect());
    let mut lines = table_with_notes(2, style.width, &rows, &reasons);
    let counted = shown.iter().map(|group| group.len()).sum::<usize>();
    lines.extend(more(tickets.len().saturating_sub(counted)));
    lines
}

/// The calls, those in a row that read the same together.
fn groups(tickets: &[TicketStatus]) -> Vec<&[TicketStatus]> {
    let alike = tickets.chunk_by(reads_the_same);
    let split = |group| match group {
        group if <[TicketStatus]>::len(group) >= MIN_GROUP => group.chunks(group.len()),
        group => group.chunks(1),
    };
    alike.flat_map(split).collect()
}

fn reads_the_same(one: &TicketStatus, other: &TicketStatus) -> bool {
    let call = |ticket: &TicketStatus| {
        let labels = (ticket.model.clone(), ticket.task.clone(), ticket.part_of.clone());
        (ticket.agent.clone(), ticket.priority, ticket.cost.clone(), labels, ticket.also.clone())
    };
    let reason = |ticket: &TicketStatus| {
        let state = (ticket.stopped, ticket.lapsed, ticket.on.clone(), ticket.daemon);
        let next = ticket.next.as_ref().map(|next| (next.reason, next.limit.clone()));
        (ticket.reason, ticket.limit.clone(), ticket.short_by, state, next)
    };
    let is_due = |ticket: &TicketStatus| ticket.reason.is_none();
    call(one) == call(other) && reason(one) == reason(other) && !is_due(one)
}

fn row(style: Style, at: usize, group: &[TicketStatus]) -> Option<Vec<String>> {
    let (first, last) = (group.first()?, group.last()?);
    let (position, agent, process) = match group.len() {
        1 => {
            let process = process(style, first.pid, first.stopped, first.daemon);
            (format!("{}.", first.position), first.agent.clone(), process)
        }
        count => {
            let agent = format!("{} ({count} calls)", first.agent);
            let to = if style.unicode { "\u{2013}" } else { "-" };
            (format!("{}.{to}{}.", first.position, last.position), agent, String::new())
        }
    };
    let labels = [of(&first.part_of), first.model.clone(), first.task.clone(), None];
    Some(vec![
        title(style, at, "waits"),
        position,
        agent,
        process,
        priority_label(first.priority.as_str()),
        cost_text(&first.cost) + if group.len() > 1 { " each" } else { "" },
        waiting_time(first),
        about(style, labels),
    ])
}

/// How long a call waits. A call on several pools is queued more than once, so that is not known.
fn waiting_time(ticket: &TicketStatus) -> String {
    match ticket.also.as_slice() {
        [] => format!("for {}", length(ticket.waits_ms)),
        _ => String::new(),
    }
}

//! The chosen row of a list, told in full where its columns are cut.

use ratatui::text::{Line, Text};
use standpipe::AgentStatus;

use super::ink::look;
use super::lists::{about, owner};
use crate::show::events;
use crate::show::length::length;
use crate::show::status::{ends, waits_for, words};
use crate::show::style::{Ink, Style};
use crate::show::table::sentence;
use crate::top::rows::Row;

/// How many lines there are for it.
const LINES: usize = 3;

pub(super) fn text(style: Style, row: Row<'_>) -> Text<'static> {
    let told = told(style, row);
    let lines = sentence(2, style.width, &told).into_iter().take(LINES).map(Line::from);
    Text::from(lines.collect::<Vec<_>>()).style(look(style, Ink::Dim))
}

fn told(style: Style, row: Row<'_>) -> String {
    let parts = match row {
        Row::Pool(_) => Vec::new(),
        Row::Lease(pool, lease) => vec![
            format!("{} holds {} on {}", lease.agent, words(&lease.cost), pool.pool),
            format!("{}, {}", lease.priority, owner(lease.pid, lease.holder)),
            about(style, [&lease.model, &lease.task, &ends(lease)]),
            lease.id.to_string(),
        ],
        Row::Ticket(pool, ticket) => vec![
            format!("{} wants {} on {}", ticket.agent, words(&ticket.cost), pool.pool),
            waits_for(ticket),
            format!("gives up in {}", length(ticket.deadline_ms)),
            ticket.priority.to_owned(),
            about(style, [&ticket.model, &ticket.task, &None]),
        ],
        Row::Agent(pool, agent) => vec![
            format!("{} on {}, {}", agent.name, pool.pool, agent.priority),
            share(style, agent),
            agent.denied_ms.map_or_else(String::new, |ms| format!("in vain for {}", length(ms))),
            if agent.promoted { "served as a standard agent, once".into() } else { String::new() },
        ],
        Row::Event(event) => {
            vec![event.at.to_string(), event.pool.clone(), events::what(&event.what)]
        }
    };
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(style.dot())
}

/// What is kept for an agent, and what it may use at most.
pub(super) fn share(style: Style, agent: &AgentStatus) -> String {
    let both = [shares("floor", &agent.floor), shares("cap", &agent.cap)];
    let both: Vec<String> = both.into_iter().filter(|share| !share.is_empty()).collect();
    both.join(style.dot())
}

fn shares(what: &str, shares: &[String]) -> String {
    if shares.is_empty() { String::new() } else { format!("{what} {}", shares.join(", ")) }
}

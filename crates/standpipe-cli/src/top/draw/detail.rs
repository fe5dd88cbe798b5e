//! The selected row of a list in full, because its columns may be truncated.

use ratatui::text::{Line, Text};
use standpipe::PoolStatus;
use standpipe::observe::{AgentStatus, LeaseStatus};

use super::lists::{about, owner};
use super::roles::tui_style;
use crate::show::duration::{length, remaining};
use crate::show::events;
use crate::show::local_time::day_and_clock;
use crate::show::status::{cost_text, expiry, share_text};
use crate::show::style::{Style, TextRole};
use crate::show::table::sentence;
use crate::show::when::wait_reason;
use crate::top::rows::Row;

/// The number of lines.
const LINES: usize = 3;

pub(super) fn text(style: Style, row: Row<'_>) -> Text<'static> {
    let description = description(style, row);
    let dot = style.dot().trim();
    let lines = sentence(2, style.width, &description).into_iter().take(LINES);
    // A line that continues has no separator at its end.
    let lines = lines.map(|line| {
        Line::from(line.trim_end_matches([' ']).trim_end_matches(dot).trim_end().to_owned())
    });
    Text::from(lines.collect::<Vec<_>>()).style(tui_style(style, TextRole::Muted))
}

fn description(style: Style, row: Row<'_>) -> String {
    let parts = match row {
        Row::Pool(_) => Vec::new(),
        Row::Lease(pool, lease) => vec![
            format!("{} holds {} on {}", lease.agent, cost_text(&lease.cost), pool.pool),
            format!("{}, {}", lease.priority, owner(lease)),
            resume(lease),
            part(lease.part_of.as_deref()),
            about(style, [&lease.model, &lease.task, &expiry(lease)]),
            lease.id.to_string(),
        ],
        Row::Ticket(pool, ticket) => vec![
            format!("{} wants {} on {}", ticket.agent, cost_text(&ticket.cost), pool.pool),
            wait_reason(ticket),
            format!("gives up in {}", remaining(ticket.deadline_ms)),
            ticket.priority.as_str().to_owned(),
            part(ticket.part_of.as_deref()),
            about(style, [&ticket.model, &ticket.task, &None]),
        ],
        Row::Agent(pool, agent) => vec![
            format!("{} on {}, {}", agent.name, pool.pool, agent.priority),
            share(style, pool, agent),
            agent.denied_ms.map_or_else(String::new, |ms| format!("denied for {}", length(ms))),
            if agent.promoted { "served as a standard agent, once".into() } else { String::new() },
        ],
        Row::Proxied(call) => vec![
            day_and_clock(call.at),
            format!("{} on {}", call.agent, call.pool),
            call.session.clone().unwrap_or_default(),
            call.model.clone().unwrap_or_default(),
            format!("status {}", call.status),
            format!("{} tokens in, {} out", call.input_tokens, call.output_tokens),
            format!("waited {}", length(call.waited_ms)),
        ],
        Row::Event(event) => {
            vec![day_and_clock(event.at), event.pool.clone(), events::what(&event.what)]
        }
    };
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(style.dot())
}

/// What to do about a process that is stopped and keeps its lease.
fn resume(lease: &LeaseStatus) -> String {
    let pid = lease.pid.filter(|_| lease.stopped);
    pid.map_or_else(String::new, |pid| {
        format!("kill -CONT {pid} resumes it, kill -9 {pid} ends it")
    })
}

/// Describes a call that another pool was named for.
fn part(of: Option<&str>) -> String {
    of.map_or_else(String::new, |pool| format!("for {pool}"))
}

/// Describes what an agent uses of the rates, and its floor and cap.
pub(super) fn share(style: Style, pool: &PoolStatus, agent: &AgentStatus) -> String {
    let used = share_text(style, pool, agent);
    let all = [used, shares("floor", &agent.floor), shares("cap", &agent.cap)];
    let all: Vec<String> = all.into_iter().filter(|share| !share.is_empty()).collect();
    all.join(style.dot())
}

fn shares(what: &str, shares: &[String]) -> String {
    if shares.is_empty() { String::new() } else { format!("{what} {}", shares.join(", ")) }
}

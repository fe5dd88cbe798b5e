//! The panes that are tables (leases, queue, agents, events) and the strip of recent events.
//!
//! Only visible rows are formatted, so a long list costs no more than a short one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style as TuiStyle};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row as Entry, Table, TableState};
use standpipe::PoolStatus;
use standpipe::observe::journal::{Event, EventData};
use standpipe::observe::{LeaseStatus, TicketStatus};

use super::chrome;
use super::detail;
use super::pools::keep_in_view;
use super::roles::{span, tui_style};
use crate::show::amount::amount;
use crate::show::duration::length;
use crate::show::events::what;
use crate::show::local_time::clock_only;
use crate::show::status::{active_text, cost_text, expiry, priority_label};
use crate::show::style::{Style, TextRole, columns};
use crate::show::when::wait_instant;
use crate::top::data::ProxiedCall;
use crate::top::pane::Pane;
use crate::top::rows::{Row, rows};
use crate::top::state::State;

/// The screen width from which optional columns are shown.
const WIDE: usize = 110;
/// The largest width of any column but the last.
const MAX_WIDTH: usize = 26;
/// The smallest width of a column, and of the last one.
const MIN_WIDTH: usize = 6;
const MIN_LAST_WIDTH: usize = 24;
const MIN_SHARES_WIDTH: usize = 12;
/// The space between two columns, and the mark of the selected row.
const GAP: u16 = 2;
const MARK: &str = "> ";
/// The height from which the selected row is described below the table.
const TALL: u16 = 9;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, style: Style, state: &mut State, pane: Pane) {
    let focus = state.pane == pane;
    let detail_height = if area.height >= TALL && focus { 3 } else { 0 };
    let parts = [Constraint::Min(1), Constraint::Length(detail_height)];
    let [list, below] = Layout::vertical(parts).areas(area);
    let rows = state.rows(pane);
    let selected = state.selected(pane, &rows);
    // The first line has the titles.
    let height = usize::from(list.height.saturating_sub(1)).max(1);
    let first = state.scroll.get(pane.index()).copied().unwrap_or(0);
    let first =
        keep_in_view(first, height, selected, selected + 1).min(rows.len().saturating_sub(height));
    let many = state.data.as_ref().is_some_and(|data| data.snapshot.pools.len() > 1);
    let shown = rows.iter().skip(first).take(height);
    let entries: Vec<Vec<String>> = shown.clone().map(|row| cells(style, *row)).collect();
    let styles: Vec<TuiStyle> = shown.map(|row| row_style(style, *row)).collect();
    // The numbers of an agent matter more than the end of its shares.
    let least = if pane == Pane::Agents { MIN_SHARES_WIDTH } else { MIN_LAST_WIDTH };
    let table = table(style, &titles(style, pane, many), &entries, &styles, least);
    let mark = (focus && !rows.is_empty()).then(|| selected - first);
    frame.render_stateful_widget(table, list, &mut TableState::new().with_selected(mark));
    if detail_height > 0
        && let Some(row) = rows.get(selected)
    {
        frame.render_widget(detail::text(style, *row), below);
    }
    if let Some(scroll) = state.scroll.get_mut(pane.index()) {
        *scroll = first;
    }
    if focus {
        state.page = height;
    }
}

/// Returns the titles of a pane's columns; `None` hides a column.
fn titles(style: Style, pane: Pane, many: bool) -> Vec<Option<&'static str>> {
    let pool = many.then_some("pool");
    let wide = |title| (style.width >= WIDE).then_some(title);
    match pane {
        Pane::Pools => Vec::new(),
        Pane::Leases => vec![
            Some("agent"),
            pool,
            Some("priority"),
            Some("held for"),
            Some("owner"),
            Some("takes"),
            wide("about"),
        ],
        Pane::Queue => vec![
            Some("#"),
            Some("agent"),
            pool,
            Some("priority"),
            Some("waits"),
            wide("wants"),
            Some("waits for"),
        ],
        Pane::Agents => vec![
            Some("agent"),
            pool,
            Some("priority"),
            Some("calls"),
            Some("waiting"),
            Some("active"),
            Some("share"),
        ],
        Pane::Events => vec![Some("at"), Some("kind"), pool, Some("what")],
        Pane::Proxied => vec![
            Some("at"),
            Some("agent"),
            Some("model"),
            Some("status"),
            Some("in"),
            Some("out"),
            Some("cost"),
            Some("waited"),
            wide("pool"),
        ],
    }
}

/// Returns the cells of a row.
fn cells(style: Style, row: Row<'_>) -> Vec<String> {
    match row {
        Row::Pool(_) => Vec::new(),
        Row::Lease(pool, lease) => vec![
            lease.agent.clone(),
            pool.pool.to_string(),
            priority_label(lease.priority.as_str()),
            length(lease.age_ms),
            owner(lease),
            cost_text(&lease.cost),
            about(style, [&lease.model, &lease.task, &expiry(lease)]),
        ],
        Row::Ticket(pool, ticket) => vec![
            ticket.position.to_string(),
            ticket.agent.clone(),
            pool.pool.to_string(),
            priority_label(ticket.priority.as_str()),
            length(ticket.waits_ms),
            cost_text(&ticket.cost),
            waits_for(pool, ticket),
        ],
        Row::Agent(pool, agent) => vec![
            agent.name.clone(),
            pool.pool.to_string(),
            priority_label(agent.priority.as_str()),
            nonzero(agent.in_flight),
            nonzero(agent.waiting),
            active_text(agent).trim_start_matches("active ").to_owned(),
            detail::share(style, pool, agent),
        ],
        Row::Proxied(call) => proxied(call),
        Row::Event(event) => vec![
            clock(event),
            event.what.kind().as_str().to_owned(),
            event.pool.clone(),
            what(&event.what),
        ],
    }
}

/// Describes why a call waits. Who is in its way comes first: a narrow column cuts off the end.
fn waits_for(pool: &PoolStatus, ticket: &TicketStatus) -> String {
    let Some(limit) = ticket.limit.as_ref().filter(|_| !ticket.in_use_by.is_empty()) else {
        return wait_instant(ticket);
    };
    let holder = |name: &String| {
        // `blog (2 slots)`
        let agent = name.split(" (").next().unwrap_or(name);
        let lease = pool.leases.iter().find(|lease| lease.agent == agent);
        match lease.and_then(|lease| lease.pid) {
            Some(pid) => format!("{agent} (pid {pid})"),
            None => name.clone(),
        }
    };
    let holders: Vec<String> = ticket.in_use_by.iter().map(holder).collect();
    format!("{}: {limit} full", holders.join(", "))
}

fn proxied(call: &ProxiedCall) -> Vec<String> {
    vec![
        clock_only(call.at),
        call.agent.clone(),
        call.model.clone().unwrap_or_else(|| call.pool.clone()),
        call.status.to_string(),
        amount("tokens", call.input_tokens),
        amount("tokens", call.output_tokens),
        if call.micro_usd == 0 { String::new() } else { amount("usd", call.micro_usd) },
        if call.waited_ms == 0 { String::new() } else { length(call.waited_ms) },
        call.pool.clone(),
    ]
}

/// Describes what ends a lease: a process, its session, or its ttl.
pub(super) fn owner(lease: &LeaseStatus) -> String {
    match (lease.pid, lease.holder.as_str()) {
        // The word first: a narrow column cuts off the end.
        (Some(pid), _) if lease.stopped => format!("stopped, pid {pid}"),
        (Some(pid), _) => format!("pid {pid}"),
        (None, "ttl") => "by time".to_owned(),
        (None, _) => "a session".to_owned(),
    }
}

pub(super) fn about(style: Style, words: [&Option<String>; 3]) -> String {
    let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
    words.join(style.dot())
}

fn nonzero(count: usize) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

fn clock(event: &Event) -> String {
    clock_only(event.at)
}

fn row_style(style: Style, row: Row<'_>) -> TuiStyle {
    match row {
        Row::Event(event) => {
            event_role(event).map_or_else(TuiStyle::new, |role| tui_style(style, role))
        }
        Row::Proxied(call) if call.status >= 400 => tui_style(style, TextRole::Error),
        _ => TuiStyle::new(),
    }
}

/// Highlights a provider's refusals and their consequences.
const fn event_role(event: &Event) -> Option<TextRole> {
    match event.what {
        EventData::Throttle { .. }
        | EventData::Stop { .. }
        | EventData::Outside { .. }
        | EventData::Lost { .. } => Some(TextRole::Error),
        EventData::Pause { .. }
        | EventData::Reclaim { .. }
        | EventData::Sequential { on: true } => Some(TextRole::Warning),
        _ => None,
    }
}

/// Lays out the entries. Columns are as wide as needed, empty ones are left out, and the last gets
/// the rest.
fn table(
    style: Style,
    titles: &[Option<&'static str>],
    entries: &[Vec<String>],
    styles: &[TuiStyle],
    least: usize,
) -> Table<'static> {
    let wide = |at: usize| {
        let cells = entries.iter().filter_map(|row| row.get(at));
        cells.map(|cell| Span::raw(cell.as_str()).width()).max().unwrap_or(0)
    };
    let used = titles.iter().enumerate().filter_map(|(at, title)| {
        title.filter(|_| wide(at) > 0).map(|title| (at, title, wide(at).max(columns(title))))
    });
    let used: Vec<(usize, &'static str, usize)> = used.collect();
    let last = used.len().saturating_sub(1);
    let room = style.width.saturating_sub(MARK.len() + usize::from(GAP) * last);
    let wides = widths(used.iter().map(|(.., wide)| *wide).collect(), room, least);
    let lengths = wides.iter().map(|wide| u16::try_from(*wide).unwrap_or(u16::MAX));
    let widths: Vec<Constraint> = lengths.map(Constraint::Length).collect();
    let heads = used.iter().map(|(_, title, _)| Cell::from(*title));
    let head = Entry::new(heads.collect::<Vec<_>>()).style(tui_style(style, TextRole::Muted));
    let rows = entries.iter().zip(styles).map(|(row, row_style)| {
        let cells = used.iter().zip(&wides).map(|((at, ..), wide)| {
            Cell::from(chrome::truncate(style, row.get(*at).map_or("", String::as_str), *wide))
        });
        Entry::new(cells.collect::<Vec<_>>()).style(*row_style)
    });
    Table::new(rows.collect::<Vec<_>>(), widths)
        .header(head)
        .column_spacing(GAP)
        .highlight_symbol(MARK)
        .highlight_spacing(ratatui::widgets::HighlightSpacing::Always)
        .row_highlight_style(TuiStyle::new().add_modifier(Modifier::REVERSED))
}

/// Computes the width of each column: as needed, the last gets the rest. When there is too little
/// room, the widest columns shrink.
fn widths(mut wides: Vec<usize>, room: usize, least: usize) -> Vec<usize> {
    let Some(last) = wides.pop() else { return wides };
    wides.iter_mut().for_each(|wide| *wide = (*wide).min(MAX_WIDTH));
    let least = last.min(least);
    while wides.iter().sum::<usize>() + least > room {
        match wides.iter_mut().max().filter(|widest| **widest > MIN_WIDTH) {
            Some(widest) => *widest -= 1,
            None => break,
        }
    }
    let left = room.saturating_sub(wides.iter().sum());
    wides.push(left);
    wides
}

/// Draws the recent events below any pane.
pub(super) fn recent_events(frame: &mut Frame<'_>, area: Rect, style: Style, state: &State) {
    let mut lines = vec![chrome::rule(style, "recent events", false)];
    let order = crate::top::pane::Order::Newest;
    let all = state.data.as_ref();
    let all = all.map(|data| rows(data, Pane::Events, order, &state.filter));
    let room = usize::from(area.height.saturating_sub(1));
    // Every process sends its configuration: that would push out what matters.
    let matters = |row: &Row<'_>| match row {
        Row::Event(event) => {
            !matches!(event.what, EventData::Config { .. } | EventData::Observe { .. })
        }
        _ => true,
    };
    for row in all.unwrap_or_default().into_iter().filter(matters).take(room) {
        if let Row::Event(event) = row {
            let text = format!("  {}  {}  {}", clock(event), event.pool, what(&event.what));
            let text = chrome::truncate(style, &text, style.width);
            lines.push(Line::from(Span::styled(text, row_style(style, row))));
        }
    }
    if lines.len() == 1 {
        let nothing = match state.filter.is_empty() {
            true => "  none in the last hour",
            false => "  none that matches the filter",
        };
        lines.push(Line::from(span(style, TextRole::Muted, nothing)));
    }
    frame.render_widget(Text::from(lines), area);
}

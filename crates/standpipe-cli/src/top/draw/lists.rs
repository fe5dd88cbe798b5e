//! The panes that are tables: leases, queue, agents, events; and the strip of what happened last.
//!
//! Only the rows that can be seen are made, so that a long list costs no more than a short one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style as Look};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row as Entry, Table, TableState};
use standpipe::journal::{Event, What};

use super::detail;
use super::edges;
use super::ink::{look, span};
use super::pools::keep_in_view;
use crate::show::events::what;
use crate::show::length::length;
use crate::show::status::{ends, tier, waits_for, words};
use crate::show::style::{Ink, Style, columns};
use crate::top::pane::Pane;
use crate::top::rows::{Row, rows};
use crate::top::state::State;

/// From how many columns on there is room for more of them.
const WIDE: usize = 110;
/// How wide any column but the last may be.
const WIDEST: usize = 26;
/// What a column keeps when there is little room, and the last one.
const LEAST: usize = 6;
const LEAST_LAST: usize = 24;
/// What is between two columns, and before the chosen row.
const GAP: u16 = 2;
const MARK: &str = "> ";
/// Below how many lines the chosen row is not told in full.
const ROOMY: u16 = 9;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, style: Style, state: &mut State, pane: Pane) {
    let focus = state.pane == pane;
    let told = if area.height >= ROOMY && focus { 3 } else { 0 };
    let parts = [Constraint::Min(1), Constraint::Length(told)];
    let [list, below] = Layout::vertical(parts).areas(area);
    let rows = state.rows(pane);
    let chosen = state.chosen(pane, &rows);
    // The first line has the titles.
    let height = usize::from(list.height.saturating_sub(1)).max(1);
    let first = state.scroll.get(pane.at()).copied().unwrap_or(0);
    let first =
        keep_in_view(first, height, chosen, chosen + 1).min(rows.len().saturating_sub(height));
    let many = state.picture.as_ref().is_some_and(|picture| picture.seen.pools.len() > 1);
    let shown = rows.iter().skip(first).take(height);
    let entries: Vec<Vec<String>> = shown.clone().map(|row| cells(style, *row)).collect();
    let looks: Vec<Look> = shown.map(|row| row_look(style, *row)).collect();
    let table = table(style, &titles(style, pane, many), &entries, &looks);
    let mark = (focus && !rows.is_empty()).then(|| chosen - first);
    frame.render_stateful_widget(table, list, &mut TableState::new().with_selected(mark));
    if told > 0
        && let Some(row) = rows.get(chosen)
    {
        frame.render_widget(detail::text(style, *row), below);
    }
    if let Some(scroll) = state.scroll.get_mut(pane.at()) {
        *scroll = first;
    }
    if focus {
        state.page = height;
    }
}

/// The titles of a pane's columns; one without any is not shown.
fn titles(style: Style, pane: Pane, many: bool) -> Vec<Option<&'static str>> {
    let pool = many.then_some("pool");
    let wide = |title| (style.width >= WIDE).then_some(title);
    match pane {
        Pane::Pools => Vec::new(),
        Pane::Leases => vec![
            Some("agent"),
            pool,
            Some("tier"),
            Some("held for"),
            Some("owner"),
            Some("takes"),
            wide("about"),
        ],
        Pane::Queue => vec![
            Some("#"),
            Some("agent"),
            pool,
            Some("tier"),
            Some("waits"),
            wide("wants"),
            Some("waits for"),
        ],
        Pane::Agents => vec![
            Some("agent"),
            pool,
            Some("tier"),
            Some("calls"),
            Some("waiting"),
            Some("active"),
            Some("share"),
        ],
        Pane::Events => vec![Some("at"), Some("kind"), pool, Some("what")],
    }
}

/// What a row has in each of its pane's columns.
fn cells(style: Style, row: Row<'_>) -> Vec<String> {
    match row {
        Row::Pool(_) => Vec::new(),
        Row::Lease(pool, lease) => vec![
            lease.agent.clone(),
            pool.pool.clone(),
            tier(lease.priority),
            length(lease.age_ms),
            owner(lease.pid, lease.holder),
            words(&lease.cost),
            about(style, [&lease.model, &lease.task, &ends(lease)]),
        ],
        Row::Ticket(pool, ticket) => vec![
            ticket.position.to_string(),
            ticket.agent.clone(),
            pool.pool.clone(),
            tier(ticket.priority),
            length(ticket.waits_ms),
            words(&ticket.cost),
            waits_for(ticket),
        ],
        Row::Agent(pool, agent) => vec![
            agent.name.clone(),
            pool.pool.clone(),
            tier(agent.priority),
            some(agent.in_flight),
            some(agent.waiting),
            format!("{} ago", length(agent.active_ms)),
            detail::share(style, agent),
        ],
        Row::Event(event) => vec![
            clock(event),
            event.what.kind().as_str().to_owned(),
            event.pool.clone(),
            what(&event.what),
        ],
    }
}

/// Who ends a lease: a process that can be seen, its session, or time.
pub(super) fn owner(pid: Option<u32>, holder: &str) -> String {
    match (pid, holder) {
        (Some(pid), _) => format!("pid {pid}"),
        (None, "ttl") => "by time".to_owned(),
        (None, _) => "a session".to_owned(),
    }
}

pub(super) fn about(style: Style, words: [&Option<String>; 3]) -> String {
    let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
    words.join(style.dot())
}

fn some(count: usize) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

fn clock(event: &Event) -> String {
    event.at.to_string().get(11..19).unwrap_or_default().to_owned()
}

fn row_look(style: Style, row: Row<'_>) -> Look {
    match row {
        Row::Event(event) => event_ink(event).map_or_else(Look::new, |ink| look(style, ink)),
        _ => Look::new(),
    }
}

/// What a provider refused, and what came of that, is to be seen.
const fn event_ink(event: &Event) -> Option<Ink> {
    match event.what {
        What::Throttle { .. } | What::Stop { .. } | What::Outside { .. } | What::Lost { .. } => {
            Some(Ink::Bad)
        }
        What::Pause { .. } | What::Reclaim { .. } | What::Sequential { on: true } => {
            Some(Ink::Short)
        }
        _ => None,
    }
}

/// The entries in columns as wide as they need; a column of nothing is left out, the last takes
/// what is left.
fn table(
    style: Style,
    titles: &[Option<&'static str>],
    entries: &[Vec<String>],
    looks: &[Look],
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
    let wides = widths(used.iter().map(|(.., wide)| *wide).collect(), room);
    let lengths = wides.iter().map(|wide| u16::try_from(*wide).unwrap_or(u16::MAX));
    let widths: Vec<Constraint> = lengths.map(Constraint::Length).collect();
    let heads = used.iter().map(|(_, title, _)| Cell::from(*title));
    let head = Entry::new(heads.collect::<Vec<_>>()).style(look(style, Ink::Dim));
    let rows = entries.iter().zip(looks).map(|(row, look)| {
        let cells = used.iter().zip(&wides).map(|((at, ..), wide)| {
            Cell::from(edges::fit(style, row.get(*at).map_or("", String::as_str), *wide))
        });
        Entry::new(cells.collect::<Vec<_>>()).style(*look)
    });
    Table::new(rows.collect::<Vec<_>>(), widths)
        .header(head)
        .column_spacing(GAP)
        .highlight_symbol(MARK)
        .highlight_spacing(ratatui::widgets::HighlightSpacing::Always)
        .row_highlight_style(Look::new().add_modifier(Modifier::REVERSED))
}

/// How wide each column is: as it needs, the last with all that is left. Where that is too little,
/// the widest give way.
fn widths(mut wides: Vec<usize>, room: usize) -> Vec<usize> {
    let Some(last) = wides.pop() else { return wides };
    wides.iter_mut().for_each(|wide| *wide = (*wide).min(WIDEST));
    let least = last.min(LEAST_LAST);
    while wides.iter().sum::<usize>() + least > room {
        match wides.iter_mut().max().filter(|widest| **widest > LEAST) {
            Some(widest) => *widest -= 1,
            None => break,
        }
    }
    let left = room.saturating_sub(wides.iter().sum());
    wides.push(left);
    wides
}

/// What happened last, whatever pane is shown.
pub(super) fn strip(frame: &mut Frame<'_>, area: Rect, style: Style, state: &State) {
    let mut lines = vec![edges::rule(style, "what happened last", false)];
    let order = crate::top::pane::Order::Youngest;
    let all = state.picture.as_ref();
    let all = all.map(|picture| rows(picture, Pane::Events, order, &state.filter));
    let room = usize::from(area.height.saturating_sub(1));
    for row in all.unwrap_or_default().into_iter().take(room) {
        if let Row::Event(event) = row {
            let text = format!("  {}  {}  {}", clock(event), event.pool, what(&event.what));
            let text = edges::fit(style, &text, style.width);
            let look = row_look(style, row);
            lines.push(Line::from(Span::styled(text, look)));
        }
    }
    if lines.len() == 1 {
        let nothing = match state.filter.is_empty() {
            true => "  nothing in the last hour",
            false => "  nothing that has such a text in it",
        };
        lines.push(Line::from(span(style, Ink::Dim, nothing)));
    }
    frame.render_widget(Text::from(lines), area);
}

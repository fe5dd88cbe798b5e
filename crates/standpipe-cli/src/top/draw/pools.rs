//! The pane of pools: each with its state and a bar per limit. Where there is no room for all of
//! them, only the chosen one is shown in full.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span, Text};
use standpipe::{PoolStatus, Snapshot};

use super::edges::fit;
use super::ink::{line, look, span};
use crate::show::bar::{bar, ink};
use crate::show::length::length;
use crate::show::status::{summary, upstream};
use crate::show::style::{Ink, Style, columns};
use crate::top::pane::Pane;
use crate::top::rows::{Row, tightest};
use crate::top::state::State;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, style: Style, state: &mut State) {
    let Some(picture) = &state.picture else { return };
    let height = usize::from(area.height);
    let rows = state.rows(Pane::Pools);
    let chosen = state.chosen(Pane::Pools, &rows);
    let focus = state.pane == Pane::Pools;
    let pools = rows.iter().filter_map(|row| if let Row::Pool(p) = row { Some(*p) } else { None });
    let notes = notes(style, &picture.seen);
    let whole: Vec<Vec<Line<'static>>> = pools
        .clone()
        .enumerate()
        .map(|(at, pool)| full(style, pool, at == chosen && focus))
        .collect();
    let lines: usize = whole.iter().map(Vec::len).sum::<usize>() + notes.len();
    let blocks: Vec<Vec<Line<'static>>> = if lines <= height {
        whole
    } else {
        let each = whole.into_iter().zip(pools).enumerate();
        let short = |pool| vec![short(style, pool)];
        each.map(|(at, (whole, pool))| if at == chosen { whole } else { short(pool) }).collect()
    };
    let before: usize = blocks.iter().take(chosen).map(Vec::len).sum();
    let its = blocks.get(chosen).map_or(0, Vec::len);
    let is_last = chosen + 1 >= blocks.len();
    let all: Vec<Line<'static>> = blocks.into_iter().flatten().chain(notes).collect();
    // With the last pool comes what is said below it.
    let until = if is_last { all.len() } else { before + its };
    let first = state.scroll.first().copied().unwrap_or(0);
    let first = keep_in_view(first, height, before, until).min(all.len().saturating_sub(height));
    let shown: Vec<Line<'static>> = all.into_iter().skip(first).take(height).collect();
    if let Some(scroll) = state.scroll.first_mut() {
        *scroll = first;
    }
    if focus {
        state.page = (height / 4).max(1);
    }
    frame.render_widget(Text::from(shown), area);
}

/// Where a view of so many lines begins so that these can be seen, moved as little as possible.
pub(super) fn keep_in_view(first: usize, height: usize, from: usize, to: usize) -> usize {
    let first = if to > first + height { to - height } else { first };
    first.min(from)
}

fn full(style: Style, pool: &PoolStatus, chosen: bool) -> Vec<Line<'static>> {
    let mut lines = vec![heading(style, pool, chosen)];
    lines.extend(summary(style, pool).iter().map(|text| line(text)));
    lines
}

fn heading(style: Style, pool: &PoolStatus, chosen: bool) -> Line<'static> {
    let mut about = marks(style, pool);
    about.push(span(style, zone(pool.zone), pool.zone));
    about.extend(calls(pool));
    if pool.in_flight + pool.waiting == 0 {
        about.push(span(style, Ink::Dim, "idle"));
    }
    let wide: usize = about.iter().map(Span::width).sum();
    let dots = about.len().saturating_sub(1) * columns(style.dot());
    let room = style.width.saturating_sub(wide + dots + 3);
    let name = fit(style, &pool.pool, room);
    let gap = room.saturating_sub(columns(&name)) + 1;
    let mut spans = named(style, name, chosen);
    spans.push(Span::raw(" ".repeat(gap)));
    for (at, remark) in about.into_iter().enumerate() {
        if at > 0 {
            spans.push(span(style, Ink::Dim, style.dot()));
        }
        spans.push(remark);
    }
    Line::from(spans)
}

fn named(style: Style, name: String, chosen: bool) -> Vec<Span<'static>> {
    let bold = look(style, Ink::Bold);
    match chosen {
        true => vec![Span::raw("> "), Span::styled(name, bold.add_modifier(Modifier::REVERSED))],
        false => vec![Span::raw("  "), Span::styled(name, bold)],
    }
}

/// How many calls there are, if any.
fn calls(pool: &PoolStatus) -> impl Iterator<Item = Span<'static>> {
    let counts = [(pool.in_flight, "in flight"), (pool.waiting, "waiting")];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| Span::raw(format!("{count} {what}")))
}

/// What holds up all of a pool, in a word each.
fn marks(style: Style, pool: &PoolStatus) -> Vec<Span<'static>> {
    let mut marks = Vec::new();
    if pool.cut_off.is_some() {
        marks.push(span(style, Ink::Bad, "cut off"));
    }
    if pool.terminal.is_some() {
        marks.push(span(style, Ink::Bad, "stopped"));
    }
    if let Some(pause) = &pool.pause {
        marks.push(span(style, Ink::Short, format!("paused {}", length(pause.for_ms))));
    }
    if pool.learning.is_some() {
        marks.push(span(style, Ink::Short, "learning"));
    }
    if !pool.enforce {
        marks.push(span(style, Ink::Dim, "shadow mode"));
    }
    marks
}

const fn zone(word: &str) -> Ink {
    match word.as_bytes() {
        b"amber" => Ink::Short,
        b"red" => Ink::Bad,
        _ => Ink::Good,
    }
}

/// One line for a pool: its name, the limit of which most is taken, what holds it up.
fn short(style: Style, pool: &PoolStatus) -> Line<'static> {
    let name_room = (style.width / 3).max(16);
    let name = fit(style, &pool.pool, name_room);
    let mut spans = vec![Span::raw(format!("  {name:<name_room$} "))];
    match tightest(pool) {
        Some((limit, thousandths)) => {
            let (used, held) = match limit.kind {
                "parallel" => (limit.used.saturating_add(limit.held), 0),
                _ => (limit.used, limit.held),
            };
            spans.extend(line(&bar(style, 10, used, held, limit.effective)).spans);
            let taken = limit.used.saturating_add(limit.held);
            let text = format!(" {:>3}% {}", thousandths / 10, limit.limit);
            spans.push(span(style, ink(taken, limit.effective), text));
        }
        None => spans.push(span(style, Ink::Dim, "no limits known yet")),
    }
    let mut about = marks(style, pool);
    if pool.zone != "green" {
        about.push(span(style, zone(pool.zone), pool.zone));
    }
    about.extend(calls(pool));
    for remark in about {
        spans.push(span(style, Ink::Dim, style.dot()));
        spans.push(remark);
    }
    Line::from(spans)
}

/// What is said of no single pool that can be read.
fn notes(style: Style, seen: &Snapshot) -> Vec<Line<'static>> {
    let unread = seen.unreadable.iter().map(|one| {
        let text = format!("  `{}` cannot be read: {}", one.pool, one.detail);
        Line::from(span(style, Ink::Bad, text))
    });
    let pressed = upstream(&seen.backpressure);
    let pressed = pressed.lines().filter(|line| !line.is_empty());
    unread
        .chain(pressed.map(|text| Line::from(span(style, Ink::Short, format!("  {text}")))))
        .collect()
}

//! How it looks: a head, tabs, panes, a line of what came of things, a line of keys.
//!
//! Only draws; the one thing it keeps in the state is how far each pane is scrolled.

mod detail;
mod edges;
mod help;
mod ink;
mod lists;
mod pools;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as Look};
use ratatui::text::{Line, Text};

use super::pane::Pane;
use super::state::{Mode, State};
use crate::show::style::{Ink, Style};

/// What a view needs at least.
const LEAST: (u16, u16) = (40, 10);
/// From how many lines on pools and a list are shown together.
const TALL: u16 = 26;
/// From how many lines on leases and the queue are shown together.
const BOTH: u16 = 14;

pub(super) fn draw(frame: &mut Frame<'_>, style: Style, state: &mut State) {
    let area = frame.area();
    let style = Style { width: usize::from(area.width), ..style };
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (wide, high) = LEAST;
        let text = format!("too small: a view needs {wide} columns and {high} lines");
        frame.render_widget(Text::from(text), area);
        return;
    }
    let away = u16::from(state.away.is_some());
    let parts = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(away),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [head, tabs, trouble, body, said, keys] = Layout::vertical(parts).areas(area);
    frame.render_widget(edges::head(style, state), head);
    frame.render_widget(edges::tabs(style, state), tabs);
    if let Some(line) = edges::away(style, state) {
        frame.render_widget(line, trouble);
    }
    if state.mode == Mode::Help {
        frame.render_widget(help::text(style), body);
    } else {
        panes(frame, body, style, state);
    }
    if state.away.is_some() {
        grey(frame.buffer_mut(), body, style);
    }
    frame.render_widget(edges::said(style, state), said);
    frame.render_widget(edges::keys(style, state), keys);
    if !style.unicode {
        only_ascii(frame.buffer_mut(), area);
    }
}

/// One pane at a time, or pools above a list; what happened last below, unless that is the list.
fn panes(frame: &mut Frame<'_>, area: Rect, style: Style, state: &mut State) {
    let tall = area.height >= TALL;
    let shown = if tall { state.lower } else { state.pane };
    let strip = match (shown, area.height) {
        (Pane::Events, _) | (_, 0..12) => 0,
        (_, 12..TALL) => 4,
        _ => 6,
    };
    let (upper, rest) = if tall { (area.height * 2 / 5, 1) } else { (0, 1) };
    let parts = [Constraint::Length(upper), Constraint::Min(rest), Constraint::Length(strip)];
    let [above, middle, below] = Layout::vertical(parts).areas(area);
    if tall {
        pane(frame, above, style, state, Pane::Pools);
    }
    match shown {
        Pane::Leases | Pane::Queue if tall && middle.height >= BOTH => {
            let halves = [Constraint::Fill(1), Constraint::Fill(1)];
            let [held, waiting] = Layout::vertical(halves).areas(middle);
            pane(frame, held, style, state, Pane::Leases);
            pane(frame, waiting, style, state, Pane::Queue);
        }
        shown => pane(frame, middle, style, state, shown),
    }
    if strip > 0 {
        lists::strip(frame, below, style, state);
    }
}

fn pane(frame: &mut Frame<'_>, area: Rect, style: Style, state: &mut State, pane: Pane) {
    let parts = [Constraint::Length(1), Constraint::Min(0)];
    let [title, body] = Layout::vertical(parts).areas(area);
    frame.render_widget(edges::title(style, state, pane), title);
    if let Some(text) = nothing(state, pane) {
        let lines: Vec<Line<'_>> =
            text.lines().map(|line| Line::from(format!("  {line}"))).collect();
        frame.render_widget(Text::from(lines).style(ink::look(style, Ink::Dim)), body);
        return;
    }
    match pane {
        Pane::Pools => pools::draw(frame, body, style, state),
        pane => lists::draw(frame, body, style, state, pane),
    }
}

/// What is said in place of rows when there are none.
fn nothing(state: &State, pane: Pane) -> Option<String> {
    let Some(picture) = &state.picture else {
        let text = if state.away.is_some() { "nothing was seen yet" } else { "looking …" };
        return Some(text.to_owned());
    };
    if !state.rows(pane).is_empty() || (pane == Pane::Pools && !picture.seen.unreadable.is_empty())
    {
        return None;
    }
    if !state.filter.is_empty() {
        return Some(format!("nothing here has `{}` in it; Esc shows all", state.filter));
    }
    Some(match pane {
        Pane::Pools => crate::show::status::NO_POOLS.to_owned(),
        Pane::Leases => "no call is in flight".to_owned(),
        Pane::Queue => "nobody waits".to_owned(),
        Pane::Agents => "nobody was seen yet".to_owned(),
        Pane::Events => "nothing happened in the last hour".to_owned(),
    })
}

/// Figures that are not of now are not to be read as if they were.
fn grey(buffer: &mut Buffer, area: Rect, style: Style) {
    let look = match style.colour {
        true => Look::reset().fg(Color::DarkGray),
        false => Look::new().add_modifier(Modifier::DIM),
    };
    buffer.set_style(area, look);
}

/// A terminal without UTF-8 gets nothing that it could not show.
fn only_ascii(buffer: &mut Buffer, area: Rect) {
    for position in area.positions() {
        if let Some(cell) = buffer.cell_mut(position)
            && !cell.symbol().is_ascii()
        {
            let plain = match cell.symbol() {
                "…" | "·" => ".",
                "“" | "”" => "\"",
                _ => "?",
            };
            cell.set_symbol(plain);
        }
    }
}

#[cfg(test)]
mod tests;

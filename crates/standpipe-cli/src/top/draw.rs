//! Rendering of the view: header, tabs, panes, status line, key hints.
//!
//! Drawing changes nothing in the state but the scroll position and page size of each pane.

mod chrome;
mod detail;
mod help;
mod lists;
mod pools;
mod roles;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as TuiStyle};
use ratatui::text::{Line, Text};

use super::pane::Pane;
use super::state::{Mode, State};
use crate::show::style::{Style, TextRole};
use crate::show::table::sentence;

/// The smallest screen, in columns and lines.
const MIN_SIZE: (u16, u16) = (40, 10);
/// The height from which pools and a list are shown together.
const TALL: u16 = 26;
/// The height from which leases and the queue are shown together.
const TALL_LIST: u16 = 14;

pub(super) fn draw(frame: &mut Frame<'_>, style: Style, state: &mut State) {
    let area = frame.area();
    let style = Style { width: usize::from(area.width), ..style };
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        let (wide, high) = MIN_SIZE;
        let text = format!("too small: the view needs {wide} columns and {high} lines");
        let lines = sentence(0, style.width, &text).into_iter().map(Line::from);
        frame.render_widget(Text::from(lines.collect::<Vec<_>>()), area);
        return;
    }
    let notice = chrome::notice(style, state);
    let parts = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(u16::from(notice.is_some())),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [header, tabs, above, body, status, hints] = Layout::vertical(parts).areas(area);
    frame.render_widget(chrome::header(style, state), header);
    frame.render_widget(chrome::tabs(style, state), tabs);
    if let Some(line) = notice {
        frame.render_widget(line, above);
    }
    if state.mode == Mode::Help {
        frame.render_widget(help::text(style), body);
    } else {
        panes(frame, body, style, state);
    }
    if state.unavailable.is_some() {
        grey_out(frame.buffer_mut(), body, style);
    }
    frame.render_widget(chrome::status_line(style, state), status);
    frame.render_widget(chrome::key_hints(style, state), hints);
    if !style.unicode {
        to_ascii(frame.buffer_mut(), area);
    }
}

/// Draws one pane, or on a tall screen pools above a list; below them the recent events, unless the
/// list shows them already.
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
        Pane::Leases | Pane::Queue if tall && middle.height >= TALL_LIST => {
            let halves = [Constraint::Fill(1), Constraint::Fill(1)];
            let [held, waiting] = Layout::vertical(halves).areas(middle);
            pane(frame, held, style, state, Pane::Leases);
            pane(frame, waiting, style, state, Pane::Queue);
        }
        shown => pane(frame, middle, style, state, shown),
    }
    if strip > 0 {
        lists::recent_events(frame, below, style, state);
    }
}

fn pane(frame: &mut Frame<'_>, area: Rect, style: Style, state: &mut State, pane: Pane) {
    let parts = [Constraint::Length(1), Constraint::Min(0)];
    let [title, body] = Layout::vertical(parts).areas(area);
    frame.render_widget(chrome::title(style, state, pane), title);
    if let Some(text) = empty_text(state, pane) {
        let lines: Vec<Line<'_>> =
            text.lines().map(|line| Line::from(format!("  {line}"))).collect();
        frame
            .render_widget(Text::from(lines).style(roles::tui_style(style, TextRole::Muted)), body);
        return;
    }
    match pane {
        Pane::Pools => pools::draw(frame, body, style, state),
        pane => lists::draw(frame, body, style, state, pane),
    }
}

/// Returns the text for a pane without rows.
fn empty_text(state: &State, pane: Pane) -> Option<String> {
    let Some(data) = &state.data else {
        let text = if state.unavailable.is_some() { "no data yet" } else { "loading …" };
        return Some(text.to_owned());
    };
    let snapshot = &data.snapshot;
    let has_notes = !snapshot.unreadable.is_empty() || !snapshot.lost.is_empty();
    if !state.rows(pane).is_empty() || (pane == Pane::Pools && has_notes) {
        return None;
    }
    if !state.filter.is_empty() {
        return Some(format!("no row contains `{}`; Esc shows all", state.filter));
    }
    Some(match pane {
        Pane::Pools => crate::show::status::NO_POOLS.to_owned(),
        Pane::Leases => "no call is in flight".to_owned(),
        Pane::Queue => "no call is waiting".to_owned(),
        Pane::Agents => "no agent has called yet".to_owned(),
        Pane::Events => "no events in the last hour".to_owned(),
        Pane::Proxied if data.proxied.is_none() => {
            "no daemon answers; calls through its proxy are shown here:\n\n  standpipe up"
                .to_owned()
        }
        Pane::Proxied => "no call has gone through the proxy yet".to_owned(),
    })
}

/// Greys out data that is not current.
fn grey_out(buffer: &mut Buffer, area: Rect, style: Style) {
    let grey = match style.colour {
        true => TuiStyle::reset().fg(Color::DarkGray),
        false => TuiStyle::new().add_modifier(Modifier::DIM),
    };
    buffer.set_style(area, grey);
}

/// Replaces characters that a terminal without UTF-8 cannot show.
fn to_ascii(buffer: &mut Buffer, area: Rect) {
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

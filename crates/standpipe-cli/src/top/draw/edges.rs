//! The lines around the panes: head, tabs, titles, what came of things, keys.

use std::time::Duration;

use ratatui::style::{Modifier, Style as Look};
use ratatui::text::{Line, Span};
use standpipe::PoolStatus;

use super::ink::{look, span};
use crate::show::length::length;
use crate::show::style::{Ink, Style, columns};
use crate::top::pane::Pane;
use crate::top::state::{Mode, State};

/// What we are, where we look, and of when the picture is.
pub(super) fn head(style: Style, state: &State) -> Line<'static> {
    let name = "standpipe top  ";
    let when = when(style, state);
    let room = style.width.saturating_sub(name.len() + columns(&when) + 2);
    let place = fit(style, &state.place, room);
    let gap = room.saturating_sub(columns(&place)) + 2;
    let when_ink = if state.is_frozen() { Ink::Short } else { Ink::Dim };
    Line::from(vec![
        span(style, Ink::Bold, name),
        Span::raw(place),
        Span::raw(" ".repeat(gap)),
        span(style, when_ink, when),
    ])
}

fn when(style: Style, state: &State) -> String {
    let pools = state.picture.as_ref().map(|picture| &picture.seen.pools);
    let at = pools.and_then(|pools| pools.iter().map(|pool| pool.at).max());
    let at = at.map(|at| at.to_string());
    let clock = at.as_deref().and_then(|at| at.get(11..19)).map(|clock| format!("{clock}Z"));
    let mut words: Vec<String> = clock.into_iter().collect();
    let old = state.taken.map(|taken| taken.elapsed()).unwrap_or_default();
    if state.is_frozen() {
        words.push("frozen".to_owned());
    } else {
        words.push(format!("every {}", length(millis(state.interval))));
    }
    if old > (state.interval * 2).max(Duration::from_secs(3)) {
        words.push(format!("{} old", length(old.as_secs() * 1_000)));
    }
    words.join(style.dot())
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The panes with how much is in each, and the filter.
pub(super) fn tabs(style: Style, state: &State) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, pane) in (1..).zip(Pane::ALL) {
        let text = format!(" {number} {} {} ", pane.name(), count(state, pane));
        let chosen = Look::new().add_modifier(Modifier::REVERSED);
        let look = if pane == state.pane { chosen } else { Look::new() };
        spans.push(Span::styled(text, look));
    }
    if !state.filter.is_empty() && state.mode != Mode::Filter {
        spans.push(span(style, Ink::Short, format!("  only `{}`", state.filter)));
    }
    Line::from(spans)
}

/// How many there are in all, whatever is shown of them.
fn count(state: &State, pane: Pane) -> usize {
    let Some(picture) = &state.picture else { return 0 };
    let sum = |of: fn(&PoolStatus) -> usize| picture.seen.pools.iter().map(of).sum();
    match pane {
        Pane::Pools => picture.seen.pools.len(),
        Pane::Leases => sum(|pool| pool.in_flight),
        Pane::Queue => sum(|pool| pool.waiting),
        Pane::Agents => sum(|pool| pool.agents.len()),
        Pane::Events => picture.events.len(),
    }
}

/// That nothing new is to be seen, and why.
pub(super) fn away(style: Style, state: &State) -> Option<Line<'static>> {
    let why = state.away.as_ref()?;
    let text = fit(style, &format!("away, trying again: {why}"), style.width);
    let look = look(style, Ink::Bad).add_modifier(Modifier::BOLD);
    Some(Line::from(Span::styled(text, look)))
}

/// The title of a pane: its name, its order, and a rule to the edge.
pub(super) fn title(style: Style, state: &State, pane: Pane) -> Line<'static> {
    let order = pane.said(state.order(pane));
    let shown = state.rows(pane).len();
    let all = count(state, pane);
    let cut = if shown < all { format!(" {shown} of {all}") } else { String::new() };
    rule(style, &format!("{}{cut}, {order}", pane.name()), pane == state.pane)
}

pub(super) fn rule(style: Style, text: &str, bold: bool) -> Line<'static> {
    let dash = if style.unicode { "─" } else { "-" };
    let before = dash.repeat(2);
    let after = dash.repeat(style.width.saturating_sub(columns(text) + 4));
    let ink = if bold { Ink::Bold } else { Ink::Dim };
    Line::from(vec![
        span(style, Ink::Dim, format!("{before} ")),
        span(style, ink, text),
        span(style, Ink::Dim, format!(" {after}")),
    ])
}

/// What is asked, or what came of what was done.
pub(super) fn said(style: Style, state: &State) -> Line<'static> {
    let cursor = if style.unicode { "▏" } else { "_" };
    let plain = |text: String| Line::from(fit(style, &text, style.width));
    match &state.mode {
        Mode::Filter => plain(format!("show only what has in it: {}{cursor}", state.filter)),
        // What was typed wrong is told where it is typed.
        Mode::Pause { .. } if state.said.is_some() => told(style, state),
        Mode::Pause { pool, text } => plain(format!("pause {pool} for how long? {text}{cursor}")),
        Mode::Settle { about, .. } => plain(format!("settle the lease of {about}? y/n")),
        Mode::Look | Mode::Help => told(style, state),
    }
}

fn told(style: Style, state: &State) -> Line<'static> {
    let Some(said) = &state.said else { return Line::default() };
    let ink = if said.wrong { Ink::Bad } else { Ink::Good };
    Line::from(span(style, ink, fit(style, &said.text, style.width)))
}

/// What can be pressed.
pub(super) fn keys(style: Style, state: &State) -> Line<'static> {
    let arrows = if style.unicode { "↑↓" } else { "jk" };
    let text = match &state.mode {
        Mode::Look => format!(
            "{arrows} row  Tab pane  s sort  / filter  p pause  r resume  x settle  ? help  q quit"
        ),
        Mode::Help => "any key goes back".to_owned(),
        Mode::Filter => "pool, agent, model or task  Enter keeps it  Esc shows all".to_owned(),
        Mode::Pause { .. } => {
            "nobody is admitted meanwhile; such as 30s, 5min, 2h  Enter pauses  Esc does not".into()
        }
        Mode::Settle { .. } => {
            "it counts at its estimate and its place is free; a running call is not stopped".into()
        }
    };
    Line::from(span(style, Ink::Dim, fit(style, &text, style.width)))
}

/// A text within so many columns.
pub(super) fn fit(style: Style, text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let (dots, wide) = if style.unicode { ("…", 1) } else { ("...", 3) };
    let kept: String = text.chars().take(room.saturating_sub(wide)).collect();
    format!("{kept}{dots}")
}

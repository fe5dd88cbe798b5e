//! The lines around the panes: header, tabs, titles, status line, key hints.

use std::time::Duration;

use ratatui::style::{Modifier, Style as TuiStyle};
use ratatui::text::{Line, Span};
use standpipe::PoolStatus;

use super::roles::{span, tui_style};
use crate::show::duration::length;
use crate::show::local_time::clock_only;
use crate::show::style::{Style, TextRole, columns};
use crate::top::pane::Pane;
use crate::top::state::{Mode, State};

/// The header: program, source, and the time of the data.
pub(super) fn header(style: Style, state: &State) -> Line<'static> {
    let name = "standpipe top  ";
    let when = when(style, state);
    let room = style.width.saturating_sub(name.len() + columns(&when) + 2);
    let place = truncate(style, &state.location, room);
    let gap = room.saturating_sub(columns(&place)) + 2;
    let when_role = if state.is_frozen() { TextRole::Warning } else { TextRole::Muted };
    Line::from(vec![
        span(style, TextRole::Title, name),
        Span::raw(place),
        Span::raw(" ".repeat(gap)),
        span(style, when_role, when),
    ])
}

fn when(style: Style, state: &State) -> String {
    let pools = state.data.as_ref().map(|data| &data.snapshot.pools);
    let at = pools.and_then(|pools| pools.iter().map(|pool| pool.at).max());
    let mut words: Vec<String> = at.map(clock_only).into_iter().collect();
    let old = state.fetched_at.map(|at| at.elapsed()).unwrap_or_default();
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

/// The tabs: panes with their number of rows, and the filter.
pub(super) fn tabs(style: Style, state: &State) -> Line<'static> {
    let mut spans = Vec::new();
    let is_filtered = !state.filter.is_empty() && state.mode != Mode::Filter;
    let filter = if is_filtered { format!(" only `{}`", state.filter) } else { String::new() };
    let tab = |(number, pane): (usize, Pane)| {
        format!(" {number} {} {} ", pane.name(), count(state, pane))
    };
    let whole: usize = (1..).zip(Pane::ALL).map(tab).map(|text| columns(&text)).sum();
    // With a filter the numbers of the panes make room for it.
    let is_tight = whole + columns(&filter) > style.width;
    for (number, pane) in (1..).zip(Pane::ALL) {
        let text = match is_tight {
            true => format!(" {number} {} ", pane.name()),
            false => tab((number, pane)),
        };
        let selected = TuiStyle::new().add_modifier(Modifier::REVERSED);
        let tab = if pane == state.pane { selected } else { TuiStyle::new() };
        spans.push(Span::styled(text, tab));
    }
    if is_filtered {
        let room = style.width.saturating_sub(spans.iter().map(Span::width).sum());
        spans.push(span(style, TextRole::Warning, truncate(style, &filter, room)));
    }
    Line::from(spans)
}

/// Counts the rows of a pane, without the filter.
fn count(state: &State, pane: Pane) -> usize {
    let Some(data) = &state.data else { return 0 };
    let sum = |of: fn(&PoolStatus) -> usize| data.snapshot.pools.iter().map(of).sum();
    match pane {
        Pane::Pools => data.snapshot.pools.len(),
        Pane::Leases => sum(|pool| pool.in_flight),
        Pane::Queue => sum(|pool| pool.waiting),
        Pane::Agents => sum(|pool| pool.agents.len()),
        Pane::Events => data.events.len(),
        Pane::Proxied => data.proxied.as_ref().map_or(0, Vec::len),
    }
}

/// The line that says why the source is unavailable, or that the daemon rejected a file.
pub(super) fn notice(style: Style, state: &State) -> Option<Line<'static>> {
    let rejected = || {
        let rejected = state.data.as_ref()?.snapshot.config_rejected.as_ref()?;
        let at = clock_only(rejected.at);
        Some(format!("the daemon rejected a configuration at {at}; `standpipe status` has why"))
    };
    let unavailable = state.unavailable.as_ref();
    let text = unavailable.map(|why| format!("unavailable, retrying: {why}")).or_else(rejected)?;
    let bold = tui_style(style, TextRole::Error).add_modifier(Modifier::BOLD);
    Some(Line::from(Span::styled(truncate(style, &text, style.width), bold)))
}

/// The title of a pane: name, sort order, and a rule to the edge.
pub(super) fn title(style: Style, state: &State, pane: Pane) -> Line<'static> {
    let order = pane.order_label(state.order(pane));
    let shown = state.rows(pane).len();
    let all = count(state, pane);
    let cut = if shown < all { format!(" {shown} of {all}") } else { String::new() };
    rule(style, &format!("{}{cut}, {order}", pane.name()), pane == state.pane)
}

pub(super) fn rule(style: Style, text: &str, bold: bool) -> Line<'static> {
    let dash = if style.unicode { "─" } else { "-" };
    let before = dash.repeat(2);
    let after = dash.repeat(style.width.saturating_sub(columns(text) + 4));
    let role = if bold { TextRole::Title } else { TextRole::Muted };
    Line::from(vec![
        span(style, TextRole::Muted, format!("{before} ")),
        span(style, role, text),
        span(style, TextRole::Muted, format!(" {after}")),
    ])
}

/// The status line: a prompt, or the last message.
pub(super) fn status_line(style: Style, state: &State) -> Line<'static> {
    let cursor = if style.unicode { "▏" } else { "_" };
    let plain = |text: String| Line::from(truncate(style, &text, style.width));
    match &state.mode {
        Mode::Filter => plain(format!("filter: {}{cursor}", state.filter)),
        // An invalid input is reported in place of its prompt.
        Mode::Pause { .. } if state.message.is_some() => message(style, state),
        Mode::Pause { pool, text, .. } => {
            plain(format!("pause {pool} for how long? {text}{cursor}"))
        }
        Mode::Resume { pool } => plain(format!("resume {pool}? y/n")),
        Mode::Settle { about, .. } => plain(format!("settle the lease of {about}? y/n")),
        Mode::Browse | Mode::Help => message(style, state),
    }
}

fn message(style: Style, state: &State) -> Line<'static> {
    let Some(message) = &state.message else { return Line::default() };
    let role = if message.is_error { TextRole::Error } else { TextRole::Good };
    Line::from(span(style, role, truncate(style, &message.text, style.width)))
}

/// The keys of the current mode.
pub(super) fn key_hints(style: Style, state: &State) -> Line<'static> {
    let arrows = if style.unicode { "↑↓" } else { "jk" };
    let text = match &state.mode {
        Mode::Browse => {
            let all = "s sort  / filter  p pause  r resume  x settle";
            // The help has the keys that a narrow screen has no room for.
            let fits = |keys: &&str| columns(arrows) + columns(keys) + 32 <= style.width;
            let keys = [all, "/ filter  p pause", "/ filter"].into_iter().find(fits);
            match keys {
                Some(keys) => format!("{arrows} row  Tab pane  {keys}  ? help  q quit"),
                None => "? help  q quit".to_owned(),
            }
        }
        Mode::Help => "Esc returns; every key does what it says here".to_owned(),
        Mode::Filter => "pool, agent, model or task  Enter keeps it  Esc shows all".to_owned(),
        Mode::Pause { .. } => {
            "no call is admitted meanwhile; such as 30s, 5min, 2h  Enter pauses  Esc cancels".into()
        }
        Mode::Resume { .. } => "the provider refused calls and may refuse again".to_owned(),
        Mode::Settle { .. } => {
            "it is charged its estimate and frees its slot; a running call is not stopped".into()
        }
    };
    Line::from(span(style, TextRole::Muted, truncate(style, &text, style.width)))
}

/// Truncates a text to `room` columns.
pub(super) fn truncate(style: Style, text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let (dots, wide) = if style.unicode { ("…", 1) } else { ("...", 3) };
    let kept: String = text.chars().take(room.saturating_sub(wide)).collect();
    format!("{kept}{dots}")
}

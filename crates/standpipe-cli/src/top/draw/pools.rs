//! The pane of pools: each with its state and a bar per limit. If they do not fit, only the
//! selected pool is shown in full.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span, Text};
use standpipe::observe::{PoolState, share};
use standpipe::{PoolStatus, Snapshot};

use super::chrome::truncate;
use super::roles::{line, span, tui_style};
use crate::show::bar::{bar, usage_role};
use crate::show::duration::remaining;
use crate::show::status::{backpressure, brief, leases, state_role, summary, users};
use crate::show::style::{Style, TextRole, columns};
use crate::top::pane::Pane;
use crate::top::rows::{Row, tightest};
use crate::top::state::State;

/// Of the selected pool at least so many lines about its users are shown, before other pools.
const LEAST_USERS: usize = 6;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, style: Style, state: &mut State) {
    let Some(data) = &state.data else { return };
    let height = usize::from(area.height);
    let rows = state.rows(Pane::Pools);
    let selected = state.selected(Pane::Pools, &rows);
    let focus = state.pane == Pane::Pools;
    let pools = rows.iter().filter_map(|row| if let Row::Pool(p) = row { Some(*p) } else { None });
    let notes = notes(style, &data.snapshot);
    let whole: Vec<Vec<Line<'static>>> = pools
        .clone()
        .enumerate()
        .map(|(at, pool)| full(style, pool, at == selected && focus))
        .collect();
    let lines: usize = whole.iter().map(Vec::len).sum::<usize>() + notes.len();
    let users: Vec<Vec<Line<'static>>> = pools
        .clone()
        .map(|pool| users(style, pool).iter().map(|text| line(text)).collect())
        .collect();
    let blocks: Vec<Vec<Line<'static>>> = if lines <= height {
        let mut users = fitting(style, users, selected, height - lines);
        let left = height - lines - users.iter().map(Vec::len).sum::<usize>();
        add_holders(style, &mut users, &pools.clone().collect::<Vec<_>>(), selected, left);
        whole.into_iter().zip(users).map(|(whole, users)| [whole, users].concat()).collect()
    } else {
        let names = pools.clone().map(|pool| columns(&pool.pool)).max().unwrap_or(0);
        let name_room = names.min((style.width / 3).max(16));
        let short = |pool| vec![short(style, pool, name_room)];
        let its = pools.clone().nth(selected).map(|pool| compact(style, pool, focus));
        let its = its.unwrap_or_default();
        let others = whole.len().saturating_sub(1) + notes.len();
        let room = height.saturating_sub(its.len() + others).max(LEAST_USERS);
        let its_users = users.into_iter().skip(selected).take(1).collect();
        let mut its_users = fitting(style, its_users, 0, room);
        let taken = its.len() + others + its_users.iter().map(Vec::len).sum::<usize>();
        let left = height.saturating_sub(taken);
        let its_pool: Vec<&PoolStatus> = pools.clone().skip(selected).take(1).collect();
        add_holders(style, &mut its_users, &its_pool, 0, left);
        let its_users = its_users.concat();
        let block = |(at, pool)| match at == selected {
            true => [its.clone(), its_users.clone()].concat(),
            false => short(pool),
        };
        pools.enumerate().map(block).collect()
    };
    let before: usize = blocks.iter().take(selected).map(Vec::len).sum();
    let its = blocks.get(selected).map_or(0, Vec::len);
    let is_last = selected + 1 >= blocks.len();
    let all: Vec<Line<'static>> = blocks.into_iter().flatten().chain(notes).collect();
    // The notes below the pools scroll with the last pool.
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

/// Returns the lines of each pool's users that fit: those of the selected pool first. The last line
/// counts what was left out.
fn fitting(
    style: Style,
    mut users: Vec<Vec<Line<'static>>>,
    selected: usize,
    mut room: usize,
) -> Vec<Vec<Line<'static>>> {
    let others = (0..users.len()).filter(|at| *at != selected);
    for at in std::iter::once(selected).chain(others) {
        let Some(own) = users.get_mut(at) else { continue };
        if own.len() > room {
            let left_out = own.len() + 1 - room.max(1);
            own.truncate(room.saturating_sub(1));
            let more =
                format!("           {left_out} more lines: press 3 for the queue, 4 for agents");
            own.extend((room > 0).then(|| Line::from(span(style, TextRole::Muted, more))));
        }
        room -= own.len();
    }
    users
}

/// Adds the calls in flight with their processes, where all of a pool's fit in the room that is
/// left: first those of the selected pool.
fn add_holders(
    style: Style,
    users: &mut [Vec<Line<'static>>],
    pools: &[&PoolStatus],
    selected: usize,
    mut room: usize,
) {
    let others = (0..users.len()).filter(|at| *at != selected);
    for at in std::iter::once(selected).chain(others) {
        let (Some(own), Some(pool)) = (users.get_mut(at), pools.get(at)) else { continue };
        let holders = leases(style, &pool.leases);
        if holders.len() <= room {
            room -= holders.len();
            own.extend(holders.iter().map(|text| line(text)));
        }
    }
}

/// Returns the first visible line such that `from..to` is visible, scrolling as little as possible.
pub(super) fn keep_in_view(first: usize, height: usize, from: usize, to: usize) -> usize {
    let first = if to > first + height { to - height } else { first };
    first.min(from)
}

fn full(style: Style, pool: &PoolStatus, selected: bool) -> Vec<Line<'static>> {
    let mut lines = vec![heading(style, pool, selected)];
    lines.extend(summary(style, pool).iter().map(|text| line(text)));
    lines
}

/// A pool that does not fit with the others in full: who uses it and who waits matter more than
/// remarks about limits.
fn compact(style: Style, pool: &PoolStatus, selected: bool) -> Vec<Line<'static>> {
    let mut lines = vec![heading(style, pool, selected)];
    lines.extend(brief(style, pool).iter().map(|text| line(text)));
    lines
}

fn heading(style: Style, pool: &PoolStatus, selected: bool) -> Line<'static> {
    let mut about = labels(style, pool);
    about.extend(calls(pool));
    let wide: usize = about.iter().map(Span::width).sum();
    let dots = about.len().saturating_sub(1) * columns(style.dot());
    let room = style.width.saturating_sub(wide + dots + 3);
    let name = truncate(style, &pool.pool, room);
    let gap = room.saturating_sub(columns(&name)) + 1;
    let mut spans = named(style, name, selected);
    spans.push(Span::raw(" ".repeat(gap)));
    for (at, remark) in about.into_iter().enumerate() {
        if at > 0 {
            spans.push(span(style, TextRole::Muted, style.dot()));
        }
        spans.push(remark);
    }
    Line::from(spans)
}

fn named(style: Style, name: String, selected: bool) -> Vec<Span<'static>> {
    let bold = tui_style(style, TextRole::Title);
    match selected {
        true => vec![Span::raw("> "), Span::styled(name, bold.add_modifier(Modifier::REVERSED))],
        false => vec![Span::raw("  "), Span::styled(name, bold)],
    }
}

/// Counts the calls in flight and waiting, if any.
fn calls(pool: &PoolStatus) -> impl Iterator<Item = Span<'static>> {
    let counts = [(pool.in_flight, "in flight"), (pool.waiting, "waiting")];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| Span::raw(format!("{count} {what}")))
}

/// Returns the worst state of a pool, how long a pause lasts, and the zone if little is left.
fn labels(style: Style, pool: &PoolStatus) -> Vec<Span<'static>> {
    let state = pool.state();
    let text = match (state, &pool.pause) {
        (PoolState::Paused, Some(pause)) => format!("paused {}", remaining(pause.for_ms)),
        _ => state.as_str().to_owned(),
    };
    let mut labels = vec![span(style, state_role(state), text)];
    if pool.zone.as_str() != "green" {
        labels.push(span(style, zone(pool.zone.as_str()), pool.zone.as_str()));
    }
    if !pool.enforce {
        labels.push(span(style, TextRole::Muted, "shadow mode"));
    }
    labels
}

const fn zone(word: &str) -> TextRole {
    match word.as_bytes() {
        b"amber" => TextRole::Warning,
        b"red" => TextRole::Error,
        _ => TextRole::Good,
    }
}

/// A pool on one line: name, how full it is, state and calls, and last which limit is the fullest.
fn short(style: Style, pool: &PoolStatus, name_room: usize) -> Line<'static> {
    let name = shortened(style, &pool.pool, name_room);
    let mut spans = vec![Span::raw(format!("  {name:<name_room$} "))];
    let fullest = tightest(pool);
    match fullest {
        Some((limit, thousandths)) => {
            let (used, held) = match limit.kind.as_str() {
                "parallel" => (limit.used.saturating_add(limit.held), 0),
                _ => (limit.used, limit.held),
            };
            spans.extend(line(&bar(style, 10, used, held, limit.effective)).spans);
            let taken = limit.used.saturating_add(limit.held);
            let text = format!(" {:>5}", share(thousandths.into(), 1_000));
            spans.push(span(style, usage_role(taken, limit.effective), text));
        }
        None => spans.push(span(style, TextRole::Muted, "no limits known yet")),
    }
    // On one line the number of calls says whether the pool is busy.
    let is_usual = matches!(pool.state(), PoolState::Active | PoolState::Idle);
    let labels = labels(style, pool).into_iter().enumerate().skip(usize::from(is_usual));
    let labels = labels.map(|(at, label)| (if at == 0 { 0 } else { 3 }, label));
    let calls =
        calls(pool).map(|call| (if call.content.ends_with("waiting") { 1 } else { 2 }, call));
    let which = fullest.map(|(limit, _)| (4, span(style, TextRole::Muted, limit.limit.clone())));
    let dot = span(style, TextRole::Muted, style.dot());
    let room = style.width.saturating_sub(spans.iter().map(Span::width).sum());
    for remark in most_important(labels.chain(calls).chain(which).collect(), dot.width(), room) {
        spans.extend([dot.clone(), remark]);
    }
    Line::from(spans)
}

/// Returns the remarks that fit, in their order. Half a remark says less than none, so those of the
/// highest rank are left out.
fn most_important(
    mut remarks: Vec<(u8, Span<'static>)>,
    gap: usize,
    room: usize,
) -> impl Iterator<Item = Span<'static>> {
    let width =
        |all: &[(u8, Span<'_>)]| all.iter().map(|(_, one)| gap + one.width()).sum::<usize>();
    while width(&remarks) > room {
        let ranks = remarks.iter().enumerate().map(|(at, (rank, _))| (*rank, at));
        let Some((_, least)) = ranks.max() else { break };
        remarks.remove(least);
    }
    remarks.into_iter().map(|(_, remark)| remark)
}

/// Cuts a name in the middle: names of pools often differ at the end.
fn shortened(style: Style, name: &str, room: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= room || room < 5 {
        return truncate(style, name, room);
    }
    let (head, tail) = ((room - 1) / 2, room / 2);
    let ellipsis = if style.unicode { '…' } else { '~' };
    let kept = chars.iter().take(head).chain([&ellipsis]);
    kept.chain(chars.iter().skip(chars.len() - tail)).collect()
}

/// Notes on unreadable pools, lost ledgers and on back-pressure.
fn notes(style: Style, snapshot: &Snapshot) -> Vec<Line<'static>> {
    let unread = snapshot.unreadable.iter().map(|one| {
        let text = format!("  `{}` cannot be read: {}", one.pool, one.detail);
        Line::from(span(style, TextRole::Error, text))
    });
    let lost = snapshot.lost.iter().map(|lost| {
        let text = format!("  `{}`: {}; {}", lost.pool, lost.what(), lost.remedy());
        Line::from(span(style, TextRole::Error, text))
    });
    let pressed = backpressure(&snapshot.backpressure);
    let pressed = pressed.lines().filter(|line| !line.is_empty());
    unread
        .chain(lost)
        .chain(pressed.map(|text| Line::from(span(style, TextRole::Warning, format!("  {text}")))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { colour: false, unicode: true, width: 80 };

    #[test]
    fn long_names_differ_at_the_end() {
        assert_eq!(shortened(PLAIN, "prov0/model-with-a-long-name-17", 16), "prov0/m…-name-17");
        assert_eq!(shortened(PLAIN, "my/api", 16), "my/api");
    }

    #[test]
    fn users_that_do_not_fit_are_counted_and_the_selected_pool_comes_first() {
        let lines = |count: usize| vec![Line::from("user"); count];
        let fit = |room| {
            let all = fitting(PLAIN, vec![lines(2), lines(5), lines(1)], 1, room);
            all.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(fit(8), [2, 5, 1]);
        assert_eq!(fit(6), [1, 5, 0]);
        assert_eq!(fit(3), [0, 3, 0]);
        assert_eq!(fit(0), [0, 0, 0]);
        let cut = fitting(PLAIN, vec![lines(5)], 0, 3);
        assert!(cut[0][2].to_string().contains("3 more lines"), "{cut:?}");
    }
}

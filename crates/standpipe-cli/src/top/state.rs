//! The state of the view and how keys change it.
//!
//! Pure: a key returns an [`Effect`] for whatever must happen outside. `draw` renders the state.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use standpipe::{LeaseId, PoolStatus};

use super::data::ViewData;
use super::pane::{Order, PANES, Pane};
use super::rows::{Row, rows};
use super::source::{Action, Done};
use crate::args::parse;
use crate::show::duration::length;

/// The suggested length of a pause.
const DEFAULT_PAUSE: &str = "1min";
/// The longest input, in bytes.
const MAX_INPUT: usize = 64;

/// What must happen outside the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    Quit,
    Suspend,
    Redraw,
    Perform(Action),
}

/// What the keys do at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    Help,
    /// Editing the filter.
    Filter,
    /// Editing the length of a pause.
    Pause {
        pool: String,
        text: String,
        /// The text is the suggested length: the first character replaces it.
        is_suggested: bool,
    },
    /// Confirming that a pool is resumed although the provider refused calls.
    Resume {
        pool: String,
    },
    /// Confirming that a lease is settled.
    Settle {
        lease: LeaseId,
        agent: String,
        about: String,
    },
}

/// The result of an action or a key, on the status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusMessage {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// The selected row of a pane.
#[derive(Clone, Debug, Default)]
struct Selection {
    at: usize,
    key: Option<String>,
}

/// The state of the view.
#[derive(Debug)]
pub(super) struct State {
    pub(super) location: String,
    pub(super) interval: Duration,
    pub(super) pane: Pane,
    /// The list below the pools, on a tall screen.
    pub(super) lower: Pane,
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) message: Option<StatusMessage>,
    /// Why the source is unavailable.
    pub(super) unavailable: Option<String>,
    pub(super) data: Option<ViewData>,
    /// When the data was fetched.
    pub(super) fetched_at: Option<Instant>,
    /// While the view is frozen: the latest data, shown when it is unfrozen.
    frozen: Option<Option<(ViewData, Instant)>>,
    orders: [usize; PANES],
    selection: [Selection; PANES],
    /// The first visible row or line of each pane. Set by drawing.
    pub(super) scroll: [usize; PANES],
    /// The number of visible rows. Set by drawing.
    pub(super) page: usize,
}

impl State {
    pub(super) fn new(location: String, interval: Duration) -> Self {
        Self {
            location,
            interval,
            pane: Pane::Pools,
            lower: Pane::Leases,
            filter: String::new(),
            mode: Mode::Browse,
            message: None,
            unavailable: None,
            data: None,
            fetched_at: None,
            frozen: None,
            orders: [0; PANES],
            selection: Default::default(),
            scroll: [0; PANES],
            page: 10,
        }
    }

    /// Whether the view is frozen.
    pub(super) const fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Returns the sort order of a pane.
    pub(super) fn order(&self, pane: Pane) -> Order {
        let orders = pane.orders();
        let at = self.orders.get(pane.index()).copied().unwrap_or(0) % orders.len().max(1);
        orders.get(at).copied().unwrap_or(Order::Unsorted)
    }

    /// Returns the rows of a pane as they are shown.
    pub(super) fn rows(&self, pane: Pane) -> Vec<Row<'_>> {
        let data = self.data.as_ref();
        data.map_or_else(Vec::new, |data| rows(data, pane, self.order(pane), &self.filter))
    }

    /// Returns the index of the selected row: the same row wherever it is now, else the row at its
    /// old index.
    pub(super) fn selected(&self, pane: Pane, rows: &[Row<'_>]) -> usize {
        let last = rows.len().saturating_sub(1);
        let Some(selection) = self.selection.get(pane.index()) else { return 0 };
        let Some(key) = &selection.key else { return selection.at.min(last) };
        let same = rows.iter().enumerate().filter(|(_, row)| row.key() == *key);
        let nearest = same.map(|(at, _)| at).min_by_key(|at| at.abs_diff(selection.at));
        nearest.unwrap_or_else(|| selection.at.min(last))
    }

    /// A fetch ended.
    pub(super) fn on_fetched(&mut self, fetched: Result<ViewData, String>) {
        match fetched {
            Ok(data) => {
                self.unavailable = None;
                match &mut self.frozen {
                    Some(latest) => *latest = Some((data, Instant::now())),
                    None => self.show(data, Instant::now()),
                }
            }
            Err(error) => self.unavailable = Some(error),
        }
    }

    fn show(&mut self, data: ViewData, fetched_at: Instant) {
        self.data = Some(data);
        self.fetched_at = Some(fetched_at);
    }

    /// An action ended.
    pub(super) fn on_action_done(&mut self, done: Result<Done, String>) {
        self.message = Some(match done {
            Ok(done) => StatusMessage { text: self.outcome_text(&done), is_error: false },
            Err(text) => StatusMessage { text, is_error: true },
        });
    }

    fn outcome_text(&self, done: &Done) -> String {
        if let Done(Action::Pause { pool, ms }) = done
            && let Some(pause) = self.pool(pool).and_then(|pool| pool.pause.as_ref())
            && pause.for_ms > *ms
        {
            let left = length(pause.for_ms);
            return format!("`{pool}` stays paused for {left}: a pause is never shortened by one");
        }
        done.to_string()
    }

    fn pool(&self, name: &str) -> Option<&PoolStatus> {
        let pools = self.data.as_ref().map(|data| &data.snapshot.pools);
        pools.into_iter().flatten().find(|pool| *pool.pool == *name)
    }

    /// Handles a key.
    pub(super) fn update(&mut self, key: KeyEvent) -> Effect {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Effect::Quit,
                KeyCode::Char('z') => return Effect::Suspend,
                KeyCode::Char('l') => return Effect::Redraw,
                KeyCode::Char('u') => {
                    self.edit(String::clear);
                    return Effect::Nothing;
                }
                _ => return Effect::Nothing,
            }
        }
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => self.browse(key.code),
            Mode::Help => self.leave_help(key.code),
            Mode::Filter => self.filter(key.code),
            Mode::Pause { pool, text, is_suggested } => {
                self.pause(key.code, pool, text, is_suggested)
            }
            Mode::Resume { pool } => self.confirm_resume(key.code, pool),
            Mode::Settle { lease, agent, about } => self.settle(key.code, lease, agent, about),
        }
    }

    fn edit(&mut self, change: impl FnOnce(&mut String)) {
        match &mut self.mode {
            Mode::Filter => change(&mut self.filter),
            Mode::Pause { text, .. } => change(text),
            _ => {}
        }
    }

    fn browse(&mut self, key: KeyCode) -> Effect {
        self.message = None;
        match key {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.mode = Mode::Help,
            KeyCode::Up | KeyCode::Char('k') => self.select(|at, _, _| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(|at, _, _| at.saturating_add(1)),
            KeyCode::PageUp => self.select(|at, page, _| at.saturating_sub(page)),
            KeyCode::PageDown => self.select(|at, page, _| at.saturating_add(page)),
            KeyCode::Home | KeyCode::Char('g') => self.select(|_, _, _| 0),
            KeyCode::End | KeyCode::Char('G') => self.select(|_, _, last| last),
            KeyCode::Tab | KeyCode::Right => self.focus(self.pane.step(1)),
            KeyCode::BackTab | KeyCode::Left => self.focus(self.pane.step(Pane::ALL.len() - 1)),
            KeyCode::Char(digit @ '1'..='6') => {
                let at = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
                self.focus(Pane::ALL.get(at).copied().unwrap_or(self.pane));
            }
            KeyCode::Char('s') => {
                if let Some(order) = self.orders.get_mut(self.pane.index()) {
                    *order = (*order + 1) % self.pane.orders().len().max(1);
                }
                let (pane, order) = (self.pane, self.order(self.pane));
                self.info(format!("{}: {}", pane.name(), pane.order_label(order)));
            }
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char(' ') => self.toggle_freeze(),
            KeyCode::Char('p') => self.ask_for_pause(),
            KeyCode::Char('r') => return self.resume(),
            KeyCode::Char('x') => self.ask_to_settle(),
            KeyCode::Char(c) => self.info(format!("`{c}` has no meaning here; ? lists the keys")),
            _ => {}
        }
        Effect::Nothing
    }

    /// Leaves the help page. A key of the view does what it does elsewhere.
    fn leave_help(&mut self, key: KeyCode) -> Effect {
        match key {
            KeyCode::Char('?' | 'h' | ' ') | KeyCode::F(1) | KeyCode::Esc | KeyCode::Enter => {
                Effect::Nothing
            }
            key => self.browse(key),
        }
    }

    fn focus(&mut self, pane: Pane) {
        self.pane = pane;
        if pane != Pane::Pools {
            self.lower = pane;
        }
    }

    /// Selects the row that `to` returns for the current row, the page size and the last row.
    fn select(&mut self, to: impl FnOnce(usize, usize, usize) -> usize) {
        let rows = self.rows(self.pane);
        let last = rows.len().saturating_sub(1);
        let at = to(self.selected(self.pane, &rows), self.page.max(1), last).min(last);
        let key = rows.get(at).map(|row| row.key());
        if let Some(selection) = self.selection.get_mut(self.pane.index()) {
            *selection = Selection { at, key };
        }
    }

    fn toggle_freeze(&mut self) {
        match self.frozen.take() {
            None => self.frozen = Some(None),
            Some(Some((data, fetched_at))) => self.show(data, fetched_at),
            Some(None) => {}
        }
    }

    /// Returns the selected row of the focused pane.
    fn selected_row(&self) -> Option<Row<'_>> {
        let rows = self.rows(self.pane);
        rows.get(self.selected(self.pane, &rows)).copied()
    }

    fn ask_for_pause(&mut self) {
        match self.selected_row().and_then(Row::pool).map(str::to_owned) {
            Some(pool) => {
                let text = DEFAULT_PAUSE.to_owned();
                self.mode = Mode::Pause { pool, text, is_suggested: true };
            }
            None => self.error("no pool is selected: select one with the arrow keys"),
        }
    }

    fn resume(&mut self) -> Effect {
        match self.selected_row().and_then(Row::pool).map(str::to_owned) {
            Some(pool) if self.pool(&pool).is_some_and(is_by_provider) => {
                self.mode = Mode::Resume { pool };
                Effect::Nothing
            }
            Some(pool) if self.pool(&pool).is_some_and(is_resumable) => {
                self.info(format!("resuming `{pool}` …"));
                Effect::Perform(Action::Resume { pool })
            }
            Some(pool) => {
                self.info(format!("`{pool}` is not paused: there is nothing to resume"));
                Effect::Nothing
            }
            None => {
                self.error("no pool is selected: select one with the arrow keys");
                Effect::Nothing
            }
        }
    }

    fn ask_to_settle(&mut self) {
        let Some(Row::Lease(pool, lease)) = self.selected_row() else {
            let what = if self.pane == Pane::Leases { "there is no lease" } else { "press 2" };
            let wanted = "a lease is settled in the pane of leases";
            return self.error(&format!("{wanted}: {what}"));
        };
        let about = format!("{} on {}, {} old", lease.agent, pool.pool, length(lease.age_ms));
        let (lease, agent) = (lease.id.clone(), lease.agent.clone());
        self.mode = Mode::Settle { lease, agent, about };
    }

    fn filter(&mut self, key: KeyCode) -> Effect {
        self.mode = Mode::Filter;
        match key {
            KeyCode::Enter => self.mode = Mode::Browse,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Browse;
            }
            key => edit_text(&mut self.filter, key),
        }
        Effect::Nothing
    }

    fn pause(
        &mut self,
        key: KeyCode,
        pool: String,
        mut text: String,
        is_suggested: bool,
    ) -> Effect {
        match key {
            KeyCode::Esc => self.info(format!("`{pool}` is not paused")),
            KeyCode::Enter => match parse_pause(&text) {
                Ok(ms) => {
                    self.info(format!("pausing `{pool}` …"));
                    return Effect::Perform(Action::Pause { pool, ms });
                }
                Err(wrong) => {
                    self.error(&wrong);
                    self.mode = Mode::Pause { pool, text, is_suggested: false };
                }
            },
            key => {
                self.message = None;
                if is_suggested && matches!(key, KeyCode::Char(_)) {
                    text.clear();
                }
                edit_text(&mut text, key);
                self.mode = Mode::Pause { pool, text, is_suggested: false };
            }
        }
        Effect::Nothing
    }

    fn settle(&mut self, key: KeyCode, lease: LeaseId, agent: String, about: String) -> Effect {
        match key {
            KeyCode::Char('y' | 'Y') => {
                self.info(format!("settling the lease of {agent} …"));
                return Effect::Perform(Action::Settle { lease, agent });
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                self.info("nothing was settled".to_owned());
            }
            _ => self.mode = Mode::Settle { lease, agent, about },
        }
        Effect::Nothing
    }

    fn confirm_resume(&mut self, key: KeyCode, pool: String) -> Effect {
        match key {
            KeyCode::Char('y' | 'Y') => {
                self.info(format!("resuming `{pool}` …"));
                return Effect::Perform(Action::Resume { pool });
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                self.info(format!("`{pool}` stays as it is"));
            }
            _ => self.mode = Mode::Resume { pool },
        }
        Effect::Nothing
    }

    fn info(&mut self, text: String) {
        self.message = Some(StatusMessage { text, is_error: false });
    }

    fn error(&mut self, text: &str) {
        self.message = Some(StatusMessage { text: text.to_owned(), is_error: true });
    }
}

/// Whether the provider refused calls, and a resume does not wait for as long as it asks.
const fn is_by_provider(pool: &PoolStatus) -> bool {
    pool.terminal.is_some() || (pool.pause.is_some() && pool.trouble.incident.is_some())
}

/// Whether resuming the pool would change anything.
fn is_resumable(pool: &PoolStatus) -> bool {
    let trouble = &pool.trouble;
    pool.pause.is_some()
        || pool.terminal.is_some()
        || trouble.coming_back.is_some()
        || trouble.probe.is_some()
        || trouble.one_at_a_time.is_some()
        || trouble.speed_per_mille.is_some()
}

fn edit_text(text: &mut String, key: KeyCode) {
    match key {
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char(c) if !c.is_control() && text.len() + c.len_utf8() <= MAX_INPUT => {
            text.push(c)
        }
        _ => {}
    }
}

fn parse_pause(text: &str) -> Result<u64, String> {
    let length = parse::length(text.trim()).map_err(|error| error.to_string())?;
    match length.0.div_ceil(1_000) {
        0 => Err("a pause must be longer than 0; use for example 30s".to_owned()),
        ms => Ok(ms),
    }
}

#[cfg(test)]
mod tests;

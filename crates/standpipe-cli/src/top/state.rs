//! What is on the screen, and what a key does to that. Pure: what has to happen outside is answered
//! as an [`Effect`].

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use standpipe::{LeaseId, PoolStatus};

use super::pane::{Order, Pane};
use super::picture::Picture;
use super::rows::{Row, rows};
use super::source::{Act, Done};
use crate::args::parse;
use crate::show::length::length;

/// What a pause lasts when nobody says otherwise.
const PAUSE: &str = "1min";
/// More than anybody types.
const LONGEST: usize = 64;

/// What has to happen outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    Quit,
    Suspend,
    Redraw,
    Act(Act),
}

/// What keys mean just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Look,
    Help,
    /// The filter is being typed.
    Filter,
    /// For how long to pause a pool.
    Pause {
        pool: String,
        text: String,
    },
    /// Whether to settle a lease.
    Settle {
        lease: LeaseId,
        agent: String,
        about: String,
    },
}

/// A line about what came of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) wrong: bool,
}

/// The row that is chosen in a pane.
#[derive(Clone, Debug, Default)]
struct Chosen {
    at: usize,
    key: Option<String>,
}

/// What is on the screen.
#[derive(Debug)]
pub(super) struct State {
    pub(super) place: String,
    pub(super) interval: Duration,
    pub(super) pane: Pane,
    /// The list below the pools, where there is room for both.
    pub(super) lower: Pane,
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) said: Option<Said>,
    /// Why nothing new is to be seen.
    pub(super) away: Option<String>,
    pub(super) picture: Option<Picture>,
    /// When the picture was taken.
    pub(super) taken: Option<Instant>,
    /// While the picture is frozen: what would be shown else, once it has come.
    thawed: Option<Option<(Picture, Instant)>>,
    orders: [usize; 5],
    chosen: [Chosen; 5],
    /// The first row or line of each pane that is shown. Drawing keeps it.
    pub(super) scroll: [usize; 5],
    /// How many rows of the pane there was room for. Drawing keeps it.
    pub(super) page: usize,
}

impl State {
    pub(super) fn new(place: String, interval: Duration) -> Self {
        Self {
            place,
            interval,
            pane: Pane::Pools,
            lower: Pane::Leases,
            filter: String::new(),
            mode: Mode::Look,
            said: None,
            away: None,
            picture: None,
            taken: None,
            thawed: None,
            orders: [0; 5],
            chosen: Default::default(),
            scroll: [0; 5],
            page: 10,
        }
    }

    /// Whether the picture is frozen.
    pub(super) const fn is_frozen(&self) -> bool {
        self.thawed.is_some()
    }

    /// How a pane is sorted.
    pub(super) fn order(&self, pane: Pane) -> Order {
        let orders = pane.orders();
        let at = self.orders.get(pane.at()).copied().unwrap_or(0) % orders.len().max(1);
        orders.get(at).copied().unwrap_or(Order::AsItIs)
    }

    /// The rows of a pane as they are shown.
    pub(super) fn rows(&self, pane: Pane) -> Vec<Row<'_>> {
        let picture = self.picture.as_ref();
        picture.map_or_else(Vec::new, |picture| rows(picture, pane, self.order(pane), &self.filter))
    }

    /// Which of these rows is chosen: the one that was, wherever it is now, else the one that took
    /// its place.
    pub(super) fn chosen(&self, pane: Pane, rows: &[Row<'_>]) -> usize {
        let last = rows.len().saturating_sub(1);
        let Some(chosen) = self.chosen.get(pane.at()) else { return 0 };
        let Some(key) = &chosen.key else { return chosen.at.min(last) };
        let same = rows.iter().enumerate().filter(|(_, row)| row.key() == *key);
        let nearest = same.map(|(at, _)| at).min_by_key(|at| at.abs_diff(chosen.at));
        nearest.unwrap_or_else(|| chosen.at.min(last))
    }

    /// A look ended.
    pub(super) fn looked(&mut self, looked: Result<Picture, String>) {
        match looked {
            Ok(picture) => {
                self.away = None;
                match &mut self.thawed {
                    Some(thawed) => *thawed = Some((picture, Instant::now())),
                    None => self.show(picture, Instant::now()),
                }
            }
            Err(error) => self.away = Some(error),
        }
    }

    fn show(&mut self, picture: Picture, taken: Instant) {
        self.picture = Some(picture);
        self.taken = Some(taken);
    }

    /// An act was answered.
    pub(super) fn acted(&mut self, acted: Result<Done, String>) {
        self.said = Some(match acted {
            Ok(done) => Said { text: self.what_came_of(&done), wrong: false },
            Err(text) => Said { text, wrong: true },
        });
    }

    fn what_came_of(&self, done: &Done) -> String {
        if let Done(Act::Pause { pool, ms }) = done
            && let Some(pause) = self.pool(pool).and_then(|pool| pool.pause.as_ref())
            && pause.for_ms > *ms
        {
            let left = length(pause.for_ms);
            return format!("`{pool}` stays paused for {left}: a pause is never shortened by one");
        }
        done.to_string()
    }

    fn pool(&self, name: &str) -> Option<&PoolStatus> {
        let pools = self.picture.as_ref().map(|picture| &picture.seen.pools);
        pools.into_iter().flatten().find(|pool| pool.pool == name)
    }

    /// A key was pressed.
    pub(super) fn update(&mut self, key: KeyEvent) -> Effect {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Effect::Quit,
                KeyCode::Char('z') => return Effect::Suspend,
                KeyCode::Char('l') => return Effect::Redraw,
                KeyCode::Char('u') => {
                    self.retype(String::clear);
                    return Effect::Nothing;
                }
                _ => return Effect::Nothing,
            }
        }
        match std::mem::replace(&mut self.mode, Mode::Look) {
            Mode::Look => self.look(key.code),
            Mode::Help => Effect::Nothing,
            Mode::Filter => self.filter(key.code),
            Mode::Pause { pool, text } => self.pause(key.code, pool, text),
            Mode::Settle { lease, agent, about } => self.settle(key.code, lease, agent, about),
        }
    }

    fn retype(&mut self, change: impl FnOnce(&mut String)) {
        match &mut self.mode {
            Mode::Filter => change(&mut self.filter),
            Mode::Pause { text, .. } => change(text),
            _ => {}
        }
    }

    fn look(&mut self, key: KeyCode) -> Effect {
        self.said = None;
        match key {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.mode = Mode::Help,
            KeyCode::Up | KeyCode::Char('k') => self.move_to(|at, _, _| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.move_to(|at, _, _| at.saturating_add(1)),
            KeyCode::PageUp => self.move_to(|at, page, _| at.saturating_sub(page)),
            KeyCode::PageDown => self.move_to(|at, page, _| at.saturating_add(page)),
            KeyCode::Home | KeyCode::Char('g') => self.move_to(|_, _, _| 0),
            KeyCode::End | KeyCode::Char('G') => self.move_to(|_, _, last| last),
            KeyCode::Tab | KeyCode::Right => self.go(self.pane.step(1)),
            KeyCode::BackTab | KeyCode::Left => self.go(self.pane.step(Pane::ALL.len() - 1)),
            KeyCode::Char(digit @ '1'..='5') => {
                let at = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
                self.go(Pane::ALL.get(at).copied().unwrap_or(self.pane));
            }
            KeyCode::Char('s') => {
                if let Some(order) = self.orders.get_mut(self.pane.at()) {
                    *order = (*order + 1) % self.pane.orders().len().max(1);
                }
                let (pane, order) = (self.pane, self.order(self.pane));
                self.tell(format!("{}: {}", pane.name(), pane.said(order)));
            }
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char(' ') => self.freeze_or_thaw(),
            KeyCode::Char('p') => self.ask_for_pause(),
            KeyCode::Char('r') => return self.resume(),
            KeyCode::Char('x') => self.ask_to_settle(),
            _ => {}
        }
        Effect::Nothing
    }

    fn go(&mut self, pane: Pane) {
        self.pane = pane;
        if pane != Pane::Pools {
            self.lower = pane;
        }
    }

    /// Chooses another row: from where it is, the rows on a page, and the last one.
    fn move_to(&mut self, to: impl FnOnce(usize, usize, usize) -> usize) {
        let rows = self.rows(self.pane);
        let last = rows.len().saturating_sub(1);
        let at = to(self.chosen(self.pane, &rows), self.page.max(1), last).min(last);
        let key = rows.get(at).map(|row| row.key());
        if let Some(chosen) = self.chosen.get_mut(self.pane.at()) {
            *chosen = Chosen { at, key };
        }
    }

    fn freeze_or_thaw(&mut self) {
        match self.thawed.take() {
            None => self.thawed = Some(None),
            Some(Some((picture, taken))) => self.show(picture, taken),
            Some(None) => {}
        }
    }

    /// What is chosen in the pane that has the keys.
    fn choice(&self) -> Option<Row<'_>> {
        let rows = self.rows(self.pane);
        rows.get(self.chosen(self.pane, &rows)).copied()
    }

    fn ask_for_pause(&mut self) {
        match self.choice().and_then(Row::pool).map(str::to_owned) {
            Some(pool) => self.mode = Mode::Pause { pool, text: PAUSE.to_owned() },
            None => self.complain("no pool is chosen: choose one with the arrow keys"),
        }
    }

    fn resume(&mut self) -> Effect {
        match self.choice().and_then(Row::pool).map(str::to_owned) {
            Some(pool) if self.pool(&pool).is_some_and(is_held_up) => {
                self.tell(format!("resuming `{pool}` …"));
                Effect::Act(Act::Resume { pool })
            }
            Some(pool) => {
                self.tell(format!("`{pool}` is not paused: there is nothing to resume"));
                Effect::Nothing
            }
            None => {
                self.complain("no pool is chosen: choose one with the arrow keys");
                Effect::Nothing
            }
        }
    }

    fn ask_to_settle(&mut self) {
        let Some(Row::Lease(pool, lease)) = self.choice() else {
            let what = if self.pane == Pane::Leases { "there is no lease" } else { "press 2" };
            let wanted = "a lease is settled in the pane of leases";
            return self.complain(&format!("{wanted}: {what}"));
        };
        let about = format!("{} on {}, {} old", lease.agent, pool.pool, length(lease.age_ms));
        let (lease, agent) = (lease.id.clone(), lease.agent.clone());
        self.mode = Mode::Settle { lease, agent, about };
    }

    fn filter(&mut self, key: KeyCode) -> Effect {
        self.mode = Mode::Filter;
        match key {
            KeyCode::Enter => self.mode = Mode::Look,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Look;
            }
            key => typed(&mut self.filter, key),
        }
        Effect::Nothing
    }

    fn pause(&mut self, key: KeyCode, pool: String, mut text: String) -> Effect {
        match key {
            KeyCode::Esc => self.tell(format!("`{pool}` goes on")),
            KeyCode::Enter => match pause_of(&text) {
                Ok(ms) => {
                    self.tell(format!("pausing `{pool}` …"));
                    return Effect::Act(Act::Pause { pool, ms });
                }
                Err(wrong) => {
                    self.complain(&wrong);
                    self.mode = Mode::Pause { pool, text };
                }
            },
            key => {
                self.said = None;
                typed(&mut text, key);
                self.mode = Mode::Pause { pool, text };
            }
        }
        Effect::Nothing
    }

    fn settle(&mut self, key: KeyCode, lease: LeaseId, agent: String, about: String) -> Effect {
        match key {
            KeyCode::Char('y' | 'Y') => {
                self.tell(format!("settling the lease of {agent} …"));
                return Effect::Act(Act::Settle { lease, agent });
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                self.tell("nothing was settled".to_owned());
            }
            _ => self.mode = Mode::Settle { lease, agent, about },
        }
        Effect::Nothing
    }

    fn tell(&mut self, text: String) {
        self.said = Some(Said { text, wrong: false });
    }

    fn complain(&mut self, text: &str) {
        self.said = Some(Said { text: text.to_owned(), wrong: true });
    }
}

/// Whether there is something that resuming lifts.
fn is_held_up(pool: &PoolStatus) -> bool {
    let trouble = &pool.trouble;
    pool.pause.is_some()
        || pool.terminal.is_some()
        || trouble.coming_back.is_some()
        || trouble.probe.is_some()
        || trouble.one_at_a_time.is_some()
        || trouble.speed_per_mille.is_some()
}

fn typed(text: &mut String, key: KeyCode) {
    match key {
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char(c) if !c.is_control() && text.len() + c.len_utf8() <= LONGEST => text.push(c),
        _ => {}
    }
}

fn pause_of(text: &str) -> Result<u64, String> {
    let length = parse::length(text.trim()).map_err(|error| error.to_string())?;
    match length.0.div_ceil(1_000) {
        0 => Err("a pause of no time; give it a length such as 30s".to_owned()),
        ms => Ok(ms),
    }
}

#[cfg(test)]
mod tests;

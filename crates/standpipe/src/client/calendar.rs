//! Announces the resets of limits per day that a provider resets at a time of day.
//!
//! The ledger knows no wall clock and no time zones. Each process computes the last and the next
//! reset and sends both with its next step, if the ledger does not know them or disagrees. The
//! ledger stays safe when clocks are wrong; see `usage/calendar.rs` of the core.

use std::time::{Duration, Instant as Local};

use standpipe_config::DailyReset;
use standpipe_core::{Action, CalendarReset, Instant, LimitId, Resets, Span, State, Text};

/// What a process knows of the calendar windows of a pool.
#[derive(Default)]
pub(super) struct CalendarClock {
    limits: Vec<CalendarLimit>,
    sent_at: Option<Local>,
}

struct CalendarLimit {
    limit: LimitId,
    text: Text,
    /// `None` if another process configured what this one cannot read.
    day: Option<DailyReset>,
    /// The last and the next reset, in microseconds since 1970.
    around: Option<(u64, u64)>,
}

impl CalendarClock {
    /// Returns the announcement to send, if there is news. `wall` is in microseconds since 1970,
    /// `now` by the clock of the store.
    pub(super) fn announcement(
        &mut self,
        state: &State,
        now: Instant,
        wall: impl Fn() -> u64,
    ) -> Option<Action> {
        // An event that waits for an unavailable store is not sent again and again.
        if !state.has_calendar() || self.sent_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return None;
        }
        self.read(state);
        let wall = wall();
        let resets: Vec<CalendarReset> =
            self.limits.iter_mut().filter_map(|limit| limit.resets(wall)).collect();
        if !state.would_announce(&resets, now) {
            return None;
        }
        self.sent_at = Some(Local::now());
        Some(Action::Calendar { resets })
    }

    /// Reads the calendars of the configuration in force, unless they are known.
    fn read(&mut self, state: &State) {
        let config = state.facts().config.iter();
        let limits = config.flat_map(|config| &config.limits).filter_map(|limit| {
            let Resets::Calendar(text) = &limit.resets else { return None };
            Some((limit.id(), text))
        });
        let known = self.limits.iter().map(|own| (own.limit.clone(), &own.text));
        if limits.clone().eq(known) {
            return;
        }
        let limits = limits.map(|(limit, text)| {
            let (day, text) = (DailyReset::parse(text.as_str()).ok(), text.clone());
            CalendarLimit { limit, text, day, around: None }
        });
        self.limits = limits.collect();
    }
}

impl CalendarLimit {
    fn resets(&mut self, wall: u64) -> Option<CalendarReset> {
        let current = self.around.filter(|(last, next)| (*last..*next).contains(&wall));
        if current.is_none() {
            let around = self.day.as_ref()?.around(wall)?;
            self.around = Some((wall.checked_sub(around.since.0)?, wall + around.left.0));
        }
        let (last, next) = self.around?;
        let limit = self.limit.clone();
        Some(CalendarReset { limit, since: Span(wall - last), left: Span(next - wall) })
    }
}

/// How long after an announcement the next one is sent at the earliest.
const PAUSE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use standpipe_core::{Configure, Event, Key, Limit, PoolConfig, Rule, Source, Unit};

    const HOUR: u64 = 3_600_000_000;
    /// 2026-11-17 10:00 in Los Angeles.
    const WALL: u64 = 1_794_938_400_000_000;

    fn configured(day: &str) -> State {
        let rule = Rule::Window { unit: Unit::Requests, amount: 9, period: Span::secs(86_400) };
        let resets = Resets::Calendar(Text::new(day).unwrap());
        let config = PoolConfig::new(vec![Limit { resets, ..Limit::new(rule) }]);
        let mut state = State::new();
        let action = Action::Configure(Box::new(Configure { source: Source::Code, config }));
        let _ = state.apply(&event(1, action), Instant(40 * 24 * HOUR));
        state
    }

    fn event(number: u64, action: Action) -> Event {
        Event { key: Key { session: 1, number }, action }
    }

    #[test]
    fn resets_are_announced_once() {
        let mut state = configured("00:00 America/Los_Angeles");
        let mut clock = CalendarClock::default();
        let now = state.clock();
        let said = clock.announcement(&state, now, || WALL).unwrap();
        let Action::Calendar { resets } = &said else { panic!("{said:?}") };
        assert_eq!((resets[0].since.0, resets[0].left.0), (10 * HOUR, 14 * HOUR));
        let _ = state.apply(&event(2, said), now);
        assert!(CalendarClock::default().announcement(&state, now, || WALL).is_none());
        // Another process that disagrees says so.
        let other = CalendarClock::default().announcement(&state, now, || WALL + 60_000_000);
        assert!(other.is_some());
    }

    #[test]
    fn an_event_that_waits_is_not_sent_again() {
        let state = configured("00:00 UTC");
        let mut clock = CalendarClock::default();
        assert!(clock.announcement(&state, state.clock(), || WALL).is_some());
        assert!(clock.announcement(&state, state.clock(), || WALL).is_none());
    }

    #[test]
    fn a_day_that_cannot_be_read_is_not_announced() {
        let state = configured("00:00 Mars/Base");
        let mut clock = CalendarClock::default();
        assert!(clock.announcement(&state, state.clock(), || WALL).is_none());
    }

    #[test]
    fn a_pool_without_calendars_reads_no_clock() {
        let mut clock = CalendarClock::default();
        let wall = || -> u64 { panic!("the wall clock was read") };
        assert!(clock.announcement(&State::new(), Instant(0), wall).is_none());
    }
}

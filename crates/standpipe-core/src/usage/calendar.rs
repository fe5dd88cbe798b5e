//! Calendar windows: a limit per day that the provider resets at a time of day without announcing
//! it.
//!
//! The core knows no time zones. Processes compute the last and the next reset from their wall
//! clock and announce both as durations ([`CalendarReset`]). Announcements may disagree: a clock
//! jumps, a process is stopped between computing and appending, two copies of the zone database
//! differ. So a reset is a range that covers all announcements of it. Units are released after its
//! end, and charges count in the new window from its start on: whichever announcement is right, no
//! window of the provider gets a second quota. Without an announcement the limit is a rolling
//! window that is longer than any day, which is always stricter.

use alloc::collections::BTreeMap;

use crate::config::{LimitId, Resets};
use crate::event::{CalendarReset, Key};
use crate::id::{ConstraintId, UnitId};
use crate::lease::Lease;
use crate::outcome::{Answer, Notice};
use crate::state::{Index, State, Timer};
use crate::time::{Instant, Span};
use crate::usage::counter::{Began, Count, CounterSpec};
use crate::usage::history::History;

/// What is known of the resets of a calendar window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    /// The last reset that has passed.
    pub last: Option<ResetRange>,
    /// The next one, while it lies ahead.
    pub next: Option<ResetRange>,
}

/// One reset, as far as announcements agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetRange {
    /// The earliest instant announced.
    pub earliest: Instant,
    /// The latest instant announced.
    pub latest: Instant,
}

/// By how much a day may be longer or shorter than 24 hours: a change of daylight saving time.
pub(crate) const STRETCH: Span = Span::secs(2 * 3_600);
/// How far a provider's clock may be from the announced instant, on either side.
const GUARD: Span = Span::secs(5);
/// Announcements that differ by less are the same.
const AGREES: Span = Span::secs(2);

/// A pending reset, for views of the use of a limit at a later instant. It is small, because every
/// view has room for one and few have one.
#[derive(Clone, Copy)]
pub(crate) struct PendingReset<'a> {
    state: &'a State,
    limit: ConstraintId,
    /// Whether calls in flight that started before the reset count as well.
    carries: bool,
}

impl ResetRange {
    const fn at(instant: Instant) -> Self {
        Self { earliest: instant, latest: instant }
    }

    /// Whether an instant is nearer to this reset than to the one before or after it.
    fn is_same_reset(self, at: Instant, day: Span) -> bool {
        let half = Span(day.0 / 2);
        self.earliest < at + half && at < self.latest + half
    }

    /// The range with an announced instant included.
    fn including(self, at: Instant) -> Self {
        let earlier = at + AGREES < self.earliest;
        let later = at > self.latest + AGREES;
        Self {
            earliest: if earlier { at } else { self.earliest },
            latest: if later { at } else { self.latest },
        }
    }

    /// When units are released.
    pub(crate) fn releases(self, spec: &CounterSpec) -> Instant {
        self.latest + GUARD + spec.slack
    }

    /// From when on charges count in the window that begins here.
    pub(crate) fn counts_from(self) -> Instant {
        self.earliest - GUARD
    }
}

impl Calendar {
    /// What is known after an announcement.
    fn with(mut self, announced: &CalendarReset, day: Span, now: Instant) -> Self {
        let length = announced.since + announced.left;
        if length + STRETCH < day || day + STRETCH < length {
            return self;
        }
        // A clock that begins less than a day ago has no last reset.
        let last_at = now.0.checked_sub(announced.since.0).map(Instant);
        let next_at = now + announced.left;
        match &mut self.next {
            Some(next) => {
                let known = *next;
                let both = last_at.into_iter().chain([next_at]);
                for at in both.filter(|at| known.is_same_reset(*at, day)) {
                    *next = next.including(at);
                }
            }
            // A day after the last one, or a wrong clock would end the window early.
            None if self.last.is_none_or(|last| next_at + STRETCH >= last.earliest + day) => {
                self.next = Some(ResetRange::at(next_at));
            }
            None => {}
        }
        if let (Some(last), Some(at)) = (&mut self.last, last_at)
            && last.is_same_reset(at, day)
        {
            // Units that were released stay released; charges since then count again.
            last.earliest = last.including(at).earliest;
        }
        self
    }
}

impl PendingReset<'_> {
    /// The window that has begun by an instant, if the reset lies before it.
    pub(crate) fn began_by(&self, now: Instant, history: &History) -> Option<Began> {
        let declared = &self.state.index.compiled.constraints[self.limit];
        let next = self.state.facts.counters[self.limit].calendar.next?;
        if now < next.releases(&declared.spec) {
            return None;
        }
        let (from, unit) = (next.counts_from(), declared.unit.filter(|_| self.carries));
        let leases = &self.state.facts.leases;
        let carried = unit.map_or(0, |unit| charged_before(from, leases, unit, history));
        Some(Began { at: from, carried })
    }

    /// When the reset lowers what is used, and when calls in flight no longer count in the new
    /// window.
    pub(crate) fn changes(&self, period: Span) -> impl Iterator<Item = Instant> {
        let spec = &self.state.index.compiled.constraints[self.limit].spec;
        let next = self.state.facts.counters[self.limit].calendar.next;
        next.into_iter().flat_map(move |next| [next.releases(spec), next.counts_from() + period])
    }
}

/// What calls in flight were charged before an instant: the provider may count them after it.
fn charged_before(
    from: Instant,
    leases: &BTreeMap<Key, Lease>,
    unit: UnitId,
    history: &History,
) -> u64 {
    let charges = leases.values().flat_map(|lease| &lease.charges);
    let its = charges.filter(|charge| charge.unit == unit);
    let old = its
        .filter(|charge| history.find(charge.mark).is_some_and(|(sample, _)| sample.stamp < from));
    old.map(|charge| charge.charged).fold(0, u64::saturating_add).min(crate::bounds::AMOUNT)
}

impl State {
    /// Returns whether any limit is reset at a time of day.
    #[must_use]
    pub fn has_calendar(&self) -> bool {
        self.index.compiled.calendars
    }

    /// Returns whether an announcement would change anything. If not, it need not be sent.
    #[must_use]
    pub fn would_announce(&self, resets: &[CalendarReset], now: Instant) -> bool {
        let now = now.max(self.facts.clock);
        resets.iter().any(|reset| self.calendar_after(reset, now).is_some())
    }

    /// Applies what a process computed from its wall clock.
    pub(crate) fn calendar_announced(&mut self, resets: &[CalendarReset], now: Instant) -> Answer {
        for reset in resets.iter().take(crate::bounds::LIMITS) {
            let Some((at, calendar)) = self.calendar_after(reset, now) else { continue };
            self.unwatch_calendar(at);
            let before = core::mem::replace(&mut self.facts.counters[at].calendar, calendar);
            self.index.watch_calendar(at, &calendar);
            if before.last != calendar.last
                && let Some(last) = calendar.last
            {
                self.begin_window(at, last);
            }
            self.index.dirty.insert(at);
            // Another end of the window may let background pass earlier.
            self.index.returned.insert(at);
        }
        Answer::Done
    }

    /// The limit that an announcement is about, and what is known of it then, if that changes.
    fn calendar_after(
        &self,
        reset: &CalendarReset,
        now: Instant,
    ) -> Option<(ConstraintId, Calendar)> {
        let (day, mut rows) = (reset.limit.period()?, self.index.compiled.constraints.rows());
        let is_meant = |resets: &Resets, id: &LimitId| *id == reset.limit && resets.is_calendar();
        let (at, _) = rows.find(|(_, own)| is_meant(&own.resets, &own.id))?;
        let before = self.facts.counters[at].calendar;
        let after = before.with(reset, day, now);
        (after != before).then_some((at, after))
    }

    /// A reset has passed: what was charged before no longer counts.
    pub(crate) fn calendar_resets(&mut self, at: ConstraintId) {
        let Some(next) = self.facts.counters[at].calendar.next.take() else { return };
        self.facts.counters[at].calendar.last = Some(next);
        self.begin_window(at, next);
        self.restart_external(at);
        let limit = self.index.compiled.constraints[at].id.clone();
        self.effects.notices.push(Notice::WindowReset { limit });
        self.index.dirty.insert(at);
        self.index.returned.insert(at);
    }

    fn begin_window(&mut self, at: ConstraintId, reset: ResetRange) {
        let from = reset.counts_from();
        let unit = self.index.compiled.constraints[at].unit;
        let carried = unit.map_or(0, |unit| {
            charged_before(from, &self.facts.leases, unit, &self.facts.units[unit].history)
        });
        if let Count::Window { began } = &mut self.facts.counters[at].count {
            *began = Some(Began { at: from, carried });
        }
    }

    fn unwatch_calendar(&mut self, at: ConstraintId) {
        if let Some(next) = self.facts.counters[at].calendar.next {
            let releases = next.releases(&self.index.compiled.constraints[at].spec);
            self.index.timers.remove(&(releases, Timer::CalendarReset(at)));
        }
    }

    /// The pending reset of a limit; for an agent's own use of it, without calls in flight.
    pub(crate) fn pending_reset(
        &self,
        limit: ConstraintId,
        carries: bool,
    ) -> Option<PendingReset<'_>> {
        let is_pending = self.facts.counters[limit].calendar.next.is_some();
        is_pending.then_some(PendingReset { state: self, limit, carries })
    }
}

impl Index {
    /// Sets a timer for the next reset.
    pub(crate) fn watch_calendar(&mut self, at: ConstraintId, calendar: &Calendar) {
        if let Some(next) = calendar.next {
            let releases = next.releases(&self.compiled.constraints[at].spec);
            self.timers.insert((releases, Timer::CalendarReset(at)));
        }
    }
}

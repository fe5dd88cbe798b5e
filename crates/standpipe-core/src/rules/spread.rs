//! Spread: background draws on a rate at an even pace while a higher tier was active in the period,
//! so that the quota lasts to the end of the period. A lower bound.
//!
//! On a limit that resets, total use must be within the share of the window that has elapsed. On a
//! rolling limit a bucket of a twentieth of what is usable must have units. It refills by the rest
//! in one period, so a window that background draws on evenly is never full. Every call draws on
//! the bucket, and only background waits for it. By time alone both only grow, so a call that the
//! rule admits after waiting stays admitted. A fixed window whose end is not known holds nothing
//! back, nor does a limit where every active agent of a higher tier has a floor. Where this rule
//! applies, zone and yield do not hold background back.

use crate::agents::activity::Who;
use crate::config::Priority;
use crate::config::compiled::Constraint;
use crate::id::{ConstraintId, ConstraintSet};
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::queue::ticket::QueueKey;
use crate::rules::{Admits, CallRule, Effect, Named};
use crate::state::State;
use crate::time::{Instant, Span};
use crate::usage::bucket::{Bucket, Refill};
use crate::usage::calendar::Calendar;
use crate::usage::counter::{CounterSpec, ResetPhase};

/// The bucket of a rolling limit holds what is usable divided by this.
const BURST: u64 = 20;
/// The shortest time after which a ticket behind others is looked at again. The tickets before it
/// stay until they are claimed, which a bucket that refills within microseconds would count in
/// millions of instants.
const RECHECK: Span = Span::millis(10);
/// How many tickets before a candidate are counted. Those beyond are served later anyway.
const AHEAD: usize = 64;

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::Spread,
    effect: Effect::Hold,
    admits: |state, candidate, from| state.spread_admits(candidate, from),
    names: |state, candidate, now| {
        let held = |at: &ConstraintId| state.spread_holds(candidate, *at, now) != Admits::Now;
        let first = state.spread_over(now).iter().find(held);
        Named { limit: first.and_then(|at| state.limit_named(at)), short_by: 0 }
    },
};

/// The window of a limit that resets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedWindow {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

impl State {
    fn spread_admits(&self, candidate: &Candidate<'_>, from: Instant) -> Admits {
        if candidate.tier() != Priority::Background || !self.index.compiled.spreads {
            return Admits::Now;
        }
        let constraints = self.index.compiled.constraints.ids();
        let each = constraints.map(|at| self.spread_holds(candidate, at, from));
        each.fold(Admits::Now, |all, one| all.and(one, from))
    }

    /// What one limit answers to a background call.
    fn spread_holds(&self, candidate: &Candidate<'_>, at: ConstraintId, from: Instant) -> Admits {
        let constraint = &self.index.compiled.constraints[at];
        if !constraint.spread || constraint.need(candidate.cost) == 0 {
            return Admits::Now;
        }
        let superiors = self.superiors(Priority::Background, at, Who::InThePeriod);
        if !superiors.are_active(from) {
            return Admits::Now;
        }
        // Without the tickets before it, because those may leave.
        let earliest = self.within_pace_from(at, 0, from);
        let ahead = self.spread_ahead(candidate.queue_key, at);
        let by_time = match ahead {
            0 => earliest,
            _ => self.within_pace_from(at, ahead, from),
        };
        match self.while_active(&superiors, by_time, from) {
            Admits::NotBefore { earliest: gone, by_time } if earliest != Instant::NEVER => {
                Admits::NotBefore { earliest: earliest.min(gone), by_time }
            }
            Admits::NotBefore { by_time, .. } => Admits::NotBefore { earliest, by_time },
            other => other,
        }
    }

    /// The units that background tickets before a queue key are about to take: so many tickets are
    /// served at once as the pace has units, and not all that wait.
    fn spread_ahead(&self, before: QueueKey, at: ConstraintId) -> u64 {
        let lines = self.index.lines.iter().chain([&self.index.earmarks[at].holders]);
        let first = QueueKey::first_of(Priority::Background);
        let ahead = lines.flat_map(|line| line.range(first..before.max(first)).take(AHEAD));
        let constraint = &self.index.compiled.constraints[at];
        let needs = ahead.filter_map(|queue_key| {
            let ticket = self.facts.tickets.get(queue_key)?;
            Some(constraint.need(&ticket.call.cost))
        });
        needs.fold(0, u64::saturating_add)
    }

    /// The first instant from `from` on at which total use, with `ahead` units more, is within the
    /// pace of a limit.
    fn within_pace_from(&self, at: ConstraintId, ahead: u64, from: Instant) -> Instant {
        let spec = &self.index.compiled.constraints[at].spec;
        let Some(bucket) = &self.facts.counters[at].spread else {
            return self.share_elapses(at, ahead, from);
        };
        let taken = self.usage(at).held.saturating_add(ahead);
        match (burst(spec) - 1).checked_sub(taken) {
            Some(allowed) => bucket.falls_to(allowed, from, refill(spec)),
            None if ahead > 0 => {
                // Time passes until the tickets before it have been served as well.
                let bucket = bucket.with(taken, from, refill(spec));
                bucket.falls_to(burst(spec) - 1, from, refill(spec)).max(from + RECHECK)
            }
            None => Instant::NEVER,
        }
    }

    /// The first instant at which the elapsed share of a fixed window covers what is used.
    fn share_elapses(&self, at: ConstraintId, ahead: u64, from: Instant) -> Instant {
        let Some(window) = self.fixed_window(at, from) else { return from };
        let usage = self.usage(at);
        let length = u128::from(window.end.since(window.start).0);
        let covered = |now: Instant| {
            let used = u128::from(usage.taken_at(now).saturating_add(ahead));
            let elapsed = u128::from(now.since(window.start).0);
            now >= window.end || used * length <= elapsed * u128::from(usage.spec.effective)
        };
        if covered(from) {
            return from;
        }
        let (mut short, mut enough) = (from.0, window.end.0);
        while short + 1 < enough {
            let middle = short.midpoint(enough);
            if covered(Instant(middle)) {
                enough = middle;
            } else {
                short = middle;
            }
        }
        Instant(enough)
    }

    /// The present window of a limit that resets, if its end is known.
    fn fixed_window(&self, at: ConstraintId, now: Instant) -> Option<FixedWindow> {
        let period = self.index.compiled.constraints[at].id.period()?;
        let Calendar { last, next } = self.facts.counters[at].calendar;
        if let Some(next) = next.filter(|next| now < next.earliest) {
            let start = last.map_or(next.earliest - period, |last| last.latest);
            return Some(FixedWindow {
                start: start.min(next.earliest - Span(1)),
                end: next.earliest,
            });
        }
        let reset = self.facts.counters[at].reset.as_ref()?;
        let known = reset.phase == ResetPhase::Announced && now < reset.at;
        known.then(|| FixedWindow { start: reset.at - period, end: reset.at })
    }

    /// The limits whose pace holds background back: more is used than the pace allows, and a higher
    /// tier was active.
    pub(crate) fn spread_over(&self, now: Instant) -> ConstraintSet {
        let mut over = ConstraintSet::default();
        let rows = self.index.compiled.constraints.rows();
        for (at, _) in rows.filter(|(_, constraint)| constraint.spread) {
            let superiors = self.superiors(Priority::Background, at, Who::InThePeriod);
            let holds = superiors.are_active(now) && self.within_pace_from(at, 0, now) > now;
            over.insert_if(at, holds);
        }
        over
    }

    /// When time alone next ends what holds background back.
    pub(crate) fn spread_next_event(&self, now: Instant) -> Option<Instant> {
        let ends = self.restrictions.paced.iter().flat_map(|at| {
            let superiors = self.superiors(Priority::Background, at, Who::InThePeriod);
            [Some(self.within_pace_from(at, 0, now)), superiors.end_of_activity()]
        });
        ends.flatten().filter(|at| *at > now && *at != Instant::NEVER).min()
    }

    /// The bucket of a limit under a new configuration: the one it had, or one that all remembered
    /// charges have drawn on.
    pub(crate) fn spread_bucket(
        &self,
        constraint: &Constraint,
        known: Option<(Bucket, &Constraint)>,
        now: Instant,
    ) -> Option<Bucket> {
        if !constraint.has_spread_bucket() {
            return None;
        }
        let refill = refill(&constraint.spec);
        if let Some((mut bucket, other)) = known {
            bucket.rescale(now, self::refill(&other.spec), refill);
            return Some(bucket);
        }
        let mut bucket = Bucket::default();
        let unit = constraint.unit.map(|unit| &self.facts.units[unit]);
        for charge in unit.iter().flat_map(|unit| unit.history.charges()) {
            bucket.charge(charge.stamp.min(now), charge.units, refill);
        }
        Some(bucket)
    }
}

impl Constraint {
    /// Whether calls draw on a bucket of the rule.
    pub(crate) const fn has_spread_bucket(&self) -> bool {
        self.spread && self.resets.is_rolling()
    }
}

/// What the bucket of a rolling limit holds.
pub(crate) fn burst(spec: &CounterSpec) -> u64 {
    (spec.usable_per_period() / BURST).max(1)
}

/// How that bucket refills: together with what it holds at most what is usable in one period.
pub(crate) fn refill(spec: &CounterSpec) -> Refill {
    // A limit of one unit refills all the same.
    let amount = (spec.usable_per_period() - burst(spec)).max(1);
    Refill { amount, period: spec.period.max(Span(1)) }
}

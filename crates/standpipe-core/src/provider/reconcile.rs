//! Reconciliation: compares the provider's remaining units with ours and finds external usage.
//!
//! The provider's count is rounded and delayed, so it lowers our view quickly and raises it slowly.
//! If the provider has less left than we have, twice in a row and by more than rounding, somebody
//! else draws on the key. On a window, that usage is believed to continue until the provider
//! reports otherwise. On a bucket it is charged once, because the bucket refills by itself.

use crate::bounds;
use crate::config::compiled::{Constraint, ConstraintKind};
use crate::config::{LimitId, mul_div};
use crate::event::{Key, Reading};
use crate::id::{ConstraintId, Id};
use crate::outcome::Notice;

use crate::state::State;
use crate::time::{Instant, Span};
use crate::usage::counter::Count;
use crate::usage::history::{History, Resolution};
use crate::usage::view::Counted;

/// What others use of one limit, as the provider's figures show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalUsage {
    /// The limit.
    pub limit: LimitId,
    /// When the provider first reported on it.
    pub since: Instant,
    /// When it last did.
    pub last_seen: Instant,
    /// The least that was left recently.
    pub low: RecentLow,
    /// The gap in the provider's last report; it counts if the next one confirms it.
    pub gap: u64,
    /// What others are believed to use of a window, now and later.
    pub believed: u64,
    /// The part of `believed` that may have been used before the ledger began to look.
    pub initial: u64,
    /// Since when the provider has more left than `believed` leaves, and the least surplus.
    pub spare: Option<(Instant, u64)>,
    /// What was charged to a bucket for others.
    pub charged: History,
    /// When some of that was last given back.
    pub eased: Instant,
    /// What the provider last reported as remaining.
    pub reported: Option<Reported>,
}

/// What the provider reported as remaining of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The units that remained.
    pub remaining: u64,
    /// The limit they are a part of: the smaller of the declared and the provider's own.
    pub limit: u64,
    /// When it was reported.
    pub at: Instant,
    /// When it is forgotten: at the provider's reset, at most one period later.
    pub until: Instant,
}

/// The least that was left of a limit in an interval, and in the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentLow {
    /// When the interval began.
    pub since: Instant,
    /// The least that was left in it.
    pub left: u64,
    /// The least that was left in the previous one.
    pub before: u64,
}

/// The gap that is tolerated before external usage is detected, in thousandths of the limit.
const TOLERANCE: u64 = 20;
/// The largest step by which external usage is lowered, in thousandths of the limit.
const EASE: u64 = 10;
/// The interval of such steps.
const EASE_EVERY: Span = Span::secs(60);
/// One in this many units that others left unused for a whole period is released at its end.
const SPARE: u64 = 4;
/// The time after the first reading in which a gap counts as usage from before Standpipe started,
/// and is not reported.
const SETTLING: Span = Span::secs(60);
/// The longest delay of the provider's count; for periods under a minute, a sixtieth of the period.
/// Units that expired here within the delay may still count there.
const MAX_DELAY: Span = Span::secs(1);

impl State {
    /// Takes note of the remaining units of a reading, and returns whether what is usable changed.
    pub(crate) fn reconcile(
        &mut self,
        lease: Option<Key>,
        reading: &Reading,
        now: Instant,
    ) -> bool {
        let policy = self.facts.config.as_ref().map(|config| &config.policy);
        let enabled = policy.is_some_and(|policy| policy.reconciles);
        let (Some(remaining), Some(constraint)) =
            (reading.remaining, self.constraint_read(reading).filter(|_| enabled))
        else {
            return false;
        };
        if is_about_burst(reading, remaining, &self.index.compiled.constraints[constraint]) {
            self.report_ignored(constraint, remaining, reading, now);
            return false;
        }
        let lowered = self.lower_reported_margin(constraint, now);
        self.compare_remaining(constraint, remaining, lease, reading, now) || lowered
    }

    /// Compares the remaining units of a reading with ours, and returns whether the believed
    /// external usage of a window changed.
    ///
    /// The provider may have counted when the call arrived or when it ended, some time ago. So its
    /// figure is compared with the least that we had left at admission, recently, and now: only
    /// what is missing from all three is external.
    fn compare_remaining(
        &mut self,
        constraint: ConstraintId,
        remaining: u64,
        lease: Option<Key>,
        reading: &Reading,
        now: Instant,
    ) -> bool {
        let declared = &self.index.compiled.constraints[constraint];
        let (limit, stated, period) =
            (declared.id.clone(), declared.spec.stated, declared.spec.period);
        let left = stated.saturating_sub(self.usage(constraint).taken_at(now));
        let at_admission = self.left_at_admission(lease, constraint);
        let rounding = if reading.coarse > 1 { reading.coarse } else { 0 };
        let at = self.external_usage_of(limit, now);
        let known = &mut self.facts.external[at];
        known.last_seen = now;
        let is_first = known.reported.is_none() && known.since == now;
        let resets = reading.reset_in.or(reading.full_in).map_or(period, |at| at.min(period));
        let reported = Reported {
            remaining,
            limit: reading.limit.map_or(stated, |limit| limit.min(stated)).max(1),
            at: now,
            until: now + resets,
        };
        known.reported = Some(reported);
        let least = left.min(at_admission).min(known.low.at(now, max_delay(period)));
        // Once external usage is known, every gap counts at once: no tolerance, no second reading.
        let caught = known.believed > 0 || known.charged.used_at(now, period) > 0;
        let tolerance = if caught { 0 } else { mul_div(stated, TOLERANCE, 1_000) };
        let gap = least.saturating_sub(known.believed).saturating_sub(remaining);
        if gap <= tolerance.saturating_add(rounding) {
            known.gap = 0;
            let expected = left.saturating_sub(known.believed);
            let surplus = remaining.saturating_sub(expected.saturating_add(rounding));
            let eased = self.ease_external(at, constraint, surplus, now);
            self.report_initial(at, period, now);
            return eased;
        }
        // One reading may be an outlier: remember the gap, and believe the smaller of two. The very
        // first one counts at once: what was used before Standpipe started is gone for us too, and
        // the next reading corrects it at once if it was wrong.
        if known.gap == 0 && !caught && !is_first {
            known.gap = gap;
            return false;
        }
        let units = if caught || is_first { gap } else { gap.min(known.gap) };
        known.gap = 0;
        self.charge_external(at, constraint, units, now)
    }

    /// Reports a reading that is ignored although it shows less than the ledger has left.
    fn report_ignored(
        &mut self,
        constraint: ConstraintId,
        remaining: u64,
        reading: &Reading,
        now: Instant,
    ) {
        let declared = &self.index.compiled.constraints[constraint];
        let (limit, stated) = (declared.id.clone(), declared.spec.stated);
        let left = stated.saturating_sub(self.usage(constraint).taken_at(now));
        let tolerance = mul_div(stated, TOLERANCE, 1_000).saturating_add(reading.coarse);
        if let Some(full_in) = reading.full_in.filter(|_| left > remaining + tolerance) {
            self.effects.notices.push(Notice::ReadingIgnored { limit, remaining, full_in });
        }
    }

    /// The rate constraint that a reading refers to. A reading without a period must match the only
    /// limit of its unit, and that limit's size; otherwise it may refer to another limit.
    fn constraint_read(&self, reading: &Reading) -> Option<ConstraintId> {
        let of_unit = |constraint: &Constraint| {
            constraint.kind == ConstraintKind::Rate && constraint.id.unit() == Some(&reading.unit)
        };
        let constraints = self.index.compiled.constraints.rows();
        let mut constraints = constraints.filter(|(_, constraint)| of_unit(constraint));
        if let Some(period) = reading.period {
            return constraints
                .find(|(_, constraint)| constraint.id.period() == Some(period))
                .map(|(at, _)| at);
        }
        match (constraints.next(), constraints.next()) {
            (Some((at, constraint)), None) => {
                let same =
                    reading.limit.is_none_or(|limit| limit == self.provider_limit(constraint));
                same.then_some(at)
            }
            _ => None,
        }
    }

    /// The size of a limit as learned from the provider, else as declared.
    fn provider_limit(&self, constraint: &Constraint) -> u64 {
        let learned = self.facts.learned.limits.iter();
        let mut same = learned.filter(|learned| {
            constraint.id.unit() == Some(&learned.unit)
                && constraint.id.period() == Some(learned.period)
        });
        same.next().map_or(constraint.spec.stated, |learned| learned.amount)
    }

    /// The units of a constraint that were left when a call was admitted.
    fn left_at_admission(&self, lease: Option<Key>, constraint: ConstraintId) -> u64 {
        let lease = lease.and_then(|lease| self.facts.leases.get(&lease));
        lease.and_then(|lease| lease.left.get(constraint.index())).copied().unwrap_or(u64::MAX)
    }

    /// Adds detected external usage, and returns whether the believed usage of a window changed.
    ///
    /// On a window it is believed to continue. If it expired like a charge, we would admit those
    /// units at the moment the others use them again.
    fn charge_external(
        &mut self,
        at: usize,
        constraint: ConstraintId,
        units: u64,
        now: Instant,
    ) -> bool {
        let spec = &self.index.compiled.constraints[constraint].spec;
        let counter = &mut self.facts.counters[constraint];
        let known = &mut self.facts.external[at];
        let units = units.min(spec.stated.saturating_sub(known.believed)).min(bounds::AMOUNT);
        let is_window = matches!(counter.count, Count::Window { .. });
        // Others use more, so what they left unused before says nothing about the next period.
        known.spare = None;
        if is_window {
            known.believed += units;
            // Soon after the first reading the gap may be usage from before Standpipe started.
            if now < known.initial_until(spec.period) {
                known.initial += units;
            }
        } else if let Count::Bucket(bucket) = &mut counter.count {
            bucket.charge(now, units, spec.as_refill());
            let kept = Resolution { periods: &[spec.remembers()], slices: bounds::AGENT_SLICES };
            known.charged.count(now, units, kept);
            self.index.dirty.insert(constraint);
        }
        known.eased = now;
        let (limit, total) = (known.limit.clone(), known.confirmed_at(now, spec.period));
        if total > 0 {
            self.effects.notices.push(Notice::Outside { limit, units, total });
        }
        is_window
    }

    /// Reports initial external usage that still exists one period later: by then usage from before
    /// Standpipe started has expired, so somebody continues.
    fn report_initial(&mut self, at: usize, period: Span, now: Instant) {
        let known = &mut self.facts.external[at];
        if known.initial > 0 && now >= known.initial_until(period) + period {
            let units = core::mem::take(&mut known.initial);
            let (limit, total) = (known.limit.clone(), known.confirmed_at(now, period));
            self.effects.notices.push(Notice::Outside { limit, units, total });
        }
    }

    /// Lowers external usage, because the provider has `surplus` more units left than expected.
    /// Returns whether the believed usage of a window changed.
    ///
    /// Units that the provider may not have counted yet are no surplus: recent charges, and the
    /// units of calls in flight.
    fn ease_external(
        &mut self,
        at: usize,
        constraint: ConstraintId,
        surplus: u64,
        now: Instant,
    ) -> bool {
        let usage = self.usage(constraint);
        // What was charged to a bucket for others returns by the refill.
        let Counted::Window { .. } = usage.counted else { return false };
        let (spec, held) = (usage.spec, usage.held);
        let recent = usage.history.charged_since(now - max_delay(spec.period));
        let surplus = surplus.saturating_sub(recent).saturating_sub(held);
        let known = &self.facts.external[at];
        let step_due = now >= known.eased + EASE_EVERY;
        let max_step = if step_due { mul_div(spec.stated, EASE, 1_000).max(1) } else { 0 };
        let (believed, period) = (known.believed, spec.period);
        believed > 0 && self.facts.external[at].release(surplus, max_step, period, now)
    }

    fn external_usage_of(&mut self, limit: LimitId, now: Instant) -> usize {
        let all = &mut self.facts.external;
        all.iter().position(|known| known.limit == limit).unwrap_or_else(|| {
            let charged = History::new();
            let low = RecentLow { since: now, left: u64::MAX, before: u64::MAX };
            let (since, eased) = (now, now);
            let new = ExternalUsage {
                limit,
                since,
                last_seen: now,
                low,
                gap: 0,
                believed: 0,
                initial: 0,
                spare: None,
                charged,
                eased,
                reported: None,
            };
            all.push(new);
            all.len() - 1
        })
    }

    /// Drops believed external usage that no reading of the last period confirmed. The provider may
    /// have stopped sending the header, and then nothing else would ever lower the belief.
    pub(crate) fn expire_external(&mut self, now: Instant) {
        let mut expired = false;
        for known in &mut self.facts.external {
            let period = known.limit.period().unwrap_or(MAX_DELAY);
            if known.believed > 0 && now >= known.last_seen + period {
                (known.believed, known.initial, known.spare) = (0, 0, None);
                expired = true;
            }
        }
        if expired {
            self.recompile(now);
        }
    }

    /// Records what an admission left of each limit, for comparison with delayed readings.
    pub(crate) fn record_lows(&mut self, left: &[u64], now: Instant) {
        let constraints = self.index.compiled.constraints.iter();
        let rates = constraints.zip(left).filter(|(own, _)| own.kind == ConstraintKind::Rate);
        for (constraint, left) in rates {
            let known = self.facts.external.iter_mut().find(|own| own.limit == constraint.id);
            if let Some(known) = known {
                let period = known.limit.period().unwrap_or(MAX_DELAY);
                known.low.note(*left, now, max_delay(period));
            }
        }
    }

    /// Drops the external usage from before a reset of the provider's window.
    pub(crate) fn restart_external(&mut self, constraint: ConstraintId) {
        let limit = &self.index.compiled.constraints[constraint].id;
        let known = self.facts.external.iter_mut().find(|known| known.limit == *limit);
        let Some(known) = known else { return };
        known.charged.clear();
        known.reported = None;
        let had_usage = core::mem::take(&mut known.believed) > 0;
        known.initial = 0;
        if had_usage {
            self.recompile(self.facts.clock);
        }
    }

    /// Returns the current external usage of each limit.
    #[must_use]
    pub fn outside(&self, now: Instant) -> alloc::vec::Vec<(LimitId, u64)> {
        let constraints = &self.index.compiled.constraints;
        let each = self.facts.external.iter().filter_map(|known| {
            let constraint = constraints.iter().find(|constraint| constraint.id == known.limit)?;
            let units = known.confirmed_at(now, constraint.spec.period);
            (units > 0).then(|| (known.limit.clone(), units))
        });
        each.collect()
    }

    /// The units that calls in flight have charged to a constraint.
    pub(crate) fn charged_in_flight(&self, constraint: ConstraintId) -> u64 {
        let charges = self.facts.leases.values().flat_map(|lease| &lease.charges);
        let unit = self.index.compiled.constraints[constraint].unit;
        let its = charges.filter(|charge| Some(charge.unit) == unit);
        its.map(|charge| charge.charged).fold(0, u64::saturating_add).min(bounds::AMOUNT)
    }
}

impl RecentLow {
    /// Records what is left now. Two consecutive intervals of length `delay` cover at least the
    /// last `delay` at any instant, with constant memory.
    fn note(&mut self, left: u64, now: Instant, delay: Span) {
        if now < self.since + delay {
            self.left = self.left.min(left);
            return;
        }
        let before = if now < self.since + delay + delay { self.left } else { u64::MAX };
        *self = Self { since: now, left, before };
    }

    /// The least that was left within the last `delay`; `u64::MAX` without an admission.
    fn at(&self, now: Instant, delay: Span) -> u64 {
        let left = if now < self.since + delay + delay { self.left } else { u64::MAX };
        let before = if now < self.since + delay { self.before } else { u64::MAX };
        left.min(before)
    }
}

impl ExternalUsage {
    /// The instant from which a gap counts as external usage rather than earlier usage.
    fn initial_until(&self, period: Span) -> Instant {
        self.since + SETTLING.min(period)
    }

    /// Lowers the believed usage by a surplus, and returns whether it changed.
    ///
    /// Initial usage goes at once. Other usage goes by at most `max_step`, or by a part of what was
    /// unused throughout a whole period.
    fn release(&mut self, surplus: u64, max_step: u64, period: Span, now: Instant) -> bool {
        // Usage from before Standpipe started does not recur, so a surplus clears it first.
        let initial = surplus.min(self.initial);
        let surplus = (surplus - initial).min(self.believed - self.initial);
        self.initial -= initial;
        self.believed -= initial;
        let (since, before) = self.spare.unwrap_or((now, surplus));
        let least = before.min(surplus);
        let whole_period = now >= since + period;
        let released = if whole_period { least / SPARE } else { 0 }.max(surplus.min(max_step));
        self.spare = (surplus > 0 && !whole_period).then_some((since, least));
        self.believed -= released;
        if released > 0 {
            self.eased = now;
        }
        initial + released > 0
    }

    /// The external usage that counts now, without usage from before Standpipe started.
    fn confirmed_at(&self, now: Instant, period: Span) -> u64 {
        let from = self.initial_until(period);
        let charged = self.charged.sum_after(|stamp| stamp + period <= now || stamp < from);
        charged.saturating_add(self.believed - self.initial)
    }
}

/// The believed external usage of a limit.
pub(crate) fn believed(external: &[ExternalUsage], limit: &LimitId) -> u64 {
    let known = external.iter().find(|known| known.limit == *limit);
    known.map_or(0, |known| known.believed)
}

/// Whether a reading refers to a small burst bucket: it will be full much sooner than a bucket as
/// large as the limit could be. Then `remaining` does not cover a whole period.
fn is_about_burst(reading: &Reading, remaining: u64, constraint: &Constraint) -> bool {
    let limit = reading.limit.unwrap_or(constraint.spec.stated);
    let period = constraint.id.period().unwrap_or(Span::ZERO);
    let missing = limit.saturating_sub(remaining.saturating_add(reading.coarse));
    reading.full_in.is_some_and(|full| full.0 < mul_div(period.0, missing, limit) / 4 * 3)
}

/// The longest delay of the provider's count of a limit.
fn max_delay(period: Span) -> Span {
    MAX_DELAY.min(Span(period.0 / 60))
}

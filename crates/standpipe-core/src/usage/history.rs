//! The charges of one unit, as a bounded list of samples of their running total.
//!
//! What a rolling window counts is the difference of two running totals, so windows, caps and
//! floors of any period are views of a history. Few charges are kept exactly. Beyond that, charges
//! of one slice of the period share a sample with the slice's end as its stamp, so a charge expires
//! at most one slice late and never early. `usage/view.rs` reads histories, `usage/unit_usage.rs`
//! owns them.
//!
//! Invariant: marks ascend, stamps and totals do not descend.

use alloc::collections::VecDeque;

use crate::time::{Instant, Span};

/// The charges of one unit: of all agents, or of one.
#[derive(Clone, Debug, Default)]
pub struct History {
    samples: VecDeque<Sample>,
    /// The running total before the first sample.
    base: u64,
    /// The mark of the last charge that has expired.
    expired: u64,
}

/// The running total after a charge, or after the last one of a slice.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The mark of the last charge in it.
    mark: u64,
    stamp: Instant,
    /// Wraps around; only differences matter.
    total: u64,
}

/// One sample of a history, for views and for the byte layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The number of its last charge; charges are numbered per unit.
    pub mark: u64,
    /// When it counts as charged.
    pub stamp: Instant,
    /// The units that are charged and not refunded.
    pub units: u64,
}

/// How finely charges are kept: exact ones at first, then so many slices of each period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolution<'a> {
    /// The periods that views of the history count, each at least twice the one before it but for
    /// the last.
    pub(crate) periods: &'a [Span],
    /// The slices of a period, and the number of charges that are kept exactly.
    pub(crate) slices: u64,
}

/// The largest sum of a history. It only bounds absurd debt, and keeps sums far from overflow.
const MAX_UNITS: u64 = 1 << 62;

/// The samples by which a history may exceed its resolution before it is thinned out.
const SPARE: usize = 64;

impl History {
    /// Creates a history without charges.
    #[must_use]
    pub const fn new() -> Self {
        Self { samples: VecDeque::new(), base: 0, expired: 0 }
    }

    /// Restores a history, or returns `None` if none has these samples.
    #[must_use]
    pub fn of(expired: u64, charges: impl IntoIterator<Item = HistoryEntry>) -> Option<Self> {
        let mut history = Self { expired, ..Self::new() };
        for HistoryEntry { mark, stamp, units } in charges {
            let ascends =
                history.samples.back().is_none_or(|last| last.stamp <= stamp && last.mark < mark);
            if !ascends || units > MAX_UNITS - history.sum() {
                return None;
            }
            let total = history.total().wrapping_add(units);
            history.samples.push_back(Sample { mark, stamp, total });
        }
        Some(history)
    }

    /// Returns the mark of the last charge that has expired.
    #[must_use]
    pub const fn expired(&self) -> u64 {
        self.expired
    }

    /// Returns the samples, oldest first.
    pub fn charges(&self) -> impl ExactSizeIterator<Item = HistoryEntry> + Clone {
        let mut before = self.base;
        self.samples.iter().map(move |sample| {
            let units = sample.total.wrapping_sub(before);
            before = sample.total;
            HistoryEntry { mark: sample.mark, stamp: sample.stamp, units }
        })
    }

    /// Charges units now. `mark` is greater than that of every earlier charge.
    pub(crate) fn charge(&mut self, mark: u64, now: Instant, units: u64, kept: Resolution<'_>) {
        self.expire(now, kept.longest());
        let units = units.min(MAX_UNITS - self.sum());
        if units == 0 {
            return;
        }
        let many = self.has_many(now, kept);
        let total = self.total().wrapping_add(units);
        match self.samples.back_mut() {
            // The last sample is that of the current slice, or many charges come at one instant. A
            // later stamp is safe, an earlier one would free units too soon.
            Some(last) if last.stamp > now || many && last.stamp == now => {
                (last.mark, last.total) = (mark, total);
            }
            _ => {
                let width = if many { kept.slice_width(Span::ZERO) } else { 1 };
                let stamp = Instant(now.0.div_ceil(width).saturating_mul(width));
                self.samples.push_back(Sample { mark, stamp, total });
            }
        }
        if self.samples.len() > kept.capacity() {
            self.thin_out(now, kept);
        }
    }

    /// Charges units that are never refunded.
    pub(crate) fn count(&mut self, now: Instant, units: u64, kept: Resolution<'_>) {
        let mark = self.samples.back().map_or(1, |last| last.mark + 1);
        self.charge(mark, now, units, kept);
    }

    /// Refunds units of a charge, and returns how many those were. A charge that has expired is
    /// refunded nothing.
    pub(crate) fn refund(&mut self, mark: u64, units: u64) -> u64 {
        let Some(at) = self.position(mark) else { return 0 };
        let refunded = units.min(self.units_at(at));
        for later in self.samples.range_mut(at..) {
            later.total = later.total.wrapping_sub(refunded);
        }
        refunded
    }

    /// The sample that holds a charge, and the units charged after it.
    pub(crate) fn find(&self, mark: u64) -> Option<(HistoryEntry, u64)> {
        let at = self.position(mark)?;
        let Sample { mark, stamp, total } = self.samples[at];
        let charged = HistoryEntry { mark, stamp, units: self.units_at(at) };
        Some((charged, self.total().wrapping_sub(total)))
    }

    /// The units of samples for which `is_over` does not hold. It holds for the oldest ones.
    #[inline]
    pub(crate) fn sum_after(&self, is_over: impl Fn(Instant) -> bool) -> u64 {
        let over = self.count_oldest(is_over);
        self.total().wrapping_sub(self.total_before(over))
    }

    /// The units that count in a rolling window at an instant.
    pub(crate) fn used_at(&self, now: Instant, period: Span) -> u64 {
        self.sum_after(|stamp| stamp + period <= now)
    }

    /// The units charged since an instant.
    pub(crate) fn charged_since(&self, since: Instant) -> u64 {
        self.sum_after(|stamp| stamp < since)
    }

    /// The stamp of the sample after whose expiry at most `allowed` units are left.
    pub(crate) fn falls_to(&self, allowed: u64) -> Option<Instant> {
        let total = self.total();
        let over = |sample: &Sample| total.wrapping_sub(sample.total) > allowed;
        self.samples.get(self.samples.partition_point(over)).map(|sample| sample.stamp)
    }

    /// The first stamp for which `is_over` holds. It must hold for all later ones.
    pub(crate) fn first_stamp(&self, is_over: impl Fn(Instant) -> bool) -> Option<Instant> {
        let at = self.samples.partition_point(|sample| !is_over(sample.stamp));
        self.samples.get(at).map(|sample| sample.stamp)
    }

    /// Whether it has no more samples than a resolution allows, and none of the future but the
    /// current slice.
    pub(crate) fn is_within(&self, kept: Resolution<'_>, clock: Instant) -> bool {
        let width = kept.slice_width(Span::ZERO);
        let past = self.last_stamp().is_none_or(|last| last <= clock + Span(width));
        past && self.samples.len() <= kept.capacity()
    }

    /// The mark of the last charge.
    pub(crate) fn last_mark(&self) -> u64 {
        self.samples.back().map_or(0, |last| last.mark)
    }

    /// The stamp of the last charge.
    pub(crate) fn last_stamp(&self) -> Option<Instant> {
        self.samples.back().map(|last| last.stamp)
    }

    /// Drops what counts in no window any more.
    pub(crate) fn expire(&mut self, now: Instant, longest: Span) {
        while let Some(first) = self.samples.front().filter(|first| first.stamp + longest <= now) {
            (self.base, self.expired) = (first.total, first.mark);
            self.samples.pop_front();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self { expired: self.last_mark(), ..Self::new() };
    }

    /// Brings the history to another resolution, because the periods that count it have changed.
    ///
    /// It expires nothing while there is room: a bucket that replays the history counts all of it,
    /// so all of it can be refunded until the next charge.
    pub(crate) fn fit(&mut self, now: Instant, kept: Resolution<'_>) {
        // The last sample may have the end of a slice of a longer period. All its charges are past.
        for sample in self.samples.iter_mut().rev().take_while(|sample| sample.stamp > now) {
            sample.stamp = now;
        }
        if self.samples.len() > kept.capacity() {
            self.expire(now, kept.longest());
            self.thin_out(now, kept);
        }
    }

    /// Whether the shortest period has so many charges that further ones share samples.
    fn has_many(&self, now: Instant, kept: Resolution<'_>) -> bool {
        let (exact, shortest) = (kept.slices as usize, kept.shortest());
        self.samples.len() >= exact && {
            let old = self.count_oldest(|stamp| stamp + shortest <= now);
            self.samples.len() - old >= exact
        }
    }

    /// Drops samples so that each slice of the shortest period that still counts it has one. The
    /// units of a dropped sample count with the next one, unless a shorter period still counts that
    /// one.
    fn thin_out(&mut self, now: Instant, kept: Resolution<'_>) {
        let mut thinned = VecDeque::with_capacity(self.samples.len());
        for sample in self.samples.drain(..).rev() {
            let newer: Option<&Sample> = thinned.front();
            let age = now.since(sample.stamp);
            let width = kept.slice_width(age);
            let shares = newer.is_some_and(|newer| {
                let same_slice = newer.stamp.0 / width == sample.stamp.0 / width;
                same_slice && kept.level(now.since(newer.stamp)) == kept.level(age)
            });
            if !shares {
                thinned.push_front(sample);
            }
        }
        self.samples = thinned;
    }

    /// The number of samples for which `is_over` holds. It holds for the oldest ones.
    #[inline]
    fn count_oldest(&self, is_over: impl Fn(Instant) -> bool) -> usize {
        // A charge drops what the longest period no longer counts, so for that one it is none.
        match self.samples.front() {
            Some(first) if is_over(first.stamp) => {
                self.samples.partition_point(|sample| is_over(sample.stamp))
            }
            _ => 0,
        }
    }

    fn position(&self, mark: u64) -> Option<usize> {
        // A call that ends soon finds its charge in the last sample.
        let last = self.samples.len().saturating_sub(1);
        let at = match last.checked_sub(1).filter(|before| self.samples[*before].mark < mark) {
            Some(_) => last + usize::from(self.samples[last].mark < mark),
            None => self.samples.partition_point(|sample| sample.mark < mark),
        };
        (mark > self.expired && at < self.samples.len()).then_some(at)
    }

    fn units_at(&self, at: usize) -> u64 {
        self.samples[at].total.wrapping_sub(self.total_before(at))
    }

    fn total_before(&self, at: usize) -> u64 {
        at.checked_sub(1).map_or(self.base, |before| self.samples[before].total)
    }

    #[inline]
    fn total(&self) -> u64 {
        self.samples.back().map_or(self.base, |last| last.total)
    }

    fn sum(&self) -> u64 {
        self.total().wrapping_sub(self.base)
    }
}

// Totals depend on what has expired, and a restored history begins at zero.
impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.expired == other.expired && self.charges().eq(other.charges())
    }
}

impl Eq for History {}

impl Resolution<'_> {
    fn shortest(&self) -> Span {
        self.periods.first().copied().unwrap_or(Span::ZERO)
    }

    fn longest(&self) -> Span {
        self.periods.last().copied().unwrap_or(Span::ZERO)
    }

    /// The width of the slices for charges of an age. Periods after the first one have slices of
    /// half the width, because a charge may be late by a slice of each period it passed.
    fn slice_width(&self, age: Span) -> u64 {
        let at = self.level(age);
        let period = self.periods.get(at).copied().unwrap_or_else(|| self.longest());
        let slices = if at == 0 { self.slices } else { 2 * self.slices };
        period.0.div_ceil(slices).max(1)
    }

    /// The index of the shortest period that counts charges of an age.
    fn level(&self, age: Span) -> usize {
        self.periods.partition_point(|period| *period <= age)
    }

    /// The most samples.
    fn capacity(&self) -> usize {
        // The first period has exact charges and then slices, each further one half slices.
        (self.slices as usize + 2) * 2 * self.periods.len().max(1) + SPARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::secs(1);
    const MINUTE: Span = Span::secs(60);
    const ONE: Resolution<'_> = Resolution { periods: &[SECOND], slices: 512 };
    const TWO: Resolution<'_> = Resolution { periods: &[SECOND, MINUTE], slices: 512 };

    #[test]
    fn units_count_for_exactly_one_period() {
        let mut history = History::new();
        history.charge(1, Instant(10), 3, ONE);
        assert_eq!(history.used_at(Instant(1_000_009), SECOND), 3);
        assert_eq!(history.used_at(Instant(1_000_010), SECOND), 0);
    }

    #[test]
    fn merged_charges_are_late_by_at_most_one_slice_and_bounded() {
        let mut history = History::new();
        let width = SECOND.0.div_ceil(512);
        for mark in 0..100_000 {
            let now = Instant(mark * 7);
            history.charge(mark, now, 1, ONE);
            let stamp = history.last_stamp().unwrap();
            assert!(stamp >= now && stamp.since(now).0 <= width, "{stamp:?} for {now:?}");
            assert!(history.samples.len() <= ONE.capacity());
        }
    }

    #[test]
    fn each_period_is_at_most_one_slice_late() {
        let mut history = History::new();
        let mut charged = alloc::vec::Vec::new();
        let (mut now, mut random) = (Instant(0), 7_u64);
        for mark in 0..30_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Dense enough that both periods are sliced and thinned out, and now and then a gap.
            now = now + Span(if mark % 5_000 == 0 { 90_000_000 } else { random >> 52 });
            history.charge(mark, now, 1 + (random >> 20) % 5, TWO);
            charged.push((now, 1 + (random >> 20) % 5));
            assert!(history.samples.len() <= TWO.capacity());
            if mark % 97 != 0 {
                continue;
            }
            for period in [SECOND, MINUTE] {
                let used = |late: u64| {
                    let counts =
                        charged.iter().rev().take_while(|(at, _)| now < *at + period + Span(late));
                    counts.map(|(_, units)| units).sum::<u64>()
                };
                let seen = history.used_at(now, period);
                let (least, most) = (used(0), used(period.0.div_ceil(512)));
                assert!((least..=most).contains(&seen), "{least} <= {seen} <= {most} at {mark}");
            }
        }
    }

    #[test]
    fn a_refund_finds_its_charge_and_is_nothing_once_that_expired() {
        let mut history = History::new();
        history.charge(4, Instant(5), 10, ONE);
        history.charge(5, Instant(5), 1, ONE);
        assert_eq!(history.refund(4, 4), 4);
        assert_eq!(history.used_at(Instant(5), SECOND), 7);
        history.charge(6, Instant(1_000_005), 2, ONE);
        assert_eq!((history.refund(4, 6), history.refund(5, 1)), (0, 0));
        assert_eq!(history.used_at(Instant(1_000_005), SECOND), 2);
    }

    #[test]
    fn a_charge_that_shares_the_first_sample_is_refunded() {
        let mut history = History::new();
        for mark in 1..=3_000 {
            history.charge(mark, Instant(mark * 2_000), 2, TWO);
        }
        history.thin_out(Instant(40_000_000), TWO);
        assert!(history.samples[0].mark > 1, "several charges share the first sample");
        assert_eq!(history.refund(1, 2), 2);
    }

    #[test]
    fn restored_it_is_the_same() {
        let mut history = History::new();
        for mark in 1..2_000 {
            history.charge(mark, Instant(mark * 900), mark % 7, ONE);
            if mark % 3 == 0 {
                history.refund(mark / 3 * 2, 2);
            }
        }
        let again = History::of(history.expired(), history.charges()).unwrap();
        assert_eq!(again, history);
        assert_eq!(
            again.used_at(Instant(2_000_000), SECOND),
            history.used_at(Instant(2_000_000), SECOND)
        );
    }
}

//! The arithmetic of a continuously refilled token bucket, in exact integers.
//!
//! The bucket stores what is missing from it, multiplied by the period, so nothing is ever rounded.
//! The oldest charge is refilled first; which charges those were is in the unit's history.

use crate::time::{Instant, Span};
use crate::usage::history::History;

/// A token bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The units that are missing, multiplied by the period.
    pub missing: u128,
    /// When that was computed.
    pub at: Instant,
    /// Charges with a smaller mark cannot be refunded: their units were forgiven or assumed.
    pub refundable_from: u64,
}

/// How a bucket refills: so many units per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refill {
    pub(crate) amount: u64,
    pub(crate) period: Span,
}

/// A charge that is refunded in part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refund {
    /// The mark of the charge.
    pub(crate) mark: u64,
    /// What was charged under it.
    pub(crate) charged: u64,
    /// How much of that was not used.
    pub(crate) unused: u64,
    /// Units that others may have taken since then.
    pub(crate) by_others: u64,
}

/// The largest sum of a bucket. It only bounds absurd debt, and keeps sums far from overflow.
const MAX_UNITS: u128 = 1 << 62;

impl Bucket {
    /// Charges units now.
    pub(crate) fn charge(&mut self, now: Instant, units: u64, refill: Refill) {
        self.settle(now, refill);
        let most = MAX_UNITS * refill.unit();
        self.missing = (self.missing + u128::from(units) * refill.unit()).min(most);
    }

    /// Returns the unused units of a charge, as far as they are not refilled already. Must precede
    /// the refund in the history.
    pub(crate) fn refund(&mut self, now: Instant, back: Refund, history: &History, refill: Refill) {
        self.settle(now, refill);
        let found = history.find(back.mark).filter(|_| back.mark >= self.refundable_from);
        let Some((sample, after)) = found else { return };
        let unit = refill.unit();
        let after = u128::from(after.saturating_add(back.by_others)) * unit;
        let unrefilled = self.missing.saturating_sub(after).min(u128::from(sample.units) * unit);
        let refilled = u128::from(sample.units) * unit - unrefilled;
        // The sample may hold other charges. This one counts as the oldest of them, whose units are
        // refilled first: that gives back the least.
        let own = (u128::from(back.charged) * unit).saturating_sub(refilled);
        self.missing -= own.min(unrefilled).min(u128::from(back.unused) * unit);
    }

    /// The units that are missing at an instant, rounded up.
    pub(crate) fn used_at(&self, now: Instant, refill: Refill) -> u64 {
        let missing = self.missing_at(now, refill).div_ceil(refill.unit());
        u64::try_from(missing).unwrap_or(u64::MAX)
    }

    /// The first instant from `from` on at which at most `allowed` units are missing.
    pub(crate) fn falls_to(&self, allowed: u64, from: Instant, refill: Refill) -> Instant {
        let over = self.missing.saturating_sub(u128::from(allowed) * refill.unit());
        let wait = over.div_ceil(u128::from(refill.amount.max(1)));
        from.max(self.at + Span(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Changes the refill rate. What is missing is measured in units × period, so with a new period
    /// it is rounded up to whole units.
    pub(crate) fn rescale(&mut self, now: Instant, old: Refill, new: Refill) {
        self.settle(now, old);
        if old.period != new.period {
            self.missing = self.missing.div_ceil(old.unit()) * new.unit();
        }
    }

    /// Limits the missing units to `burst`, because usage in shadow mode is no debt. Earlier
    /// charges can no longer be refunded, or a refund would return units that were forgiven.
    pub(crate) fn forgive_debt(
        &mut self,
        now: Instant,
        burst: u64,
        next_mark: u64,
        refill: Refill,
    ) {
        if self.used_at(now, refill) > burst {
            *self = Self::empty(now, burst, next_mark, refill);
        }
    }

    /// The bucket with so many units fewer.
    pub(crate) fn with(mut self, units: u64, now: Instant, refill: Refill) -> Self {
        self.charge(now, units, refill);
        self
    }

    /// A bucket from which `burst` units are missing, for whatever reason.
    pub(crate) fn empty(now: Instant, burst: u64, next_mark: u64, refill: Refill) -> Self {
        let missing = u128::from(burst) * refill.unit();
        Self { missing, at: now, refundable_from: next_mark }
    }

    fn settle(&mut self, now: Instant, refill: Refill) {
        self.missing = self.missing_at(now, refill);
        self.at = self.at.max(now);
    }

    fn missing_at(&self, now: Instant, refill: Refill) -> u128 {
        let refilled = u128::from(now.since(self.at).0) * u128::from(refill.amount);
        self.missing.saturating_sub(refilled)
    }
}

impl Refill {
    /// One unit, in what `missing` counts.
    fn unit(self) -> u128 {
        u128::from(self.period.0.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::history::Resolution;

    const PER_SECOND: Refill = Refill { amount: 3, period: Span::secs(1) };
    const KEPT: Resolution<'_> = Resolution { periods: &[Span::secs(9)], slices: 512 };

    /// A bucket with its history.
    #[derive(Default)]
    struct Charges(Bucket, History, u64);

    impl Charges {
        fn charge(&mut self, at: u64, units: u64) -> (u64, u64) {
            self.2 += 1;
            self.0.charge(Instant(at), units, PER_SECOND);
            self.1.charge(self.2, Instant(at), units, KEPT);
            (self.2, units)
        }

        fn refund(&mut self, at: u64, (mark, charged): (u64, u64), unused: u64) {
            let back = Refund { mark, charged, unused, by_others: 0 };
            self.0.refund(Instant(at), back, &self.1, PER_SECOND);
            self.1.refund(mark, unused);
        }
    }

    #[test]
    fn refill_is_exact_to_the_microsecond() {
        let mut bucket = Bucket::default();
        bucket.charge(Instant(0), 1, PER_SECOND);
        assert_eq!(bucket.falls_to(0, Instant(0), PER_SECOND), Instant(333_334));
        assert_eq!(bucket.used_at(Instant(333_333), PER_SECOND), 1);
        assert_eq!(bucket.used_at(Instant(333_334), PER_SECOND), 0);
    }

    #[test]
    fn a_refund_after_the_refill_gives_nothing() {
        let mut charges = Charges::default();
        let first = charges.charge(0, 3);
        charges.charge(1_000_000, 3);
        charges.refund(1_000_000, first, 3);
        assert_eq!(charges.0.used_at(Instant(1_000_000), PER_SECOND), 3);
    }

    #[test]
    fn refunds_in_any_order_give_everything_back() {
        let mut charges = Charges::default();
        let (first, second) = (charges.charge(0, 2), charges.charge(0, 3));
        charges.refund(0, second, 3);
        charges.refund(0, first, 2);
        assert_eq!(charges.0.used_at(Instant(0), PER_SECOND), 0);
    }

    #[test]
    fn a_charge_that_is_partly_refilled_gives_back_the_rest() {
        let mut charges = Charges::default();
        let first = charges.charge(0, 3);
        charges.charge(0, 1);
        charges.refund(100_000, first, 1);
        assert_eq!(charges.0.falls_to(0, Instant(100_000), PER_SECOND), Instant(1_000_000));
        charges.refund(100_000, (first.0, 2), 2);
        assert_eq!(charges.0.falls_to(0, Instant(100_000), PER_SECOND), Instant(433_334));
    }
}

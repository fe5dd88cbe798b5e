//! The arithmetic of a continuously refilled token bucket, in exact integers.
//!
//! The bucket stores its missing units: a queue of charges, of which the oldest is refilled first.
//! A refill of less than a unit is stored as credit, multiplied by the period, so nothing is ever
//! rounded. `usage/counter.rs` uses the bucket as one way to count.
//!
//! Invariant: marks strictly ascend, `used` is the sum of all charges, and `credit` is less than
//! the first charge.

use alloc::collections::VecDeque;

use crate::time::{Instant, Span};

/// The missing units of a token bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The charges that are not refilled, oldest first.
    charges: VecDeque<BucketCharge>,
    used: u64,
    /// The refilled part of the first charge: units × period in microseconds.
    credit: u128,
    /// The instant to which the refill is accounted.
    at: Instant,
    /// The mark of the next charge.
    next: u64,
}

/// A charge that is not completely refilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCharge {
    /// The handle of the charge for a refund: a sequence number, not an instant.
    pub mark: u64,
    /// The units that are still missing.
    pub units: u64,
}

/// The refill rate of a bucket: `amount` units per `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refill {
    pub(crate) amount: u64,
    pub(crate) period: Span,
}

/// The fields of a bucket that a snapshot stores besides the charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketFacts {
    /// The refilled part of the first charge: units × period in microseconds.
    pub credit: u128,
    /// The instant to which the refill is accounted.
    pub at: Instant,
    /// The mark of the next charge.
    pub next: u64,
}

impl Bucket {
    /// Restores a bucket from a snapshot, or returns `None` if the charges break the invariant.
    #[must_use]
    pub fn of(facts: BucketFacts, charges: impl IntoIterator<Item = BucketCharge>) -> Option<Self> {
        let BucketFacts { credit, at, next } = facts;
        let mut bucket = Self { credit, at, next, ..Self::default() };
        for charge in charges {
            let after = bucket.charges.back().is_none_or(|last| last.mark < charge.mark);
            let fits = charge.units <= MAX_UNITS - bucket.used;
            if !after || !fits || charge.mark >= next || bucket.charges.len() == MAX_CHARGES {
                return None;
            }
            bucket.used += charge.units;
            bucket.charges.push_back(charge);
        }
        Some(bucket)
    }

    /// Whether the credit is less than the first charge, at this refill rate.
    pub(crate) fn is_sound(&self, refill: Refill) -> bool {
        let first = self.charges.front().map_or(0, |first| first.units);
        self.credit == 0 || self.credit < u128::from(first) * refill.unit_credit()
    }

    /// Returns the fields that a snapshot stores besides the charges.
    #[must_use]
    pub const fn facts(&self) -> BucketFacts {
        BucketFacts { credit: self.credit, at: self.at, next: self.next }
    }

    /// Returns the charges that are not refilled, oldest first.
    pub fn charges(&self) -> impl ExactSizeIterator<Item = BucketCharge> + Clone {
        self.charges.iter().copied()
    }

    /// Charges units now and returns the mark that [`Bucket::refund`] needs.
    pub(crate) fn charge(&mut self, now: Instant, units: u64, refill: Refill) -> u64 {
        self.settle(now, refill);
        let units = units.min(MAX_UNITS - self.used);
        if units == 0 {
            return self.next;
        }
        self.used += units;
        // A merged charge shares the mark, so a refund of either may return units of both.
        if self.charges.len() == MAX_CHARGES
            && let Some(last) = self.charges.back_mut()
        {
            last.units += units;
            return last.mark;
        }
        let mark = self.next;
        self.next = self.next.saturating_add(1);
        self.charges.push_back(BucketCharge { mark, units });
        mark
    }

    /// Returns units of a charge that are not refilled, and how many those were.
    pub(crate) fn refund(&mut self, now: Instant, mark: u64, units: u64, refill: Refill) -> u64 {
        self.settle(now, refill);
        let Ok(at) = self.charges.binary_search_by(|charge| charge.mark.cmp(&mark)) else {
            return 0;
        };
        // Part of the first charge may be refilled, and not in whole units. If what would remain of
        // the charge is already refilled, the whole charge goes and its credit with it: otherwise
        // that credit would refill the next charge as well.
        let refilled = if at == 0 { self.credit } else { 0 };
        let all = self.charges[at].units;
        let refunded = if u128::from(all - units.min(all)) * refill.unit_credit() <= refilled {
            if at == 0 {
                self.credit = 0;
            }
            all
        } else {
            units
        };
        self.charges[at].units -= refunded;
        self.used -= refunded;
        self.settle(now, refill);
        refunded
    }

    /// Accounts for the refill up to now.
    pub(crate) fn settle(&mut self, now: Instant, refill: Refill) {
        self.credit = self.credit_at(now, refill);
        self.at = self.at.max(now);
        while let Some(first) = self.charges.front() {
            let full = u128::from(first.units) * refill.unit_credit();
            if self.credit < full {
                return;
            }
            self.credit -= full;
            self.used -= first.units;
            self.charges.pop_front();
        }
        // A full bucket does not save credit for later charges.
        self.credit = 0;
    }

    /// The units that are missing at an instant, rounded up.
    pub(crate) fn used_at(&self, now: Instant, refill: Refill) -> u64 {
        let all = u128::from(self.used) * refill.unit_credit();
        let missing = all.saturating_sub(self.credit_at(now, refill));
        u64::try_from(missing.div_ceil(refill.unit_credit())).unwrap_or(u64::MAX)
    }

    /// The first instant from `from` on at which at most `allowed` units are missing.
    pub(crate) fn falls_to(&self, allowed: u64, from: Instant, refill: Refill) -> Instant {
        let over = u128::from(self.used.saturating_sub(allowed)) * refill.unit_credit();
        let wait = over.saturating_sub(self.credit).div_ceil(u128::from(refill.amount.max(1)));
        let wait = Span(u64::try_from(wait).unwrap_or(u64::MAX));
        from.max(self.at + wait)
    }

    /// Changes the refill rate. Credit is measured in units × period, so a new period drops it.
    pub(crate) fn rescale(&mut self, now: Instant, old: Refill, new: Refill) {
        self.settle(now, old);
        if old.period != new.period {
            self.credit = 0;
        }
    }

    /// Limits the missing units to `burst`, because usage in shadow mode is no debt. The old
    /// charges can no longer be refunded, or a refund would return units that were forgiven.
    pub(crate) fn forgive_debt(&mut self, now: Instant, burst: u64, refill: Refill) {
        if self.used_at(now, refill) > burst {
            self.assume_empty(now, burst, refill);
        }
    }

    /// Assumes an empty bucket: `burst` units are missing.
    pub(crate) fn assume_empty(&mut self, now: Instant, burst: u64, refill: Refill) {
        *self = Self { at: now, next: self.next, ..Self::default() };
        self.charge(now, burst, refill);
    }

    fn credit_at(&self, now: Instant, refill: Refill) -> u128 {
        let refilled = u128::from(now.since(self.at).0) * u128::from(refill.amount);
        self.credit.saturating_add(refilled)
    }
}

impl Refill {
    /// The credit of one unit.
    fn unit_credit(self) -> u128 {
        u128::from(self.period.0.max(1))
    }
}

/// The largest sum of a bucket. It only bounds absurd debt, and keeps sums far from overflow.
const MAX_UNITS: u64 = 1 << 62;

/// The number of charges that can be refunded separately; further ones merge into the last.
const MAX_CHARGES: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    const PER_SECOND: Refill = Refill { amount: 3, period: Span::secs(1) };

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
        let mut bucket = Bucket::default();
        let mark = bucket.charge(Instant(0), 3, PER_SECOND);
        bucket.charge(Instant(1_000_000), 3, PER_SECOND);
        assert_eq!(bucket.refund(Instant(1_000_000), mark, 3, PER_SECOND), 0);
        assert_eq!(bucket.used_at(Instant(1_000_000), PER_SECOND), 3);
    }

    #[test]
    fn refunds_in_any_order_give_everything_back() {
        let mut bucket = Bucket::default();
        let first = bucket.charge(Instant(0), 2, PER_SECOND);
        let second = bucket.charge(Instant(0), 3, PER_SECOND);
        assert_eq!(bucket.refund(Instant(0), second, 3, PER_SECOND), 3);
        assert_eq!(bucket.refund(Instant(0), first, 2, PER_SECOND), 2);
        assert_eq!(bucket.used_at(Instant(0), PER_SECOND), 0);
    }

    #[test]
    fn a_charge_that_is_partly_refilled_gives_back_the_rest() {
        let mut bucket = Bucket::default();
        let mark = bucket.charge(Instant(0), 3, PER_SECOND);
        bucket.charge(Instant(0), 1, PER_SECOND);
        bucket.refund(Instant(100_000), mark, 1, PER_SECOND);
        assert_eq!(bucket.falls_to(0, Instant(100_000), PER_SECOND), Instant(1_000_000));
        bucket.refund(Instant(100_000), mark, 2, PER_SECOND);
        assert_eq!(bucket.falls_to(0, Instant(100_000), PER_SECOND), Instant(433_334));
    }

    #[test]
    fn charges_are_bounded() {
        let mut bucket = Bucket::default();
        for n in 0..5_000 {
            bucket.charge(Instant(n), 1, PER_SECOND);
        }
        assert!(bucket.charges().len() <= MAX_CHARGES);
        assert_eq!(bucket.used_at(Instant(4_999), PER_SECOND), 5_000);
    }
}

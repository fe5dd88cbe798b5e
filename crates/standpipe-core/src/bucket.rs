//! The arithmetic of a bucket that refills continuously, in exact integers.
//!
//! It keeps what is missing rather than what is there: a queue of charges, of which the oldest is
//! refilled first. Nothing is ever rounded, because the refill that does not fill a whole unit yet
//! is kept multiplied by the period.
//!
//! Invariant: marks ascend strictly, `used` is the sum of all charges, and `credit` is less than
//! the first of them.

use alloc::collections::VecDeque;

use crate::time::{Instant, Span};

/// What is missing from a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Oldest first.
    charges: VecDeque<Missing>,
    used: u64,
    /// What has been refilled of the first charge: units × period in microseconds.
    credit: u128,
    /// When all this was so.
    at: Instant,
    /// The mark of the next charge.
    next: u64,
}

/// A charge that is not refilled yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name, for a refund.
    pub mark: u64,
    /// How many units of it count.
    pub units: u64,
}

/// How a bucket refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refill {
    pub(crate) amount: u64,
    pub(crate) period: Span,
}

/// What of a bucket a snapshot holds besides its charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketFacts {
    /// See [`Bucket`].
    pub credit: u128,
    /// See [`Bucket`].
    pub at: Instant,
    /// See [`Bucket`].
    pub next: u64,
}

impl Bucket {
    /// One that holds these, if they can be a bucket's.
    #[must_use]
    pub fn of(facts: BucketFacts, charges: impl IntoIterator<Item = Missing>) -> Option<Self> {
        let BucketFacts { credit, at, next } = facts;
        let mut bucket = Self { credit, at, next, ..Self::default() };
        for charge in charges {
            let after = bucket.charges.back().is_none_or(|last| last.mark < charge.mark);
            let fits = charge.units <= MOST_USED - bucket.used;
            if !after || !fits || charge.mark >= next || bucket.charges.len() == MOST_CHARGES {
                return None;
            }
            bucket.used += charge.units;
            bucket.charges.push_back(charge);
        }
        Some(bucket)
    }

    /// Whether it can be a bucket that refills like this.
    pub(crate) fn is_sound(&self, refill: Refill) -> bool {
        let first = self.charges.front().map_or(0, |first| first.units);
        self.credit == 0 || self.credit < u128::from(first) * refill.whole()
    }

    /// What a snapshot holds besides its charges.
    #[must_use]
    pub const fn facts(&self) -> BucketFacts {
        BucketFacts { credit: self.credit, at: self.at, next: self.next }
    }

    /// The charges that are not refilled yet, oldest first.
    pub fn charges(&self) -> impl ExactSizeIterator<Item = Missing> + Clone {
        self.charges.iter().copied()
    }

    /// Charges units now. Answers the mark under which they can be found for a refund.
    pub(crate) fn charge(&mut self, now: Instant, units: u64, refill: Refill) -> u64 {
        self.settle(now, refill);
        let units = units.min(MOST_USED - self.used);
        if units == 0 {
            return self.next;
        }
        self.used += units;
        if self.charges.len() == MOST_CHARGES
            && let Some(last) = self.charges.back_mut()
        {
            last.units += units;
            return last.mark;
        }
        let mark = self.next;
        self.next = self.next.saturating_add(1);
        self.charges.push_back(Missing { mark, units });
        mark
    }

    /// Takes back what of a charge has not been refilled yet.
    pub(crate) fn refund(&mut self, now: Instant, mark: u64, units: u64, refill: Refill) -> u64 {
        self.settle(now, refill);
        let Ok(at) = self.charges.binary_search_by(|charge| charge.mark.cmp(&mark)) else {
            return 0;
        };
        // Of the first a part may be refilled, and not in whole units.
        let refilled = if at == 0 { self.credit } else { 0 };
        let all = self.charges[at].units;
        let back = if u128::from(all - units.min(all)) * refill.whole() <= refilled {
            if at == 0 {
                self.credit = 0;
            }
            all
        } else {
            units
        };
        self.charges[at].units -= back;
        self.used -= back;
        self.settle(now, refill);
        back
    }

    /// Brings everything up to now.
    pub(crate) fn settle(&mut self, now: Instant, refill: Refill) {
        self.credit = self.credit_at(now, refill);
        self.at = self.at.max(now);
        while let Some(first) = self.charges.front() {
            let whole = u128::from(first.units) * refill.whole();
            if self.credit < whole {
                return;
            }
            self.credit -= whole;
            self.used -= first.units;
            self.charges.pop_front();
        }
        self.credit = 0;
    }

    /// The units, rounded up, that are missing at an instant.
    pub(crate) fn used_at(&self, now: Instant, refill: Refill) -> u64 {
        let all = u128::from(self.used) * refill.whole();
        let missing = all.saturating_sub(self.credit_at(now, refill));
        u64::try_from(missing.div_ceil(refill.whole())).unwrap_or(u64::MAX)
    }

    /// The first instant from `from` on at which at most `allowed` units are missing.
    pub(crate) fn falls_to(&self, allowed: u64, from: Instant, refill: Refill) -> Instant {
        let over = u128::from(self.used.saturating_sub(allowed)) * refill.whole();
        let wait = over.saturating_sub(self.credit).div_ceil(u128::from(refill.amount.max(1)));
        let wait = Span(u64::try_from(wait).unwrap_or(u64::MAX));
        from.max(self.at + wait)
    }

    /// The same units missing, with another period: what was refilled of the first is lost.
    pub(crate) fn rescale(&mut self, now: Instant, old: Refill, new: Refill) {
        self.settle(now, old);
        if old.period != new.period {
            self.credit = 0;
        }
    }

    /// Counts as empty.
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
    /// One unit, in the measure of credit.
    fn whole(self) -> u128 {
        u128::from(self.period.0.max(1))
    }
}

/// The most units a bucket counts: debt beyond this is absurd, and sums stay far from overflow.
const MOST_USED: u64 = 1 << 62;

/// Charges that can be refunded one by one; further ones join the last.
const MOST_CHARGES: usize = 1_024;

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
        assert!(bucket.charges().len() <= MOST_CHARGES);
        assert_eq!(bucket.used_at(Instant(4_999), PER_SECOND), 5_000);
    }
}

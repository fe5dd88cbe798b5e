//! A bucket that refills continuously, in exact integers.

use super::super::call::Unit;
use super::super::refusal::Level;

/// What is in a bucket. Less than nothing after an answer was longer than what was left.
#[derive(Clone, Copy, Debug)]
pub(in crate::provider) struct Bucket {
    amount: u64,
    period: u64,
    burst: u64,
    /// In units × period, so that a refill is never rounded.
    content: i128,
    at: u64,
}

impl Bucket {
    pub(super) fn new(amount: u64, period: u64, burst: u64) -> Self {
        let (amount, period) = (amount.max(1), period.max(1));
        let content = i128::from(burst) * i128::from(period);
        Self { amount, period, burst, content, at: 0 }
    }

    pub(super) const fn period(&self) -> u64 {
        self.period
    }

    /// More than it holds is never there: then the answer is when it is full.
    pub(super) fn lacks(&self, now: u64, need: u64) -> Option<u64> {
        let content = self.content_at(now);
        if content >= self.scaled(need) {
            return None;
        }
        Some(self.refill_of(self.scaled(need.min(self.burst)) - content).max(1))
    }

    pub(super) fn charge(&mut self, now: u64, units: u64) {
        self.advance(now);
        self.content -= self.scaled(units);
    }

    /// What runs over is lost, like any refill.
    pub(super) fn refund(&mut self, now: u64, units: u64) {
        self.advance(now);
        self.content += self.scaled(units);
    }

    pub(super) fn level(&self, unit: Unit, now: u64) -> Level {
        let content = self.content_at(now);
        let left = u64::try_from(content.max(0) / i128::from(self.period)).unwrap_or(u64::MAX);
        Level {
            unit,
            amount: self.amount,
            period: self.period,
            left: left.min(self.amount),
            full_in: self.refill_of(self.full() - content),
            shown: self.burst >= self.amount,
        }
    }

    fn advance(&mut self, now: u64) {
        self.content = self.content_at(now);
        self.at = self.at.max(now);
    }

    fn content_at(&self, now: u64) -> i128 {
        let passed = i128::from(now.saturating_sub(self.at));
        (self.content + passed * i128::from(self.amount)).min(self.full())
    }

    fn full(&self) -> i128 {
        self.scaled(self.burst)
    }

    fn scaled(&self, units: u64) -> i128 {
        i128::from(units) * i128::from(self.period)
    }

    /// How long so much takes to come back.
    fn refill_of(&self, scaled: i128) -> u64 {
        let scaled = u128::try_from(scaled).unwrap_or(0);
        u64::try_from(scaled.div_ceil(u128::from(self.amount))).unwrap_or(u64::MAX)
    }
}

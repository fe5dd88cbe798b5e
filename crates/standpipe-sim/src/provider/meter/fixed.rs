//! Units of a period of the calendar: at its end, all are there again.

use super::super::call::Unit;
use super::super::refusal::Level;

/// What was used in the current period.
#[derive(Clone, Copy, Debug)]
pub(in crate::provider) struct Fixed {
    amount: u64,
    period: u64,
    /// How far into a period the world started.
    phase: u64,
    /// The period that `used` is of.
    window: u64,
    used: u64,
}

impl Fixed {
    pub(super) fn new(amount: u64, period: u64, phase: u64) -> Self {
        Self { amount, period: period.max(1), phase, window: 0, used: 0 }
    }

    /// The number of the period that an instant lies in; the world starts in number 0.
    pub(super) const fn window(&self, now: u64) -> u64 {
        (now + self.phase) / self.period
    }

    pub(super) const fn lacks(&self, now: u64, need: u64) -> Option<u64> {
        if self.used_at(now).saturating_add(need) <= self.amount || need == 0 {
            return None;
        }
        Some(self.rest(now))
    }

    pub(super) const fn charge(&mut self, now: u64, units: u64) {
        self.used = self.used_at(now).saturating_add(units);
        self.window = self.window(now);
    }

    /// Takes units back if the period in which they were charged is not over.
    pub(super) const fn refund(&mut self, now: u64, at: u64, units: u64) {
        if self.window(now) == self.window(at) {
            self.used = self.used_at(now).saturating_sub(units);
        }
    }

    pub(super) const fn level(&self, unit: Unit, now: u64) -> Level {
        let used = self.used_at(now);
        Level {
            unit,
            amount: self.amount,
            period: self.period,
            left: self.amount.saturating_sub(used),
            full_in: self.rest(now),
            shown: true,
        }
    }

    const fn used_at(&self, now: u64) -> u64 {
        if self.window(now) == self.window { self.used } else { 0 }
    }

    /// How long the period goes on.
    const fn rest(&self, now: u64) -> u64 {
        self.period - (now + self.phase) % self.period
    }
}

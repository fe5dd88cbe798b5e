//! Units that count for exactly one period after they were charged.

use std::collections::VecDeque;

use super::super::call::Unit;
use super::super::refusal::Level;

/// The units of the last period, and when they were charged.
#[derive(Clone, Debug)]
pub(in crate::provider) struct Rolling {
    amount: u64,
    period: u64,
    /// Oldest first; one for each instant.
    entries: VecDeque<(u64, u64)>,
    used: u64,
}

impl Rolling {
    pub(super) fn new(amount: u64, period: u64) -> Self {
        Self { amount, period: period.max(1), entries: VecDeque::new(), used: 0 }
    }

    pub(super) const fn period(&self) -> u64 {
        self.period
    }

    /// More than the amount is never there: then the answer is when nothing counts any more.
    pub(super) fn lacks(&mut self, now: u64, need: u64) -> Option<u64> {
        self.expire(now);
        if need == 0 || self.used.saturating_add(need) <= self.amount {
            return None;
        }
        let allowed = self.amount.saturating_sub(need);
        let mut used = self.used;
        for (at, units) in &self.entries {
            used -= units;
            if used <= allowed {
                return Some(at + self.period - now);
            }
        }
        Some(1)
    }

    pub(super) fn charge(&mut self, now: u64, units: u64) {
        self.expire(now);
        if units == 0 {
            return;
        }
        self.used += units;
        match self.entries.back_mut() {
            Some((at, counted)) if *at >= now => *counted += units,
            _ => self.entries.push_back((now, units)),
        }
    }

    /// Takes units back from where they were charged, if they still count.
    pub(super) fn refund(&mut self, at: u64, units: u64) {
        let Ok(found) = self.entries.binary_search_by_key(&at, |(at, _)| *at) else { return };
        let counted = &mut self.entries[found].1;
        let back = units.min(*counted);
        *counted -= back;
        self.used -= back;
    }

    pub(super) fn level(&self, unit: Unit, now: u64) -> Level {
        let gone = self.entries.iter().take_while(|(at, _)| at + self.period <= now);
        let used = self.used - gone.map(|(_, units)| units).sum::<u64>();
        let last = self.entries.iter().rfind(|(_, units)| *units > 0);
        Level {
            unit,
            amount: self.amount,
            period: self.period,
            left: self.amount.saturating_sub(used),
            full_in: last.map_or(0, |(at, _)| (at + self.period).saturating_sub(now)),
            shown: true,
        }
    }

    fn expire(&mut self, now: u64) {
        while let Some((at, units)) = self.entries.front()
            && at + self.period <= now
        {
            self.used -= units;
            self.entries.pop_front();
        }
    }
}

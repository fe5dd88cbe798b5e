//! What a provider has seen, for stories and scorecards.

use crate::calendar::SECOND;

/// Everything a provider has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Every call of ours, in order of arrival.
    pub calls: Vec<Seen>,
    /// Calls of others on the key that were accepted.
    pub foreign_accepted: u64,
    /// Calls of others on the key that were refused.
    pub foreign_refused: u64,
    /// By rule and period: what our calls used.
    used: Vec<Vec<u64>>,
}

/// A call as a provider saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it arrived.
    pub at: u64,
    /// Whose it was.
    pub agent: u32,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was within every rule.
    Accepted,
    /// It was accepted though it went over the rule of this number: the provider is lenient.
    Over(usize),
    /// It was refused by the rule of this number, a quota that a client can keep if it counts its
    /// own calls.
    OverQuota(usize),
    /// It was refused by the rule of this number, for another reason than a quota.
    Turned(usize),
}

impl Verdict {
    /// The rule that refused it.
    #[must_use]
    pub const fn refused_by(self) -> Option<usize> {
        match self {
            Self::Accepted | Self::Over(_) => None,
            Self::OverQuota(rule) | Self::Turned(rule) => Some(rule),
        }
    }
}

impl Record {
    /// How many calls arrived.
    #[must_use]
    pub const fn arrived(&self) -> usize {
        self.calls.len()
    }

    /// How many were accepted.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.arrived() - self.refused()
    }

    /// How many were refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused_from(0)
    }

    /// How many were refused from an instant on.
    #[must_use]
    pub fn refused_from(&self, from: u64) -> usize {
        self.refusals().filter(|seen| seen.at >= from).count()
    }

    /// How many the rule of this number refused.
    #[must_use]
    pub fn refused_by(&self, rule: usize) -> usize {
        self.refusals().filter(|seen| seen.verdict.refused_by() == Some(rule)).count()
    }

    /// How many were more than a quota allows, refused or not.
    #[must_use]
    pub fn over_admissions(&self) -> usize {
        let over = |seen: &&Seen| matches!(seen.verdict, Verdict::Over(_) | Verdict::OverQuota(_));
        self.calls.iter().filter(over).count()
    }

    /// The most arrivals in any second, refused ones and all.
    #[must_use]
    pub fn peak(&self) -> usize {
        peak(&self.calls)
    }

    /// What our calls used of the rule of this number, period by period, from the start of the
    /// world to the last use. Nothing for rules that do not count units.
    #[must_use]
    pub fn used(&self, rule: usize) -> &[u64] {
        self.used.get(rule).map_or(&[], Vec::as_slice)
    }

    /// The refused calls.
    pub fn refusals(&self) -> impl Iterator<Item = &Seen> {
        self.calls.iter().filter(|seen| seen.verdict.refused_by().is_some())
    }

    pub(super) fn use_more(&mut self, rule: usize, slot: Option<usize>, units: u64) {
        if let Some(used) = self.slot(rule, slot) {
            *used = used.saturating_add(units);
        }
    }

    pub(super) fn use_less(&mut self, rule: usize, slot: Option<usize>, units: u64) {
        if let Some(used) = self.slot(rule, slot) {
            *used = used.saturating_sub(units);
        }
    }

    fn slot(&mut self, rule: usize, slot: Option<usize>) -> Option<&mut u64> {
        let slot = slot.filter(|slot| *slot < MOST_SLOTS)?;
        if self.used.len() <= rule {
            self.used.resize_with(rule + 1, Vec::new);
        }
        let used = &mut self.used[rule];
        if used.len() <= slot {
            used.resize(slot + 1, 0);
        }
        used.get_mut(slot)
    }
}

/// The most arrivals in any second.
pub(crate) fn peak(calls: &[Seen]) -> usize {
    let mut first = 0;
    let mut peak = 0;
    for (last, seen) in calls.iter().enumerate() {
        while calls[first].at + SECOND <= seen.at {
            first += 1;
        }
        peak = peak.max(last + 1 - first);
    }
    peak
}

/// Periods that are kept apart: a period of a microsecond must not fill the memory.
const MOST_SLOTS: usize = 1 << 20;

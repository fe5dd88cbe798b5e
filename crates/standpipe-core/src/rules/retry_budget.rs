//! The retry budget: limits the share of admissions that are retries, over all processes.
//!
//! A retry draws on the budget when it is admitted or queued. A first attempt never does.

use crate::bounds;
use crate::config::policy::RetryBudget;
use crate::event::Reserve;
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::rules::{Admits, CallRule, Effect, Named};
use crate::state::State;
use crate::time::{Instant, Span};
use crate::usage::history::{History, Resolution};

/// The last minute's admissions and retries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryUsage {
    /// All admissions.
    pub admissions: History,
    /// The retries among them.
    pub retries: History,
}

/// The interval over which admissions and retries are counted.
const MINUTE: Span = Span::secs(60);
const KEPT: Resolution<'_> = Resolution { periods: &[MINUTE], slices: bounds::AGENT_SLICES };

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::RetryBudget,
    effect: Effect::Refuse,
    admits: |state, candidate, now| {
        state.retry_left_from(candidate, now).map_or(Admits::Unknown, |at| Admits::at(at, now))
    },
    names: |_, _, _| Named { limit: None, short_by: 1 },
};

impl State {
    fn budget(&self) -> Option<RetryBudget> {
        self.facts.config.as_ref()?.policy.retries
    }

    /// The first instant from `now` on at which the budget admits a candidate, if only time passes.
    /// For a first attempt that is `now`.
    pub(crate) fn retry_left_from(
        &self,
        candidate: &Candidate<'_>,
        now: Instant,
    ) -> Option<Instant> {
        if candidate.is_retry { self.retries_from(now) } else { Some(now) }
    }

    /// Returns the first instant from `now` on at which a retry is admitted, if only time passes;
    /// `None` if the budget never admits one.
    #[must_use]
    pub fn retries_from(&self, now: Instant) -> Option<Instant> {
        let Some(budget) = self.budget() else { return Some(now) };
        let left = |at: Instant| {
            let admitted = self.facts.retry_usage.admissions.used_at(at, MINUTE);
            let share = crate::config::mul_div(admitted, u64::from(budget.per_mille), 1_000);
            let used = self.facts.retry_usage.retries.used_at(at, MINUTE);
            used < share.max(u64::from(budget.least))
        };
        // Time frees budget only when a retry expires, so those instants suffice. Each is tested,
        // because admissions that expire meanwhile shrink the budget.
        let expiries = self.facts.retry_usage.retries.charges().map(|entry| entry.stamp + MINUTE);
        core::iter::once(now).chain(expiries.filter(|at| *at > now)).find(|at| left(*at))
    }

    /// Charges the budget for a retry that was admitted or queued.
    pub(crate) fn draw_retry(&mut self, reserve: &Reserve, now: Instant) {
        if reserve.retry_of.is_some() && self.budget().is_some() {
            self.facts.retry_usage.retries.count(now, 1, KEPT);
        }
    }

    pub(crate) fn count_admission(&mut self, now: Instant) {
        if self.budget().is_some() {
            self.facts.retry_usage.admissions.count(now, 1, KEPT);
        }
    }

    /// Returns the retries that are left and the whole budget of the last minute, or `None` without
    /// a budget.
    #[must_use]
    pub fn retries_left(&self, now: Instant) -> Option<(u64, u64)> {
        let budget = self.budget()?;
        let now = now.max(self.facts.clock);
        let admitted = self.facts.retry_usage.admissions.used_at(now, MINUTE);
        let share = crate::config::mul_div(admitted, u64::from(budget.per_mille), 1_000);
        let all = share.max(u64::from(budget.least)).min(bounds::AMOUNT);
        Some((all.saturating_sub(self.facts.retry_usage.retries.used_at(now, MINUTE)), all))
    }
}

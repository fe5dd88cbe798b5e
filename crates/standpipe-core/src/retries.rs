//! One retry layer for everybody: how many calls may be tried again is counted in the ledger.

use crate::bounds;
use crate::event::Reserve;
use crate::outcome::{Reason, Refusal};
use crate::policy::RetryBudget;
use crate::state::State;
use crate::time::{Instant, Span};

/// A share of the admissions of the last minute may be retries.
const MINUTE: Span = Span::secs(60);

impl State {
    fn budget(&self) -> Option<RetryBudget> {
        self.facts.config.as_ref()?.policy.retries
    }

    /// Whether a call that is tried again finds no retry left.
    pub(crate) fn out_of_retries(&self, reserve: &Reserve, now: Instant) -> Option<Refusal> {
        let until = self.retry_left_from(reserve, now);
        let no = Refusal { reason: Reason::RetryBudget, limit: None, short_by: 1, until };
        (until != Some(now)).then_some(no)
    }

    /// The first instant from `now` on at which a retry is left, if nothing happens but time. Who
    /// tries for the first time needs none.
    pub(crate) fn retry_left_from(&self, reserve: &Reserve, now: Instant) -> Option<Instant> {
        let (Some(_), Some(budget)) = (reserve.retry_of, self.budget()) else { return Some(now) };
        let trouble = &self.facts.trouble;
        let left = |at: Instant| {
            let admitted = trouble.admissions.used_at(at, MINUTE);
            let share = crate::config::part(admitted, u64::from(budget.per_mille), 1_000);
            trouble.retries.used_at(at, MINUTE) < share.max(u64::from(budget.least))
        };
        // Only a retry that ages gives one back; admissions that age may take one away.
        let ageing = trouble.retries.entries().map(|entry| entry.stamp + MINUTE);
        core::iter::once(now).chain(ageing.filter(|at| *at > now)).find(|at| left(*at))
    }

    /// A second try was let in, to be made or to wait.
    pub(crate) fn draw_retry(&mut self, reserve: &Reserve, now: Instant) {
        if reserve.retry_of.is_some() && self.budget().is_some() {
            self.facts.trouble.retries.charge(now, 1, MINUTE);
        }
    }

    pub(crate) fn count_admission(&mut self, now: Instant) {
        if self.budget().is_some() {
            self.facts.trouble.admissions.charge(now, 1, MINUTE);
        }
    }

    pub(crate) fn forget_old_retries(&mut self, now: Instant) {
        self.facts.trouble.admissions.expire(now, MINUTE);
        self.facts.trouble.retries.expire(now, MINUTE);
    }

    /// How many retries are left, and how many there are in a minute, at an instant.
    #[must_use]
    pub fn retries_left(&self, now: Instant) -> Option<(u64, u64)> {
        let budget = self.budget()?;
        let now = now.max(self.facts.clock);
        let trouble = &self.facts.trouble;
        let admitted = trouble.admissions.used_at(now, MINUTE);
        let share = crate::config::part(admitted, u64::from(budget.per_mille), 1_000);
        let all = share.max(u64::from(budget.least)).min(bounds::AMOUNT);
        Some((all.saturating_sub(trouble.retries.used_at(now, MINUTE)), all))
    }
}

//! The share of a limit that is left, for zone and yield: the smaller of the ledger's own and the
//! provider's last report.
//!
//! By time alone it only grows: charges age, and a report is forgotten.

use crate::config::LimitId;
use crate::id::ConstraintId;
use crate::provider::reconcile::Reported;
use crate::state::State;
use crate::time::Instant;
use crate::usage::view::UsageView;

/// What the provider reported of a limit, as long as it counts.
#[derive(Clone, Copy)]
struct ReportedShare {
    left: u64,
    of: u64,
    /// From then on it is forgotten.
    until: Instant,
}

impl State {
    /// What is left of a limit, in whole thousandths.
    pub(crate) fn left_of(&self, constraint: ConstraintId, now: Instant) -> u64 {
        let usage = self.usage(constraint);
        let own = per_mille(usage.free_at(now), usage.spec.effective);
        let reported = self.reported_share(constraint, &usage);
        let reported = reported.filter(|share| now < share.until);
        reported.map_or(own, |share| own.min(per_mille(share.left, share.of)))
    }

    /// Whether more than a share of a limit is left.
    pub(super) fn is_over(&self, constraint: ConstraintId, share: u64, now: Instant) -> bool {
        let usage = self.usage(constraint);
        let over =
            |left: u64, of: u64| u128::from(left) * 1_000 > u128::from(share) * u128::from(of);
        let reported = self.reported_share(constraint, &usage);
        let reported = reported.filter(|known| now < known.until);
        over(usage.free_at(now), usage.spec.effective)
            && reported.is_none_or(|known| over(known.left, known.of))
    }

    /// The first instant from `from` on at which at least a share of a limit is left, if only time
    /// passes.
    pub(crate) fn left_reaches(
        &self,
        constraint: ConstraintId,
        share: u64,
        from: Instant,
    ) -> Instant {
        self.left_is_at_least(constraint, |of| product(of, share).div_ceil(1_000), from)
    }

    /// The same for more than a share.
    pub(super) fn left_exceeds(
        &self,
        constraint: ConstraintId,
        share: u64,
        from: Instant,
    ) -> Instant {
        self.left_is_at_least(constraint, |of| product(of, share) / 1_000 + 1, from)
    }

    fn left_is_at_least(
        &self,
        constraint: ConstraintId,
        enough: impl Fn(u64) -> u128,
        from: Instant,
    ) -> Instant {
        let usage = self.usage(constraint);
        let units = |of: u64| u64::try_from(enough(of)).unwrap_or(u64::MAX).min(of);
        let reported = self.reported_share(constraint, &usage);
        let short = reported.filter(|share| share.left < units(share.of));
        let from = short.map_or(from, |share| from.max(share.until));
        usage.fits_from(units(usage.spec.effective), from)
    }

    /// What the provider last reported of a limit, less what was charged since.
    fn reported_share(
        &self,
        constraint: ConstraintId,
        usage: &UsageView<'_>,
    ) -> Option<ReportedShare> {
        let limit = &self.index.compiled.constraints[constraint].id;
        let known = self.facts.external.iter().find(|known| known.limit == *limit)?;
        let Reported { remaining, limit, at, until } = known.reported?;
        let charged = usage.history.sum_after(|stamp| stamp <= at);
        Some(ReportedShare { left: remaining.saturating_sub(charged), of: limit, until })
    }

    /// The name of a constraint in answers.
    pub(super) fn limit_named(&self, constraint: ConstraintId) -> Option<LimitId> {
        self.index.compiled.constraints[constraint].limit()
    }
}

fn per_mille(left: u64, of: u64) -> u64 {
    let share = u128::from(left) * 1_000 / u128::from(of.max(1));
    u64::try_from(share).unwrap_or(u64::MAX).min(1_000)
}

fn product(of: u64, share: u64) -> u128 {
    u128::from(of) * u128::from(share)
}

//! What others use of a limit: usage that the provider counts and Standpipe did not admit.

use standpipe_config::plain;
use standpipe_core::Unit;

use crate::amount::grouped;
use crate::status::{LimitKind, LimitStatus, PoolStatus};
use crate::time::format_ms;

/// Less than this share of a limit is not reported: providers round what they count.
const NOTABLE_PERCENT: u64 = 10;

impl PoolStatus {
    /// Returns what others use of a limit and the quota, if it is a notable part of it.
    #[must_use]
    pub fn notable_use_by_others(&self, limit: &LimitStatus) -> Option<(u64, u64)> {
        let (units, stated) = (used_by_others(self, limit), stated(limit));
        is_notable(units, stated).then_some((units, stated))
    }
}

/// What others use of a limit now; 0 where that is not known.
pub(crate) fn used_by_others(pool: &PoolStatus, limit: &LimitStatus) -> u64 {
    let named = limit.by_others.max(limit.outside);
    // After a loss of the ledger its limits count as full, so a full bucket shows no use by others.
    if limit.kind != LimitKind::Bucket || pool.learning.is_some() || pool.recovering.is_some() {
        return named;
    }
    let (refill, own) = (limit.refill.unwrap_or(0), limit.last_period.unwrap_or(limit.used));
    let unnamed = limit.used.saturating_sub(own);
    // A bucket that refills in more than one period still has older calls of the agents.
    let older = limit.effective.saturating_sub(refill);
    let is_certain = is_notable(unnamed.saturating_sub(older), stated(limit));
    if is_certain { named.max(unnamed) } else { named }
}

/// The quota: as stated, or as learned from the provider if that is less.
pub(crate) fn stated(limit: &LimitStatus) -> u64 {
    limit.learned.map_or(limit.amount, |learned| learned.min(limit.amount))
}

/// Whether others use a notable part of a quota.
pub(crate) const fn is_notable(units: u64, stated: u64) -> bool {
    units > 0 && units.saturating_mul(100) >= stated.saturating_mul(NOTABLE_PERCENT)
}

/// `the provider counts 4,682 of 5,000 requests per 1h that Standpipe did not admit`
pub(crate) fn what(limit: &str, unit: &str, units: u64, stated: u64) -> String {
    let shown = |amount: u64| match Unit::named(unit) {
        Some(unit @ Unit::Usd) => plain::amount(&unit, amount),
        _ => grouped(amount),
    };
    let (units, stated) = (shown(units), shown(stated));
    format!("the provider counts {units} of {stated} {limit} that Standpipe did not admit")
}

/// What to do about it. What was used before Standpipe started looks the same.
pub(crate) fn remedy(period_ms: u64) -> String {
    let period = format_ms(period_ms);
    format!(
        "route the other users of this key through Standpipe; what was used before Standpipe \
         started is gone after one period ({period})"
    )
}

#[cfg(test)]
mod tests {
    use standpipe_core::{Limit, Rule, Span, Unit};

    use super::*;
    use crate::testing::TestPool;

    fn pool(rule: Rule) -> PoolStatus {
        TestPool::new(vec![Limit::new(rule)]).status()
    }

    #[test]
    fn a_bucket_without_a_named_use_is_compared_with_the_agents_own() {
        let (unit, period) = (Unit::Requests, Span::secs(60));
        let mut pool = pool(Rule::Bucket { unit, amount: 1_000, period, burst: 1_000 });
        let limit = &mut pool.limits[0];
        (limit.effective, limit.refill) = (950, Some(950));
        (limit.used, limit.last_period) = (733, Some(18));
        assert_eq!(used_by_others(&pool, &pool.limits[0]), 715);
        assert_eq!(pool.notable_use_by_others(&pool.limits[0]), Some((715, 1_000)));
        pool.limits[0].refill = Some(300);
        assert_eq!(used_by_others(&pool, &pool.limits[0]), 0, "650 may be older calls");
        pool.limits[0].refill = Some(950);
        pool.limits[0].last_period = Some(700);
        assert_eq!(used_by_others(&pool, &pool.limits[0]), 0, "a rounding");
        pool.limits[0].last_period = Some(18);
        pool.recovering = pool.learning.take().or(Some(crate::status::Pause {
            until: pool.at,
            for_ms: 1,
            by: None,
            at: None,
        }));
        assert_eq!(used_by_others(&pool, &pool.limits[0]), 0, "it counts as full");
    }

    #[test]
    fn the_text_has_separators_and_the_period() {
        let text = what("requests per 1h", "requests", 4_682, 5_000);
        assert!(text.contains("4,682 of 5,000 requests per 1h that"), "{text}");
        assert!(remedy(3_600_000).ends_with("one period (1 h)"));
        assert!(is_notable(500, 5_000) && !is_notable(499, 5_000) && !is_notable(0, 0));
    }
}

//! The rates of a pool by which an audit measures what agents used.

use crate::others;
use crate::status::{LimitStatus, PoolStatus};

/// A limit that rates are measured by.
pub(super) struct Measure {
    pub(super) limit: String,
    pub(super) unit: String,
    pub(super) period_ms: u64,
    pub(super) stated: Option<u64>,
    /// The most that it allows in any one period.
    pub(super) peak_stated: Option<u64>,
    /// The usable part of that.
    pub(super) peak_usable: Option<u64>,
    pub(super) by_others: u64,
}

/// The rates of a pool, and always requests per minute, because every agent makes requests.
pub(super) fn measures(status: Option<&PoolStatus>) -> Vec<Measure> {
    let limits =
        status.into_iter().flat_map(|status| status.limits.iter().map(move |l| (status, l)));
    let rates = limits.filter_map(|(status, limit)| measure(status, limit));
    let mut measures: Vec<Measure> = rates.collect();
    if !measures.iter().any(|measure| measure.unit == "requests") {
        let (limit, unit) = ("requests per 1min".to_owned(), "requests".to_owned());
        let (stated, peak_stated, peak_usable) = (None, None, None);
        let (period_ms, by_others) = (60_000, 0);
        let requests =
            Measure { limit, unit, period_ms, stated, peak_stated, peak_usable, by_others };
        measures.insert(0, requests);
    }
    measures
}

/// `None` for calls in flight, which are no rate.
fn measure(status: &PoolStatus, limit: &LimitStatus) -> Option<Measure> {
    let stated = others::stated(limit);
    // A full bucket passes its burst, and what it regains in the period.
    let peak = |rate: u64, burst: u64| Some(rate.saturating_add(burst));
    Some(Measure {
        limit: limit.limit.clone(),
        unit: limit.unit.clone(),
        period_ms: limit.period_ms?,
        stated: Some(stated),
        peak_stated: peak(stated, limit.burst.unwrap_or(0)),
        peak_usable: peak(limit.effective, limit.refill.unwrap_or(0)),
        by_others: others::used_by_others(status, limit),
    })
}

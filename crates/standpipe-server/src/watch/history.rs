//! The use of each limit over the last ten minutes, for the dashboard's plot.
//!
//! Bounded in length (samples) and breadth (limits).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;
use standpipe::observe::{LimitStatus, Timestamp};
use standpipe::{PoolName, PoolStatus, Snapshot};
use utoipa::ToSchema;

/// The time between samples.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
/// How many samples are kept: ten minutes.
const MAX_SAMPLES: usize = 300;
/// The most limits, over all pools.
const MAX_LIMITS: usize = 512;

/// Samples of the limits of all pools.
#[derive(Debug, Default)]
pub(crate) struct History {
    limits: BTreeMap<(PoolName, String), LimitSeries>,
}

#[derive(Debug)]
struct LimitSeries {
    unit: String,
    samples: VecDeque<Sample>,
}

/// The instant, what calls used and hold, what others used, and what both are a share of.
type Sample = (u64, u64, u64, u64);

/// The history of the limits of pools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryResponse {
    /// The version of this shape.
    pub(crate) schema: u64,
    /// The time between samples.
    pub(crate) every_ms: u64,
    /// By pool.
    pub(crate) pools: Vec<PoolHistory>,
}

/// The history of one pool's limits.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolHistory {
    /// The pool.
    #[schema(value_type = String)]
    pub(crate) pool: PoolName,
    /// By limit.
    pub(crate) limits: Vec<LimitHistory>,
}

/// The history of one limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitHistory {
    /// The limit.
    pub(crate) limit: String,
    /// The unit it counts.
    pub(crate) unit: String,
    /// Milliseconds since 1970; what calls used in the limit's period and what calls in flight
    /// hold; what others used; and what both are a share of: the usable part of the limit, or the
    /// provider's limit while others use a notable part of it.
    pub(crate) samples: Vec<[u64; 4]>,
}

impl History {
    /// Adds a sample of every limit and drops limits without samples in the last ten minutes.
    pub(crate) fn add(&mut self, snapshot: &Snapshot) {
        let now = Timestamp::now().millis;
        for pool in &snapshot.pools {
            for limit in &pool.limits {
                let key = (pool.pool.clone(), limit.limit.clone());
                if self.limits.len() >= MAX_LIMITS && !self.limits.contains_key(&key) {
                    continue;
                }
                let series = self.limits.entry(key).or_insert_with(|| LimitSeries {
                    unit: limit.unit.clone(),
                    samples: VecDeque::new(),
                });
                if series.samples.len() == MAX_SAMPLES {
                    series.samples.pop_front();
                }
                series.samples.push_back(sample(now, pool, limit));
            }
        }
        let oldest = now.saturating_sub(MAX_SAMPLES as u64 * millis(SAMPLE_INTERVAL));
        self.limits.retain(|_, series| series.samples.back().is_some_and(|last| last.0 >= oldest));
    }

    /// The history of one pool, or of all.
    pub(crate) fn of(&self, only: Option<&str>) -> HistoryResponse {
        let mut pools: Vec<PoolHistory> = Vec::new();
        let wanted = self
            .limits
            .iter()
            .filter(|((pool, _), _)| only.is_none_or(|only| only == pool.as_str()));
        for ((pool, limit), series) in wanted {
            if pools.last().is_none_or(|last| last.pool != *pool) {
                pools.push(PoolHistory { pool: pool.clone(), limits: Vec::new() });
            }
            let samples =
                series.samples.iter().map(|(at, own, others, base)| [*at, *own, *others, *base]);
            let (limit, unit) = (limit.clone(), series.unit.clone());
            let history = LimitHistory { limit, unit, samples: samples.collect() };
            if let Some(last) = pools.last_mut() {
                last.limits.push(history);
            }
        }
        HistoryResponse { schema: 1, every_ms: millis(SAMPLE_INTERVAL), pools }
    }
}

/// The use of a limit, in the base that the dashboard has for it. A bucket refills all the time, so
/// its use is what it passed in its period and not its level.
fn sample(now: u64, pool: &PoolStatus, limit: &LimitStatus) -> Sample {
    let own = limit.last_period.unwrap_or(limit.used).saturating_add(limit.held);
    match pool.notable_use_by_others(limit) {
        Some((others, stated)) => (now, own, others, stated.max(own.saturating_add(others))),
        None => (now, own, 0, limit.refill.unwrap_or(limit.effective)),
    }
}

/// A duration in whole milliseconds.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

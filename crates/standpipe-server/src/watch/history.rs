//! The use of each limit over the last ten minutes, and by whom, for the dashboard's plot.
//!
//! Bounded in length (samples), breadth (limits) and depth (agents of a sample). Samples in a row
//! that were used alike share the list of agents.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
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
/// The most agents of a sample: the largest.
const MAX_AGENTS: usize = 5;

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

/// The use of a limit at an instant.
#[derive(Debug)]
struct Sample {
    at: u64,
    /// What calls used and hold.
    own: u64,
    /// What others used.
    others: u64,
    /// What both are a share of.
    base: u64,
    by: Shares,
}

/// The agents that used most of a limit, the largest first.
type Shares = Arc<[(Arc<str>, u64)]>;

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
    /// Who used it: from each of these samples on, until the next.
    pub(crate) agents: Vec<SampledAgents>,
}

/// What the largest agents used of a limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SampledAgents {
    /// Milliseconds since 1970, as in the samples.
    pub(crate) at: u64,
    /// By agent, the five largest at most, with what their calls in flight hold. The rest of the
    /// sample was used by other agents.
    pub(crate) used: BTreeMap<String, u64>,
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
                let last = series.samples.back().map(|sample| &sample.by);
                let by = shares(pool, limit, last);
                series.samples.push_back(sample(now, pool, limit, by));
            }
        }
        let oldest = now.saturating_sub(MAX_SAMPLES as u64 * millis(SAMPLE_INTERVAL));
        self.limits.retain(|_, series| series.samples.back().is_some_and(|last| last.at >= oldest));
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
            if let Some(last) = pools.last_mut() {
                last.limits.push(series.history(limit));
            }
        }
        HistoryResponse { schema: 1, every_ms: millis(SAMPLE_INTERVAL), pools }
    }
}

impl LimitSeries {
    fn history(&self, limit: &str) -> LimitHistory {
        let samples = self.samples.iter().map(|of| [of.at, of.own, of.others, of.base]);
        let mut agents: Vec<SampledAgents> = Vec::new();
        let mut last: Option<&Shares> = None;
        for Sample { at, by, .. } in &self.samples {
            if last.is_none_or(|last| !Arc::ptr_eq(last, by)) {
                let used = by.iter().map(|(name, units)| (name.to_string(), *units)).collect();
                agents.push(SampledAgents { at: *at, used });
            }
            last = Some(by);
        }
        let (limit, unit) = (limit.to_owned(), self.unit.clone());
        LimitHistory { limit, unit, samples: samples.collect(), agents }
    }
}

/// Who uses most of a limit. What is as in the sample before is shared with it.
fn shares(pool: &PoolStatus, limit: &LimitStatus, before: Option<&Shares>) -> Shares {
    let each = pool.agents.iter().filter_map(|agent| {
        let own = agent.usage.iter().find(|own| own.limit == limit.limit)?;
        Some((agent.name.as_str(), own.used.saturating_add(own.held)))
    });
    let mut each: Vec<(&str, u64)> = each.filter(|(_, units)| *units > 0).collect();
    each.sort_by_key(|(name, units)| (Reverse(*units), *name));
    each.truncate(MAX_AGENTS);
    let known = before.map_or(&[][..], |before| &before[..]);
    let is_same =
        |(one, known): (&(&str, u64), &(Arc<str>, u64))| (one.0, one.1) == (&*known.0, known.1);
    match before {
        Some(before) if known.len() == each.len() && each.iter().zip(known).all(is_same) => {
            Arc::clone(before)
        }
        _ => {
            let name = |name: &str| {
                let same = known.iter().find(|(known, _)| &**known == name);
                same.map_or_else(|| Arc::from(name), |(known, _)| Arc::clone(known))
            };
            each.into_iter().map(|(agent, units)| (name(agent), units)).collect()
        }
    }
}

/// The use of a limit, in the base that the dashboard has for it. A bucket refills all the time, so
/// its use is what it passed in its period and not its level.
fn sample(at: u64, pool: &PoolStatus, limit: &LimitStatus, by: Shares) -> Sample {
    let own = limit.last_period.unwrap_or(limit.used).saturating_add(limit.held);
    let (others, base) = match pool.notable_use_by_others(limit) {
        Some((others, stated)) => (others, stated.max(own.saturating_add(others))),
        None => (0, limit.refill.unwrap_or(limit.effective)),
    };
    Sample { at, own, others, base, by }
}

/// A duration in whole milliseconds.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

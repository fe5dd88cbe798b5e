//! What the limits looked like over the last minutes, for the plot. Bounded in length and breadth.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;
use standpipe::{Moment, Snapshot};
use utoipa::ToSchema;

/// How often a sample is taken.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// How many are kept: ten minutes.
const SAMPLES: usize = 300;
/// Of how many limits, over all pools.
const MOST: usize = 512;

/// Samples of the limits of all pools.
#[derive(Debug, Default)]
pub(crate) struct History {
    limits: BTreeMap<(String, String), Line>,
}

#[derive(Debug)]
struct Line {
    unit: String,
    samples: VecDeque<Sample>,
}

/// When, what was used and held, and how much of it may be.
type Sample = (u64, u64, u64);

/// What the limits of pools looked like, as snapshots said.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Past {
    /// The version of this shape.
    pub(crate) schema: u64,
    /// How far samples are apart.
    pub(crate) every_ms: u64,
    /// By pool.
    pub(crate) pools: Vec<PoolPast>,
}

/// What the limits of one pool looked like.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolPast {
    /// Which.
    pub(crate) pool: String,
    /// By limit.
    pub(crate) limits: Vec<LimitPast>,
}

/// What one limit looked like.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitPast {
    /// Which.
    pub(crate) limit: String,
    /// What it counts.
    pub(crate) unit: String,
    /// When (milliseconds since 1970), what was used and held, and how much of it may be.
    pub(crate) samples: Vec<[u64; 3]>,
}

impl History {
    /// Another sample of everything; what is no longer there is forgotten.
    pub(crate) fn add(&mut self, seen: &Snapshot) {
        let now = Moment::now().millis;
        for pool in &seen.pools {
            for limit in &pool.limits {
                let key = (pool.pool.clone(), limit.limit.clone());
                if self.limits.len() >= MOST && !self.limits.contains_key(&key) {
                    continue;
                }
                let line = self
                    .limits
                    .entry(key)
                    .or_insert_with(|| Line { unit: limit.unit.clone(), samples: VecDeque::new() });
                if line.samples.len() == SAMPLES {
                    line.samples.pop_front();
                }
                let used = limit.used.saturating_add(limit.held);
                line.samples.push_back((now, used, limit.effective));
            }
        }
        let oldest = now.saturating_sub(SAMPLES as u64 * millis(EVERY));
        self.limits.retain(|_, line| line.samples.back().is_some_and(|last| last.0 >= oldest));
    }

    /// What there is of one pool, or of all.
    pub(crate) fn past(&self, of: Option<&str>) -> Past {
        let mut pools: Vec<PoolPast> = Vec::new();
        let wanted = self.limits.iter().filter(|((pool, _), _)| of.is_none_or(|of| of == pool));
        for ((pool, limit), line) in wanted {
            if pools.last().is_none_or(|last| last.pool != *pool) {
                pools.push(PoolPast { pool: pool.clone(), limits: Vec::new() });
            }
            let samples = line.samples.iter().map(|(at, used, most)| [*at, *used, *most]);
            let (limit, unit) = (limit.clone(), line.unit.clone());
            let past = LimitPast { limit, unit, samples: samples.collect() };
            if let Some(last) = pools.last_mut() {
                last.limits.push(past);
            }
        }
        Past { schema: 1, every_ms: millis(EVERY), pools }
    }
}

/// A length in milliseconds.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

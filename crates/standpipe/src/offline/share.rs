//! The share of a pool's limits that one of several processes may use without the store.
//!
//! Shares are rounded down, so that together they never exceed a limit.

use standpipe_core::{Limit, PoolConfig, Rule};

/// Returns one of `among` equal parts of every limit, rounded down; `None` if a part is zero.
/// Floors are dropped: divided, they would be too small for any agent.
pub(crate) fn share_of(mut config: PoolConfig, among: u64) -> Option<PoolConfig> {
    for limit in &mut config.limits {
        *limit = limit_share(limit, among)?;
    }
    for rule in &mut config.agents {
        rule.floors.clear();
    }
    Some(config)
}

fn limit_share(limit: &Limit, among: u64) -> Option<Limit> {
    let part = |whole: u64| whole.checked_div(among).filter(|part| *part > 0);
    let rule = match limit.rule.clone() {
        Rule::Window { unit, amount, period } => {
            Rule::Window { unit, amount: part(amount)?, period }
        }
        Rule::Bucket { unit, amount, period, burst } => {
            Rule::Bucket { unit, amount: part(amount)?, period, burst: part(burst)? }
        }
        Rule::Parallel { amount } => Rule::Parallel { amount: part(amount)? },
    };
    Some(Limit { rule, ..limit.clone() })
}

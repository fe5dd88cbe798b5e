//! What a pool is told besides its limits when nobody says more: the same as a file's defaults.

use standpipe_core::{Limit, Margin, Policy, PoolConfig, Rule};

use crate::config::StoreSettings;

/// These limits, and the defaults for all else on such a store.
pub(crate) fn config(limits: Vec<Limit>, store: &StoreSettings) -> PoolConfig {
    let is_slots = |limit: &Limit| matches!(limit.rule, Rule::Parallel { .. });
    let slots_only = !limits.is_empty() && limits.iter().all(is_slots);
    let mut config = PoolConfig::new(limits);
    config.margin = Margin::Auto;
    (config.slack, config.claim) = (store.slack(), store.claim());
    config.policy = Policy::usual();
    if slots_only {
        config.longest_lease = None;
    }
    config
}

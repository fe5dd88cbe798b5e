//! The defaults of a pool whose limits come from code: the same as those of a pool in a file.

use standpipe_core::{Limit, Margin, Policy, PoolConfig, Rule};

use crate::config::StoreSettings;

/// Returns a configuration with these limits and the defaults for such a store.
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

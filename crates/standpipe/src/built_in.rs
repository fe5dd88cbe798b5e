//! What a pool is told besides its limits when nobody says more: the same as a file's defaults.

use standpipe_core::{Headroom, Limit, Policy, PoolConfig, Rule, Span};

/// What widens every period, against jitter on the way to the provider, on one machine.
const SLACK: Span = Span::millis(50);

/// These limits, and the defaults for all else.
pub(crate) fn config(limits: Vec<Limit>) -> PoolConfig {
    let is_slots = |limit: &Limit| matches!(limit.rule, Rule::Parallel { .. });
    let slots_only = !limits.is_empty() && limits.iter().all(is_slots);
    let mut config = PoolConfig::new(limits);
    config.headroom = Headroom::Auto;
    config.slack = SLACK;
    config.policy = Policy::usual();
    if slots_only {
        config.longest_lease = None;
    }
    config
}

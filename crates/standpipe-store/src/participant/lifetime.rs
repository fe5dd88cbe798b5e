//! How long a log must be kept: until nothing in it can affect a decision.
//!
//! The result is an upper bound, never too short. It always includes the longest pause that a
//! provider can ask for (eight days), so that learned limits also survive a weekend.

use standpipe_core::{Action, Configure, LeaseOwner, Rule, Span, State, bounds};

/// Returns how long after these actions a ledger still matters if nothing follows them.
pub(super) fn required<'a>(state: &State, actions: impl Iterator<Item = &'a Action>) -> Span {
    let config = state.facts().config.as_ref();
    let limits = config.map_or(Span::ZERO, |config| longest_period(&config.limits));
    let submitted = actions.map(|action| effect(state, action)).max().unwrap_or_default();
    bounds::PAUSE + limits + submitted
}

/// Returns how long an action by itself has an effect.
fn effect(state: &State, action: &Action) -> Span {
    match action {
        Action::Reserve(reserve) => reserve.ttl.unwrap_or_default().max(reserve.patience),
        Action::Heartbeat { ttl: Some(ttl), .. } => *ttl,
        Action::Heartbeat { lease: Some(lease), ttl: None } => {
            match state.facts().leases.get(lease).map(|lease| lease.owner) {
                Some(LeaseOwner::Ttl { ttl, .. }) => ttl,
                _ => Span::ZERO,
            }
        }
        Action::Pause { length, .. } => *length,
        Action::Configure(configure) => {
            let Configure { config, .. } = &**configure;
            longest_period(&config.limits)
        }
        _ => Span::ZERO,
    }
}

fn longest_period(limits: &[standpipe_core::Limit]) -> Span {
    let periods = limits.iter().map(|limit| match limit.rule {
        Rule::Window { period, .. } => period,
        // An empty bucket matters until it is full again.
        Rule::Bucket { amount, period, burst, .. } => {
            Span(period.0.saturating_mul(burst / amount.max(1) + 1)).min(bounds::SPAN)
        }
        Rule::Parallel { .. } => Span::ZERO,
    });
    periods.max().unwrap_or_default()
}

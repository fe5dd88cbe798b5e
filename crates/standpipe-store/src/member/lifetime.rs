//! How long a log has to be kept: until nothing in it counts any more.
//!
//! Generously: a pause that a provider asks for may last eight days, and what a ledger learned is
//! worth keeping over a weekend. Exactness is not needed, only that it is never too short.

use standpipe_core::{Action, Configure, Holder, Rule, Span, State, bounds};

/// How long after these actions anything in a ledger can still count, if nothing follows them.
pub(super) fn after<'a>(state: &State, actions: impl Iterator<Item = &'a Action>) -> Span {
    let config = state.facts().config.as_ref();
    let usual = config.map_or(Span::ZERO, |config| longest(&config.limits));
    let asked = actions.map(|action| reach(state, action)).max().unwrap_or_default();
    bounds::PAUSE + usual + asked
}

/// How far ahead an action reaches by itself.
fn reach(state: &State, action: &Action) -> Span {
    match action {
        Action::Reserve(reserve) => reserve.ttl.unwrap_or_default().max(reserve.patience),
        Action::Heartbeat { ttl: Some(ttl), .. } => *ttl,
        Action::Heartbeat { lease: Some(lease), ttl: None } => {
            match state.facts().leases.get(lease).map(|lease| lease.holder) {
                Some(Holder::Ttl { ttl, .. }) => ttl,
                _ => Span::ZERO,
            }
        }
        Action::Pause { length } => *length,
        Action::Configure(configure) => {
            let Configure { config, .. } = &**configure;
            longest(&config.limits)
        }
        _ => Span::ZERO,
    }
}

fn longest(limits: &[standpipe_core::Limit]) -> Span {
    let periods = limits.iter().map(|limit| match limit.rule {
        Rule::Window { period, .. } => period,
        // Until it is full again.
        Rule::Bucket { amount, period, burst, .. } => {
            Span(period.0.saturating_mul(burst / amount.max(1) + 1)).min(bounds::SPAN)
        }
        Rule::Parallel { .. } => Span::ZERO,
    });
    periods.max().unwrap_or_default()
}

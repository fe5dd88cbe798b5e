//! The provider said stop for good: a spend cap, a daily quota.
//!
//! Nobody is admitted until the end it named. Once in a while one call is let through as a probe,
//! because the quota may have been restored. What else a stop does is in `provider/terminal.rs`.

use super::{Admits, CallRule, Effect, Named};
use crate::outcome::Reason;

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::Terminal,
    effect: Effect::Refuse,
    admits: |state, _, now| {
        let Some(terminal) = state.facts.terminal else { return Admits::Now };
        let probes = terminal.next_probe.is_some_and(|at| at <= now);
        let ends = terminal.until.into_iter().chain(terminal.next_probe).min();
        match ends {
            _ if probes => Admits::Now,
            // The end itself is an event, so an end that has come has not been applied yet.
            Some(end) => Admits::At(end.max(now)),
            None => Admits::Unknown,
        }
    },
    names: Named::nothing,
};

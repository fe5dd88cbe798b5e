//! Computes the consequences of a provider's refusals from a ledger's state.

use serde::{Deserialize, Serialize};
use standpipe_core::{LimitUsage, Probe, RampUsage, State, ThrottleKind};

use super::{Incident, Pause, ProbeState, Retries, ThrottleStatus};
use crate::time::{Now, Timestamp};

/// The part of a limit that is usable after a pause.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RampStatus {
    /// The usable part in thousandths.
    pub per_mille: u32,
    /// What is usable until then.
    pub usable: u64,
    /// What is charged of it. What was charged before the pause does not count.
    pub used: u64,
    /// When more is usable.
    pub until: Timestamp,
    /// In how long.
    pub until_ms: u64,
}

impl RampStatus {
    pub(super) fn of(ramp: &RampUsage, per_mille: u32, now: &Now) -> Self {
        let RampUsage { usable, used, step_ends, .. } = *ramp;
        let (until, until_ms) = (now.ahead(step_ends), now.millis_until(step_ends));
        Self { per_mille, usable, used, until, until_ms }
    }
}

/// The usable part of the shortest rates in thousandths, while the pool ramps up.
pub(super) fn speed(state: &State) -> Option<u32> {
    state.facts().ramp.map(|ramp| 1_000 >> ramp.halvings.min(9))
}

impl Incident {
    /// The refusal that started the last pause, or stopped the pool.
    fn of(state: &State, now: &Now) -> Option<Self> {
        let incident = state.facts().throttling.incident.as_ref()?;
        Some(Self {
            kind: incident.kind.into(),
            agent: incident.agent.as_ref().map(ToString::to_string),
            at: now.past(incident.at),
            ago_ms: now.millis_since(incident.at),
        })
    }

    /// The refusal that stopped the pool.
    pub(crate) fn of_stop(state: &State, now: &Now) -> Option<Self> {
        Self::of(state, now).filter(|incident| incident.kind == ThrottleKind::Terminal)
    }
}

impl ThrottleStatus {
    pub(super) fn of(state: &State, limits: &[LimitUsage], now: &Now) -> Self {
        let facts = state.facts();
        let ramp = limits.iter().filter_map(|limit| Some(limit.ramp?.ends)).max();
        let returns = facts.tickets.values().map(|ticket| ticket.returns);
        let last = returns.chain(facts.returning.newcomers).max();
        let coming_back = last.filter(|_| facts.pause.is_none());
        Self {
            incident: Incident::of(state, now),
            streak: facts.throttling.streak,
            overloads: facts.throttling.overloads,
            coming_back: coming_back.and_then(|until| Pause::of(until, now)),
            probe: match facts.returning.probe {
                Probe::Over => None,
                Probe::Wanted => Some(ProbeState::Wanted.into()),
                Probe::Sent { .. } => Some(ProbeState::Sent.into()),
            },
            one_at_a_time: facts.cascade.sequential.and_then(|mode| Pause::of(mode.ends, now)),
            speed_per_mille: speed(state),
            ramp: ramp.and_then(|ends| Pause::of(ends, now)),
            learned_concurrency: facts.learned.concurrency.map(|learned| learned.calls),
            cautious: state.cautious(),
            retries: state
                .retries_left(now.store)
                .map(|(left, per_minute)| Retries { left, per_minute }),
        }
    }
}

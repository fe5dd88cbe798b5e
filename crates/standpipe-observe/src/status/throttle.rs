//! The consequences of a provider's refusals, computed from a ledger's state.

use serde::{Deserialize, Serialize};
use standpipe_core::{LimitUsage, Probe, RampUsage, State, ThrottleKind};

use super::{Label, Pause, ProbeState};
use crate::time::{Now, Timestamp};

/// The consequences of a provider's refusals. Everything is empty on a pool that was never
/// throttled.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Trouble))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThrottleStatus {
    /// The refusal that set the end of the last pause.
    pub incident: Option<Incident>,
    /// The number of refusals in a row.
    pub streak: u32,
    /// The number of refusals in a row for lack of capacity.
    pub overloads: u32,
    /// Set after a pause, while callers return staggered by priority.
    pub coming_back: Option<Pause>,
    /// The probe after a pause: `wanted`, or `sent` while its answer is awaited.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub probe: Option<Label<ProbeState>>,
    /// Set while calls run one at a time; ends then unless another call is refused.
    pub one_at_a_time: Option<Pause>,
    /// The usable part of the shortest rates in thousandths, while the pool ramps up.
    pub speed_per_mille: Option<u32>,
    /// When all of the shortest rates is usable again. None without rates, and during a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Pause>,
    /// The learned number of calls that the provider accepts at once.
    #[serde(default)]
    pub learned_concurrency: Option<u64>,
    /// The number of calls that may be unanswered while the limits are unknown.
    pub cautious: Option<u64>,
    /// The retry budget.
    pub retries: Option<Retries>,
}

/// The refusal that started a pause.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Incident {
    /// `quota`, `concurrency`, `slow_down`, `overload` or `terminal`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Label<ThrottleKind>,
    /// The agent whose call was refused.
    pub agent: Option<String>,
    /// When.
    pub at: Timestamp,
    /// How long that is ago.
    pub ago_ms: u64,
}

/// The retry budget of a pool.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Retries {
    /// Now.
    pub left: u64,
    /// In a minute like the last one.
    pub per_minute: u64,
    /// Set while none is left: when one is admitted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_up: Option<Pause>,
}

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

impl Retries {
    /// The retry budget of a pool, if it has one.
    fn of(state: &State, now: &Now) -> Option<Self> {
        let (left, per_minute) = state.retries_left(now.store)?;
        let again = || state.retries_from(now.store).and_then(|at| Pause::of(at, now));
        let used_up = (left == 0).then(again).flatten();
        Some(Self { left, per_minute, used_up })
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
            retries: Retries::of(state, now),
        }
    }
}

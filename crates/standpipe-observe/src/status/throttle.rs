//! Computes the consequences of a provider's refusals from a ledger's state.

use standpipe_core::{Probe, State};

use super::{Incident, Pause, ProbeState, Retries, ThrottleStatus};
use crate::time::Now;

impl ThrottleStatus {
    pub(super) fn of(state: &State, now: &Now) -> Self {
        let facts = state.facts();
        let incident = facts.throttling.incident.as_ref().map(|incident| Incident {
            kind: incident.kind.into(),
            agent: incident.agent.as_ref().map(ToString::to_string),
            at: now.past(incident.at),
            ago_ms: now.millis_since(incident.at),
        });
        let returns = facts.tickets.values().map(|ticket| ticket.returns);
        let last = returns.chain(facts.returning.newcomers).max();
        let coming_back = last.filter(|_| facts.pause.is_none());
        Self {
            incident,
            streak: facts.throttling.streak,
            overloads: facts.throttling.overloads,
            coming_back: coming_back.and_then(|until| Pause::of(until, now)),
            probe: match facts.returning.probe {
                Probe::Over => None,
                Probe::Wanted => Some(ProbeState::Wanted.into()),
                Probe::Sent { .. } => Some(ProbeState::Sent.into()),
            },
            one_at_a_time: facts.cascade.sequential.and_then(|mode| Pause::of(mode.ends, now)),
            speed_per_mille: facts.ramp.map(|ramp| 1_000 >> ramp.halvings.min(9)),
            learned_concurrency: facts.learned.concurrency.map(|learned| learned.calls),
            cautious: state.cautious(),
            retries: state
                .retries_left(now.store)
                .map(|(left, per_minute)| Retries { left, per_minute }),
        }
    }
}

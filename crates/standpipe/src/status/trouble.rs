//! Working out what a provider's refusals left behind.

use standpipe_core::{Probe, State};

use super::{Incident, Pause, Retries, Trouble};
use crate::moment::Now;

impl Trouble {
    pub(super) fn of(state: &State, now: &Now) -> Self {
        let facts = state.facts();
        let incident = facts.throttling.incident.as_ref().map(|incident| Incident {
            kind: incident.kind.as_str(),
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
                Probe::Wanted => Some("wanted"),
                Probe::Sent { .. } => Some("sent"),
            },
            one_at_a_time: facts.cascade.sequential.and_then(|mode| Pause::of(mode.ends, now)),
            speed_per_mille: facts.ramp.map(|ramp| 1_000 >> ramp.halvings.min(9)),
            bears: facts.learned.concurrency.map(|bears| bears.calls),
            cautious: state.cautious(),
            retries: state
                .retries_left(now.store)
                .map(|(left, per_minute)| Retries { left, per_minute }),
        }
    }
}

//! What floors keep on a constraint, computed once for many candidates.

use alloc::vec::Vec;

use crate::config::Priority;
use crate::id::{AgentId, ConstraintId};
use crate::lease::admission::Candidate;
use crate::queue::ticket::QueueKey;
use crate::state::State;
use crate::time::{Instant, Span};

/// The floor owners on a constraint now, for many candidates.
pub(crate) struct FloorsNow {
    constraint: ConstraintId,
    /// By tier: what is kept from everybody alike.
    whoever_asks: [u64; 3],
    /// In order of their ids; empty if the constraint has no floors.
    owners: Vec<Unfilled>,
}

/// An owner whose floor is not filled.
struct Unfilled {
    agent: AgentId,
    tier: Priority,
    units: u64,
    /// The owner's first waiting ticket, and what is kept from candidates behind it.
    first: Option<(QueueKey, u64)>,
    /// Units earmarked for it, by ticket: they are withheld from those behind already.
    earmarked: Vec<(QueueKey, u64)>,
}

impl FloorsNow {
    pub(crate) fn new(state: &State, constraint: ConstraintId, now: Instant) -> Self {
        let floored = state.index.compiled.constraints[constraint].floored;
        let owners = state.index.floor_owners.iter().copied().filter(|_| floored);
        let owners = owners.filter_map(|agent| {
            let busy = state.keeps(agent, constraint, Span::ZERO, now);
            let in_flight = state.index.agent_loads[agent].leases > 0;
            let idle = now.since(state.facts.agents[agent].active);
            let units = if in_flight { busy } else { state.keeps(agent, constraint, idle, now) };
            let first = state.first_waiting(agent).filter(|_| !in_flight);
            let first = first.map(|first| (first, busy));
            (busy > 0).then(|| Unfilled {
                agent,
                tier: state.tier_of(agent),
                units,
                first,
                earmarked: Vec::new(),
            })
        });
        let mut kept = Self { constraint, whoever_asks: [0; 3], owners: owners.collect() };
        for queue_key in state.index.earmarks[constraint].holders.iter().filter(|_| floored) {
            let Some(ticket) = state.facts.tickets.get(queue_key) else { continue };
            let found = kept.owners.binary_search_by_key(&ticket.agent, |owner| owner.agent);
            if let Some(owner) = found.ok().and_then(|at| kept.owners.get_mut(at)) {
                owner.earmarked.push((*queue_key, state.need_of_ticket(constraint, *queue_key)));
            }
        }
        for owner in kept.owners.iter().filter(|owner| owner.is_for_all()) {
            kept.whoever_asks[owner.tier as usize] += owner.units;
        }
        kept
    }

    /// The same as [`State::kept_for_others`].
    pub(crate) fn from(&self, state: &State, candidate: &Candidate<'_>, now: Instant) -> u64 {
        if candidate.tier() == Priority::Critical {
            return 0;
        }
        let covered = state.is_covered(candidate, self.constraint, now);
        let tiers = candidate.tier() as usize + usize::from(!covered);
        let all: u64 = self.whoever_asks[..tiers].iter().sum();
        let binds = |owner: &&Unfilled| (owner.tier as usize) < tiers;
        let own = self.owners.iter().find(|owner| Some(owner.agent) == candidate.agent);
        let own = own.filter(|owner| owner.is_for_all()).filter(binds);
        let some = self.owners.iter().filter(|owner| !owner.is_for_all()).filter(binds);
        let some = some.filter(|owner| Some(owner.agent) != candidate.agent);
        let some: u64 = some.map(|owner| owner.kept_from(candidate.queue_key)).sum();
        all - own.map_or(0, |owner| owner.units) + some
    }
}

impl Unfilled {
    /// Whether it keeps the same from every candidate.
    const fn is_for_all(&self) -> bool {
        self.first.is_none() && self.earmarked.is_empty()
    }

    fn kept_from(&self, queue_key: QueueKey) -> u64 {
        let waits = self.first.filter(|(first, _)| *first < queue_key);
        let kept = waits.map_or(self.units, |(_, units)| units);
        let before = self.earmarked.iter().filter(|(at, _)| *at < queue_key);
        kept.saturating_sub(before.map(|(_, units)| *units).sum())
    }
}

//! What floors keep on a constraint, computed for many questions: at later instants, and for many
//! candidates.
//!
//! Later instants are asked in ascending order. An owner with a call in flight stays active,
//! because the end of that call is unknown.

use alloc::vec::Vec;

use crate::config::Priority;
use crate::id::{AgentId, ConstraintId};
use crate::lease::admission::Candidate;
use crate::queue::ticket::QueueKey;
use crate::state::State;
use crate::time::Instant;
use crate::usage::view::UsageView;

/// The floor owners on a constraint at later instants.
pub(crate) struct FloorForecast<'a> {
    state: &'a State,
    constraint: ConstraintId,
    /// In order of their ids.
    owners: Vec<Owner<'a>>,
}

/// One floor owner.
struct Owner<'a> {
    agent: AgentId,
    floor: u64,
    usage: UsageView<'a>,
    idle: Instant,
}

impl<'a> FloorForecast<'a> {
    /// The owners as of now. Owners with tickets count as served.
    pub(crate) fn new(
        state: &'a State,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
    ) -> Self {
        let mut owners = Vec::new();
        for agent in state.index.floor_owners.iter().copied() {
            let load = state.index.agent_loads[agent];
            let own = Some(agent) == candidate.agent || state.tier_of(agent) > candidate.tier();
            if own || load.tickets > 0 {
                continue;
            }
            let Some(usage) = state.floor_usage(agent, constraint) else { continue };
            let busy = load.leases > 0;
            let idle = if busy { Instant::NEVER } else { state.goes_idle(agent, constraint) };
            let (floor, usage) = (usage.floor, state.agent_usage(Some(agent), usage));
            owners.push(Owner { agent, floor, usage, idle });
        }
        Self { state, constraint, owners }
    }

    /// The units kept at an instant, and the next instant at which an active owner goes idle.
    pub(crate) fn kept_at(&mut self, at: Instant) -> (u64, Option<Instant>) {
        self.owners.retain(|owner| at < owner.idle);
        let unfilled = |owner: &Owner<'_>| {
            let unfilled = owner.floor.saturating_sub(owner.usage.taken_at(at));
            let covers = unfilled >= self.state.last_need(owner.agent, self.constraint);
            if covers { unfilled } else { 0 }
        };
        let kept = self.owners.iter().map(unfilled).fold(0, u64::saturating_add);
        (kept, self.owners.iter().map(|owner| owner.idle).min())
    }
}

/// The floor owners on a constraint now, for many candidates.
pub(crate) struct FloorsNow {
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
    /// Set if the owner is active only for candidates behind its first ticket.
    first: Option<QueueKey>,
    /// Units earmarked for it, by ticket: they are withheld from those behind already.
    earmarked: Vec<(QueueKey, u64)>,
}

impl FloorsNow {
    pub(crate) fn new(state: &State, constraint: ConstraintId, now: Instant) -> Self {
        let floored = state.index.compiled.constraints[constraint].floored;
        let owners = state.index.floor_owners.iter().copied().filter(|_| floored);
        let owners = owners.filter_map(|agent| {
            let units = Some(state.keeps(agent, constraint, now)).filter(|units| *units > 0)?;
            let busy = state.is_busy(agent, constraint, now);
            let first = if busy { None } else { Some(state.first_waiting(agent)?) };
            Some(Unfilled {
                agent,
                tier: state.tier_of(agent),
                units,
                first,
                earmarked: Vec::new(),
            })
        });
        let mut kept = Self { whoever_asks: [0; 3], owners: owners.collect() };
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
    pub(crate) fn from(&self, candidate: &Candidate<'_>) -> u64 {
        if candidate.tier() == Priority::Critical {
            return 0;
        }
        let all: u64 = self.whoever_asks[..=candidate.tier() as usize].iter().sum();
        let binds = |owner: &&Unfilled| owner.tier <= candidate.tier();
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
        if self.first.is_some_and(|first| first >= queue_key) {
            return 0;
        }
        let before = self.earmarked.iter().filter(|(at, _)| *at < queue_key);
        self.units.saturating_sub(before.map(|(_, units)| *units).sum())
    }
}

//! Activity of tiers: whether a higher tier is active on a limit.
//!
//! Zone, yield and spread exist to protect higher tiers, so they restrict a tier only while a
//! higher one is active. How long a tier counts as active after its last call scales with the
//! limit: agents that run every five minutes on an hourly quota are protected. `rules/zone.rs`,
//! `rules/background_yield.rs` and `rules/spread.rs` apply this.

use crate::bounds;
use crate::config::Priority;
use crate::id::{AgentId, ConstraintId};
use crate::rules::Admits;
use crate::state::{Index, State};
use crate::time::{Instant, Span};

/// The activity of the tiers above one, as far as it concerns one constraint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Superiors {
    /// Whether they have calls in flight: when those end is unknown.
    has_leases: bool,
    /// Whether they have calls waiting.
    has_tickets: bool,
    /// Until when they count as active without either.
    active_until: Option<Instant>,
    /// How long after its last call a tier counts as active.
    active_for: Span,
}

/// Which agents of higher tiers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Everybody,
    /// Those without a floor on the constraint: the others have what their floor keeps.
    WithoutFloor,
    /// Those without a floor that were active within one period of the constraint.
    InThePeriod,
}

/// By tier: the calls of agents that have a floor on a constraint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FloorCalls {
    pub(crate) leases: [u32; 3],
    pub(crate) tickets: [u32; 3],
}

impl Superiors {
    pub(crate) fn are_active(&self, now: Instant) -> bool {
        let recently = self.active_until.is_some_and(|until| now < until);
        self.has_leases || self.has_tickets || recently
    }

    /// The next instant at which time alone ends their activity.
    pub(crate) fn end_of_activity(&self) -> Option<Instant> {
        self.active_until.filter(|_| !self.has_leases && !self.has_tickets)
    }
}

impl State {
    /// Records that a call of a tier began or ended.
    pub(crate) fn touch_tier(&mut self, tier: Priority, agent: AgentId, now: Instant) {
        if !self.index.compiled.protects {
            return;
        }
        self.facts.tier_activity[tier as usize] = Some(now);
        let own = self.index.agent_loads[agent].floors;
        for (at, constraint) in self.index.compiled.constraints.rows() {
            if constraint.floored && !own.contains(at) {
                self.facts.counters[at].without_floor[tier as usize] = Some(now);
            }
        }
    }

    /// The activity of the tiers above one on a constraint.
    pub(crate) fn superiors(
        &self,
        tier: Priority,
        constraint: ConstraintId,
        who: Who,
    ) -> Superiors {
        let floored = self.index.compiled.constraints[constraint].floored;
        let all = who == Who::Everybody || !floored;
        let covered = if all { FloorCalls::default() } else { self.index.floor_calls[constraint] };
        let seen = match all {
            true => &self.facts.tier_activity,
            false => &self.facts.counters[constraint].without_floor,
        };
        let active_for = self.active_for(constraint, who);
        let mut superiors = Superiors { active_for, ..Superiors::default() };
        for higher in 0..tier as usize {
            superiors.has_leases |= self.index.tier_leases[higher] > covered.leases[higher];
            let tickets = self.index.order[higher].len();
            superiors.has_tickets |= tickets > covered.tickets[higher] as usize;
            let until = seen[higher].map(|seen| seen + active_for);
            superiors.active_until = superiors.active_until.max(until);
        }
        superiors
    }

    /// What a rule answers that holds a tier back until an instant, but only while higher tiers are
    /// active. Tickets need no timer for the end of that: it is an event.
    pub(crate) fn while_active(
        &self,
        superiors: &Superiors,
        by_time: Instant,
        from: Instant,
    ) -> Admits {
        if by_time <= from || !superiors.are_active(from) {
            return Admits::Now;
        }
        // A lower bound, so tickets count as served now.
        let waiting = self.facts.clock + superiors.active_for;
        let waiting = Some(waiting).filter(|_| superiors.has_tickets);
        let gone = match superiors.has_leases {
            true => Instant::NEVER,
            false => superiors.active_until.max(waiting).unwrap_or(from),
        };
        Admits::NotBefore { earliest: by_time.min(gone), by_time }
    }

    /// How long after its last call a tier counts as active on a constraint.
    fn active_for(&self, constraint: ConstraintId, who: Who) -> Span {
        let period = self.index.compiled.constraints[constraint].id.period();
        let share = if who == Who::InThePeriod { 1 } else { 4 };
        period.map_or(bounds::IDLE, |period| bounds::IDLE.max(Span(period.0 / share)))
    }
}

impl Index {
    /// Counts a call of an agent on the constraints where the agent has a floor.
    pub(crate) fn count_floor_calls(
        &mut self,
        agent: AgentId,
        mut change: impl FnMut(&mut FloorCalls),
    ) {
        for constraint in self.agent_loads[agent].floors.iter() {
            change(&mut self.floor_calls[constraint]);
        }
    }
}

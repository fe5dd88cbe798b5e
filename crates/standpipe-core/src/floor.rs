//! Floors and caps: what is kept for an agent, and the most it may use.
//!
//! A floor holds against the same and lower tiers while its owner is active; an idle owner donates
//! it.

use crate::agent::AgentId;
use crate::config::{LimitId, Priority};
use crate::judge::{Asker, Standing};
use crate::plan::{Measures, Meter};
use crate::state::State;
use crate::tally::Tally;
use crate::ticket::Place;
use crate::time::Instant;

impl State {
    /// The units of a lane kept for others than the asker: the unfilled floors of active agents of
    /// its own or a higher tier. Nothing is kept from critical calls.
    pub(crate) fn kept_for_others(&self, asker: &Asker<'_>, lane: usize, now: Instant) -> u64 {
        if !self.floors_bind(asker, lane) {
            return 0;
        }
        let others = self.index.floor_owners.iter().filter(|owner| Some(**owner) != asker.agent);
        others.map(|owner| self.kept_for(*owner, asker, lane, now)).fold(0, u64::saturating_add)
    }

    pub(crate) fn floors_bind(&self, asker: &Asker<'_>, lane: usize) -> bool {
        self.index.plan.lanes[lane].floored && asker.tier() != Priority::Critical
    }

    /// What is set aside for the owner before the asker is withheld already and not kept twice.
    fn kept_for(&self, owner: AgentId, asker: &Asker<'_>, lane: usize, now: Instant) -> u64 {
        if self.tier_of(owner) > asker.tier() || !self.is_active(owner, asker, lane, now) {
            return 0;
        }
        let unfilled = self.unfilled(owner, lane, now);
        let holders = &self.index.asides[lane].holders;
        if unfilled == 0 || holders.is_empty() {
            return unfilled;
        }
        let before = self.tickets_of(owner).take_while(|place| *place < asker.place);
        let aside = before.filter(|place| holders.contains(place));
        let aside: u64 = aside.map(|place| self.need_of_ticket(lane, place)).sum();
        unfilled.saturating_sub(aside)
    }

    /// Where somebody stands on a lane.
    pub(crate) fn standing(
        &self,
        asker: &Asker<'_>,
        lane: usize,
        need: u64,
        now: Instant,
    ) -> Standing {
        let floored = self.index.plan.lanes[lane].floored && asker.passes;
        let unfilled =
            asker.agent.filter(|_| floored).map_or(0, |agent| self.unfilled(agent, lane, now));
        Standing { covered: floored && need <= unfilled, ..Standing::of(asker.place) }
    }

    pub(crate) fn standing_of_ticket(&self, place: Place, lane: usize, now: Instant) -> Standing {
        if !self.index.due_owners.contains(&place) {
            return Standing::of(place);
        }
        self.facts.tickets.get(&place).map_or(Standing::of(place), |ticket| {
            let need = self.index.plan.lanes[lane].need(&ticket.call.cost);
            self.standing(&self.asker_of(place, ticket), lane, need, now)
        })
    }

    /// What an agent's floor on a lane still lacks.
    pub(crate) fn unfilled(&self, agent: AgentId, lane: usize, now: Instant) -> u64 {
        self.floor_meter(agent, lane).map_or(0, |(_, meter, tally)| {
            meter.floor.saturating_sub(tally.taken_at(now, &meter.spec))
        })
    }

    /// The number, the plan and the tally of an agent's floor on a lane.
    pub(crate) fn floor_meter(
        &self,
        agent: AgentId,
        lane: usize,
    ) -> Option<(usize, &Meter, &Tally)> {
        let rule = self.index.loads[usize::from(agent)].rule;
        let meters = self.meters_of(rule).iter().zip(self.tallies_of(Some(agent)));
        let mut numbered =
            meters.enumerate().map(|(number, (meter, tally))| (number, meter, tally));
        numbered.find(|(_, meter, _)| meter.floor > 0 && meter.is_of_lane(lane))
    }

    /// Whether an owner's floor on a lane is its own just now, and not donated to the asker. A
    /// ticket of the owner's that comes behind the asker is no reason to keep anything from the
    /// asker: the two might wait for each other.
    fn is_active(&self, owner: AgentId, asker: &Asker<'_>, lane: usize, now: Instant) -> bool {
        self.is_busy(owner, lane, now)
            || self.tickets_of(owner).next().is_some_and(|first| first < asker.place)
    }

    /// Whether an owner is active whoever asks.
    pub(crate) fn is_busy(&self, owner: AgentId, lane: usize, now: Instant) -> bool {
        self.index.loads[usize::from(owner)].leases > 0 || now < self.goes_idle(owner, lane)
    }

    /// The tickets of an agent with a floor or a cap, in order.
    pub(crate) fn tickets_of(&self, agent: AgentId) -> impl Iterator<Item = Place> {
        let from = (agent, Place::first_of(Priority::Critical));
        let upto = (agent, Place::last_of(Priority::Background));
        self.index.metered_tickets.range(from..=upto).map(|(_, place)| *place)
    }

    /// When an agent with nothing under way is idle.
    pub(crate) fn goes_idle(&self, agent: AgentId, lane: usize) -> Instant {
        self.facts.agents[usize::from(agent)].active + self.index.plan.lanes[lane].idle_after()
    }

    pub(crate) fn tier_of(&self, agent: AgentId) -> Priority {
        let rule = self.index.loads[usize::from(agent)].rule;
        rule.map_or(Priority::default(), |rule| self.index.plan.agents[usize::from(rule)].tier)
    }

    /// The meters an agent's rule asks for; its tallies are in the same order.
    pub(crate) fn meters_of(&self, rule: Option<u16>) -> &[Meter] {
        rule.map_or(&[], |rule| &self.index.plan.agents[usize::from(rule)].meters)
    }

    pub(crate) fn tallies_of(&self, agent: Option<AgentId>) -> &[Tally] {
        agent.map_or(&[], |agent| &self.facts.agents[usize::from(agent)].meters)
    }

    pub(crate) fn limit_of(&self, meter: &Meter) -> Option<LimitId> {
        match &meter.measures {
            Measures::Lane(lane) => Some(self.index.plan.lanes[usize::from(*lane)].id.clone()),
            Measures::Unit(unit) => Some(LimitId::Window(unit.clone(), meter.spec.period)),
        }
    }
}

//! Taking what a call costs, everywhere at once.

use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::bounds;
use crate::call::Call;
use crate::config::Priority;
use crate::event::{Key, Reserve};
use crate::lease::{Charge, Holder, Lease, Target};
use crate::outcome::{Answer, Decision, Grant};
use crate::plan::LaneKind;
use crate::state::State;
use crate::tally::{Reset, ResetPhase};
use crate::ticket::{Phase, Place};
use crate::time::Instant;
use crate::unit::Amounts;

impl State {
    /// Makes the call a lease. Whether it may be made was decided before.
    pub(crate) fn admit(
        &mut self,
        key: Key,
        agent: AgentId,
        tier: Priority,
        holder: Holder,
        call: Call,
        now: Instant,
    ) -> Grant {
        let charges = self.charge_all(key, agent, &call.cost, now);
        self.note_lows(&charges, now);
        self.know_id(agent, call.id.as_ref(), key);
        let lease = Lease { holder, agent, tier, call, started: now, progressed: now, charges };
        self.index.loads[usize::from(agent)].leases += 1;
        self.index.add_lease(key, &lease, &self.facts.sessions);
        self.facts.leases.insert(key, lease);
        self.seen_active(agent, now);
        self.facts.agents[usize::from(agent)].admitted = Some(now);
        self.no_longer_denied(agent, now);
        self.tier_was_active(tier, now);
        self.facts.used = now;
        self.count_admission(now);
        self.passes_gate(key, now);
        self.keep_distance(tier, now);
        self.looks_again(key, now);
        self.hold_back_capped(agent, now);
        self.hold_back_paced(agent, now);
        let expires_at = self.lease_ends(key);
        Grant { lease: key, expires_at, settled: false, instead_of: None }
    }

    fn charge_all(
        &mut self,
        key: Key,
        agent: AgentId,
        cost: &Amounts,
        now: Instant,
    ) -> Vec<Charge> {
        let lanes = &self.index.plan.lanes;
        let mut charges = Vec::with_capacity(lanes.len());
        for (at, (lane, tally)) in lanes.iter().zip(&mut self.facts.lanes).enumerate() {
            let need = lane.need(cost);
            // A rate that the cost does not name is charged with what the commit says. Who passes
            // the gate is remembered there.
            let gate = self.index.plan.gate == Some(at);
            if gate || need == 0 && lane.kind != LaneKind::Rate {
                continue;
            }
            if need > tally.free_at(now, &lane.spec) && tally.probe_open_at(now, &lane.spec) {
                send_probe(&mut tally.reset, key);
            }
            let to = Target::Lane(u8::try_from(at).unwrap_or(u8::MAX));
            charges.push(Charge::take(to, tally, &lane.spec, need, now));
            self.index.dirty |= 1 << at;
        }
        let rule = self.index.loads[usize::from(agent)].rule.map(usize::from);
        let meters = rule.map_or(&[][..], |rule| &self.index.plan.agents[rule].meters);
        let tallies = &mut self.facts.agents[usize::from(agent)].meters;
        for (at, (meter, tally)) in meters.iter().zip(tallies).enumerate() {
            let need = meter.need(lanes, cost);
            let to = Target::Meter(u8::try_from(at).unwrap_or(u8::MAX));
            charges.push(Charge::take(to, tally, &meter.spec, need, now));
        }
        charges
    }

    /// A lease the store had forgotten is in flight again, above the limit if need be.
    pub(crate) fn reinstate(
        &mut self,
        lease: Key,
        by: Key,
        reserve: &Reserve,
        now: Instant,
    ) -> Answer {
        let known = self.facts.leases.contains_key(&lease);
        if known || self.facts.leases.len() >= bounds::LEASES {
            return Answer::Done;
        }
        if let Some(place) = self.index.place_of.get(&lease).copied() {
            self.end_ticket(place, None, now);
        }
        let asked = reserve;
        let reserve = &self.completed(asked).into_owned();
        let agent = self.index.agent_of.get(&reserve.agent).copied();
        let tier = self.newcomer(reserve, agent, now).tier();
        let agent = self.agent_for(&reserve.agent, now);
        let holder = Holder::of(reserve.ttl, by.session, now);
        let grant = self.admit(lease, agent, tier, holder, Call::of(asked, reserve), now);
        Answer::Decided(Decision::Admit(grant))
    }

    /// Other tickets of an agent that has just reached its cap are held back by it.
    fn hold_back_capped(&mut self, agent: AgentId, now: Instant) {
        self.stand_capped(agent, now, |state, place| {
            let ticket = &state.facts.tickets[&place];
            let held = matches!(ticket.phase, Phase::Held { .. });
            !held && state.not_yet(&state.asker_of(place, ticket), now).is_some()
        });
    }

    /// Tickets of an agent with a cap, those that are meant, find their place again.
    pub(crate) fn stand_capped(
        &mut self,
        agent: AgentId,
        now: Instant,
        meant: impl Fn(&Self, Place) -> bool,
    ) {
        let load = self.index.loads[usize::from(agent)];
        if load.tickets == 0 || !self.meters_of(load.rule).iter().any(|meter| meter.capped) {
            return;
        }
        let places: Vec<Place> =
            self.tickets_of(agent).filter(|place| meant(self, *place)).collect();
        for place in places {
            self.stand(place, now);
        }
    }
}

fn send_probe(reset: &mut Option<Reset>, probe: Key) {
    if let Some(reset) = reset {
        let carried = match reset.phase {
            ResetPhase::Passed { carried } => carried,
            _ => 0,
        };
        reset.phase = ResetPhase::Probing { carried, probe };
    }
}

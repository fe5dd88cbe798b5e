//! Creates leases: charges a call to every unit at once.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::Priority;
use crate::event::{Key, Reserve};
use crate::id::AgentId;
use crate::lease::call::Call;
use crate::lease::{Charge, Ending, Lease, LeaseOwner};
use crate::outcome::{Answer, Decision, Grant};
use crate::queue::fair::FairPlace;
use crate::queue::ticket::{Phase, QueueKey};
use crate::state::State;
use crate::time::Instant;
use crate::unit::Amounts;
use crate::usage::counter::{Count, Reset, ResetPhase};

impl State {
    /// Turns a call into a lease. The caller has decided that it may be made.
    pub(crate) fn admit(
        &mut self,
        key: Key,
        agent: AgentId,
        (tier, place): (Priority, FairPlace),
        owner: LeaseOwner,
        call: Call,
        now: Instant,
    ) -> Grant {
        let charges = self.charge_all(key, agent, &call.cost, now);
        self.count_fair(agent, tier, place, &call.cost);
        // A promoted call is served as a standard one, but background need not yield to it.
        let promoted = self.facts.agents[agent].promoted.is_some();
        let (served_in, tier) = (tier, if promoted { Priority::Background } else { tier });
        let left = self.left_of_stated(now);
        self.record_lows(&left, now);
        self.record_id(call.id.as_deref(), key);
        self.record_ask(agent, &call.cost);
        let (started, progressed) = (now, now);
        let lease = Lease { owner, agent, tier, call, started, progressed, charges, left };
        self.insert_lease(key, lease);
        self.touch_agent(agent, now);
        self.facts.agents[agent].admitted = Some(now);
        self.no_longer_denied(agent, now);
        self.touch_tier(tier, agent, now);
        self.facts.used = now;
        self.count_admission(now);
        self.enter_gate(key, now);
        self.space_newcomers(served_in, now);
        self.start_terminal_probe(key, now);
        self.hold_capped(agent, now);
        self.hold_zone_paced(agent, now);
        let expires_at = self.lease_ends(key);
        Grant { lease: key, expires_at, settled: false, instead_of: None }
    }

    /// Charges a call to every unit that is counted, and marks what it passes.
    fn charge_all(
        &mut self,
        key: Key,
        agent: AgentId,
        cost: &Amounts,
        now: Instant,
    ) -> Vec<Charge> {
        for at in self.index.compiled.constraints.ids() {
            let constraint = &self.index.compiled.constraints[at];
            let need = constraint.need(cost);
            // The gate remembers who passes it by itself.
            if self.index.compiled.gate == Some(at) || need == 0 {
                continue;
            }
            let probes = self.facts.counters[at].reset.is_some() && {
                let usage = self.usage(at);
                // A floor may keep what is free.
                usage.probe_open_at(now) && (constraint.floored || need > usage.free_at(now))
            };
            let counter = &mut self.facts.counters[at];
            if probes {
                send_probe(&mut counter.reset, key);
            }
            if let Count::Pace { last } = &mut counter.count {
                *last = Some(now);
            }
            self.index.dirty.insert(at);
        }
        let mut charges = Vec::with_capacity(self.facts.units.len());
        for unit in self.facts.units.ids() {
            // A unit that the cost does not name is charged with what the commit reports.
            let need = cost.of(&self.facts.units[unit].unit).unwrap_or(0);
            charges.push(self.take_unit(unit, agent, need, now));
        }
        charges
    }

    /// What is left of each stated limit, if readings of the provider are compared with it.
    pub(crate) fn left_of_stated(&self, now: Instant) -> Vec<u64> {
        if !self.facts.config.as_ref().is_some_and(|config| config.policy.reconciles) {
            return Vec::new();
        }
        let constraints = self.index.compiled.constraints.ids();
        let left = constraints.map(|at| {
            let usage = self.usage(at);
            usage.spec.stated.saturating_sub(usage.taken_at(now))
        });
        left.collect()
    }

    /// Puts a lease that the store lost back in flight, above the limit if need be.
    pub(crate) fn reinstate(
        &mut self,
        lease: Key,
        by: Key,
        reserve: &Reserve,
        now: Instant,
    ) -> Answer {
        if self.facts.leases.contains_key(&lease) {
            return Answer::Done;
        }
        let beyond = self.facts.leases.len() >= bounds::LEASES;
        if let Some(queue_key) = self.index.queue_key_of.get(&lease).copied() {
            self.end_ticket(queue_key, None, now);
        }
        let cost = self.completed_cost(reserve).into_owned();
        let candidate = self.newcomer(reserve, &cost, now);
        let rank = (candidate.tier(), Self::place_of(&candidate));
        let agent = self.agent_for(&reserve.agent, now);
        let owner = LeaseOwner::of(reserve.ttl, by.session, now);
        let grant = self.admit(lease, agent, rank, owner, Call::of(reserve, cost), now);
        if beyond {
            // There is no room to hold it, but the call was made, so it stays charged.
            let _ = self.end_lease(lease, Ending::Used, &Amounts::default(), now);
            return Answer::Done;
        }
        Answer::Decided(Decision::Admit(grant))
    }

    /// Holds back other tickets of an agent that has just reached its cap.
    fn hold_capped(&mut self, agent: AgentId, now: Instant) {
        self.enqueue_capped(agent, now, |state, queue_key| {
            let ticket = &state.facts.tickets[&queue_key];
            let held = matches!(ticket.phase, Phase::Held { .. });
            !held && state.held_back(&state.candidate_of(queue_key, ticket), now).is_some()
        });
    }

    /// Enqueues again those tickets of a capped agent that the predicate selects.
    pub(crate) fn enqueue_capped(
        &mut self,
        agent: AgentId,
        now: Instant,
        meant: impl Fn(&Self, QueueKey) -> bool,
    ) {
        let load = self.index.agent_loads[agent];
        if load.tickets == 0 || !self.usages_of(load.rule).iter().any(|usage| usage.capped) {
            return;
        }
        let queue_keys: Vec<QueueKey> =
            self.tickets_of(agent).filter(|queue_key| meant(self, *queue_key)).collect();
        for queue_key in queue_keys {
            self.enqueue(queue_key, now);
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

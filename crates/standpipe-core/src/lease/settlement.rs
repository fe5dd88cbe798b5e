//! How leases end and how they are extended.
//!
//! Each lease ends exactly once: settled, cancelled, or reclaimed at its estimate.

use crate::agents::agent::AgentId;
use crate::config::compiled::{CompiledConfig, Constraint, UsageOf};
use crate::event::{Commit, Key};
use crate::lease::{Ending, Lease, LeaseOwner, Target};
use crate::outcome::{Answer, LeaseAnswer, Notice, Reason, Reclaim};
use crate::queue::ticket::{Phase, QueueKey};
use crate::rules::gate::shut;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::{Amounts, Unit};
use crate::usage::counter::{Count, CounterSpec, Reset, ResetPhase, UsageCounter};
use crate::usage::history::UnitHistory;

impl State {
    pub(crate) fn commit(&mut self, commit: &Commit, now: Instant) -> Answer {
        if commit.progress && !commit.refused {
            return self.progress(commit, now);
        }
        let ending = if commit.refused { Ending::Refused } else { Ending::Used };
        if !commit.refused {
            self.on_answer(commit.lease, now);
        }
        let was_shut = shut(&self.facts).is_some();
        let answer = self.end_lease(commit.lease, ending, &commit.used, now);
        if was_shut && shut(&self.facts).is_none() {
            self.respread(now);
        }
        answer
    }

    /// A call was answered without a refusal.
    fn on_answer(&mut self, lease: Key, now: Instant) {
        if let Some(started) = self.facts.leases.get(&lease).map(|lease| lease.started) {
            self.answered(lease, started, now);
        }
    }

    /// Records what a call in flight has used so far.
    fn progress(&mut self, commit: &Commit, now: Instant) -> Answer {
        self.on_answer(commit.lease, now);
        let Some(mut lease) = self.facts.leases.remove(&commit.lease) else {
            return Answer::Lease(LeaseAnswer::Gone);
        };
        self.index.remove_lease(commit.lease, &lease);
        // A unit that is not named yet has not been used.
        let used = self.with_totals(&commit.used, &Amounts::default(), &lease.call).into_owned();
        for charge in &mut lease.charges {
            let (counter, spec, unit) = self.target(lease.agent, charge.to);
            if let Some(total) = unit.and_then(|unit| used.of(unit)) {
                let before = Before::of(counter, spec, now);
                charge.progress(counter, spec, total, now);
                let came_back = before.is_eased(counter, spec, now);
                self.mark_units_moved(charge.to, came_back);
            }
        }
        lease.progressed = now;
        if let LeaseOwner::Ttl { ttl, expires } = &mut lease.owner {
            *expires = now + *ttl;
        }
        self.enqueue_held_by_cap(&lease, now);
        self.index.add_lease(commit.lease, &lease);
        self.facts.leases.insert(commit.lease, lease);
        Answer::Lease(LeaseAnswer::Lives(self.lease_ends(commit.lease)))
    }

    /// Cancels a lease that was never used, or a ticket whose caller stopped waiting.
    pub(crate) fn cancel(&mut self, lease: Key, now: Instant) -> Answer {
        if let Some(queue_key) = self.index.queue_key_of.get(&lease).copied() {
            self.end_ticket(queue_key, None, now);
            return Answer::Lease(LeaseAnswer::Ended);
        }
        self.end_lease(lease, Ending::Cancelled, &Amounts::default(), now)
    }

    /// Settles an abandoned lease at its estimate, stamped now.
    pub(crate) fn reclaim(&mut self, key: Key, why: Reclaim, now: Instant) {
        let Some(lease) = self.facts.leases.get(&key) else { return };
        let agent = self.facts.agents[usize::from(lease.agent)].name.clone();
        self.effects.notices.push(Notice::Reclaimed { lease: key, agent, why });
        self.leave_gate(key, false);
        let _ = self.end_lease(key, Ending::Lost, &Amounts::default(), now);
    }

    /// Settles a lease. A second, late or unknown settlement changes nothing.
    pub(crate) fn end_lease(
        &mut self,
        key: Key,
        ending: Ending,
        used: &Amounts,
        now: Instant,
    ) -> Answer {
        let Some(mut lease) = self.facts.leases.remove(&key) else {
            return Answer::Lease(LeaseAnswer::Gone);
        };
        self.index.remove_lease(key, &lease);
        self.index.agent_loads[usize::from(lease.agent)].leases -= 1;
        let used = &*self.with_totals(used, &lease.call.cost, &lease.call);
        let mut drawn = 0_u64;
        for charge in core::mem::take(&mut lease.charges) {
            let to = charge.to;
            if let (Target::Constraint(constraint), true) =
                (to, charge.estimate > 0 || charge.charged > 0)
            {
                drawn |= 1 << constraint;
            }
            let (counter, spec, unit) = self.target(lease.agent, to);
            let total = unit.and_then(|unit| used.of(unit));
            let before = Before::of(counter, spec, now);
            charge.end(counter, spec, ending, total, now);
            let came_back = before.is_eased(counter, spec, now);
            probe_is_back(&mut counter.reset, key, ending);
            self.mark_units_moved(to, came_back);
        }
        self.leave_gate(key, ending != Ending::Cancelled);
        if ending == Ending::Cancelled {
            self.probe_cancelled(key, now);
        }
        self.touch_agent(lease.agent, now);
        self.touch_tier(lease.tier, now);
        self.facts.used = now;
        self.learn_from(&lease, ending, used, drawn, now);
        self.id_ended(lease.call.id.as_ref(), key, now);
        self.enqueue_held_by_cap(&lease, now);
        Answer::Lease(LeaseAnswer::Ended)
    }

    /// Feeds what a finished call used into estimates, money and margins.
    fn learn_from(
        &mut self,
        lease: &Lease,
        ending: Ending,
        used: &Amounts,
        drawn: u64,
        now: Instant,
    ) {
        let said = matches!(ending, Ending::Used);
        if said {
            self.learn_sizes(lease, used);
        }
        if said || ending == Ending::Lost {
            let usd = used.of(&Unit::Usd).or_else(|| lease.call.cost.of(&Unit::Usd));
            self.spend(lease, usd.unwrap_or(0), said, now);
        }
        if said {
            self.raise_margin_use(drawn, now);
            self.expire_external(now);
        }
    }

    /// Marks a constraint for serving. Waiters are woken only if units returned or are no longer
    /// held: a charge alone says when it ages out.
    fn mark_units_moved(&mut self, to: Target, came_back: bool) {
        if let Target::Constraint(constraint) = to {
            self.index.dirty |= 1 << constraint;
            self.index.returned |= u64::from(came_back) << constraint;
        }
    }

    /// Enqueues again the tickets that the agent's cap held back: its units may have returned.
    fn enqueue_held_by_cap(&mut self, lease: &Lease, now: Instant) {
        self.enqueue_capped(lease.agent, now, |state, queue_key: QueueKey| {
            let phase = state.facts.tickets[&queue_key].phase;
            matches!(phase, Phase::Held { reason: Reason::Cap, .. })
        });
    }

    /// The counter of a charge, its specification, and the unit it counts.
    fn target(
        &mut self,
        agent: AgentId,
        to: Target,
    ) -> (&mut UsageCounter, &CounterSpec, Option<&Unit>) {
        let compiled: &CompiledConfig = &self.index.compiled;
        match to {
            Target::Constraint(at) => {
                let constraint: &Constraint = &compiled.constraints[usize::from(at)];
                (&mut self.facts.counters[usize::from(at)], &constraint.spec, constraint.settles())
            }
            Target::Usage(at) => {
                let agent = usize::from(agent);
                let rule = self.index.agent_loads[agent].rule.map_or(0, usize::from);
                let usage = &compiled.agents[rule].usages[usize::from(at)];
                let unit = match &usage.measures {
                    UsageOf::Constraint(constraint) => {
                        compiled.constraints[usize::from(*constraint)].settles()
                    }
                    UsageOf::Unit(unit) => Some(unit),
                };
                (&mut self.facts.agents[agent].usages[usize::from(at)], &usage.spec, unit)
            }
            Target::Unit(at) => {
                let (at, history) = (usize::from(at), &mut self.facts.units);
                let UnitHistory { counter, unit, .. } = &mut history[at];
                (counter, &compiled.units[at], Some(&*unit))
            }
            Target::AgentUnit(at) => {
                let (at, agent) = (usize::from(at), usize::from(agent));
                let unit = &self.facts.units[at].unit;
                (&mut self.facts.agents[agent].units[at], &compiled.units[at], Some(unit))
            }
        }
    }

    /// Extends a lease by its time to live, or gives it one.
    pub(crate) fn extend(&mut self, key: Key, ttl: Option<Span>, now: Instant) -> Answer {
        let Some(mut lease) = self.facts.leases.remove(&key) else {
            return Answer::Lease(LeaseAnswer::Gone);
        };
        self.index.remove_lease(key, &lease);
        lease.owner = match lease.owner {
            LeaseOwner::Ttl { ttl: own, .. } => LeaseOwner::of(Some(ttl.unwrap_or(own)), 0, now),
            LeaseOwner::Session(session) => LeaseOwner::of(ttl, session, now),
        };
        self.index.add_lease(key, &lease);
        self.facts.leases.insert(key, lease);
        Answer::Lease(LeaseAnswer::Lives(self.lease_ends(key)))
    }
}

/// A counter before a settlement.
struct Before {
    taken: u64,
    held: u64,
}

impl Before {
    fn of(counter: &UsageCounter, spec: &CounterSpec, now: Instant) -> Self {
        Self { taken: counter.taken_at(now, spec), held: counter.held }
    }

    /// Whether a waiter may be admitted earlier because of the settlement: units returned or are no
    /// longer held, and if they are slots, all were in use.
    fn is_eased(&self, counter: &UsageCounter, spec: &CounterSpec, now: Instant) -> bool {
        let less = counter.taken_at(now, spec) < self.taken || counter.held < self.held;
        let scarce = !matches!(counter.count, Count::Slots) || self.taken >= spec.effective;
        less && scarce
    }
}

/// A probe that was never sent passes its role on. Any other end uses it up.
fn probe_is_back(reset: &mut Option<Reset>, key: Key, ending: Ending) {
    let Some(Reset { phase, .. }) = reset else { return };
    match *phase {
        ResetPhase::Probing { carried, probe } if probe == key => {
            *phase = match ending {
                Ending::Cancelled => ResetPhase::Passed { carried },
                Ending::Used | Ending::Lost | Ending::Refused => ResetPhase::Spent { carried },
            };
        }
        _ => {}
    }
}

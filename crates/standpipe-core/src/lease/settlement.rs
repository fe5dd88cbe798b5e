//! How leases end and how they are extended.
//!
//! Each lease ends exactly once: settled, cancelled, or reclaimed at its estimate.

use crate::event::{Commit, Key};
use crate::id::{AgentId, ConstraintId, ConstraintSet, IdVec};
use crate::lease::{Ending, Lease, LeaseOwner};
use crate::outcome::{Answer, LeaseAnswer, Notice, Reason, Reclaim};
use crate::queue::ticket::{Phase, QueueKey};
use crate::rules::gate::shut;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::{Amounts, Unit};
use crate::usage::counter::{Reset, ResetPhase};
use crate::usage::view::Counted;

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
        let before = self.usage_before(now);
        let Some(lease) = self.facts.leases.get_mut(&commit.lease) else {
            return Answer::Lease(LeaseAnswer::Gone);
        };
        let (agent, mut charges) = (lease.agent, core::mem::take(&mut lease.charges));
        // A unit that is not named yet has not been used.
        let call = &self.facts.leases[&commit.lease].call;
        let used = self.with_totals(&commit.used, &Amounts::default(), call).into_owned();
        for charge in &mut charges {
            let unit = &self.facts.units[charge.unit].unit;
            if let Some(total) = used.of(unit) {
                self.progress_charge(charge, agent, total, now);
            }
        }
        self.update_lease(commit.lease, |lease| {
            (lease.charges, lease.progressed) = (charges, now);
            if let LeaseOwner::Ttl { ttl, expires } = &mut lease.owner {
                *expires = now + *ttl;
            }
        });
        self.mark_units_moved(&before, now);
        self.enqueue_held_by_cap(agent, now);
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
        let agent = self.facts.agents[lease.agent].name.clone();
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
        let before = self.usage_before(now);
        let Some(mut lease) = self.remove_lease(key) else {
            return Answer::Lease(LeaseAnswer::Gone);
        };
        let used = &*self.with_totals(used, &lease.call.cost, &lease.call);
        let drawn = self.drawn_by(&lease);
        for charge in core::mem::take(&mut lease.charges) {
            let unit = &self.facts.units[charge.unit].unit;
            let total = used.of(unit);
            self.end_charge(charge, lease.agent, ending, total, now);
        }
        self.mark_units_moved(&before, now);
        for counter in &mut self.facts.counters {
            probe_is_back(&mut counter.reset, key, ending);
        }
        self.leave_gate(key, ending != Ending::Cancelled);
        if ending == Ending::Cancelled {
            self.probe_cancelled(key, now);
        }
        self.touch_agent(lease.agent, now);
        self.touch_tier(lease.tier, lease.agent, now);
        self.facts.used = now;
        self.learn_from(&lease, ending, used, drawn, now);
        self.id_ended(lease.call.id.as_deref(), key, now);
        self.enqueue_held_by_cap(lease.agent, now);
        Answer::Lease(LeaseAnswer::Ended)
    }

    /// Feeds what a finished call used into estimates, money and margins.
    fn learn_from(
        &mut self,
        lease: &Lease,
        ending: Ending,
        used: &Amounts,
        drawn: ConstraintSet,
        now: Instant,
    ) {
        let reported = matches!(ending, Ending::Used);
        if reported {
            self.learn_sizes(lease, used);
        }
        if reported || ending == Ending::Lost {
            let usd = used.of(&Unit::Usd).or_else(|| lease.call.cost.of(&Unit::Usd));
            self.spend(usd.unwrap_or(0), reported, now);
        }
        if reported {
            self.lower_margins(drawn, now);
            self.expire_external(now);
        }
    }

    /// The rates that a lease drew on.
    fn drawn_by(&self, lease: &Lease) -> ConstraintSet {
        let mut drawn = ConstraintSet::default();
        for charge in lease.charges.iter().filter(|own| own.estimate > 0 || own.charged > 0) {
            for (at, constraint) in self.index.compiled.constraints.rows() {
                drawn.insert_if(at, constraint.unit == Some(charge.unit));
            }
        }
        drawn
    }

    /// What is used of each constraint before a settlement; nothing if no ticket could profit.
    fn usage_before(&self, now: Instant) -> IdVec<ConstraintId, UsageBefore> {
        if self.facts.tickets.is_empty() {
            return IdVec::new();
        }
        let each = self.index.compiled.constraints.ids().map(|at| {
            let usage = self.usage(at);
            UsageBefore { taken: usage.taken_at(now), held: usage.held }
        });
        each.collect()
    }

    /// Marks the constraints whose usage changed for serving. Waiters are woken only if units
    /// returned or are no longer held, and if they are slots, all were in use: a charge alone says
    /// when it ages out.
    fn mark_units_moved(&mut self, before: &IdVec<ConstraintId, UsageBefore>, now: Instant) {
        for (at, before) in before.rows() {
            if self.index.compiled.gate == Some(at) {
                continue;
            }
            let usage = self.usage(at);
            let (taken, held) = (usage.taken_at(now), usage.held);
            let less = taken < before.taken || held < before.held;
            let slots = matches!(usage.counted, Counted::Slots { .. });
            let scarce = !slots || before.taken >= usage.spec.effective;
            self.index.dirty.insert_if(at, taken != before.taken || held != before.held);
            self.index.returned.insert_if(at, less && scarce);
        }
    }

    /// Enqueues again the tickets that the agent's cap held back: its units may have returned.
    fn enqueue_held_by_cap(&mut self, agent: AgentId, now: Instant) {
        self.enqueue_capped(agent, now, |state, queue_key: QueueKey| {
            let phase = state.facts.tickets[&queue_key].phase;
            matches!(phase, Phase::Held { reason: Reason::Cap, .. })
        });
    }

    /// Extends a lease by its time to live, or gives it one.
    pub(crate) fn extend(&mut self, key: Key, ttl: Option<Span>, now: Instant) -> Answer {
        if !self.facts.leases.contains_key(&key) {
            return Answer::Lease(LeaseAnswer::Gone);
        }
        self.update_lease(key, |lease| {
            lease.owner = match lease.owner {
                LeaseOwner::Ttl { ttl: own, .. } => {
                    LeaseOwner::of(Some(ttl.unwrap_or(own)), 0, now)
                }
                LeaseOwner::Session(session) => LeaseOwner::of(ttl, session, now),
            };
        });
        Answer::Lease(LeaseAnswer::Lives(self.lease_ends(key)))
    }
}

/// What is used of a constraint before a settlement.
struct UsageBefore {
    taken: u64,
    held: u64,
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

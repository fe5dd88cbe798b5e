//! How leases end, and how they live on. Each ends exactly once.

use crate::agent::AgentId;
use crate::event::{Commit, Key};
use crate::gate::shut;
use crate::lease::{Ending, Holder, Lease, Target};
use crate::outcome::{Answer, LeaseAnswer, Notice, Reason, Reclaim};
use crate::plan::{Lane, Measures, Plan};
use crate::state::State;
use crate::tally::{Reset, ResetPhase, Spec, Tally};
use crate::ticket::{Phase, Place};
use crate::time::{Instant, Span};
use crate::unit::{Amounts, Unit};

impl State {
    pub(crate) fn commit(&mut self, commit: &Commit, now: Instant) -> Answer {
        if commit.progress && !commit.refused {
            return self.progress(commit, now);
        }
        let ending = if commit.refused { Ending::Refused } else { Ending::Used };
        if !commit.refused {
            self.heard_from(commit.lease, now);
        }
        let was_shut = shut(&self.facts).is_some();
        let answer = self.end_lease(commit.lease, ending, &commit.used, now);
        if was_shut && shut(&self.facts).is_none() {
            self.scatter(now);
        }
        answer
    }

    /// A call is under way and was not refused.
    fn heard_from(&mut self, lease: Key, now: Instant) {
        if let Some(started) = self.facts.leases.get(&lease).map(|lease| lease.started) {
            self.answered(lease, started, now);
        }
    }

    /// The call goes on. What it used so far is known now.
    fn progress(&mut self, commit: &Commit, now: Instant) -> Answer {
        self.heard_from(commit.lease, now);
        let Some(mut lease) = self.facts.leases.remove(&commit.lease) else {
            return Answer::Lease(LeaseAnswer::Gone);
        };
        self.index.remove_lease(commit.lease, &lease, &self.facts.sessions);
        // So far: what is not named yet has not been used.
        let used = self.figured(&commit.used, &Amounts::default(), &lease.call).into_owned();
        for charge in &mut lease.charges {
            let (tally, spec, unit) = self.target(lease.agent, charge.to);
            if let Some(total) = unit.and_then(|unit| used.of(unit)) {
                charge.progress(tally, spec, total, now);
            }
        }
        lease.progressed = now;
        if let Holder::Ttl { ttl, expires } = &mut lease.holder {
            *expires = now + *ttl;
        }
        self.units_moved(&lease, now);
        self.index.add_lease(commit.lease, &lease, &self.facts.sessions);
        self.facts.leases.insert(commit.lease, lease);
        Answer::Lease(LeaseAnswer::Lives(self.lease_ends(commit.lease)))
    }

    /// The call was never sent, or its caller no longer waits.
    pub(crate) fn cancel(&mut self, lease: Key, now: Instant) -> Answer {
        if let Some(place) = self.index.place_of.get(&lease).copied() {
            self.end_ticket(place, None, now);
            return Answer::Lease(LeaseAnswer::Ended);
        }
        self.end_lease(lease, Ending::Cancelled, &Amounts::default(), now)
    }

    /// Nobody settled it: it counts at its estimate, stamped now.
    pub(crate) fn reclaim(&mut self, key: Key, why: Reclaim, now: Instant) {
        let Some(lease) = self.facts.leases.get(&key) else { return };
        let agent = self.facts.agents[usize::from(lease.agent)].name.clone();
        self.news.notices.push(Notice::Reclaimed { lease: key, agent, why });
        self.leaves_gate(key, false);
        let _ = self.end_lease(key, Ending::Lost, &Amounts::default(), now);
    }

    /// Settles a lease. Doing it twice, late or with a name that is nobody's changes nothing.
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
        self.index.remove_lease(key, &lease, &self.facts.sessions);
        self.index.loads[usize::from(lease.agent)].leases -= 1;
        let used = &*self.figured(used, &lease.call.cost, &lease.call);
        let mut drawn = 0_u64;
        for charge in core::mem::take(&mut lease.charges) {
            let to = charge.to;
            if let (Target::Lane(lane), true) = (to, charge.estimate > 0 || charge.charged > 0) {
                drawn |= 1 << lane;
            }
            let (tally, spec, unit) = self.target(lease.agent, to);
            let total = unit.and_then(|unit| used.of(unit));
            charge.end(tally, spec, ending, total, now);
            probe_is_back(&mut tally.reset, key, ending);
            if let Target::Lane(lane) = to {
                self.index.dirty |= 1 << lane;
                self.index.returned |= 1 << lane;
            }
        }
        self.leaves_gate(key, ending != Ending::Cancelled);
        if ending == Ending::Cancelled {
            self.look_called_off(key, now);
        }
        self.seen_active(lease.agent, now);
        self.tier_was_active(lease.tier, now);
        self.facts.used = now;
        self.learn_from(&lease, ending, used, drawn, now);
        self.id_ended(lease.agent, lease.call.id.as_ref(), key, now);
        self.stand_held_by_cap(&lease, now);
        Answer::Lease(LeaseAnswer::Ended)
    }

    /// What a call that is over says about those to come.
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
            self.warm_up(drawn, now);
            self.forget_old_words(now);
        }
    }

    /// After a progress commit: lanes may have gained room or gone over.
    fn units_moved(&mut self, lease: &Lease, now: Instant) {
        for charge in &lease.charges {
            if let Target::Lane(lane) = charge.to {
                self.index.dirty |= 1 << lane;
                self.index.returned |= 1 << lane;
            }
        }
        self.stand_held_by_cap(lease, now);
    }

    /// Units of a capped agent may have come back: those its cap held back look again.
    fn stand_held_by_cap(&mut self, lease: &Lease, now: Instant) {
        self.stand_capped(lease.agent, now, |state, place: Place| {
            let phase = state.facts.tickets[&place].phase;
            matches!(phase, Phase::Held { reason: Reason::Cap, .. })
        });
    }

    /// The tally a charge was made to, what is known of it, and the unit it counts.
    fn target(&mut self, agent: AgentId, to: Target) -> (&mut Tally, &Spec, Option<&Unit>) {
        let plan: &Plan = &self.index.plan;
        match to {
            Target::Lane(at) => {
                let lane: &Lane = &plan.lanes[usize::from(at)];
                (&mut self.facts.lanes[usize::from(at)], &lane.spec, lane.settles())
            }
            Target::Meter(at) => {
                let agent = usize::from(agent);
                let rule = self.index.loads[agent].rule.map_or(0, usize::from);
                let meter = &plan.agents[rule].meters[usize::from(at)];
                let unit = match &meter.measures {
                    Measures::Lane(lane) => plan.lanes[usize::from(*lane)].settles(),
                    Measures::Unit(unit) => Some(unit),
                };
                (&mut self.facts.agents[agent].meters[usize::from(at)], &meter.spec, unit)
            }
        }
    }

    /// A lease lives on: by its time to live, or from now on by one of its own.
    pub(crate) fn extend(&mut self, key: Key, ttl: Option<Span>, now: Instant) -> Answer {
        let Some(mut lease) = self.facts.leases.remove(&key) else {
            return Answer::Lease(LeaseAnswer::Gone);
        };
        self.index.remove_lease(key, &lease, &self.facts.sessions);
        lease.holder = match lease.holder {
            Holder::Ttl { ttl: own, .. } => Holder::of(Some(ttl.unwrap_or(own)), 0, now),
            Holder::Session(session) => Holder::of(ttl, session, now),
        };
        self.index.add_lease(key, &lease, &self.facts.sessions);
        self.facts.leases.insert(key, lease);
        Answer::Lease(LeaseAnswer::Lives(self.lease_ends(key)))
    }
}

/// A probe that was never sent passes its role on; any other end uses it up.
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

//! Leases whose call was not sent yet, because it waits for another pool.
//!
//! A call that draws on several pools is sent after the last of them has admitted it. Each earlier
//! lease is then dated to that instant, so that its charges do not age before the provider counts
//! them. Dating never takes a unit that others may have: a lease whose units others may have used
//! meanwhile is withdrawn, and its call asks again.

use crate::config::Charged;
use crate::event::Key;
use crate::lease::{Charge, Ending, Lease, LeaseOwner};
use crate::outcome::{Answer, LeaseAnswer};
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::Amounts;
use crate::usage::bucket::Refund;
use crate::usage::counter::Count;
use crate::usage::unit_usage::external_charges;

impl State {
    /// Dates the charges of a lease to now, or withdraws the lease.
    pub(crate) fn redate(&mut self, key: Key, now: Instant) -> Answer {
        let Some(lease) = self.facts.leases.get(&key) else {
            return Answer::Lease(LeaseAnswer::Gone);
        };
        if was_sent(lease) {
            return Answer::Lease(LeaseAnswer::Lives(self.lease_ends(key)));
        }
        if !self.can_redate(key, lease, now) {
            return self.withdraw(key, now);
        }
        let (agent, mut charges) = (lease.agent, lease.charges.clone());
        for charge in charges.iter_mut().filter(|charge| charge.charged > 0) {
            self.refund_unit(charge, agent, charge.charged, now);
            charge.mark = self.charge_unit(charge.unit, agent, charge.charged, now);
        }
        for at in self.index.compiled.constraints.ids() {
            let draws =
                self.index.compiled.constraints[at].need(&self.facts.leases[&key].call.cost);
            if let (Count::Pace { last }, true) = (&mut self.facts.counters[at].count, draws > 0) {
                *last = Some(now);
            }
        }
        let left = self.left_of_stated(now);
        self.update_lease(key, |lease| {
            (lease.charges, lease.left) = (charges, left);
            (lease.started, lease.progressed) = (now, now);
            if let LeaseOwner::Ttl { ttl, expires } = &mut lease.owner {
                *expires = now + *ttl;
            }
        });
        self.facts.agents[agent].admitted = Some(now);
        Answer::Lease(LeaseAnswer::Lives(self.lease_ends(key)))
    }

    /// Returns everything, and lets the call ask again with the same id.
    pub(crate) fn withdraw(&mut self, key: Key, now: Instant) -> Answer {
        let mut id = None;
        self.update_lease(key, |lease| id = lease.call.id.take());
        self.id_unused(id.as_deref(), key);
        self.end_lease(key, Ending::Cancelled, &Amounts::default(), now)
    }

    /// Whether a lease still has all its units and nothing has stopped the pool since it began.
    fn can_redate(&self, key: Key, lease: &Lease, now: Instant) -> bool {
        if self.is_shadow() {
            return true;
        }
        let began = self.facts.throttling.pause_began;
        let paused = self.facts.pause.is_some() || began.is_some_and(|at| at >= lease.started);
        let stopped = self.facts.terminal.as_ref().is_some_and(|known| known.probe != Some(key));
        !paused
            && !stopped
            && self.paces_allow(lease, now)
            && lease.charges.iter().all(|charge| self.has_its_units(charge, lease, now))
    }

    /// Whether every pace still waits for this call alone, or is open for any call.
    fn paces_allow(&self, lease: &Lease, now: Instant) -> bool {
        self.index.compiled.constraints.rows().all(|(at, constraint)| {
            match self.facts.counters[at].count {
                Count::Pace { last: Some(last) } if constraint.need(&lease.call.cost) > 0 => {
                    let opens = last + constraint.spec.period;
                    let is_its_own = last == lease.started && now < opens;
                    is_its_own || now >= opens && self.facts.tickets.is_empty()
                }
                _ => true,
            }
        })
    }

    /// Whether a charge made at the start still counts in full wherever it counts: then to date it
    /// to now takes nothing. Of a bucket it takes what was refilled since, if there is room for it.
    fn has_its_units(&self, charge: &Charge, lease: &Lease, now: Instant) -> bool {
        if charge.charged == 0 {
            return true;
        }
        let history = &self.facts.units[charge.unit].history;
        let stamp = history.find(charge.mark).map(|(sample, _)| sample.stamp);
        let counts = |period: Span| stamp.is_some_and(|stamp| now < stamp + period);
        let caps = self.usages_of(self.index.agent_loads[lease.agent].rule).iter();
        let mut caps = caps.filter(|cap| cap.capped && cap.unit_index == Some(charge.unit));
        let constraints = self.index.compiled.constraints.rows();
        let mut limits = constraints.filter(|(_, limit)| limit.unit == Some(charge.unit));
        caps.all(|cap| counts(cap.spec.period))
            && limits.all(|(at, limit)| match &self.facts.counters[at].count {
                Count::Window { .. } => counts(limit.spec.period),
                Count::Bucket(bucket) => {
                    let by_others = external_charges(&self.facts.external, limit, now);
                    let (mark, charged) = (charge.mark, charge.charged);
                    let back = Refund { mark, charged, unused: charged, by_others };
                    let (mut moved, refill) = (*bucket, limit.spec.as_refill());
                    moved.refund(now, back, history, refill);
                    moved.charge(now, charged, refill);
                    let (used, after) = (bucket.used_at(now, refill), moved.used_at(now, refill));
                    // What was refilled belongs to the calls that wait for it. A call above the
                    // limit was admitted alone.
                    let is_free = after <= limit.spec.effective.max(charged);
                    after <= used || is_free && self.facts.tickets.is_empty()
                }
                Count::Slots | Count::Pace { .. } => true,
            })
    }
}

/// Whether the call of a lease has reported something.
fn was_sent(lease: &Lease) -> bool {
    let reported =
        |charge: &Charge| charge.known || charge.when == Charged::End && charge.charged > 0;
    lease.progressed > lease.started || lease.charges.iter().any(reported)
}

//! Looking ahead: when will a call be admitted, if nothing happens but time?
//!
//! Everything time alone brings is in it: ageing, refill, the end of leases and sessions, donation of
//! floors, the end of a pause. Alone in the pool the answer is exact; behind other tickets it is a
//! bound below which nothing can happen.

use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::judge::Asker;
use crate::lease::{Charge, Target};
use crate::outcome::{Reason, Refusal};
use crate::state::State;
use crate::tally::Holding;
use crate::time::{Instant, Span};

impl State {
    /// The first instant at which every limit, cap and pause lets it pass, other tickets aside.
    pub(crate) fn admitted_at(&self, asker: &Asker<'_>, now: Instant) -> Option<Instant> {
        self.admitted_from(asker, now, |_| 0)
    }

    /// The same if so many units of each lane stay set aside for others.
    fn admitted_from(
        &self,
        asker: &Asker<'_>,
        now: Instant,
        aside: impl Fn(usize) -> u64,
    ) -> Option<Instant> {
        let mut at = now.max(self.facts.pause.unwrap_or(now));
        // Floors make room come and go, so a lane may have to be asked again; each round is later.
        loop {
            let mut next = self.cap_fits(asker, at);
            for lane in 0..self.index.plan.lanes.len() {
                next = next.max(self.lane_fits_beside(asker, lane, aside(lane), next));
            }
            if next == Instant::NEVER {
                return None;
            }
            // Without floors nothing that has room loses it again by waiting.
            if next == at || self.index.floor_owners.is_empty() {
                return Some(next);
            }
            at = next;
        }
    }

    /// A refusal with the instant at which it ends, if it ever does.
    ///
    /// Exact where nobody stands in front. Behind others it is a bound: not before its own instant,
    /// nor before anything stirs that they have.
    pub(crate) fn dated(&self, mut refusal: Refusal, asker: &Asker<'_>, now: Instant) -> Refusal {
        match (refusal.reason, refusal.until) {
            (Reason::Never | Reason::QueueFull, _) | (Reason::Terminal, None) => return refusal,
            (Reason::Terminal, Some(end)) => {
                refusal.until = self.admitted_at(asker, end);
                return refusal;
            }
            _ => {}
        }
        let waits = self.facts.tickets.contains_key(&asker.place);
        refusal.until = self.admitted_at(asker, now).map(|own| {
            let stirs = self.next_change(now).unwrap_or(Instant::NEVER);
            if refusal.reason == Reason::Order || waits {
                return own.max(stirs.min(LAST)).max(now + Span(1));
            }
            let beside = self.admitted_from(asker, now, |lane| {
                let need = self.index.plan.lanes[lane].need(asker.cost);
                self.aside_before(lane, self.standing(asker, lane, need, now), now)
            });
            own.max(beside.unwrap_or(LAST).min(stirs)).max(now + Span(1))
        });
        refusal
    }

    /// The first instant from `from` on at which a lane has room for it.
    pub(crate) fn lane_fits(&self, asker: &Asker<'_>, lane: usize, from: Instant) -> Instant {
        self.lane_fits_beside(asker, lane, 0, from)
    }

    fn lane_fits_beside(
        &self,
        asker: &Asker<'_>,
        lane: usize,
        aside: u64,
        from: Instant,
    ) -> Instant {
        let plan = &self.index.plan.lanes[lane];
        let need = plan.need(asker.cost);
        if need == 0 {
            return from;
        }
        let tally = &self.facts.lanes[lane];
        let fits = |beside: u64, from| {
            let want = need.saturating_add(beside);
            if beside > 0 && want > plan.spec.effective {
                return Instant::NEVER;
            }
            tally.fits_from(want, from, &plan.spec, || self.holdings_on(lane))
        };
        if !self.floors_bind(asker, lane) {
            return fits(aside, from);
        }
        let probe = tally.probed_from(need, from, &plan.spec).filter(|_| aside == 0);
        let mut at = from;
        loop {
            let (kept, changes) = self.kept_ahead(asker, lane, at);
            let fit = fits(kept.saturating_add(aside), at);
            match changes {
                Some(changes) if changes <= fit => at = changes,
                _ => return fit.min(probe.unwrap_or(Instant::NEVER)),
            }
        }
    }

    pub(crate) fn cap_fits(&self, asker: &Asker<'_>, from: Instant) -> Instant {
        let (meters, tallies) = (self.meters_of(asker.rule), self.tallies_of(asker.agent));
        let mut at = from;
        for (number, (meter, tally)) in meters.iter().zip(tallies).enumerate() {
            let need = meter.need(&self.index.plan.lanes, asker.cost);
            if meter.capped && need > 0 {
                let holdings = || self.holdings_on_meter(asker.agent, number);
                at = at.max(tally.fits_from(need, from, &meter.spec, holdings));
            }
        }
        at
    }

    /// What is kept for others at an instant ahead, and the next instant at which that changes.
    fn kept_ahead(&self, asker: &Asker<'_>, lane: usize, at: Instant) -> (u64, Option<Instant>) {
        let mut kept: u64 = 0;
        let mut changes: Option<Instant> = None;
        let mut note = |when: Instant| {
            if when > at {
                changes = Some(changes.map_or(when, |first| first.min(when)));
            }
        };
        for owner in self.index.floor_owners.iter().copied() {
            if Some(owner) == asker.agent || self.tier_of(owner) > asker.tier() {
                continue;
            }
            let Some((number, meter, tally)) = self.floor_meter(owner, lane) else { continue };
            let idle = self.goes_idle_ahead(owner, lane);
            note(idle);
            if at >= idle {
                continue;
            }
            let holdings = self.holdings_on_meter(Some(owner), number);
            for holding in &holdings {
                note(holding.ends);
            }
            let mut ahead = tally.ahead(at, &meter.spec, holdings);
            ahead.expire(at, &meter.spec);
            if let Some(ages) = ahead.next_room(0, at, &meter.spec) {
                note(ages);
            }
            kept = kept.saturating_add(meter.floor.saturating_sub(ahead.taken_at(at, &meter.spec)));
        }
        (kept, changes)
    }

    /// When an agent will be idle if nothing is heard of its calls.
    fn goes_idle_ahead(&self, agent: AgentId, lane: usize) -> Instant {
        let record = self.facts.agents[usize::from(agent)].active;
        let load = self.index.loads[usize::from(agent)];
        let mut last = record;
        if load.leases > 0 {
            let its = self.facts.leases.iter().filter(|(_, lease)| lease.agent == agent);
            last = its.map(|(key, _)| self.lease_ends(*key)).fold(last, Instant::max);
        }
        if load.tickets > 0 {
            let its = self.facts.tickets.values().filter(|ticket| ticket.agent == agent);
            last = its.map(|ticket| ticket.deadline).fold(last, Instant::max);
        }
        last + self.index.plan.lanes[lane].idle_after()
    }

    fn holdings_on(&self, lane: usize) -> Vec<Holding> {
        self.holdings(|_, target| matches!(target, Target::Lane(at) if usize::from(at) == lane))
    }

    fn holdings_on_meter(&self, agent: Option<AgentId>, number: usize) -> Vec<Holding> {
        self.holdings(|whose, target| {
            Some(whose) == agent && matches!(target, Target::Meter(at) if usize::from(at) == number)
        })
    }

    /// What leases hold of a tally and when they end by themselves.
    fn holdings(&self, wanted: impl Fn(AgentId, Target) -> bool) -> Vec<Holding> {
        let mut holdings = Vec::new();
        for (key, lease) in &self.facts.leases {
            let charges = lease.charges.iter().filter(|charge| wanted(lease.agent, charge.to));
            let units: u64 = charges.map(Charge::holds).sum();
            if units > 0 {
                holdings.push(Holding { ends: self.lease_ends(*key), units });
            }
        }
        holdings
    }
}

/// For a bound that must be told although nothing will ever stir.
const LAST: Instant = Instant(u64::MAX - 1);

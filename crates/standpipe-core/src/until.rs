//! Looking ahead: when will a call be admitted, if nothing happens but time?
//!
//! Everything time alone brings is in it: ageing, refill, the end of leases and sessions, donation
//! of floors, the end of a pause. Alone in the pool the answer is exact; behind other tickets it is
//! a bound below which nothing can happen.

use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::judge::Asker;
use crate::lease::{Charge, Target};
use crate::outcome::{Reason, Refusal};
use crate::state::State;
use crate::tally::Holding;
use crate::time::{Instant, Span};

impl State {
    /// The first instant at which every limit, cap and pause lets it pass, as if no other ticket
    /// were there. Owners of floors with tickets count as served: that may be soon.
    pub(crate) fn admitted_at(&self, asker: &Asker<'_>, now: Instant) -> Option<Instant> {
        let mut at = now.max(self.facts.pause.unwrap_or(now));
        // Floors make room come and go, so a lane may have to be asked again; each round is later.
        loop {
            let mut next = self.cap_fits(asker, at);
            for lane in 0..self.index.plan.lanes.len() {
                next = next.max(self.lane_fits(asker, lane, next));
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
    /// Exact where nobody waits. Beside others it is a bound: not before its own instant, nor
    /// before anything stirs that it depends on.
    pub(crate) fn dated(&self, mut refusal: Refusal, asker: &Asker<'_>, now: Instant) -> Refusal {
        refusal.until = match (refusal.reason, refusal.until) {
            (Reason::Never | Reason::QueueFull, _) | (Reason::Terminal, None) => None,
            (Reason::Terminal, Some(end)) => self.admitted_at(asker, end),
            _ if self.facts.tickets.is_empty() => self.admitted_at(asker, now),
            _ => self.admitted_at(asker, now).map(|own| own.max(self.next_stir(asker, now))),
        };
        refusal
    }

    /// Before this nothing changes by time alone that could let a call pass which cannot now.
    fn next_stir(&self, asker: &Asker<'_>, now: Instant) -> Instant {
        let lanes = 0..self.index.plan.lanes.len();
        let rooms = lanes.clone().filter_map(|lane| self.room_comes(asker, lane, now));
        let floored = lanes.filter(|lane| self.floors_bind(asker, *lane));
        let idle = floored.flat_map(|lane| {
            self.index.floor_owners.iter().map(move |owner| self.goes_idle(*owner, lane))
        });
        let all = rooms.chain(idle).chain(self.next_change(now));
        all.filter(|at| *at > now).min().unwrap_or(now + Span(1))
    }

    /// The first instant from `from` on at which a lane has room for it.
    pub(crate) fn lane_fits(&self, asker: &Asker<'_>, lane: usize, from: Instant) -> Instant {
        let plan = &self.index.plan.lanes[lane];
        let need = plan.need(asker.cost);
        if need == 0 {
            return from;
        }
        let tally = &self.facts.lanes[lane];
        let fits = |kept: u64, from| {
            let want = need.saturating_add(kept);
            if kept > 0 && want > plan.spec.effective {
                return Instant::NEVER;
            }
            tally.fits_from(want, from, &plan.spec, || self.holdings_on(lane))
        };
        let probed = tally.probed_from(need, from, &plan.spec).unwrap_or(Instant::NEVER);
        if !self.floors_bind(asker, lane) {
            return fits(0, from).min(probed);
        }
        let mut at = from;
        loop {
            let (kept, changes) = self.kept_ahead(asker, lane, at);
            let fit = fits(kept, at);
            match changes {
                Some(changes) if changes <= fit => at = changes,
                _ => return fit.min(probed),
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
            let waits = self.index.loads[usize::from(owner)].tickets > 0;
            if Some(owner) == asker.agent || self.tier_of(owner) > asker.tier() || waits {
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

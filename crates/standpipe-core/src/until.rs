//! Looking ahead: when will a call be admitted, if nothing happens but time?
//!
//! Everything time alone brings is in it: ageing, refill, the end of leases and sessions, donation
//! of floors, the end of a pause. Alone in the pool the answer is exact; behind other tickets it is
//! a bound below which nothing can happen.

use crate::agent::AgentId;
use crate::config::Priority;
use crate::judge::Asker;
use crate::kept::KeptAhead;
use crate::lease::{Lease, Target};
use crate::outcome::{Reason, Refusal};
use crate::state::State;
use crate::tally::Holding;
use crate::ticket::Place;
use crate::time::{Instant, Span};

impl State {
    /// The first instant at which every limit, cap and pause lets it pass, as if no other ticket
    /// were there. Owners of floors with tickets count as served: that may be soon.
    pub(crate) fn admitted_at(&self, asker: &Asker<'_>, now: Instant) -> Option<Instant> {
        let own = self.admitted_in_tier(asker, now);
        let lifted = self.lifted_from(asker, now).filter(|at| own.is_none_or(|own| *at < own));
        let Some(lifted) = lifted else { return own };
        // Denied for long, it will be served as a standard one.
        let place = Place::last_of(Priority::Standard);
        let standard = self.admitted_in_tier(&Asker { place, ..*asker }, lifted);
        own.into_iter().chain(standard).min()
    }

    fn admitted_in_tier(&self, asker: &Asker<'_>, now: Instant) -> Option<Instant> {
        let at = self.own_reasons_end(asker, now);
        let mut at = self.light_lets_pass(asker, at);
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
            _ if self.never_fits(asker).is_some() => None,
            (Reason::Never | Reason::QueueFull, _)
            | (Reason::Terminal | Reason::RetryBudget, None) => None,
            (Reason::Terminal | Reason::RetryBudget, Some(end)) => self.admitted_at(asker, end),
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
        // What holds back this one alone is nobody else's to stir.
        let own = [
            self.own_reasons_end(asker, now),
            self.light_lets_pass(asker, now),
            self.cap_fits(asker, now),
        ];
        let own = own.into_iter().chain(self.lifted_from(asker, now));
        let all = rooms.chain(idle).chain(self.next_change(now)).chain(own);
        all.filter(|at| *at > now).min().unwrap_or(now + Span(1))
    }

    /// The first instant from `from` on at which a lane has room for it.
    pub(crate) fn lane_fits(&self, asker: &Asker<'_>, lane: usize, from: Instant) -> Instant {
        let plan = &self.index.plan.lanes[lane];
        let need = plan.need(asker.cost);
        if need == 0 {
            return from;
        }
        if self.index.plan.gate == Some(lane) {
            return self.gate_lets_pass(lane, from);
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
        let mut ahead = KeptAhead::new(self, asker, lane);
        // What is kept grows as its owners' use ages, and falls only when one of them goes idle: so
        // nothing fits before it fits beside what is kept now, or before one goes idle.
        let mut at = fits(0, from);
        while at != Instant::NEVER {
            let (kept, idle) = ahead.kept_at(at);
            let fit = fits(kept, at);
            if fit == at {
                break;
            }
            at = idle.map_or(fit, |idle| idle.min(fit));
        }
        at.min(probed)
    }

    pub(crate) fn cap_fits(&self, asker: &Asker<'_>, from: Instant) -> Instant {
        let (meters, tallies) = (self.meters_of(asker.rule), self.tallies_of(asker.agent));
        let mut at = from;
        let Some(agent) = asker.agent else { return at };
        for (number, (meter, tally)) in meters.iter().zip(tallies).enumerate() {
            let need = meter.need(&self.index.plan.lanes, asker.cost);
            if meter.capped && need > 0 {
                let holdings = || self.holdings_on_meter(agent, number);
                at = at.max(tally.fits_from(need, from, &meter.spec, holdings));
            }
        }
        at
    }

    pub(crate) fn holdings_on(&self, lane: usize) -> impl Iterator<Item = Holding> {
        let to = Target::Lane(u8::try_from(lane).unwrap_or(u8::MAX));
        holdings(self.endings(), to)
    }

    fn holdings_on_meter(&self, agent: AgentId, number: usize) -> impl Iterator<Item = Holding> {
        let to = Target::Meter(u8::try_from(number).unwrap_or(u8::MAX));
        holdings(self.endings_of(agent), to)
    }
}

/// What leases hold of a tally and when they end by themselves.
fn holdings<'a>(
    endings: impl Iterator<Item = (Instant, &'a Lease)>,
    of: Target,
) -> impl Iterator<Item = Holding> {
    let holdings = endings.map(move |(ends, lease)| Holding { ends, units: lease.holds(of) });
    holdings.filter(|holding| holding.units > 0)
}

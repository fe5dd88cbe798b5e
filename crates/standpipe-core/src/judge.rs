//! The one admission rule, as a question: may this call be made, and if not, what says no first?
//!
//! Only reads. Taking what was granted is in `apply.rs`, waiting in `serve.rs`.

use crate::agent::AgentId;
use crate::config::Priority;
use crate::outcome::{Reason, Refusal};
use crate::plan::LaneKind;
use crate::state::State;
use crate::ticket::Place;
use crate::time::Instant;
use crate::unit::Amounts;

/// Who asks, for what, from where in the queue.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// None: not seen yet.
    pub(crate) agent: Option<AgentId>,
    /// What the configuration says of it.
    pub(crate) rule: Option<u16>,
    pub(crate) cost: &'a Amounts,
    /// A newcomer stands behind everybody of its tier.
    pub(crate) place: Place,
    /// Whether its agent's floor may let it pass: if it can be admitted, or is due. While it stands
    /// in line it goes by arrival everywhere, or two could wait for each other for ever.
    pub(crate) passes: bool,
    /// When it comes back from the last pause.
    pub(crate) returns: Instant,
    /// Not before then: somebody it depends on was refused.
    pub(crate) holds: Instant,
}

/// Why a lane says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) reason: Reason,
    pub(crate) short_by: u64,
}

/// Where somebody stands on one lane. A cost that its agent's own unfilled floor covers passes
/// everybody of its tier there; among such it goes by arrival again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) tier: Priority,
    pub(crate) covered: bool,
    pub(crate) arrival: u64,
}

impl Standing {
    pub(crate) const fn of(place: Place) -> Self {
        Self { tier: place.tier, covered: false, arrival: place.arrival }
    }

    const fn place(self) -> Place {
        Place { tier: self.tier, arrival: self.arrival }
    }
}

impl PartialOrd for Standing {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Standing {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.tier, !self.covered, self.arrival).cmp(&(other.tier, !other.covered, other.arrival))
    }
}

impl Asker<'_> {
    pub(crate) const fn tier(&self) -> Priority {
        self.place.tier
    }
}

impl State {
    /// The admission rule in its order. `None`: it may be made now. When it may is left open; see
    /// [`State::dated`].
    pub(crate) fn judge(&self, asker: &Asker<'_>, now: Instant) -> Option<Refusal> {
        self.stopped(asker, now)
            .or_else(|| self.not_yet(asker, now))
            .or_else(|| self.lacking(asker, now))
    }

    /// Steps 1 and 2: the provider said stop for good, or it can never fit.
    pub(crate) fn stopped(&self, asker: &Asker<'_>, now: Instant) -> Option<Refusal> {
        self.terminated(now).or_else(|| self.never_fits(asker))
    }

    /// Step 2: it is above a stated limit, or there is none.
    pub(crate) fn never_fits(&self, asker: &Asker<'_>) -> Option<Refusal> {
        let never =
            |limit, short_by| Some(Refusal { reason: Reason::Never, limit, short_by, until: None });
        if self.index.plan.lanes.is_empty() {
            return never(None, 0);
        }
        for lane in &self.index.plan.lanes {
            let need = lane.need(asker.cost);
            if need > lane.spec.stated {
                return never(Some(lane.id.clone()), need - lane.spec.stated);
            }
        }
        for meter in self.meters_of(asker.rule).iter().filter(|meter| meter.capped) {
            let need = meter.need(&self.index.plan.lanes, asker.cost);
            if need > meter.spec.effective {
                return never(self.limit_of(meter), need - meter.spec.effective);
            }
        }
        None
    }

    /// Steps 3 and 4: reasons of its own, which keep its place and block nobody.
    pub(crate) fn not_yet(&self, asker: &Asker<'_>, now: Instant) -> Option<Refusal> {
        self.paused(now)
            .or_else(|| before(Reason::ReturnWindow, asker.returns, now))
            .or_else(|| self.zoned(asker, now))
            .or_else(|| before(Reason::Hold, asker.holds, now))
            .or_else(|| self.yields(asker, now))
            .or_else(|| self.capped(asker, now))
    }

    /// Step 3: everybody waits.
    pub(crate) fn paused(&self, now: Instant) -> Option<Refusal> {
        self.facts.pause.filter(|until| now < *until)?;
        Some(Refusal { reason: Reason::Pause, limit: None, short_by: 0, until: None })
    }

    /// Step 4: the agent's own cap.
    pub(crate) fn capped(&self, asker: &Asker<'_>, now: Instant) -> Option<Refusal> {
        let (meters, tallies) = (self.meters_of(asker.rule), self.tallies_of(asker.agent));
        for (meter, tally) in meters.iter().zip(tallies).filter(|(meter, _)| meter.capped) {
            let need = meter.need(&self.index.plan.lanes, asker.cost);
            let left = meter.spec.effective.saturating_sub(tally.taken_at(now, &meter.spec));
            if need > left {
                let (reason, limit) = (Reason::Cap, self.limit_of(meter));
                return Some(Refusal { reason, limit, short_by: need - left, until: None });
            }
        }
        None
    }

    /// Steps 5 and 6: somebody came first, or a limit or gate has no room. Of several lanes the one
    /// it would stand in line for is named; somebody in front is named before a lack.
    fn lacking(&self, asker: &Asker<'_>, now: Instant) -> Option<Refusal> {
        let behind = |lane: &usize| {
            let need = self.index.plan.lanes[*lane].need(asker.cost);
            need > 0 && self.is_behind(self.standing(asker, *lane, need, now), *lane)
        };
        let ordered = (0..self.index.plan.lanes.len()).find(behind);
        let lane = ordered.or_else(|| self.line_for(asker, 0, now))?;
        let lack = self.lack(asker, lane, now)?;
        let limit = self.index.plan.lanes[lane].limit();
        Some(Refusal { reason: lack.reason, limit, short_by: lack.short_by, until: None })
    }

    /// The line a ticket stands in next: of the rates it lacks the one whose room comes last, then
    /// gates, then slots. `None`: it lacks nothing.
    pub(crate) fn line_for(&self, asker: &Asker<'_>, aside: u64, now: Instant) -> Option<usize> {
        let lacks = |lane: &usize| aside & (1 << lane) == 0 && self.says_no(asker, *lane, now);
        let mut lacking = (0..self.index.plan.lanes.len()).filter(lacks);
        let first = lacking.next()?;
        let Some(second) = lacking.next() else { return Some(first) };
        let rank = |lane: usize| {
            let kind = self.index.plan.lanes[lane].kind;
            let room = match kind {
                LaneKind::Rate => self.lane_fits(asker, lane, now),
                LaneKind::Gate | LaneKind::Slots => now,
            };
            (kind, core::cmp::Reverse(room), lane)
        };
        [first, second].into_iter().chain(lacking).min_by_key(|lane| rank(*lane))
    }

    /// Whether a lane says no to a call.
    pub(crate) fn says_no(&self, asker: &Asker<'_>, lane: usize, now: Instant) -> bool {
        let plan = &self.index.plan.lanes[lane];
        let need = plan.need(asker.cost);
        let tally = &self.facts.lanes[lane];
        // What is not there needs no look at who stands where and what is kept for whom.
        let lacks = need > 0
            && need <= plan.spec.effective
            && need > tally.free_at(now, &plan.spec)
            && !tally.probe_open_at(now, &plan.spec);
        lacks || self.lack(asker, lane, now).is_some()
    }

    /// What a lane says to a call, if it says no.
    pub(crate) fn lack(&self, asker: &Asker<'_>, lane: usize, now: Instant) -> Option<Lack> {
        let plan = &self.index.plan.lanes[lane];
        let need = plan.need(asker.cost);
        if need == 0 {
            return None;
        }
        let lack = |reason, short_by| Some(Lack { reason, short_by });
        let standing = self.standing(asker, lane, need, now);
        if self.is_behind(standing, lane) {
            return lack(Reason::Order, 0);
        }
        let tally = &self.facts.lanes[lane];
        let before = self.aside_before(lane, standing, now);
        let full = need > tally.free_at(now, &plan.spec);
        if full && before == 0 && tally.probe_open_at(now, &plan.spec) {
            return None;
        }
        let kept = self.kept_for_others(asker, lane, now);
        if need > plan.spec.effective && before == 0 && kept == 0 {
            let alone = tally.is_empty_at(now, &plan.spec) && tally.learning.is_none();
            let taken = tally.taken_at(now, &plan.spec);
            return if alone { None } else { lack(Reason::Limit, taken.max(1)) };
        }
        let left = tally.free_at(now, &plan.spec).saturating_sub(before);
        if need <= left.saturating_sub(kept) {
            return None;
        }
        let reason = match plan.kind {
            _ if need <= left => Reason::Floor,
            LaneKind::Gate if self.index.plan.gate == Some(lane) => self.gate_reason(),
            LaneKind::Gate => Reason::Pace,
            LaneKind::Slots if tally.learning.is_some_and(|until| now < until) => Reason::Learning,
            LaneKind::Slots | LaneKind::Rate => Reason::Limit,
        };
        lack(reason, need - left.saturating_sub(kept))
    }

    /// The units set aside on a lane for those before a standing.
    pub(crate) fn aside_before(&self, lane: usize, standing: Standing, now: Instant) -> u64 {
        let holders = &self.index.asides[lane].holders;
        if holders.is_empty() {
            return 0;
        }
        if !self.index.plan.lanes[lane].floored {
            return self.aside_before_place(lane, standing.place());
        }
        // By place alone, but for those whose floor lets them pass others of their tier.
        let tier = standing.tier;
        let mut before = if standing.covered {
            self.index.asides[lane].by_tier[..tier as usize].iter().sum()
        } else {
            self.aside_before_place(lane, standing.place())
        };
        let owners = Place::first_of(tier)..=Place::last_of(tier);
        for owner in self.index.due_owners.range(owners) {
            let its = self.standing_of_ticket(*owner, lane, now);
            let counted = !standing.covered && owner.arrival < standing.arrival;
            if its.covered && its < standing && !counted && holders.contains(owner) {
                before += self.need_of_ticket(lane, *owner);
            }
        }
        before
    }

    /// The units set aside on a lane for those before a place.
    fn aside_before_place(&self, lane: usize, place: Place) -> u64 {
        let aside = &self.index.asides[lane];
        let tier = place.tier as usize;
        let higher: u64 = aside.by_tier[..tier].iter().sum();
        if aside.by_tier[tier] == 0 {
            return higher;
        }
        let behind = aside.holders.range(place..=Place::last_of(place.tier));
        let behind: u64 = behind.map(|place| self.need_of_ticket(lane, *place)).sum();
        higher + (aside.by_tier[tier] - behind)
    }

    /// Whether somebody before a standing is in the line of a lane.
    fn is_behind(&self, standing: Standing, lane: usize) -> bool {
        let first = self.index.lines[lane].first();
        first.is_some_and(|first| Standing::of(*first) < standing)
    }

    pub(crate) fn need_of_ticket(&self, lane: usize, place: Place) -> u64 {
        let ticket = self.facts.tickets.get(&place);
        ticket.map_or(0, |ticket| self.index.plan.lanes[lane].need(&ticket.call.cost))
    }
}

/// A reason of its own that holds a call back until then.
pub(crate) fn before(reason: Reason, until: Instant, now: Instant) -> Option<Refusal> {
    (now < until).then_some(Refusal { reason, limit: None, short_by: 0, until: None })
}

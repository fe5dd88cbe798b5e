//! The provider's own count beside the ledger's: a rounded, late measurement that can lower the
//! ledger's view, and raises it only slowly.
//!
//! When the provider has less left than the ledger, twice in a row and beyond rounding, somebody
//! draws on the key without asking: what is missing is charged to the agent `outside`. Of a window
//! it stays taken until the provider says otherwise; a bucket only knows how full it is now.

use crate::bounds;
use crate::config::{LimitId, part};
use crate::event::{Key, Reading};
use crate::lease::{Charge, Target};
use crate::outcome::Notice;
use crate::outlook::{Low, Outlook, Outside};
use crate::plan::{Lane, LaneKind};
use crate::state::State;
use crate::tally::Count;
use crate::time::{Instant, Span};
use crate::window::{Grain, Window};

/// What may be missing of a limit without a reason to worry, in thousandths.
const SMALL: u64 = 20;
/// What is given back at a time when the provider has more left, in thousandths of the limit.
const EASE: u64 = 10;
/// How often.
const EASE_EVERY: Span = Span::secs(60);
/// Of what others did not need for a whole period, one part in so many is given back at its end.
const SPARE: u64 = 4;
/// What was used before the ledger looked is nobody's fault: so long after the provider's first
/// word the ledger follows it without a complaint.
const SETTLING: Span = Span::secs(60);
/// The provider's count may be late by so much, or by a sixtieth of a shorter period: what came
/// back to us meanwhile had not come back to it.
const LATE: Span = Span::secs(1);

impl State {
    /// What is left by the provider's count, beside what is left by ours.
    ///
    /// The provider may have counted when the call came in or when it was done, a little while ago:
    /// so what we had left at both ends and of late is asked, and the least counts.
    ///
    /// Answers whether others are believed to use more of a window than before, or less.
    pub(crate) fn reconcile(
        &mut self,
        lease: Option<Key>,
        reading: &Reading,
        now: Instant,
    ) -> bool {
        let policy = self.facts.config.as_ref().map(|config| &config.policy);
        let on = policy.is_some_and(|policy| policy.reconciles);
        let (Some(remaining), Some(lane)) = (reading.remaining, self.lane_read(reading)) else {
            return false;
        };
        let plan = &self.index.plan.lanes[lane];
        if !on || tells_a_burst(reading, remaining, plan) {
            return false;
        }
        let (limit, stated, period) = (plan.id.clone(), plan.spec.stated, plan.spec.period);
        let taken = self.facts.lanes[lane].taken_at(now, &plan.spec);
        let left = stated.saturating_sub(taken);
        let before = self.left_before(lease, lane);
        let rounding = if reading.coarse > 1 { reading.coarse } else { 0 };
        let at = self.outside_of(limit, now);
        let known = &mut self.facts.outlook.outside[at];
        known.heard = now;
        let least = left.min(before).min(known.low.at(now, lateness(period)));
        known.charged.expire(now, period);
        // Who is known to draw beside us is believed to go on.
        let caught = known.standing > 0 || known.charged.used_at(now, period) > 0;
        let worth = if caught { 0 } else { part(stated, SMALL, 1_000) };
        let gap = least.saturating_sub(known.standing).saturating_sub(remaining);
        if gap <= worth.saturating_add(rounding) {
            known.gap = 0;
            let ours = left.saturating_sub(known.standing);
            let surplus = remaining.saturating_sub(ours.saturating_add(rounding));
            let eased = self.ease(at, lane, surplus, now);
            self.blame(at, period, now);
            return eased;
        }
        if known.gap == 0 && !caught {
            known.gap = gap;
            return false;
        }
        let units = if caught { gap } else { gap.min(known.gap) };
        known.gap = 0;
        self.charge_outside(at, lane, units, now)
    }

    /// The rate a reading is about. Where it does not say its period, it must be of the one limit
    /// of its unit, and of that limit's size: else it may be about something else.
    fn lane_read(&self, reading: &Reading) -> Option<usize> {
        let of_unit =
            |lane: &Lane| lane.kind == LaneKind::Rate && lane.id.unit() == Some(&reading.unit);
        let lanes = self.index.plan.lanes.iter().enumerate();
        let mut lanes = lanes.filter(|(_, lane)| of_unit(lane));
        if let Some(period) = reading.period {
            return lanes.find(|(_, lane)| lane.id.period() == Some(period)).map(|(at, _)| at);
        }
        match (lanes.next(), lanes.next()) {
            (Some((at, lane)), None) => {
                let same = reading.limit.is_none_or(|limit| limit == self.provider_limit(lane));
                same.then_some(at)
            }
            _ => None,
        }
    }

    /// How large the provider says a limit is; as declared while it does not.
    fn provider_limit(&self, lane: &Lane) -> u64 {
        let told = self.facts.trouble.told.iter();
        let mut same = told.filter(|told| {
            lane.id.unit() == Some(&told.unit) && lane.id.period() == Some(told.period)
        });
        same.next().map_or(lane.spec.stated, |told| told.amount)
    }

    /// What was left of a lane when a call was let in.
    fn left_before(&self, lease: Option<Key>, lane: usize) -> u64 {
        let lease = lease.and_then(|lease| self.facts.leases.get(&lease));
        let mut charges = lease.iter().flat_map(|lease| &lease.charges);
        let to = Target::Lane(u8::try_from(lane).unwrap_or(u8::MAX));
        charges.find(|charge| charge.to == to).map_or(u64::MAX, |charge| charge.left)
    }

    /// Others use more than was known. What they use of a window they are believed to go on using:
    /// if it came back by itself, we would take it together with them.
    fn charge_outside(&mut self, at: usize, lane: usize, units: u64, now: Instant) -> bool {
        let spec = &self.index.plan.lanes[lane].spec;
        let tally = &mut self.facts.lanes[lane];
        let known = &mut self.facts.outlook.outside[at];
        let units = units.min(spec.stated.saturating_sub(known.standing)).min(bounds::AMOUNT);
        let stands = matches!(tally.count, Count::Window(_));
        known.spare = None;
        if stands {
            known.standing += units;
            if now < known.settles(spec.period) {
                known.early += units;
            }
        } else {
            let mark = tally.charge(now, units, spec);
            // Under the same mark, so that it can be found there.
            known.charged.charge(Instant(mark).max(now), units, spec.period);
            self.index.dirty |= 1 << lane;
        }
        known.eased = now;
        let (limit, total) = (known.limit.clone(), known.counts(now, spec.period));
        if total > 0 {
            self.news.notices.push(Notice::Outside { limit, units, total });
        }
        stands
    }

    /// What was used before we looked has come back by then: if it still stands, somebody goes on.
    fn blame(&mut self, at: usize, period: Span, now: Instant) {
        let known = &mut self.facts.outlook.outside[at];
        if known.early > 0 && now >= known.settles(period) + period {
            let units = core::mem::take(&mut known.early);
            let (limit, total) = (known.limit.clone(), known.counts(now, period));
            self.news.notices.push(Notice::Outside { limit, units, total });
        }
    }

    /// The provider has more left than we think. What was there before we looked has come back to
    /// it; what others used since goes back slowly, the last first. What calls in flight will use
    /// it may not have counted yet.
    fn ease(&mut self, at: usize, lane: usize, surplus: u64, now: Instant) -> bool {
        let spec = &self.index.plan.lanes[lane].spec;
        let tally = &mut self.facts.lanes[lane];
        let known = &mut self.facts.outlook.outside[at];
        let rested = now >= known.eased + EASE_EVERY;
        let most = if rested { part(spec.stated, EASE, 1_000).max(1) } else { 0 };
        if known.standing > 0 {
            let Count::Window(window) = &tally.count else { return false };
            let late = window.charged_since(now - lateness(spec.period));
            let surplus = surplus.saturating_sub(late).saturating_sub(tally.held);
            return known.give_back(surplus, most, spec.period, now);
        }
        let under_way = self.charged_in_flight(lane).saturating_add(self.facts.lanes[lane].held);
        let (tally, known) = (&mut self.facts.lanes[lane], &mut self.facts.outlook.outside[at]);
        let Some(last) = known.charged.entries().filter(|entry| entry.units > 0).last() else {
            return false;
        };
        let back = surplus.saturating_sub(under_way).min(most).min(last.units);
        let back = tally.refund(now, last.stamp.0, back, spec);
        if back > 0 {
            known.charged.refund(last.stamp, back);
            known.eased = now;
            self.index.dirty |= 1 << lane;
            self.index.returned |= 1 << lane;
        }
        false
    }

    fn outside_of(&mut self, limit: LimitId, now: Instant) -> usize {
        let all = &mut self.facts.outlook.outside;
        all.iter().position(|known| known.limit == limit).unwrap_or_else(|| {
            let charged = Window::new(Grain::Meter);
            let low = Low { since: now, left: u64::MAX, before: u64::MAX };
            let (since, eased) = (now, now);
            let new = Outside {
                limit,
                since,
                heard: now,
                low,
                gap: 0,
                standing: 0,
                early: 0,
                spare: None,
                charged,
                eased,
            };
            all.push(new);
            all.len() - 1
        })
    }

    /// A call worked. What the provider said of others a period ago and not since is no longer
    /// believed: it may have nothing more to say.
    pub(crate) fn forget_old_words(&mut self, now: Instant) {
        let mut forgotten = false;
        for known in &mut self.facts.outlook.outside {
            let period = known.limit.period().unwrap_or(LATE);
            if known.standing > 0 && now >= known.heard + period {
                (known.standing, known.early, known.spare) = (0, 0, None);
                forgotten = true;
            }
        }
        if forgotten {
            self.retune(now);
        }
    }

    /// A call was admitted and took these: that is how little was left.
    pub(crate) fn note_lows(&mut self, charges: &[Charge], now: Instant) {
        let lanes = &self.index.plan.lanes;
        for known in &mut self.facts.outlook.outside {
            let mut its = charges.iter().filter(|charge| match charge.to {
                Target::Lane(at) => lanes[usize::from(at)].id == known.limit,
                Target::Meter(_) => false,
            });
            if let Some(charge) = its.next() {
                let period = known.limit.period().unwrap_or(LATE);
                known.low.note(charge.left, now, lateness(period));
            }
        }
    }

    /// The provider's window began anew: what others used before no longer counts.
    pub(crate) fn outside_begins_anew(&mut self, lane: usize, began: Instant) {
        let limit = &self.index.plan.lanes[lane].id;
        let known = self.facts.outlook.outside.iter_mut().find(|known| known.limit == *limit);
        let Some(known) = known else { return };
        known.charged.begin_anew(began, 0);
        let stood = core::mem::take(&mut known.standing) > 0;
        known.early = 0;
        if stood {
            self.retune(self.facts.clock);
        }
    }

    /// What others were seen to use of each limit just now.
    #[must_use]
    pub fn outside(&self, now: Instant) -> alloc::vec::Vec<(LimitId, u64)> {
        let lanes = &self.index.plan.lanes;
        let each = self.facts.outlook.outside.iter().filter_map(|known| {
            let lane = lanes.iter().find(|lane| lane.id == known.limit)?;
            let units = known.counts(now, lane.spec.period);
            (units > 0).then(|| (known.limit.clone(), units))
        });
        each.collect()
    }

    /// The units charged to a lane by calls that are still in flight.
    pub(crate) fn charged_in_flight(&self, lane: usize) -> u64 {
        let charges = self.facts.leases.values().flat_map(|lease| &lease.charges);
        let its = charges
            .filter(|charge| matches!(charge.to, Target::Lane(at) if usize::from(at) == lane));
        its.map(|charge| charge.charged).fold(0, u64::saturating_add).min(bounds::AMOUNT)
    }
}

impl Low {
    /// So much is left now.
    fn note(&mut self, left: u64, now: Instant, late: Span) {
        if now < self.since + late {
            self.left = self.left.min(left);
            return;
        }
        let before = if now < self.since + late + late { self.left } else { u64::MAX };
        *self = Self { since: now, left, before };
    }

    /// The least that was left of late, if anything was taken.
    fn at(&self, now: Instant, late: Span) -> u64 {
        let left = if now < self.since + late + late { self.left } else { u64::MAX };
        let before = if now < self.since + late { self.before } else { u64::MAX };
        left.min(before)
    }
}

impl Outside {
    /// From then on nobody is meant but others.
    fn settles(&self, period: Span) -> Instant {
        self.since + SETTLING.min(period)
    }

    /// The provider has so much more left than what stands here leaves.
    fn give_back(&mut self, surplus: u64, most: u64, period: Span, now: Instant) -> bool {
        let early = surplus.min(self.early);
        let surplus = (surplus - early).min(self.standing - self.early);
        self.early -= early;
        self.standing -= early;
        let (since, before) = self.spare.unwrap_or((now, surplus));
        let least = before.min(surplus);
        let watched = now >= since + period;
        let back = if watched { least / SPARE } else { 0 }.max(surplus.min(most));
        self.spare = (surplus > 0 && !watched).then_some((since, least));
        self.standing -= back;
        if back > 0 {
            self.eased = now;
        }
        early + back > 0
    }

    /// What others used that counts now, but for what may have been before the ledger looked.
    fn counts(&self, now: Instant, period: Span) -> u64 {
        let entries = self.charged.entries().filter(|entry| now < entry.stamp + period);
        let since = entries.filter(|entry| entry.stamp >= self.settles(period));
        let charged: u64 = since.map(|entry| entry.units).sum();
        charged.saturating_add(self.standing - self.early)
    }
}

/// What of a limit others are believed to use.
pub(crate) fn standing(outlook: &Outlook, limit: &LimitId) -> u64 {
    let known = outlook.outside.iter().find(|known| known.limit == *limit);
    known.map_or(0, |known| known.standing)
}

/// Whether what is left is only of a burst: all of it is there again much sooner than a bucket as
/// deep as the limit could be. Then it says nothing about a whole period.
fn tells_a_burst(reading: &Reading, remaining: u64, lane: &Lane) -> bool {
    let limit = reading.limit.unwrap_or(lane.spec.stated);
    let period = lane.id.period().unwrap_or(Span::ZERO);
    let missing = limit.saturating_sub(remaining.saturating_add(reading.coarse));
    reading.full_in.is_some_and(|full| full.0 < part(period.0, missing, limit) / 4 * 3)
}

/// How late the provider's count of a limit may be.
fn lateness(period: Span) -> Span {
    LATE.min(Span(period.0 / 60))
}

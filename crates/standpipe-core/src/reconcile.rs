//! The provider's own count beside the ledger's: a rounded, late measurement that can lower the
//! ledger's view, and raises it only slowly.
//!
//! When the provider has less left than the ledger, twice in a row and beyond rounding, somebody
//! draws on the key without asking: what is missing is charged to the agent `outside`.

use crate::bounds;
use crate::config::{LimitId, part};
use crate::event::{Key, Reading};
use crate::lease::Target;
use crate::outcome::Notice;
use crate::outlook::Outside;
use crate::plan::{Lane, LaneKind};
use crate::state::State;
use crate::time::{Instant, Span};
use crate::window::{Grain, Window};

/// What may be missing of a limit without a reason to worry, in thousandths.
const SMALL: u64 = 20;
/// What is given back at a time when the provider has more left, in thousandths of the limit.
const EASE: u64 = 10;
/// What was used before the ledger looked is nobody's fault: so long after the provider's first
/// word the ledger follows it without a complaint.
const SETTLING: Span = Span::secs(60);
/// How often.
const EASE_EVERY: Span = Span::secs(60);

impl State {
    /// What is left by the provider's count, beside what is left by ours.
    ///
    /// The provider may have counted when the call came in or when it was done: so what we had left
    /// at both ends is asked, and the smaller counts.
    pub(crate) fn reconcile(&mut self, lease: Option<Key>, reading: &Reading, now: Instant) {
        let policy = self.facts.config.as_ref().map(|config| &config.policy);
        let on = policy.is_some_and(|policy| policy.reconciles);
        let (Some(remaining), Some(lane)) = (reading.remaining, self.lane_read(reading)) else {
            return;
        };
        if !on {
            return;
        }
        let plan = &self.index.plan.lanes[lane];
        if tells_a_burst(reading, remaining, plan) {
            return;
        }
        let (limit, stated, period) = (plan.id.clone(), plan.spec.stated, plan.spec.period);
        let taken = self.facts.lanes[lane].taken_at(now, &plan.spec);
        let ours = stated.saturating_sub(taken).min(self.left_before(lease, lane));
        let rounding = if reading.coarse > 1 { reading.coarse } else { 0 };
        let at = self.outside_of(limit, now);
        let known = &mut self.facts.outlook.outside[at];
        known.charged.expire(now, period);
        // Who is known to draw beside us is believed to go on.
        let caught = known.charged.used_at(now, period) > 0;
        let worth = if caught { 0 } else { part(stated, SMALL, 1_000) };
        let gap = ours.saturating_sub(remaining);
        if gap <= worth.saturating_add(rounding) {
            known.gap = 0;
            if remaining > ours.saturating_add(rounding) {
                self.ease(at, lane, remaining - ours - rounding, now);
            }
        } else if known.gap == 0 && !caught {
            known.gap = gap;
        } else {
            let units = if caught { gap } else { gap.min(known.gap) };
            known.gap = 0;
            self.charge_outside(at, lane, units, now);
        }
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

    fn charge_outside(&mut self, at: usize, lane: usize, units: u64, now: Instant) {
        let spec = &self.index.plan.lanes[lane].spec;
        let units = units.min(spec.stated).min(bounds::AMOUNT);
        let mark = self.facts.lanes[lane].charge(now, units, spec);
        let known = &mut self.facts.outlook.outside[at];
        self.index.dirty |= 1 << lane;
        // Under the same mark, so that it can be found there.
        let stamp = Instant(mark).max(now);
        known.charged.charge(stamp, units, spec.period);
        known.eased = now;
        let (limit, total) = (known.limit.clone(), known.counts(now, spec.period));
        if total > 0 {
            self.news.notices.push(Notice::Outside { limit, units, total });
        }
    }

    /// The provider has more left than we think: what was charged for others goes back slowly, the
    /// last first. What calls in flight will use it may not have counted yet.
    fn ease(&mut self, at: usize, lane: usize, surplus: u64, now: Instant) {
        let spec = &self.index.plan.lanes[lane].spec;
        let under_way = self.charged_in_flight(lane).saturating_add(self.facts.lanes[lane].held);
        let known = &mut self.facts.outlook.outside[at];
        let Some(last) = known.charged.entries().filter(|entry| entry.units > 0).last() else {
            return;
        };
        if now < known.eased + EASE_EVERY {
            return;
        }
        let most = part(spec.stated, EASE, 1_000).max(1);
        let back = surplus.saturating_sub(under_way).min(most).min(last.units);
        let back = self.facts.lanes[lane].refund(now, last.stamp.0, back, spec);
        if back > 0 {
            known.charged.refund(last.stamp, back);
            known.eased = now;
            self.index.dirty |= 1 << lane;
            self.index.returned |= 1 << lane;
        }
    }

    fn outside_of(&mut self, limit: LimitId, now: Instant) -> usize {
        let all = &mut self.facts.outlook.outside;
        all.iter().position(|known| known.limit == limit).unwrap_or_else(|| {
            let charged = Window::new(Grain::Meter);
            all.push(Outside { limit, since: now, gap: 0, charged, eased: now });
            all.len() - 1
        })
    }

    /// The provider's window began anew: what others used before no longer counts.
    pub(crate) fn outside_begins_anew(&mut self, lane: usize, began: Instant) {
        let limit = &self.index.plan.lanes[lane].id;
        let known = self.facts.outlook.outside.iter_mut().find(|known| known.limit == *limit);
        if let Some(known) = known {
            known.charged.begin_anew(began, 0);
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

impl Outside {
    /// What others used that counts now, but for what may have been before the ledger looked.
    fn counts(&self, now: Instant, period: Span) -> u64 {
        let settled = self.since + SETTLING.min(period);
        let entries = self.charged.entries().filter(|entry| now < entry.stamp + period);
        entries.filter(|entry| entry.stamp >= settled).map(|entry| entry.units).sum()
    }
}

/// Whether what is left is only of a burst: all of it is there again much sooner than a bucket as
/// deep as the limit could be. Then it says nothing about a whole period.
fn tells_a_burst(reading: &Reading, remaining: u64, lane: &Lane) -> bool {
    let limit = reading.limit.unwrap_or(lane.spec.stated);
    let period = lane.id.period().unwrap_or(Span::ZERO);
    let missing = limit.saturating_sub(remaining.saturating_add(reading.coarse));
    reading.full_in.is_some_and(|full| full.0 < part(period.0, missing, limit) / 4 * 3)
}

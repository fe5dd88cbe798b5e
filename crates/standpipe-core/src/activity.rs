//! Whether a tier is active on the pool: the light and the yield protect somebody, so they hold a
//! tier back only while a higher one is about.

use crate::bounds;
use crate::config::Priority;
use crate::state::State;
use crate::time::{Instant, Span};

impl State {
    /// Somebody of a tier began or ended something.
    pub(crate) fn tier_was_active(&mut self, tier: Priority, now: Instant) {
        if self.index.plan.protects {
            self.facts.outlook.active[tier as usize] = Some(now);
        }
    }

    /// Whether a higher tier than this is active.
    pub(crate) fn superiors_active(&self, tier: Priority, now: Instant) -> bool {
        (0..tier as usize).any(|higher| {
            self.index.tier_leases[higher] > 0
                || !self.index.order[higher].is_empty()
                || self.tier_idle(higher).is_some_and(|idle| now < idle)
        })
    }

    /// The first instant from `from` on at which no higher tier is active, if only time passes.
    /// Those who wait count as served now: that may be soon.
    pub(crate) fn superiors_gone(&self, tier: Priority, from: Instant) -> Instant {
        let mut gone = from;
        for higher in 0..tier as usize {
            gone = gone.max(self.tier_idle(higher).unwrap_or(from));
            if !self.index.order[higher].is_empty() {
                gone = gone.max(self.facts.clock + self.idle_after());
            }
            if self.index.tier_leases[higher] > 0 {
                let leases = self.facts.leases.values();
                let its = leases.filter(|lease| lease.tier as usize == higher);
                let last = its.map(|lease| self.lease_ends_at(lease)).max().unwrap_or(from);
                gone = gone.max(last + self.idle_after());
            }
        }
        gone
    }

    /// When time alone next makes a higher tier than this idle. Whoever has something under way
    /// ends it first.
    pub(crate) fn superiors_stir(&self, tier: Priority) -> Option<Instant> {
        let nothing_under_way =
            |at: &usize| self.index.tier_leases[*at] == 0 && self.index.order[*at].is_empty();
        let quiet = (0..tier as usize).filter(nothing_under_way);
        quiet.filter_map(|higher| self.tier_idle(higher)).filter(|at| *at > self.facts.clock).min()
    }

    /// When a tier with nothing under way is idle.
    fn tier_idle(&self, tier: usize) -> Option<Instant> {
        self.facts.outlook.active[tier].map(|active| active + self.idle_after())
    }

    fn idle_after(&self) -> Span {
        self.index.plan.longest_period().map_or(bounds::IDLE, |period| period.min(bounds::IDLE))
    }
}

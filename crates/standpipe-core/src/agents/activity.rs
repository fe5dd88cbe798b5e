//! Activity of tiers: whether a higher tier is active on the pool.
//!
//! Zone and yield exist to protect higher tiers, so they restrict a tier only while a higher one is
//! active. `rules/zone.rs` and `rules/background_yield.rs` apply this.

use crate::bounds;
use crate::config::Priority;
use crate::rules::Admits;
use crate::state::State;
use crate::time::{Instant, Span};

impl State {
    /// Records that a call of a tier began or ended.
    pub(crate) fn touch_tier(&mut self, tier: Priority, now: Instant) {
        if self.index.compiled.protects {
            self.facts.tier_activity[tier as usize] = Some(now);
        }
    }

    /// Whether a tier above this one is active: it has leases, tickets, or was used recently.
    pub(crate) fn superiors_active(&self, tier: Priority, now: Instant) -> bool {
        (0..tier as usize).any(|higher| {
            self.index.tier_leases[higher] > 0
                || !self.index.order[higher].is_empty()
                || self.tier_idle(higher).is_some_and(|idle| now < idle)
        })
    }

    /// What a rule answers that holds a tier back until an instant, but only while a higher tier is
    /// active. Tickets need no timer for the end of that: it is an event.
    pub(crate) fn while_superiors_active(
        &self,
        tier: Priority,
        by_time: Instant,
        from: Instant,
    ) -> Admits {
        if by_time <= from || !self.superiors_active(tier, from) {
            return Admits::Now;
        }
        let gone = self.superiors_gone(tier, from);
        Admits::NotBefore { earliest: by_time.min(gone), by_time }
    }

    /// The first instant from `from` on at which no higher tier is active, if only time passes. The
    /// instant is a lower bound, so waiting tickets count as served now.
    pub(crate) fn superiors_gone(&self, tier: Priority, from: Instant) -> Instant {
        let mut gone = from;
        for higher in 0..tier as usize {
            gone = gone.max(self.tier_idle(higher).unwrap_or(from));
            if !self.index.order[higher].is_empty() {
                gone = gone.max(self.facts.clock + self.idle_after());
            }
            if self.index.tier_leases[higher] > 0 {
                // Nobody knows when a call in flight ends.
                return Instant::NEVER;
            }
        }
        gone
    }

    /// The next instant at which time alone makes a higher tier idle. Tiers with leases or tickets
    /// first need an event that ends those.
    pub(crate) fn superiors_next_event(&self, tier: Priority) -> Option<Instant> {
        let has_no_calls =
            |at: &usize| self.index.tier_leases[*at] == 0 && self.index.order[*at].is_empty();
        let quiet = (0..tier as usize).filter(has_no_calls);
        quiet.filter_map(|higher| self.tier_idle(higher)).filter(|at| *at > self.facts.clock).min()
    }

    /// The instant at which a tier without leases and tickets becomes idle.
    fn tier_idle(&self, tier: usize) -> Option<Instant> {
        self.facts.tier_activity[tier].map(|active| active + self.idle_after())
    }

    fn idle_after(&self) -> Span {
        self.index.compiled.longest_period().map_or(bounds::IDLE, |period| period.min(bounds::IDLE))
    }
}

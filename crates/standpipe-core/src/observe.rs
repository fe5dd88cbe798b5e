//! What a provider says of its own windows: when one ends, and that a new one has begun. How large
//! its limits are is in `learn.rs`.
//!
//! Only limits with `resets = "provider"` listen to when they end.

use crate::bounds;
use crate::config::{LimitId, Resets};
use crate::event::{Observed, Reading};
use crate::lease::Target;
use crate::outcome::{Answer, Notice};
use crate::plan::LaneKind;
use crate::state::{State, Timer};
use crate::tally::{Count, Reset, ResetPhase};
use crate::time::{Instant, Span};

impl State {
    pub(crate) fn observed(&mut self, observed: &Observed, now: Instant) -> Answer {
        let mut learned = false;
        for reading in &observed.readings {
            learned |= self.hear_limit(reading);
        }
        if learned {
            self.set_gate();
            self.retune(now);
        }
        for reading in &observed.readings {
            let told = reading.reset_in.filter(|reset_in| *reset_in <= bounds::PAUSE);
            let Some(reset_in) = told else { continue };
            for lane in 0..self.index.plan.lanes.len() {
                if self.listens(lane, reading) {
                    self.reset_announced(lane, now + reset_in, now);
                }
            }
        }
        let mut others = false;
        for reading in &observed.readings {
            others |= self.reconcile(observed.lease, reading, now);
        }
        if others {
            self.retune(now);
        }
        Answer::Done
    }

    fn listens(&self, lane: usize, reading: &Reading) -> bool {
        let plan = &self.index.plan.lanes[lane];
        let of_unit = matches!(&plan.id, LimitId::Window(unit, period)
            if *unit == reading.unit && reading.period.is_none_or(|told| told == *period));
        of_unit && plan.kind == LaneKind::Rate && plan.resets == Resets::Provider
    }

    /// A reset more than half a period after the one we know is that of the next window. Nearer
    /// ones are the same, measured again; much earlier ones come from answers that arrive late.
    fn reset_announced(&mut self, lane: usize, at: Instant, now: Instant) {
        let half = Span(self.index.plan.lanes[lane].spec.period.0 / 2);
        let known = self.facts.lanes[lane].reset.clone();
        if let Some(known) = known {
            let next_window = at > known.at + half;
            if at + half < known.at || !next_window && known.phase != ResetPhase::Announced {
                return;
            }
            self.unwatch_reset(lane, known.at);
            match known.phase {
                ResetPhase::Announced => {}
                ResetPhase::Passed { carried }
                | ResetPhase::Probing { carried, .. }
                | ResetPhase::Spent { carried } => self.window_began(lane, known.at, carried),
            }
        }
        let reset = Reset { at: at.max(now), phase: ResetPhase::Announced };
        self.index.watch_reset(lane, &reset);
        self.facts.lanes[lane].reset = Some(reset);
    }

    fn unwatch_reset(&mut self, lane: usize, at: Instant) {
        let timer = Timer::ProviderResets(u8::try_from(lane).unwrap_or(u8::MAX));
        self.index.timers.remove(&(at, timer));
    }

    /// Calls settled before the new window began no longer count; those under way then do.
    fn window_began(&mut self, lane: usize, began: Instant, carried: u64) {
        let tally = &mut self.facts.lanes[lane];
        let Count::Window(window) = &mut tally.count else { return };
        window.begin_anew(began, carried);
        let to = Target::Lane(u8::try_from(lane).unwrap_or(u8::MAX));
        for lease in self.facts.leases.values_mut() {
            for charge in lease.charges.iter_mut().filter(|charge| charge.to == to) {
                charge.mark = charge.mark.max(began.0);
            }
        }
        self.outside_begins_anew(lane, began);
        let limit = self.index.plan.lanes[lane].id.clone();
        self.news.notices.push(Notice::WindowReset { limit });
        self.index.dirty |= 1 << lane;
        self.index.returned |= 1 << lane;
    }
}

//! Rate-limit headers: dispatches readings, and follows the resets of the provider's fixed windows.
//!
//! Only limits with `resets = "provider"` follow resets. `learn.rs` learns the sizes of limits, and
//! `reconcile.rs` compares the remaining units.

use crate::bounds;
use crate::config::compiled::ConstraintKind;
use crate::config::{LimitId, Resets};
use crate::event::{Observed, Reading};
use crate::id::ConstraintId;
use crate::outcome::{Answer, Notice};
use crate::state::{State, Timer};
use crate::time::{Instant, Span};
use crate::usage::counter::{Began, Count, Reset, ResetPhase};

impl State {
    /// Applies the readings of a response. Sizes come first, because they can change the
    /// constraints that the resets and the reconciliation refer to.
    pub(crate) fn observed(&mut self, observed: &Observed, now: Instant) -> Answer {
        let mut learned = false;
        for reading in &observed.readings {
            learned |= self.learn_limit(reading);
        }
        if learned {
            self.set_gate();
            self.recompile(now);
        }
        for reading in &observed.readings {
            let plausible = reading.reset_in.filter(|reset_in| *reset_in <= bounds::PAUSE);
            let Some(reset_in) = plausible else { continue };
            for constraint in self.index.compiled.constraints.ids() {
                if self.follows_reset(constraint, reading) {
                    self.reset_announced(constraint, now + reset_in, now);
                }
            }
        }
        let mut external_changed = false;
        for reading in &observed.readings {
            external_changed |= self.reconcile(observed.lease, reading, now);
        }
        if external_changed {
            self.recompile(now);
        }
        Answer::Done
    }

    /// Whether a reading announces the reset of this constraint.
    fn follows_reset(&self, constraint: ConstraintId, reading: &Reading) -> bool {
        let declared = &self.index.compiled.constraints[constraint];
        let of_unit = matches!(&declared.id, LimitId::Window(unit, period)
            if *unit == reading.unit && reading.period.is_none_or(|read| read == *period));
        of_unit && declared.kind == ConstraintKind::Rate && declared.resets == Resets::Provider
    }

    /// Applies an announced reset. One more than half a period after the known reset belongs to the
    /// next window. A nearer one is the same reset, measured again. One more than half a period
    /// earlier comes from a delayed response and is ignored.
    fn reset_announced(&mut self, constraint: ConstraintId, at: Instant, now: Instant) {
        let half = Span(self.index.compiled.constraints[constraint].spec.period.0 / 2);
        let known = self.facts.counters[constraint].reset.clone();
        if let Some(known) = known {
            let next_window = at > known.at + half;
            if at + half < known.at || !next_window && known.phase != ResetPhase::Announced {
                return;
            }
            // The timer is keyed by the old instant.
            self.unwatch_reset(constraint, known.at);
            match known.phase {
                ResetPhase::Announced => {}
                ResetPhase::Passed { carried }
                | ResetPhase::Probing { carried, .. }
                | ResetPhase::Spent { carried } => self.window_began(constraint, known.at, carried),
            }
        }
        let reset = Reset { at: at.max(now), phase: ResetPhase::Announced };
        self.index.watch_reset(constraint, &reset);
        self.facts.counters[constraint].reset = Some(reset);
        // A window that ends earlier may let background pass earlier.
        let spread = self.index.compiled.constraints[constraint].spread;
        self.index.returned.insert_if(constraint, spread);
    }

    fn unwatch_reset(&mut self, constraint: ConstraintId, at: Instant) {
        let timer = Timer::ProviderReset(constraint);
        self.index.timers.remove(&(at, timer));
    }

    /// Restarts a window at the provider's reset. Calls settled before it no longer count; calls in
    /// flight at the reset do.
    fn window_began(&mut self, constraint: ConstraintId, began: Instant, carried: u64) {
        let Count::Window { began: known } = &mut self.facts.counters[constraint].count else {
            return;
        };
        *known = Some(Began { at: began, carried });
        self.restart_external(constraint);
        let limit = self.index.compiled.constraints[constraint].id.clone();
        self.effects.notices.push(Notice::WindowReset { limit });
        self.index.dirty.insert(constraint);
        self.index.returned.insert(constraint);
    }
}

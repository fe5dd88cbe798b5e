//! The gate: while it is shut, calls wait for the answers of others. It counts as a constraint and
//! has a line.
//!
//! Three reasons shut it: the probe after a pause (`provider/return_windows.rs`), one call at a
//! time after a cascade (`provider/cascade.rs`), and a provider whose limits are unknown
//! (`provider/learn.rs`).

use crate::bounds;
use crate::event::Key;
use crate::facts::Facts;
use crate::outcome::Reason;
use crate::provider::return_windows::PROBE;
use crate::provider::return_windows::Probe;
use crate::rules::{Admits, Part};
use crate::state::State;
use crate::time::Instant;

/// Why the gate is shut, and how many unanswered calls it admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shut {
    pub(crate) reason: Reason,
    pub(crate) calls: u64,
}

/// Why the gate is shut, if it is: the first reason that admits fewest calls.
pub(crate) fn shut(facts: &Facts) -> Option<Shut> {
    let one = |reason| Shut { reason, calls: 1 };
    let probe = (facts.returning.probe != Probe::Over).then(|| one(Reason::Probe));
    let sequential = facts.cascade.sequential.map(|_| one(Reason::Sequential));
    let cautious = is_cautious(facts).then(|| Shut {
        reason: Reason::Learning,
        calls: 1 << facts.learned.slow_start_exp.min(12),
    });
    probe.or(sequential).or(cautious)
}

/// Whether no limit is known.
pub(crate) fn is_cautious(facts: &Facts) -> bool {
    let Some(config) = &facts.config else { return false };
    config.policy.learn && config.limits.is_empty() && facts.learned.limits.is_empty()
}

/// How many calls may be unanswered.
pub(crate) fn width(facts: &Facts) -> u64 {
    shut(facts).map_or(bounds::AMOUNT, |shut| shut.calls)
}

impl State {
    /// Updates the gate's width. An open gate tracks no calls.
    pub(crate) fn set_gate(&mut self) {
        let Some(gate) = self.index.compiled.gate else { return };
        if shut(&self.facts).is_none() {
            self.facts.unanswered.clear();
        }
        let width = width(&self.facts);
        let room = width.saturating_sub(self.facts.unanswered.len() as u64);
        self.index.compiled.constraints[gate].spec.effective = width;
        let wider = room > core::mem::replace(&mut self.index.gate_room, room);
        self.index.dirty.insert(gate);
        self.index.returned.insert_if(gate, wider);
    }

    /// The reason of a refusal at the gate.
    pub(crate) fn gate_reason(&self) -> Reason {
        shut(&self.facts).map_or(Reason::Probe, |shut| shut.reason)
    }

    /// When time alone ends the probe and the sequential phase.
    fn reasons_end(&self) -> impl Iterator<Item = Instant> {
        let probe = match self.facts.returning.probe {
            Probe::Over | Probe::Wanted => None,
            Probe::Sent { at, .. } => Some(at + PROBE),
        };
        probe.into_iter().chain(self.facts.cascade.sequential.map(|sequential| sequential.ends))
    }

    /// When time alone next changes the gate.
    pub(crate) fn gate_next_event(&self) -> Option<Instant> {
        self.reasons_end().min()
    }

    /// From when on the gate admits a call by time alone. When an answer comes is unknown.
    pub(super) fn gate_admits(&self, part: &Part<'_>, from: Instant) -> Admits {
        if part.need.saturating_add(part.before) <= part.usage.free_at(from) {
            return Admits::Now;
        }
        let cautious = is_cautious(&self.facts);
        match self.reasons_end().max().filter(|_| !cautious) {
            Some(at) if at > from => Admits::NotBefore { earliest: at, by_time: at },
            Some(_) if part.is_forecast => Admits::Now,
            // It is open when that was applied, together with everything else of that instant.
            _ => Admits::Unknown,
        }
    }

    /// Tracks an admitted call while the gate is shut.
    pub(crate) fn enter_gate(&mut self, key: Key, now: Instant) {
        if self.index.compiled.gate.is_none() || shut(&self.facts).is_none() {
            return;
        }
        if self.facts.returning.probe == Probe::Wanted {
            self.facts.returning.probe = Probe::Sent { lease: key, at: now };
        }
        self.facts.unanswered.insert(key);
        self.set_gate();
    }

    /// Stops tracking a call that was answered or will not be. Returns whether it was tracked.
    pub(crate) fn leave_gate(&mut self, key: Key, was_sent: bool) -> bool {
        let is_probe =
            matches!(self.facts.returning.probe, Probe::Sent { lease, .. } if lease == key);
        let waited_for = self.facts.unanswered.remove(&key);
        if !waited_for && !is_probe {
            return false;
        }
        if is_probe {
            // A probe that was never sent passes its role on.
            self.facts.returning.probe = if was_sent { Probe::Over } else { Probe::Wanted };
        }
        self.set_gate();
        waited_for
    }

    /// Applies to the gate what time alone changes.
    pub(crate) fn expire_gate(&mut self, now: Instant) {
        let followed =
            matches!(self.facts.returning.probe, Probe::Sent { at, .. } if at + PROBE <= now);
        if followed {
            self.facts.returning.probe = Probe::Over;
        }
        let calm = self.facts.cascade.sequential.is_some_and(|sequential| sequential.ends <= now);
        if calm {
            self.end_sequential();
        }
        if followed || calm {
            self.set_gate();
            if shut(&self.facts).is_none() {
                self.respread(now);
            }
        }
    }
}

//! The gate: while it is shut, calls wait for the answers of others. It counts as a limit and has a
//! line.
//!
//! Three reasons shut it: the first call after a pause (`comeback.rs`), everybody going one at a
//! time (`cascade.rs`), and a provider of whose limits nothing is known (`learn.rs`).

use alloc::vec::Vec;

use crate::bounds;
use crate::comeback::PROBE;
use crate::event::Key;
use crate::facts::Facts;
use crate::outcome::Reason;
use crate::state::State;
use crate::time::Instant;
use crate::trouble::Probe;

/// Why the gate is shut, and how many unanswered calls it lets be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shut {
    pub(crate) reason: Reason,
    pub(crate) calls: u64,
}

/// Why the gate is shut, if it is. Of several reasons the first that leaves least.
pub(crate) fn shut(facts: &Facts) -> Option<Shut> {
    let trouble = &facts.trouble;
    let one = |reason| Shut { reason, calls: 1 };
    let probe = (trouble.probe != Probe::Over).then(|| one(Reason::Probe));
    let sequential = trouble.sequential.map(|_| one(Reason::Sequential));
    let cautious = is_cautious(facts)
        .then(|| Shut { reason: Reason::Learning, calls: 1 << trouble.courage.min(12) });
    probe.or(sequential).or(cautious)
}

/// Nothing is known of the limits.
pub(crate) fn is_cautious(facts: &Facts) -> bool {
    let Some(config) = &facts.config else { return false };
    config.policy.learn && config.limits.is_empty() && facts.trouble.told.is_empty()
}

/// How many unanswered calls may be.
pub(crate) fn width(facts: &Facts) -> u64 {
    shut(facts).map_or(bounds::AMOUNT, |shut| shut.calls)
}

impl State {
    /// Brings the gate in line with why it is shut. An open gate remembers nobody.
    pub(crate) fn set_gate(&mut self) {
        let Some(gate) = self.index.plan.gate else { return };
        if shut(&self.facts).is_none() {
            self.facts.trouble.unanswered.clear();
        }
        self.index.plan.lanes[gate].spec.effective = width(&self.facts);
        self.facts.lanes[gate].held = self.facts.trouble.unanswered.len() as u64;
        self.index.dirty |= 1 << gate;
        self.index.returned |= 1 << gate;
    }

    /// Why the gate says no.
    pub(crate) fn gate_reason(&self) -> Reason {
        shut(&self.facts).map_or(Reason::Probe, |shut| shut.reason)
    }

    /// When time alone ends the reasons to shut the gate: the probe's, and single file's.
    fn reasons_end(&self) -> impl Iterator<Item = Instant> {
        let trouble = &self.facts.trouble;
        let probe = match trouble.probe {
            Probe::Over | Probe::Wanted => None,
            Probe::Sent { at, .. } => Some(at + PROBE),
        };
        probe.into_iter().chain(trouble.sequential.map(|sequential| sequential.ends))
    }

    /// The next instant at which time alone changes something about the gate.
    pub(crate) fn gate_stirs(&self) -> Option<Instant> {
        self.reasons_end().min()
    }

    /// The first instant from `from` on at which the gate lets a call pass.
    pub(crate) fn gate_lets_pass(&self, gate: usize, from: Instant) -> Instant {
        let width = self.index.plan.lanes[gate].spec.effective;
        let unanswered = &self.facts.trouble.unanswered;
        let Some(over) = (unanswered.len() as u64).checked_sub(width) else { return from };
        let mut ends: Vec<Instant> = unanswered.iter().map(|key| self.lease_ends(*key)).collect();
        ends.sort_unstable();
        let by_ending = usize::try_from(over).ok().and_then(|over| ends.get(over).copied());
        let cautious = is_cautious(&self.facts);
        let by_time = self.reasons_end().max().filter(|_| !cautious);
        by_ending.into_iter().chain(by_time).min().unwrap_or(Instant::NEVER).max(from)
    }

    /// A call is admitted: while the gate is shut it is waited for.
    pub(crate) fn passes_gate(&mut self, key: Key, now: Instant) {
        if self.index.plan.gate.is_none() || shut(&self.facts).is_none() {
            return;
        }
        if self.facts.trouble.probe == Probe::Wanted {
            self.facts.trouble.probe = Probe::Sent { lease: key, at: now };
        }
        self.facts.trouble.unanswered.insert(key);
        self.set_gate();
    }

    /// Nobody waits for the answer of a call any more: it came, or will not come. Whether anybody
    /// did.
    pub(crate) fn leaves_gate(&mut self, key: Key, was_sent: bool) -> bool {
        let trouble = &mut self.facts.trouble;
        let is_probe = matches!(trouble.probe, Probe::Sent { lease, .. } if lease == key);
        let waited_for = trouble.unanswered.remove(&key);
        if !waited_for && !is_probe {
            return false;
        }
        if is_probe {
            // A probe that was never sent passes its role on.
            trouble.probe = if was_sent { Probe::Over } else { Probe::Wanted };
        }
        self.set_gate();
        waited_for
    }

    /// What time alone does to the gate.
    pub(crate) fn tend_gate(&mut self, now: Instant) {
        let trouble = &mut self.facts.trouble;
        let followed = matches!(trouble.probe, Probe::Sent { at, .. } if at + PROBE <= now);
        if followed {
            trouble.probe = Probe::Over;
        }
        let calm = trouble.sequential.is_some_and(|sequential| sequential.ends <= now);
        if calm {
            self.end_sequential();
        }
        if followed || calm {
            self.set_gate();
            if shut(&self.facts).is_none() {
                self.scatter(now);
            }
        }
    }
}

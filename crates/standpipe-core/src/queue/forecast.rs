//! Forecasts: when will a call be admitted if only time passes?
//!
//! Ageing, refill, the end of pauses and the lending of floors are included. The end of a call in
//! flight has no known instant, so what needs it has none. With no other ticket in the pool the
//! answer is exact; behind other tickets it is a lower bound.

use crate::bounds;
use crate::config::Priority;
use crate::fuel::Fuel;
use crate::lease::admission::Candidate;
use crate::outcome::{Reason, Refusal};
use crate::queue::ticket::QueueKey;
use crate::rules::Effect;
use crate::state::State;
use crate::time::{Instant, Span};

impl State {
    /// The first instant at which every rule and constraint admits a candidate, as if no other
    /// ticket were there. Floor owners with tickets count as served, which may be soon.
    pub(crate) fn admitted_at(&self, candidate: &Candidate<'_>, now: Instant) -> Option<Instant> {
        // What the end of a call in flight may bring has no instant, and may come before promotion.
        let own = self.admitted_before_ramp_step(candidate, now)?;
        let lifted = self.promoted_from(candidate, now).filter(|at| *at < own);
        let Some(lifted) = lifted else { return Some(own) };
        // A background agent that is denied for long is served in standard.
        let queue_key = QueueKey::last_of(Priority::Standard);
        let standard =
            self.admitted_before_ramp_step(&Candidate { queue_key, ..*candidate }, lifted);
        standard.into_iter().chain([own]).min()
    }

    /// While a ramp paces requests, its next step changes the gap between them. Nothing is forecast
    /// beyond it, so the step is the bound.
    fn admitted_before_ramp_step(
        &self,
        candidate: &Candidate<'_>,
        now: Instant,
    ) -> Option<Instant> {
        let step = self.paced_ramp_step().map(|at| at.max(now));
        self.admitted_in_tier(candidate, now).into_iter().chain(step).min()
    }

    fn admitted_in_tier(&self, candidate: &Candidate<'_>, now: Instant) -> Option<Instant> {
        let mut at = now;
        let mut fuel = Fuel::new(bounds::LOOK_AHEAD);
        // Floors free and take units over time, and ageing admissions take retries away: then
        // everything is asked again at a later instant. Without them nothing that admits refuses
        // again.
        let comes_and_goes = candidate.is_retry || !self.index.floor_owners.is_empty();
        loop {
            let mut next = self.rules_admit_from(candidate, at);
            let gate = self.index.compiled.gate.filter(|_| candidate.ignores_gate);
            for constraint in self.index.compiled.constraints.ids() {
                if next != Instant::NEVER && gate != Some(constraint) {
                    next = next.max(self.constraint_fits(candidate, constraint, next));
                }
            }
            if next == Instant::NEVER {
                return None;
            }
            if next == at || !comes_and_goes || !fuel.burn() {
                return Some(next);
            }
            at = next;
        }
    }

    /// Adds the instant at which a refusal ends, if it has one.
    ///
    /// Exact if nobody waits. Beside other tickets it is a lower bound: not before its own instant,
    /// nor before anything it depends on changes.
    pub(crate) fn with_until(
        &self,
        mut refusal: Refusal,
        candidate: &Candidate<'_>,
        now: Instant,
    ) -> Refusal {
        // The gate opens by time at last, but an answer may open it earlier: its instant is no
        // bound of a call that something else refuses.
        let gate = self.index.compiled.gate.filter(|_| !refusal.is_by_gate());
        let is_gated = gate.is_some_and(|gate| self.refuses(candidate, gate, now));
        let candidate = &Candidate { ignores_gate: is_gated, ..*candidate };
        let own = usize::from(candidate.since.is_some());
        let alone = self.facts.tickets.len() == own
            || matches!(refusal.reason, Reason::Terminal | Reason::RetryBudget);
        refusal.until = match refusal.reason {
            Reason::QueueFull | Reason::Never => None,
            _ if alone => self.admitted_past_ramp(candidate, now),
            _ => self
                .admitted_past_ramp(candidate, now)
                .map(|own| own.max(self.next_relevant_event(candidate, now))),
        };
        let fixed = Effect::of(refusal.reason) == Some(Effect::HoldUntil);
        if refusal.until.is_none() && fixed {
            // It also needs a call in flight to end, but it is not admitted before this.
            let held = self.held_until(candidate, now);
            refusal.until = self.retry_left_from(candidate, held).map(|_| held);
            return refusal;
        }
        refusal.exact = alone
            && !is_gated
            && refusal.until.is_some()
            && refusal.reason.has_exact_end()
            && !self.depends_on_others(candidate, now)
            && !self.is_kept_back(candidate, now);
        refusal
    }

    /// Whether floors keep something from a candidate that it needs.
    fn is_kept_back(&self, candidate: &Candidate<'_>, now: Instant) -> bool {
        let mut constraints = self.index.compiled.constraints.rows();
        constraints.any(|(at, constraint)| {
            constraint.need(candidate.cost) > 0 && self.kept_for_others(candidate, at, now) > 0
        })
    }

    /// As [`State::admitted_at`], across the steps of a ramp that paces requests: what follows a
    /// step is asked of the ledger as it will be then.
    pub(crate) fn admitted_past_ramp(
        &self,
        candidate: &Candidate<'_>,
        now: Instant,
    ) -> Option<Instant> {
        let at = self.admitted_at(candidate, now)?;
        match self.paced_ramp_step() {
            Some(step) if step > self.facts.clock && at >= step => {
                let from = self.held_until(candidate, now).max(step);
                self.at(step).admitted_past_ramp(candidate, from)
            }
            _ => Some(at),
        }
    }

    /// Before this instant time alone changes nothing that could admit a candidate that is refused
    /// now.
    fn next_relevant_event(&self, candidate: &Candidate<'_>, now: Instant) -> Instant {
        let constraints = self.index.compiled.constraints.ids();
        let rooms = constraints
            .clone()
            .filter_map(|constraint| self.room_comes(candidate, constraint, now));
        let floored = constraints.filter(|constraint| self.floors_bind(candidate, *constraint));
        let idle = floored.flat_map(|constraint| {
            let owners = self.index.floor_owners.iter();
            owners.filter_map(move |owner| self.next_lending(*owner, constraint, now))
        });
        // Rules about the candidate alone: other tickets cannot change them.
        let own = self.rule_changes(candidate, now);
        let own = own.chain(self.promoted_from(candidate, now));
        let all = rooms.chain(idle).chain(self.next_change(now)).chain(own);
        all.filter(|at| *at > now).min().unwrap_or(now + Span(1))
    }
}

//! The admission rule: may this call be made, and if not, what refuses it first?
//!
//! Only reads. The rules are in `rules.rs`: those about the call as a whole, then those about each
//! constraint. Charging is in `grant.rs`, waiting in `queue/serve.rs`.

use crate::bounds;
use crate::config::Priority;
use crate::config::compiled::{Constraint, ConstraintKind};
use crate::event::Reserve;
use crate::id::{AgentId, ConstraintId, ConstraintSet, RuleId};
use crate::outcome::Refusal;
use crate::queue::ticket::QueueKey;
use crate::rules::zone::Zone;
use crate::state::State;
use crate::time::Instant;
use crate::unit::Amounts;

/// A call that asks for admission: who, for what, from where in the queue.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    /// `None` if the agent has no record yet.
    pub(crate) agent: Option<AgentId>,
    /// The index of the agent's rule in the configuration.
    pub(crate) rule: Option<RuleId>,
    pub(crate) cost: &'a Amounts,
    /// A newcomer comes after every ticket of its tier; in fair order, after those with its tag.
    pub(crate) queue_key: QueueKey,
    /// Whether its agent's floor may let it pass others: true for newcomers and due tickets. In a
    /// line everybody goes by arrival, else two tickets could wait for each other for ever.
    pub(crate) passes: bool,
    /// Its return instant after the last pause.
    pub(crate) returns: Instant,
    /// The end of its workflow hold.
    pub(crate) holds: Instant,
    /// Whether it repeats a failed call and draws on the retry budget.
    pub(crate) is_retry: bool,
    /// Since when it waits, if it has a ticket.
    pub(crate) since: Option<Instant>,
    /// Where it begins in the virtual time of fair order.
    pub(crate) start: u64,
    /// A forecast leaves the gate out: the answer that opens it may come at any time.
    pub(crate) ignores_gate: bool,
}

impl Candidate<'_> {
    pub(crate) const fn tier(&self) -> Priority {
        self.queue_key.tier
    }
}

impl State {
    /// The admission rule in its order: the rules about the call as a whole, then the constraints.
    /// `None` if the call may be made now. `until` is left open; see [`State::with_until`].
    pub(crate) fn admission_refusal(
        &self,
        candidate: &Candidate<'_>,
        now: Instant,
    ) -> Option<Refusal> {
        self.rule_refusal(candidate, now).or_else(|| match self.has_free_way(candidate, now) {
            true => None,
            false => self.constraint_refusal(candidate, now),
        })
    }

    /// Returns whether a reserve is likely to be admitted: nothing waits or pauses, and every limit
    /// has room for what the reserve states.
    ///
    /// It costs a fraction of [`State::peek`] and does not ask every rule, so it can be wrong in
    /// both directions. It is for callers that look for a refusal only where one is likely.
    #[must_use]
    pub fn is_likely_admitted(&self, reserve: &Reserve, now: Instant) -> bool {
        let has_room = |(at, constraint): (ConstraintId, &Constraint)| {
            self.facts.counters[at].zone == Zone::Green
                && constraint.need(&reserve.cost) <= self.usage(at).free_at(now)
        };
        let constraints = &self.index.compiled.constraints;
        self.facts.tickets.is_empty()
            && self.facts.pause.is_none()
            && self.facts.terminal.is_none()
            && self.facts.leases.len() < bounds::LEASES
            && !constraints.is_empty()
            && constraints.rows().all(has_room)
    }

    /// Whether a call finds no ticket before it and room on every constraint, also under a ramp:
    /// the usual case. Then no rule about a constraint refuses it, and none has to be asked.
    fn has_free_way(&self, candidate: &Candidate<'_>, now: Instant) -> bool {
        self.index.compiled.constraints.rows().all(|(at, constraint)| {
            let need = constraint.need(candidate.cost);
            if need == 0 {
                return true;
            }
            let (before, behind) = self.ahead_of(candidate, at, need, now);
            let want = need.saturating_add(before);
            let want = want.saturating_add(self.kept_for_others(candidate, at, now));
            let usage = self.usage(at);
            // A ramp keeps at most what the limit keeps for others.
            let ramps = self.ramp_step(at, now).is_none_or(|step| {
                usage.history.charged_since(step.began).saturating_add(want) <= step.budget
            });
            !behind && ramps && want <= usage.free_at(now)
        })
    }

    /// The first constraint that refuses: an earlier ticket is named before a lack of room; of
    /// several lacks, the constraint whose line the ticket would join.
    fn constraint_refusal(&self, candidate: &Candidate<'_>, now: Instant) -> Option<Refusal> {
        let behind = |constraint: &ConstraintId| {
            let need = self.index.compiled.constraints[*constraint].need(candidate.cost);
            let stands = !self.index.lines[*constraint].is_empty();
            stands
                && need > 0
                && self.is_behind(self.rank(candidate, *constraint, need, now), *constraint)
        };
        let ordered = self.index.compiled.constraints.ids().find(behind);
        let constraint =
            ordered.or_else(|| self.line_for(candidate, ConstraintSet::default(), now))?;
        let shortfall = self.shortfall(candidate, constraint, now)?;
        let limit = self.index.compiled.constraints[constraint].limit();
        let behind = self.behind(candidate, constraint, shortfall.reason);
        let refusal = Refusal::new(shortfall.reason, limit, shortfall.short_by);
        Some(Refusal { behind, ..refusal })
    }

    /// The line a ticket joins next: of the rates it lacks the one that frees last, then gates,
    /// then slots. `None` if it lacks nothing.
    pub(crate) fn line_for(
        &self,
        candidate: &Candidate<'_>,
        earmarked: ConstraintSet,
        now: Instant,
    ) -> Option<ConstraintId> {
        let lacks = |constraint: &ConstraintId| {
            !earmarked.contains(*constraint) && self.refuses(candidate, *constraint, now)
        };
        let mut lacking = self.index.compiled.constraints.ids().filter(lacks);
        let first = lacking.next()?;
        let Some(second) = lacking.next() else { return Some(first) };
        let sort_key = |constraint: ConstraintId| {
            let kind = self.index.compiled.constraints[constraint].kind;
            let room = match kind {
                ConstraintKind::Rate => self.constraint_fits(candidate, constraint, now),
                ConstraintKind::Gate | ConstraintKind::Slots => now,
            };
            (kind, core::cmp::Reverse(room), constraint)
        };
        [first, second].into_iter().chain(lacking).min_by_key(|constraint| sort_key(*constraint))
    }

    /// Whether a constraint refuses a call.
    pub(crate) fn refuses(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> bool {
        let part = self.part(candidate, constraint, now);
        part.is_some_and(|part| self.refusing(&part, now).is_some())
    }
}

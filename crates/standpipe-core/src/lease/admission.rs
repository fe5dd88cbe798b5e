//! The admission rule: may this call be made, and if not, what refuses it first?
//!
//! Only reads. The rules about the call as a whole are in `rules.rs`; here are the constraints:
//! order, limits, floors, paces and the gate. Charging is in `grant.rs`, waiting in
//! `queue/serve.rs`.

use crate::config::Priority;
use crate::config::compiled::ConstraintKind;
use crate::id::{AgentId, ConstraintId, ConstraintSet, RuleId};
use crate::outcome::{Reason, Refusal};
use crate::queue::ticket::QueueKey;
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
    /// A newcomer comes after every ticket of its tier.
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
}

/// Why a constraint refuses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortfall {
    pub(crate) reason: Reason,
    pub(crate) short_by: u64,
}

/// The rank of a candidate on one constraint. A cost that its agent's unfilled floor covers goes
/// before everybody of its tier; among those it goes by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(crate) tier: Priority,
    pub(crate) covered: bool,
    pub(crate) arrival: u64,
}

impl Rank {
    pub(crate) const fn of(queue_key: QueueKey) -> Self {
        Self { tier: queue_key.tier, covered: false, arrival: queue_key.arrival }
    }

    const fn queue_key(self) -> QueueKey {
        QueueKey { tier: self.tier, arrival: self.arrival }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.tier, !self.covered, self.arrival).cmp(&(other.tier, !other.covered, other.arrival))
    }
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
        self.rule_refusal(candidate, now).or_else(|| self.constraint_refusal(candidate, now))
    }

    /// The first constraint that refuses: an earlier ticket is named before a lack of room; of
    /// several lacks, the constraint whose line the ticket would join.
    fn constraint_refusal(&self, candidate: &Candidate<'_>, now: Instant) -> Option<Refusal> {
        let behind = |constraint: &ConstraintId| {
            let need = self.index.compiled.constraints[*constraint].need(candidate.cost);
            need > 0 && self.is_behind(self.rank(candidate, *constraint, need, now), *constraint)
        };
        let ordered = self.index.compiled.constraints.ids().find(behind);
        let constraint =
            ordered.or_else(|| self.line_for(candidate, ConstraintSet::default(), now))?;
        let shortfall = self.shortfall(candidate, constraint, now)?;
        let limit = self.index.compiled.constraints[constraint].limit();
        Some(Refusal::new(shortfall.reason, limit, shortfall.short_by))
    }

    /// The line a ticket joins next: of the rates it lacks the one that frees last, then gates,
    /// then slots. `None` if it lacks nothing.
    pub(crate) fn line_for(
        &self,
        candidate: &Candidate<'_>,
        earmarked: ConstraintSet,
        now: Instant,
    ) -> Option<ConstraintId> {
        let shortfalls = |constraint: &ConstraintId| {
            !earmarked.contains(*constraint) && self.refuses(candidate, *constraint, now)
        };
        let mut constraint_refusal = self.index.compiled.constraints.ids().filter(shortfalls);
        let first = constraint_refusal.next()?;
        let Some(second) = constraint_refusal.next() else { return Some(first) };
        let rank = |constraint: ConstraintId| {
            let kind = self.index.compiled.constraints[constraint].kind;
            let room = match kind {
                ConstraintKind::Rate => self.constraint_fits(candidate, constraint, now),
                ConstraintKind::Gate | ConstraintKind::Slots => now,
            };
            (kind, core::cmp::Reverse(room), constraint)
        };
        [first, second]
            .into_iter()
            .chain(constraint_refusal)
            .min_by_key(|constraint| rank(*constraint))
    }

    /// Whether a constraint refuses a call.
    pub(crate) fn refuses(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> bool {
        let declared = &self.index.compiled.constraints[constraint];
        let need = declared.need(candidate.cost);
        let usage = self.usage(constraint);
        // If the units are not free at all, order and floors need not be computed.
        let shortfalls = need > 0
            && need <= declared.spec.effective
            && need > usage.free_at(now)
            && !usage.probe_open_at(now);
        shortfalls || self.shortfall(candidate, constraint, now).is_some()
    }

    /// Why a constraint refuses a call, if it does.
    pub(crate) fn shortfall(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> Option<Shortfall> {
        let declared = &self.index.compiled.constraints[constraint];
        let need = declared.need(candidate.cost);
        if need == 0 {
            return None;
        }
        let shortfall = |reason, short_by| Some(Shortfall { reason, short_by });
        let rank = self.rank(candidate, constraint, need, now);
        if self.is_behind(rank, constraint) {
            return shortfall(Reason::Order, 0);
        }
        let usage = self.usage(constraint);
        let before = self.earmarked_before(constraint, rank, now);
        let free = usage.free_at(now);
        if need > free && before == 0 && usage.probe_open_at(now) {
            return None;
        }
        let kept = self.kept_for_others(candidate, constraint, now);
        let is_unknown = usage.unknown_until().is_some_and(|until| now < until);
        if need > declared.spec.effective && before == 0 && kept == 0 {
            let alone = usage.is_empty_at(now) && !is_unknown;
            let taken = usage.taken_at(now);
            return if alone { None } else { shortfall(Reason::Limit, taken.max(1)) };
        }
        let left = free.saturating_sub(before);
        if need <= left.saturating_sub(kept) {
            return None;
        }
        let reason = match declared.kind {
            _ if need <= left => Reason::Floor,
            ConstraintKind::Gate if self.index.compiled.gate == Some(constraint) => {
                self.gate_reason()
            }
            ConstraintKind::Gate => Reason::Pace,
            ConstraintKind::Slots if is_unknown => Reason::Learning,
            ConstraintKind::Slots | ConstraintKind::Rate => Reason::Limit,
        };
        shortfall(reason, need - left.saturating_sub(kept))
    }

    /// The units earmarked on a constraint for tickets before a rank.
    pub(crate) fn earmarked_before(
        &self,
        constraint: ConstraintId,
        rank: Rank,
        now: Instant,
    ) -> u64 {
        let holders = &self.index.earmarks[constraint].holders;
        if holders.is_empty() {
            return 0;
        }
        if !self.index.compiled.constraints[constraint].floored {
            return self.earmarked_before_key(constraint, rank.queue_key());
        }
        // Count by queue key, then correct for due tickets whose floor lets them pass.
        let tier = rank.tier;
        let mut before = if rank.covered {
            self.index.earmarks[constraint].by_tier[..tier as usize].iter().sum()
        } else {
            self.earmarked_before_key(constraint, rank.queue_key())
        };
        let owners = QueueKey::first_of(tier)..=QueueKey::last_of(tier);
        for owner in self.index.due_owners.range(owners) {
            let its = self.rank_of_ticket(*owner, constraint, now);
            let counted = !rank.covered && owner.arrival < rank.arrival;
            if its.covered && its < rank && !counted && holders.contains(owner) {
                before += self.need_of_ticket(constraint, *owner);
            }
        }
        before
    }

    /// The units earmarked on a constraint for tickets before a queue key.
    fn earmarked_before_key(&self, constraint: ConstraintId, queue_key: QueueKey) -> u64 {
        let earmarked = &self.index.earmarks[constraint];
        let tier = queue_key.tier as usize;
        let higher: u64 = earmarked.by_tier[..tier].iter().sum();
        if earmarked.by_tier[tier] == 0 {
            return higher;
        }
        let behind = earmarked.holders.range(queue_key..=QueueKey::last_of(queue_key.tier));
        let behind: u64 = behind.map(|queue_key| self.need_of_ticket(constraint, *queue_key)).sum();
        higher + (earmarked.by_tier[tier] - behind)
    }

    /// Whether a ticket before a rank stands in the line of a constraint.
    fn is_behind(&self, rank: Rank, constraint: ConstraintId) -> bool {
        let first = self.index.lines[constraint].first();
        first.is_some_and(|first| Rank::of(*first) < rank)
    }

    pub(crate) fn need_of_ticket(&self, constraint: ConstraintId, queue_key: QueueKey) -> u64 {
        let ticket = self.facts.tickets.get(&queue_key);
        ticket
            .map_or(0, |ticket| self.index.compiled.constraints[constraint].need(&ticket.call.cost))
    }
}

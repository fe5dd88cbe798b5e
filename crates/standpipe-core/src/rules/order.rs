//! Order: an earlier ticket of the same or a higher tier stands in the line of a limit. When that
//! is served is unknown.
//!
//! A cost that the asker's own unfilled floor covers passes tickets of its own tier.

use crate::config::Priority;
use crate::id::ConstraintId;
use crate::lease::admission::Candidate;
use crate::outcome::Reason;
use crate::queue::ticket::QueueKey;
use crate::rules::{Admits, ConstraintRule};
use crate::state::State;
use crate::time::Instant;

pub(super) const RULE: ConstraintRule = ConstraintRule {
    reason: |_, _, _| Reason::Order,
    admits: |_, part, _| if part.behind { Admits::Unknown } else { Admits::Now },
    short_by: |_, _, _| 0,
};

/// The rank of a candidate on one constraint. A cost that its agent's unfilled floor covers goes
/// before everybody of its tier; among those it goes by tag and arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(crate) tier: Priority,
    pub(crate) covered: bool,
    /// The tag and the arrival.
    pub(crate) in_tier: (u64, u64),
}

impl Rank {
    pub(crate) const fn of(queue_key: QueueKey) -> Self {
        Self { tier: queue_key.tier, covered: false, in_tier: queue_key.in_tier() }
    }

    const fn queue_key(self) -> QueueKey {
        QueueKey { tier: self.tier, tag: self.in_tier.0, arrival: self.in_tier.1 }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.tier, !self.covered, self.in_tier).cmp(&(other.tier, !other.covered, other.in_tier))
    }
}

impl State {
    /// The rank of a candidate on a constraint.
    pub(crate) fn rank(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        need: u64,
        now: Instant,
    ) -> Rank {
        let floored = self.index.compiled.constraints[constraint].floored && candidate.passes;
        let unfilled = candidate
            .agent
            .filter(|_| floored)
            .map_or(0, |agent| self.unfilled(agent, constraint, now));
        Rank { covered: floored && need <= unfilled, ..Rank::of(candidate.queue_key) }
    }

    pub(crate) fn rank_of_ticket(
        &self,
        queue_key: QueueKey,
        constraint: ConstraintId,
        now: Instant,
    ) -> Rank {
        if !self.index.due_owners.contains(&queue_key) {
            return Rank::of(queue_key);
        }
        self.facts.tickets.get(&queue_key).map_or(Rank::of(queue_key), |ticket| {
            let need = self.index.compiled.constraints[constraint].need(&ticket.call.cost);
            self.rank(&self.candidate_of(queue_key, ticket), constraint, need, now)
        })
    }

    /// The units earmarked on a constraint for tickets before a candidate, and whether an earlier
    /// ticket stands in the line.
    pub(crate) fn ahead_of(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        need: u64,
        now: Instant,
    ) -> (u64, bool) {
        let earmarks = &self.index.earmarks[constraint];
        if self.index.lines[constraint].is_empty() && earmarks.holders.is_empty() {
            // Where no ticket is, ranks do not matter.
            return (0, false);
        }
        let rank = self.rank(candidate, constraint, need, now);
        (self.earmarked_before(constraint, rank, now), self.is_behind(rank, constraint))
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
            let counted = !rank.covered && owner.in_tier() < rank.in_tier;
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
    pub(crate) fn is_behind(&self, rank: Rank, constraint: ConstraintId) -> bool {
        let first = self.index.lines[constraint].first();
        first.is_some_and(|first| Rank::of(*first) < rank)
    }

    pub(crate) fn need_of_ticket(&self, constraint: ConstraintId, queue_key: QueueKey) -> u64 {
        let ticket = self.facts.tickets.get(&queue_key);
        ticket
            .map_or(0, |ticket| self.index.compiled.constraints[constraint].need(&ticket.call.cost))
    }
}

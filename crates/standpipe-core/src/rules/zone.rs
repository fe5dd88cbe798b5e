//! The traffic light: lower tiers slow down when little quota is left. A lower bound.
//!
//! It protects somebody: a tier is held back on a limit only while a higher tier is active there.
//! Each limit has a zone of its own, from the share of it that is left; `rules/left.rs` computes
//! that. By time alone the share only grows, so a call that the zone admits after waiting stays
//! admitted.

use alloc::vec::Vec;

use crate::agents::activity::Who;
use crate::bounds;
use crate::config::Priority;
use crate::id::{AgentId, ConstraintId, ConstraintSet};
use crate::lease::admission::Candidate;
use crate::outcome::{Notice, Reason};

use crate::queue::ticket::{Phase, QueueKey, Ticket};
use crate::rules::{Admits, CallRule, Effect, Named};
use crate::state::State;
use crate::time::{Instant, Span};

/// How much quota is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// Over 40 %.
    #[default]
    Green,
    /// 15 to 40 %: lower tiers keep a gap between calls.
    Amber,
    /// Under 15 %: background is parked, standard goes slowly.
    Red,
}

impl Zone {
    /// Returns the name of the zone, the same in every API, view and metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Amber => "amber",
            Self::Red => "red",
        }
    }
}

/// Green above this share, in thousandths.
const GREEN: u64 = 400;
/// Red below this share.
const RED: u64 = 150;
/// Hysteresis: how far beyond its bound a share must be before the zone improves.
const STEADY: u64 = 20;

/// The gap of a background agent in amber per missing thousandth: 2 s × (0.40 − left) / 0.25.
const DISTANCE: Span = Span::millis(8);
/// The gap of a standard agent in red.
const SLOW: Span = Span::secs(1);

/// What zone, yield and spread demand of waiting tickets; computed after every step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TierRestrictions {
    /// By tier: the zone that applies to it.
    heeds: [Zone; 3],
    /// Whether background yields.
    pub(crate) yielding: bool,
    /// The limits whose pace holds background back.
    pub(crate) paced: ConstraintSet,
}

pub(super) const RULE: CallRule = CallRule {
    reason: Reason::Zone,
    effect: Effect::Hold,
    admits: |state, candidate, from| state.zone_admits(candidate, from),
    names: |state, candidate, now| {
        let its = state.lit().filter(|at| state.zone_heeded(candidate.tier(), *at, now).is_some());
        let scarcest = its.min_by_key(|at| state.left_of(*at, now));
        Named { limit: scarcest.and_then(|at| state.limit_named(at)), short_by: 0 }
    },
};

impl State {
    /// Returns the zone of the pool: the worst of its limits.
    #[must_use]
    pub fn zone(&self) -> Zone {
        self.facts.counters.iter().map(|counter| counter.zone).max().unwrap_or_default()
    }

    fn zone_admits(&self, candidate: &Candidate<'_>, from: Instant) -> Admits {
        let tier = candidate.tier();
        if !self.index.compiled.protects || tier == Priority::Critical {
            return Admits::Now;
        }
        let each = self.lit().map(|at| match self.zone_heeded(tier, at, from) {
            Some(zone) => {
                let paced = self.zone_pace_until(candidate, at, zone, from);
                let superiors = self.superiors(tier, at, Who::Everybody);
                self.while_active(&superiors, paced, from)
            }
            None => Admits::Now,
        });
        each.fold(Admits::Now, |all, one| all.and(one, from))
    }

    /// The zone of a limit that a tier has to heed there, if it is not green and a higher tier is
    /// active. Red does not apply where all of those have a floor on the limit: what is kept for
    /// them is theirs, and the rest would be left unused.
    fn zone_heeded(&self, tier: Priority, at: ConstraintId, now: Instant) -> Option<Zone> {
        // Spread leaves higher tiers what they need, and more is used.
        if tier == Priority::Background && self.index.compiled.constraints[at].spread {
            return None;
        }
        let zone = self.facts.counters[at].zone;
        let active = |who| self.superiors(tier, at, who).are_active(now);
        match zone {
            Zone::Green => None,
            Zone::Amber => active(Who::Everybody).then_some(zone),
            Zone::Red if active(Who::WithoutFloor) => Some(zone),
            Zone::Red => active(Who::Everybody).then_some(Zone::Amber),
        }
    }

    fn zone_pace_until(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        zone: Zone,
        from: Instant,
    ) -> Instant {
        let last = self.last_admission(candidate);
        let mut at = from;
        if zone == Zone::Red {
            let amber = self.left_reaches(constraint, RED + STEADY, from);
            let slow = last.map_or(at, |last| at.max(last + SLOW));
            if candidate.tier() == Priority::Standard && slow < amber {
                return slow;
            }
            at = at.max(amber);
        }
        let Some(last) = last.filter(|_| at != Instant::NEVER) else { return at };
        // Each further thousandth that is left shortens the gap. At the bound of green it is zero,
        // so the last round returns.
        let left_at = |at: Instant| self.left_of(constraint, at).clamp(RED, GREEN);
        let mut left = left_at(at);
        loop {
            let kept = last + gap(candidate.tier(), left);
            if kept <= at {
                return at;
            }
            if left_at(kept) == left {
                return kept;
            }
            at = at.max(self.left_reaches(constraint, left + 1, at));
            left = left_at(at).max(left + 1);
        }
    }

    /// Updates the zone of every limit from what is left. By time alone it changes at
    /// [`State::zone_next_event`].
    fn relight(&mut self, now: Instant) {
        let worst = self.zone();
        for at in self.index.compiled.constraints.ids() {
            let before = self.facts.counters[at].zone;
            self.facts.counters[at].zone = match self.index.compiled.constraints[at].lit {
                true => self.zone_of(at, before, now),
                false => Zone::Green,
            };
        }
        let zone = self.zone();
        if zone != worst {
            self.effects.notices.push(Notice::Zone { zone });
        }
    }

    fn zone_of(&self, constraint: ConstraintId, before: Zone, now: Instant) -> Zone {
        let red = if before == Zone::Red { RED + STEADY } else { RED };
        let green = if before == Zone::Green { GREEN } else { GREEN + STEADY };
        // The usual case first: it needs no division.
        if self.is_over(constraint, green, now) {
            Zone::Green
        } else if self.left_of(constraint, now) < red {
            Zone::Red
        } else {
            Zone::Amber
        }
    }

    /// Updates the zones after every step, and enqueues tickets of tiers to which another zone
    /// applies.
    pub(crate) fn update_zone(&mut self, now: Instant) {
        if !self.index.compiled.protects {
            self.restrictions = TierRestrictions::default();
            return;
        }
        self.relight(now);
        let (before, restrictions) = (self.restrictions, self.restrictions_at(now));
        self.restrictions = restrictions;
        for tier in [Priority::Standard, Priority::Background] {
            let heeds = before.heeds[tier as usize] != restrictions.heeds[tier as usize];
            let demands = |of: TierRestrictions| (of.yielding, of.paced);
            let yields = tier == Priority::Background && demands(before) != demands(restrictions);
            if heeds || yields {
                self.enqueue_tier(tier, now);
            }
        }
        self.reconsider_held(now);
    }

    /// Units returned: the first tickets that zone, yield or spread hold back may be admitted now
    /// or earlier. The others are asked again at their own instant.
    fn reconsider_held(&mut self, now: Instant) {
        if self.index.returned.is_empty() || self.restrictions == TierRestrictions::default() {
            return;
        }
        let held = self.facts.tickets.iter().filter_map(|(queue_key, ticket)| match ticket.phase {
            Phase::Held { reason: Reason::Zone | Reason::Yield | Reason::Spread, until } => {
                Some((*queue_key, ticket.key, until))
            }
            _ => None,
        });
        let held: Vec<_> = held.take(bounds::WAKE_EARLIER).collect();
        let mut stays = None;
        for (queue_key, key, before) in held {
            let Some(ticket) = self.facts.tickets.get(&queue_key) else { continue };
            // Tickets of one agent and tier are held back alike, but for what each brings along.
            let own = Some((ticket.agent, queue_key.tier, ticket.phase));
            if own == stays && ticket.returns.max(ticket.holds) <= now {
                continue;
            }
            if self.is_held_as_before(queue_key, ticket, now) {
                stays = own;
                continue;
            }
            self.enqueue(queue_key, now);
            let phase = self.facts.tickets.get(&queue_key).map(|ticket| ticket.phase);
            if matches!(phase, Some(Phase::Held { until, .. }) if until < before) {
                self.effects.wake.push(key);
            }
        }
    }

    /// Whether a ticket is held back for the same reason and as long as it was: then it stays.
    fn is_held_as_before(&self, queue_key: QueueKey, ticket: &Ticket, now: Instant) -> bool {
        let held = self.held_back(&self.candidate_of(queue_key, ticket), now);
        held.is_some_and(|(reason, until)| ticket.phase == Phase::Held { reason, until })
    }

    /// What zone, yield and spread demand of waiting tickets at an instant.
    pub(crate) fn restrictions_at(&self, now: Instant) -> TierRestrictions {
        let mut restrictions = TierRestrictions::default();
        if !self.index.compiled.protects {
            return restrictions;
        }
        for tier in [Priority::Standard, Priority::Background] {
            if !self.index.order[tier as usize].is_empty() {
                let zones = self.lit().filter_map(|at| self.zone_heeded(tier, at, now));
                restrictions.heeds[tier as usize] = zones.max().unwrap_or_default();
            }
        }
        let waits = !self.index.order[Priority::Background as usize].is_empty();
        restrictions.yielding = waits && self.is_yielding(now);
        if waits && self.index.compiled.spreads {
            restrictions.paced = self.spread_over(now);
        }
        restrictions
    }

    /// When time alone next changes a zone or a demand.
    pub(crate) fn zone_next_event(&self, now: Instant) -> Option<Instant> {
        if !self.index.compiled.protects {
            return None;
        }
        let zones = self.lit().filter_map(|at| match self.facts.counters[at].zone {
            Zone::Green => None,
            Zone::Amber => Some(self.left_exceeds(at, GREEN + STEADY, now)),
            Zone::Red => Some(self.left_reaches(at, RED + STEADY, now)),
        });
        let held = [Priority::Standard, Priority::Background].into_iter();
        let held = held.filter(|tier| self.restrictions.heeds[*tier as usize] != Zone::Green);
        let idle = held.flat_map(|tier| self.lit().map(move |at| (tier, at)));
        let idle = idle.flat_map(|(tier, at)| {
            let ends = |who| self.superiors(tier, at, who).end_of_activity();
            [ends(Who::Everybody), ends(Who::WithoutFloor)]
        });
        let idle = idle.flatten().filter(|at| *at > self.facts.clock);
        let yields = self.restrictions.yielding.then(|| self.yield_next_event(now)).flatten();
        let all = idle.chain(zones).chain(yields).chain(self.spread_next_event(now));
        all.filter(|at| *at != Instant::NEVER).map(|at| at.max(now)).min()
    }

    fn enqueue_tier(&mut self, tier: Priority, now: Instant) {
        let its = self.facts.tickets.range(QueueKey::first_of(tier)..=QueueKey::last_of(tier));
        let waiting = its.filter(|(_, ticket)| ticket.phase != Phase::Lapsed);
        let queue_keys: Vec<QueueKey> = waiting.map(|(queue_key, _)| *queue_key).collect();
        self.enqueue_these(&queue_keys, now);
    }

    /// Holds back other tickets of an agent that was just admitted until its gap has passed.
    pub(crate) fn hold_zone_paced(&mut self, agent: AgentId, now: Instant) {
        let none = self.index.agent_loads[agent].tickets == 0;
        if none || self.zone() == Zone::Green {
            return;
        }
        let its = self.facts.tickets.iter().filter(|(_, ticket)| {
            ticket.agent == agent && matches!(ticket.phase, Phase::Line(_) | Phase::Due(_))
        });
        let paced = its.filter(|(queue_key, ticket)| {
            RULE.refuses(self, &self.candidate_of(**queue_key, ticket), now)
        });
        let queue_keys: Vec<QueueKey> = paced.map(|(queue_key, _)| *queue_key).collect();
        self.enqueue_these(&queue_keys, now);
    }

    fn last_admission(&self, candidate: &Candidate<'_>) -> Option<Instant> {
        self.facts.agents[candidate.agent?].admitted
    }

    /// The limits that zones apply to.
    fn lit(&self) -> impl Iterator<Item = ConstraintId> {
        let constraints = self.index.compiled.constraints.rows();
        constraints.filter(|(_, constraint)| constraint.lit).map(|(at, _)| at)
    }
}

/// The gap between two admissions of an agent in amber.
fn gap(tier: Priority, left: u64) -> Span {
    let missing = GREEN.saturating_sub(left);
    match tier {
        Priority::Critical => Span::ZERO,
        Priority::Standard => Span(DISTANCE.0 * missing / 2),
        Priority::Background => Span(DISTANCE.0 * missing),
    }
}

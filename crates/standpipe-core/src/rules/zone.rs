//! The traffic light: lower tiers slow down when little quota is left. A lower bound.
//!
//! It protects somebody: a tier is held back only while a higher tier is active. *Left* is the
//! smallest share over the limits in scope. By time alone it only grows, so a call that the zone
//! admits after waiting stays admitted.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::compiled::ConstraintKind;
use crate::config::{Priority, mul_div};
use crate::id::{AgentId, ConstraintId};
use crate::lease::admission::Candidate;
use crate::outcome::{Notice, Reason};

use crate::queue::ticket::{Phase, QueueKey, Ticket};
use crate::rules::{Admits, Effect, Named, Rule};
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
    /// Its name on every face.
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
/// Background yields below this share.
pub(crate) const SCARCE: u64 = 300;

/// The gap of a background agent in amber per missing thousandth: 2 s × (0.40 − left) / 0.25.
const DISTANCE: Span = Span::millis(8);
/// The gap of a standard agent in red.
const SLOW: Span = Span::secs(1);

/// What zone and yield demand of waiting tickets; computed after every step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TierRestrictions {
    /// By tier: the zone that applies to it.
    heeds: [Zone; 3],
    /// Whether background yields.
    pub(crate) yielding: bool,
}

/// Which limits count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZoneScope {
    /// The limits that zones apply to.
    ByZones,
    /// All rates.
    Rates,
}

pub(super) const RULE: Rule = Rule {
    reason: Reason::Zone,
    effect: Effect::Hold,
    admits: |state, candidate, from| {
        let passes = !state.index.compiled.protects || candidate.tier() == Priority::Critical;
        let paced = if passes { from } else { state.zone_pace_until(candidate, from) };
        if paced <= from {
            return Admits::Now;
        }
        // A background call that the zone admits may still have to yield: one timer for both.
        let by_time = paced.max(state.yield_ends(candidate, from));
        state.while_superiors_active(candidate.tier(), by_time, from)
    },
    names: |state, _, now| Named { limit: state.scarcest(ZoneScope::ByZones, now), short_by: 0 },
};

impl State {
    /// The zone the pool is in.
    #[must_use]
    pub const fn zone(&self) -> Zone {
        self.facts.zone
    }

    fn zone_pace_until(&self, candidate: &Candidate<'_>, from: Instant) -> Instant {
        let (zone, now) = (self.facts.zone, self.facts.clock);
        if zone == Zone::Green {
            return from;
        }
        let last = self.last_admission(candidate);
        let mut at = from;
        if zone == Zone::Red {
            let amber = self.left_reaches(ZoneScope::ByZones, RED + STEADY, now);
            let slow = last.map_or(at, |last| at.max(last + SLOW));
            if candidate.tier() == Priority::Standard && slow < amber {
                return slow;
            }
            at = at.max(amber);
        }
        let Some(last) = last else { return at };
        if at == Instant::NEVER {
            return at;
        }
        // Each further thousandth shortens the gap. At the bound of green the gap is zero, so the
        // last round returns.
        let left_at = |at: Instant| self.left(ZoneScope::ByZones, at).min(GREEN);
        let mut left = left_at(at);
        loop {
            let kept = last + distance(candidate.tier(), Zone::Amber, left);
            if kept <= at {
                return at;
            }
            if left_at(kept) == left {
                return kept;
            }
            at = at.max(self.left_reaches(ZoneScope::ByZones, left + 1, now));
            left = left_at(at).max(left + 1);
        }
    }

    /// Updates the zone from what is left. By time alone it changes at [`State::zone_next_event`].
    fn relight(&mut self, now: Instant) {
        if !self.index.compiled.constraints.iter().any(|constraint| constraint.lit) {
            self.facts.zone = Zone::Green;
            return;
        }
        let before = self.facts.zone;
        let red = if before == Zone::Red { RED + STEADY } else { RED };
        let green = if before == Zone::Green { GREEN } else { GREEN + STEADY };
        let left = self.left(ZoneScope::ByZones, now);
        let zone = if left < red {
            Zone::Red
        } else if left > green || left == green && self.is_over(green, now) {
            Zone::Green
        } else {
            Zone::Amber
        };
        if zone != before {
            self.facts.zone = zone;
            self.effects.notices.push(Notice::Zone { zone });
        }
    }

    /// Updates the zone after every step, and enqueues tickets of tiers to which another zone
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
            let yields = tier == Priority::Background && before.yielding != restrictions.yielding;
            if heeds || yields {
                self.enqueue_tier(tier, now);
            }
        }
        self.reconsider_held(now);
    }

    /// Units returned: the first tickets that zone or yield hold back may be admitted now or
    /// earlier. The others are asked again at their own instant.
    fn reconsider_held(&mut self, now: Instant) {
        if self.index.returned.is_empty() || self.restrictions == TierRestrictions::default() {
            return;
        }
        let held = self.facts.tickets.iter().filter_map(|(queue_key, ticket)| match ticket.phase {
            Phase::Held { reason: Reason::Zone | Reason::Yield, until } => {
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

    /// What zone and yield demand of waiting tickets at an instant.
    pub(crate) fn restrictions_at(&self, now: Instant) -> TierRestrictions {
        let mut restrictions = TierRestrictions::default();
        if !self.index.compiled.protects {
            return restrictions;
        }
        for tier in [Priority::Standard, Priority::Background] {
            let waits = !self.index.order[tier as usize].is_empty();
            if waits && self.superiors_active(tier, now) {
                restrictions.heeds[tier as usize] = self.facts.zone;
                restrictions.yielding = tier == Priority::Background && self.is_scarce(now);
            }
        }
        restrictions
    }

    /// When time alone next changes the zone or a demand.
    pub(crate) fn zone_next_event(&self, now: Instant) -> Option<Instant> {
        if !self.index.compiled.protects {
            return None;
        }
        let zone = match self.facts.zone {
            Zone::Green => None,
            Zone::Amber => Some(self.left_exceeds(GREEN + STEADY, now)),
            Zone::Red => Some(self.left_reaches(ZoneScope::ByZones, RED + STEADY, now)),
        };
        let yields =
            self.restrictions.yielding.then(|| self.left_reaches(ZoneScope::Rates, SCARCE, now));
        let held = [Priority::Standard, Priority::Background].into_iter().filter(|tier| {
            let yields = *tier == Priority::Background && self.restrictions.yielding;
            yields || self.restrictions.heeds[*tier as usize] != Zone::Green
        });
        let idle = held.filter_map(|tier| self.superiors_next_event(tier));
        let all = idle.chain(zone).chain(yields);
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
        if none || self.facts.zone == Zone::Green {
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

    fn lit(&self, which: ZoneScope) -> impl Iterator<Item = ConstraintId> {
        let constraints = self.index.compiled.constraints.rows();
        let lit = constraints.filter(move |(_, constraint)| match which {
            ZoneScope::ByZones => constraint.lit,
            ZoneScope::Rates => constraint.kind == ConstraintKind::Rate,
        });
        lit.map(|(at, _)| at)
    }

    /// The smallest share that is left of the limits in scope, in whole thousandths.
    pub(crate) fn left(&self, which: ZoneScope, now: Instant) -> u64 {
        self.lit(which).map(|constraint| self.left_of(constraint, now)).min().unwrap_or(1_000)
    }

    /// The limit of which the smallest share is left.
    pub(crate) fn scarcest(
        &self,
        which: ZoneScope,
        now: Instant,
    ) -> Option<crate::config::LimitId> {
        let least = self.lit(which).min_by_key(|constraint| self.left_of(*constraint, now))?;
        self.index.compiled.constraints[least].limit()
    }

    fn left_of(&self, constraint: ConstraintId, now: Instant) -> u64 {
        let usage = self.usage(constraint);
        mul_div(usage.free_at(now), 1_000, usage.spec.effective)
    }

    /// Whether more than a share is left of every limit that zones apply to.
    fn is_over(&self, per_mille: u64, now: Instant) -> bool {
        self.lit(ZoneScope::ByZones).all(|constraint| {
            let usage = self.usage(constraint);
            let enough = u128::from(per_mille) * u128::from(usage.spec.effective);
            u128::from(usage.free_at(now)) * 1_000 > enough
        })
    }

    /// The first instant from `from` on at which at least a share is left of every limit in scope.
    pub(crate) fn left_reaches(&self, which: ZoneScope, per_mille: u64, from: Instant) -> Instant {
        let share = |effective: u64| match effective.checked_mul(per_mille) {
            Some(product) => product.div_ceil(1_000),
            None => u64::MAX,
        };
        self.all_have(which, share, from)
    }

    /// The same for more than a share.
    fn left_exceeds(&self, per_mille: u64, from: Instant) -> Instant {
        let share = |effective: u64| match effective.checked_mul(per_mille) {
            Some(product) => product / 1_000 + 1,
            None => u64::MAX,
        };
        self.all_have(ZoneScope::ByZones, share, from)
    }

    fn all_have(&self, which: ZoneScope, share: impl Fn(u64) -> u64, from: Instant) -> Instant {
        let each = self.lit(which).map(|constraint| {
            let usage = self.usage(constraint);
            usage.fits_from(share(usage.spec.effective).min(usage.spec.effective), from)
        });
        each.max().unwrap_or(from)
    }
}

/// The gap between two admissions of an agent.
fn distance(tier: Priority, zone: Zone, left: u64) -> Span {
    let missing = GREEN.saturating_sub(left);
    match (zone, tier) {
        (Zone::Green, _) | (_, Priority::Critical) => Span::ZERO,
        (Zone::Amber, Priority::Background) => Span(DISTANCE.0 * missing),
        (Zone::Amber, Priority::Standard) => Span(DISTANCE.0 * missing / 2),
        (Zone::Red, _) => SLOW,
    }
}

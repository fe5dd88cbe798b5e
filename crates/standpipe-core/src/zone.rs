//! The traffic light: how much quota is left, and who keeps a distance when it is little.
//!
//! It protects somebody: a tier is held back only while a higher one is active. Left is the
//! smallest share over the limits it looks at. By time alone it only ever grows, so whoever the
//! light lets pass by waiting it goes on letting pass.

use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::config::Priority;
use crate::judge::Asker;
use crate::outcome::{Notice, Reason, Refusal};
use crate::outlook::Zone;
use crate::plan::LaneKind;
use crate::state::State;
use crate::ticket::{Phase, Place};
use crate::time::{Instant, Span};

/// Green is over this, in thousandths.
const GREEN: u64 = 400;
/// Red is under this.
const RED: u64 = 150;
/// A zone is left for a better one only so much beyond.
const STEADY: u64 = 20;
/// Background gives way under this.
pub(crate) const LITTLE: u64 = 300;

/// The distance a background agent keeps in amber for each thousandth that is missing to green:
/// 2 s × (0.40 − left) / 0.25.
const DISTANCE: Span = Span::millis(8);
/// The distance a standard agent keeps in red.
const SLOW: Span = Span::secs(1);

/// What the light says to those who wait; worked out after every step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Light {
    /// By tier: the zone it has to heed.
    heeds: [Zone; 3],
    /// Background gives way.
    pub(crate) yielding: bool,
}

/// Which limits are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lit {
    /// Those of the traffic light.
    ByZones,
    /// All rates.
    Rates,
}

impl State {
    /// The zone the pool is in.
    #[must_use]
    pub const fn zone(&self) -> Zone {
        self.facts.outlook.zone
    }

    /// Step 3: the distance this agent has to keep.
    pub(crate) fn zoned(&self, asker: &Asker<'_>, now: Instant) -> Option<Refusal> {
        let zone = self.facts.outlook.zone;
        if zone == Zone::Green || !self.superiors_active(asker.tier(), now) {
            return None;
        }
        let parks = zone == Zone::Red && asker.tier() == Priority::Background;
        let left = self.left(Lit::ByZones, now);
        let keeps = |last: Instant| now < last + distance(asker.tier(), zone, left);
        if !parks && !self.last_admission(asker).is_some_and(keeps) {
            return None;
        }
        let (reason, limit) = (Reason::Zone, self.scarcest(Lit::ByZones, now));
        Some(Refusal { reason, limit, short_by: 0, until: None })
    }

    /// The first instant from `from` on at which light and yield let a call pass, if only time
    /// passes.
    pub(crate) fn light_lets_pass(&self, asker: &Asker<'_>, from: Instant) -> Instant {
        let policy = self.index.plan.protects && asker.tier() != Priority::Critical;
        if !policy {
            return from;
        }
        let zone = self.zone_lets_pass(asker, from);
        let held = zone.max(self.yield_ends(asker, from));
        if held == from {
            return from;
        }
        held.min(self.superiors_gone(asker.tier(), from))
    }

    fn zone_lets_pass(&self, asker: &Asker<'_>, from: Instant) -> Instant {
        let (zone, now) = (self.facts.outlook.zone, self.facts.clock);
        if zone == Zone::Green {
            return from;
        }
        let last = self.last_admission(asker);
        let mut at = from;
        if zone == Zone::Red {
            let amber = self.left_reaches(Lit::ByZones, RED + STEADY, now);
            let slow = last.map_or(at, |last| at.max(last + SLOW));
            if asker.tier() == Priority::Standard && slow < amber {
                return slow;
            }
            at = at.max(amber);
        }
        let Some(last) = last else { return at };
        if at == Instant::NEVER {
            return at;
        }
        // What is left at that instant: each thousandth that comes shortens the distance.
        let (mut left, mut most) = (self.left(Lit::ByZones, now).min(GREEN), GREEN);
        while left < most {
            let middle = (left + most).div_ceil(2);
            if self.left_reaches(Lit::ByZones, middle, now) <= at {
                left = middle;
            } else {
                most = middle - 1;
            }
        }
        loop {
            let kept = last + distance(asker.tier(), Zone::Amber, left);
            if kept <= at {
                return at;
            }
            left += 1;
            let more = self.left_reaches(Lit::ByZones, left, now);
            if kept <= more {
                return kept;
            }
            at = at.max(more);
        }
    }

    /// The zone follows what is left. By time alone it changes at [`State::light_stirs`].
    fn relight(&mut self, now: Instant) {
        if !self.index.plan.lanes.iter().any(|lane| lane.lit) {
            self.facts.outlook.zone = Zone::Green;
            return;
        }
        let before = self.facts.outlook.zone;
        let red = if before == Zone::Red { RED + STEADY } else { RED };
        let green = if before == Zone::Green { GREEN } else { GREEN + STEADY };
        let zone = if self.left(Lit::ByZones, now) < red {
            Zone::Red
        } else if self.is_over(green, now) {
            Zone::Green
        } else {
            Zone::Amber
        };
        if zone != before {
            self.facts.outlook.zone = zone;
            self.news.notices.push(Notice::Zone { zone });
        }
    }

    /// After every step: the light changes, and those who wait heed it.
    pub(crate) fn mind_the_light(&mut self, now: Instant) {
        if !self.index.plan.protects {
            self.light = Light::default();
            return;
        }
        self.relight(now);
        let (before, light) = (self.light, self.light_at(now));
        self.light = light;
        for tier in [Priority::Standard, Priority::Background] {
            let heeds = before.heeds[tier as usize] != light.heeds[tier as usize];
            let yields = tier == Priority::Background && before.yielding != light.yielding;
            if heeds || yields {
                self.stand_tier(tier, now);
            }
        }
    }

    /// What the light says to those who wait.
    pub(crate) fn light_at(&self, now: Instant) -> Light {
        let mut light = Light::default();
        if !self.index.plan.protects {
            return light;
        }
        for tier in [Priority::Standard, Priority::Background] {
            let waits = !self.index.order[tier as usize].is_empty();
            if waits && self.superiors_active(tier, now) {
                light.heeds[tier as usize] = self.facts.outlook.zone;
                light.yielding = tier == Priority::Background && self.is_little(now);
            }
        }
        light
    }

    /// When time alone next changes something about the light.
    pub(crate) fn light_stirs(&self, now: Instant) -> Option<Instant> {
        if !self.index.plan.protects {
            return None;
        }
        let zone = match self.facts.outlook.zone {
            Zone::Green => None,
            Zone::Amber => Some(self.left_exceeds(GREEN + STEADY, now)),
            Zone::Red => Some(self.left_reaches(Lit::ByZones, RED + STEADY, now)),
        };
        let yields = self.light.yielding.then(|| self.left_reaches(Lit::Rates, LITTLE, now));
        let held = [Priority::Standard, Priority::Background].into_iter().filter(|tier| {
            let yields = *tier == Priority::Background && self.light.yielding;
            yields || self.light.heeds[*tier as usize] != Zone::Green
        });
        let idle = held.filter_map(|tier| self.superiors_stir(tier));
        let all = idle.chain(zone).chain(yields);
        all.filter(|at| *at != Instant::NEVER).map(|at| at.max(now)).min()
    }

    fn stand_tier(&mut self, tier: Priority, now: Instant) {
        let its = self.facts.tickets.range(Place::first_of(tier)..=Place::last_of(tier));
        let waiting = its.filter(|(_, ticket)| ticket.phase != Phase::Lapsed);
        let places: Vec<Place> = waiting.map(|(place, _)| *place).collect();
        self.stand_these(&places, now);
    }

    /// Other tickets of an agent that was just admitted keep their distance.
    pub(crate) fn hold_back_paced(&mut self, agent: AgentId, now: Instant) {
        let none = self.index.loads[usize::from(agent)].tickets == 0;
        if none || self.facts.outlook.zone == Zone::Green {
            return;
        }
        let its = self.facts.tickets.iter().filter(|(_, ticket)| {
            ticket.agent == agent && matches!(ticket.phase, Phase::Line(_) | Phase::Due(_))
        });
        let paced = its
            .filter(|(place, ticket)| self.zoned(&self.asker_of(**place, ticket), now).is_some());
        let places: Vec<Place> = paced.map(|(place, _)| *place).collect();
        self.stand_these(&places, now);
    }

    fn last_admission(&self, asker: &Asker<'_>) -> Option<Instant> {
        self.facts.agents[usize::from(asker.agent?)].admitted
    }

    fn lit(&self, which: Lit) -> impl Iterator<Item = usize> {
        let lanes = self.index.plan.lanes.iter().enumerate();
        let lit = lanes.filter(move |(_, lane)| match which {
            Lit::ByZones => lane.lit,
            Lit::Rates => lane.kind == LaneKind::Rate,
        });
        lit.map(|(at, _)| at)
    }

    /// The share that is left, in whole thousandths: the smallest of all limits looked at.
    pub(crate) fn left(&self, which: Lit, now: Instant) -> u64 {
        self.lit(which).map(|lane| self.left_of(lane, now)).min().unwrap_or(1_000)
    }

    /// The limit of which the smallest share is left.
    pub(crate) fn scarcest(&self, which: Lit, now: Instant) -> Option<crate::config::LimitId> {
        let least = self.lit(which).min_by_key(|lane| self.left_of(*lane, now))?;
        self.index.plan.lanes[least].limit()
    }

    fn left_of(&self, lane: usize, now: Instant) -> u64 {
        let spec = &self.index.plan.lanes[lane].spec;
        let free = self.facts.lanes[lane].free_at(now, spec);
        let share = u128::from(free) * 1_000 / u128::from(spec.effective.max(1));
        u64::try_from(share).unwrap_or(1_000)
    }

    /// Whether more than a share is left of every limit looked at.
    fn is_over(&self, per_mille: u64, now: Instant) -> bool {
        self.lit(Lit::ByZones).all(|lane| {
            let spec = &self.index.plan.lanes[lane].spec;
            let free = self.facts.lanes[lane].free_at(now, spec);
            u128::from(free) * 1_000 > u128::from(per_mille) * u128::from(spec.effective)
        })
    }

    /// The first instant from `from` on at which at least a share is left of every limit looked at.
    pub(crate) fn left_reaches(&self, which: Lit, per_mille: u64, from: Instant) -> Instant {
        let share = |effective: u64| {
            let product = u128::from(effective) * u128::from(per_mille);
            u64::try_from(product.div_ceil(1_000)).unwrap_or(u64::MAX)
        };
        self.all_have(which, share, from)
    }

    /// The same for more than a share.
    fn left_exceeds(&self, per_mille: u64, from: Instant) -> Instant {
        let share = |effective: u64| {
            let product = u128::from(effective) * u128::from(per_mille);
            u64::try_from(product / 1_000 + 1).unwrap_or(u64::MAX)
        };
        self.all_have(Lit::ByZones, share, from)
    }

    fn all_have(&self, which: Lit, share: impl Fn(u64) -> u64, from: Instant) -> Instant {
        let each = self.lit(which).map(|lane| {
            let spec = &self.index.plan.lanes[lane].spec;
            let want = share(spec.effective).min(spec.effective);
            self.facts.lanes[lane].fits_from(want, from, spec, || self.holdings_on(lane))
        });
        each.max().unwrap_or(from)
    }
}

/// How long after its last admission an agent comes next.
fn distance(tier: Priority, zone: Zone, left: u64) -> Span {
    let missing = GREEN.saturating_sub(left);
    match (zone, tier) {
        (Zone::Green, _) | (_, Priority::Critical) => Span::ZERO,
        (Zone::Amber, Priority::Background) => Span(DISTANCE.0 * missing),
        (Zone::Amber, Priority::Standard) => Span(DISTANCE.0 * missing / 2),
        (Zone::Red, _) => SLOW,
    }
}

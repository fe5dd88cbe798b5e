//! What a configuration means for the tallies, worked out once when it comes into force.

use alloc::vec::Vec;

use crate::bounds;
use crate::bucket::Bucket;
use crate::config::{
    AgentRule, Charged, Limit, LimitId, Of, PoolConfig, Portion, Priority, Resets, Rule, Share,
    part,
};
use crate::facts::Facts;
use crate::gate;
use crate::headroom::share_of;
use crate::learn::limits_in_force;
use crate::outlook::Outlook;
use crate::reconcile::standing;
use crate::tally::{Count, Spec, Tally};
use crate::time::Span;
use crate::trouble::Trouble;
use crate::unit::{Amounts, Unit};
use crate::window::{Grain, Window};

/// What a configuration means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In the order of [`crate::Facts::lanes`].
    pub(crate) lanes: Vec<Lane>,
    /// The lane at which calls wait for the answers of others.
    pub(crate) gate: Option<usize>,
    /// In the order of the configuration's agents.
    pub(crate) agents: Vec<AgentPlan>,
    pub(crate) lease_ttl: Span,
    pub(crate) longest_lease: Option<Span>,
    pub(crate) claim: Span,
    pub(crate) enforce: bool,
    /// It matters who is active: for the light, or because background gives way.
    pub(crate) protects: bool,
    pub(crate) yields: bool,
    pub(crate) promotes: bool,
}

/// Something a ticket can stand in line for: a limit, or the gate of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) id: LimitId,
    pub(crate) kind: LaneKind,
    pub(crate) spec: Spec,
    pub(crate) resets: Resets,
    /// Somebody has a floor on it.
    pub(crate) floored: bool,
    /// The traffic light looks at it.
    pub(crate) lit: bool,
}

/// In the order in which a ticket stands in lines: what it holds last it holds shortest, and a slot
/// is dearest to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaneKind {
    Rate,
    Gate,
    Slots,
}

/// What is said about an agent, in tallies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentPlan {
    pub(crate) tier: Priority,
    pub(crate) meters: Vec<Meter>,
}

/// An agent's own use of something, for its floor or its cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    pub(crate) measures: Measures,
    /// Its effective limit is the cap.
    pub(crate) spec: Spec,
    pub(crate) floor: u64,
    pub(crate) capped: bool,
}

/// What a meter measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Measures {
    /// The use of a lane.
    Lane(u8),
    /// The use of a unit over a period of the cap's own.
    Unit(Unit),
}

impl Plan {
    /// What the facts come to.
    pub(crate) fn of_facts(facts: &Facts) -> Self {
        let Some(config) = &facts.config else { return Self::default() };
        let mut plan = Self::of(config, &facts.trouble, &facts.outlook);
        if let Some(gate) = plan.gate {
            plan.lanes[gate].spec.effective = gate::width(facts);
        }
        plan
    }

    /// The gate is open in it.
    pub(crate) fn of(config: &PoolConfig, trouble: &Trouble, outlook: &Outlook) -> Self {
        let limits = limits_in_force(config, trouble, outlook);
        let mut lanes: Vec<Lane> =
            limits.iter().map(|limit| lane(config, outlook, limit)).collect();
        let paced = limits.iter().filter(|limit| limit.pace.is_some());
        lanes.extend(paced.map(pace));
        ramp(&mut lanes, trouble);
        let gate = config.policy.gates().then_some(lanes.len());
        lanes.extend(gate.map(|_| unanswered()));
        let agents: Vec<_> = config.agents.iter().map(|rule| agent(config, rule, &lanes)).collect();
        for meter in agents.iter().flat_map(|agent| &agent.meters) {
            if let (Measures::Lane(lane), true) = (&meter.measures, meter.floor > 0) {
                lanes[usize::from(*lane)].floored = true;
            }
        }
        Self {
            lanes,
            gate,
            agents,
            lease_ttl: config.lease_ttl,
            longest_lease: config.longest_lease,
            claim: config.claim,
            enforce: config.enforce,
            protects: config.policy.protects(),
            yields: config.policy.yields,
            promotes: config.policy.promotes,
        }
    }
}

impl Plan {
    /// The shortest period of a rate.
    pub(crate) fn shortest_period(&self) -> Option<Span> {
        shortest_period(&self.lanes)
    }

    /// The longest period of a rate.
    pub(crate) fn longest_period(&self) -> Option<Span> {
        let rates = self.lanes.iter().filter(|lane| lane.kind == LaneKind::Rate);
        rates.filter_map(|lane| lane.id.period()).max()
    }
}

impl Lane {
    /// What a call of this cost takes here.
    pub(crate) fn need(&self, cost: &Amounts) -> u64 {
        let units = self.id.unit().map_or(1, |unit| cost.of(unit).unwrap_or(0));
        if self.kind == LaneKind::Gate { units.min(1) } else { units }
    }

    /// Its name in answers; the gate is no limit of the pool's.
    pub(crate) fn limit(&self) -> Option<LimitId> {
        (self.id != LimitId::Unanswered).then(|| self.id.clone())
    }

    /// The unit whose figures in a commit are about this; a gate and slots have none.
    pub(crate) fn settles(&self) -> Option<&Unit> {
        self.id.unit().filter(|_| self.kind == LaneKind::Rate)
    }

    /// Nothing counted yet.
    pub(crate) fn fresh(&self) -> Tally {
        Tally::new(match (self.kind, &self.id) {
            (LaneKind::Gate, LimitId::Unanswered) => Count::Slots,
            (LaneKind::Gate, _) => Count::Gate { last: None },
            (_, LimitId::Window(..)) => Count::Window(Window::new(Grain::Limit)),
            (_, LimitId::Bucket(..)) => Count::Bucket(Bucket::default()),
            (_, LimitId::Parallel | LimitId::Unanswered) => Count::Slots,
        })
    }

    /// An agent with a floor here is idle after so long.
    pub(crate) fn idle_after(&self) -> Span {
        self.id.period().map_or(bounds::IDLE, |period| period.min(bounds::IDLE))
    }
}

impl Meter {
    pub(crate) fn is_of_lane(&self, lane: usize) -> bool {
        matches!(self.measures, Measures::Lane(at) if usize::from(at) == lane)
    }

    /// What a call of this cost adds.
    pub(crate) fn need(&self, lanes: &[Lane], cost: &Amounts) -> u64 {
        match &self.measures {
            Measures::Lane(lane) => lanes[usize::from(*lane)].need(cost),
            Measures::Unit(unit) => cost.of(unit).unwrap_or(0),
        }
    }

    /// Nothing counted yet. A bucket's use is metered in a window of its period.
    pub(crate) fn fresh(&self, lanes: &[Lane]) -> Tally {
        let slots = match &self.measures {
            Measures::Lane(lane) => lanes[usize::from(*lane)].kind == LaneKind::Slots,
            Measures::Unit(_) => false,
        };
        Tally::new(if slots { Count::Slots } else { Count::Window(Window::new(Grain::Meter)) })
    }
}

fn lane(config: &PoolConfig, outlook: &Outlook, limit: &Limit) -> Lane {
    let share = u64::from(share_of(config, outlook, &limit.id()));
    let used_of = |amount: u64| part(amount, share, 1_000).max(1);
    let (kind, effective, refill, period) = match limit.rule {
        Rule::Window { amount, period, .. } => {
            let beside_others = used_of(amount).saturating_sub(standing(outlook, &limit.id()));
            (LaneKind::Rate, beside_others.max(1), 0, period)
        }
        Rule::Bucket { amount, period, burst, .. } => {
            (LaneKind::Rate, used_of(burst), used_of(amount), period)
        }
        Rule::Parallel { amount } => (LaneKind::Slots, amount, 0, Span::ZERO),
    };
    let spec = Spec {
        stated: limit.stated(),
        effective,
        period: period + config.slack,
        refill,
        charged: limit.charged,
        slack: config.slack,
    };
    let lit = kind == LaneKind::Rate && config.policy.zones.look_at(period);
    Lane { id: limit.id(), kind, spec, resets: limit.resets, floored: false, lit }
}

fn pace(limit: &Limit) -> Lane {
    let spec = Spec {
        stated: 1,
        effective: 1,
        period: limit.pace.unwrap_or(Span::ZERO),
        refill: 0,
        charged: Charged::Start,
        slack: Span::ZERO,
    };
    let (id, kind) = (limit.id(), LaneKind::Gate);
    Lane { id, kind, spec, resets: Resets::Rolling, floored: false, lit: false }
}

/// Open until somebody is waited for.
const fn unanswered() -> Lane {
    let spec = Spec {
        stated: 1,
        effective: bounds::AMOUNT,
        period: Span::ZERO,
        refill: 0,
        charged: Charged::End,
        slack: Span::ZERO,
    };
    let (id, kind) = (LimitId::Unanswered, LaneKind::Gate);
    Lane { id, kind, spec, resets: Resets::Rolling, floored: false, lit: false }
}

/// After a refusal the shortest rates are not used whole.
fn ramp(lanes: &mut [Lane], trouble: &Trouble) {
    let Some(ramp) = trouble.ramp else { return };
    let shortest = shortest_period(lanes);
    for lane in lanes.iter_mut().filter(|lane| lane.kind == LaneKind::Rate) {
        if lane.id.period() == shortest {
            lane.spec.effective = (lane.spec.effective >> ramp.halvings).max(1);
            lane.spec.refill = (lane.spec.refill >> ramp.halvings).max(lane.spec.refill.min(1));
        }
    }
}

fn shortest_period(lanes: &[Lane]) -> Option<Span> {
    let rates = lanes.iter().filter(|lane| lane.kind == LaneKind::Rate);
    rates.filter_map(|lane| lane.id.period()).min()
}

fn agent(config: &PoolConfig, rule: &AgentRule, lanes: &[Lane]) -> AgentPlan {
    let mut meters = Vec::new();
    for (at, (limit, lane)) in config.limits.iter().zip(lanes).enumerate() {
        let floors = rule.floors.iter().filter_map(|floor| floor.of_limit(limit));
        let floor = floors.fold(0, u64::saturating_add).min(lane.spec.effective);
        let shared = rule.caps.iter().filter(|cap| !matches!(cap.portion, Portion::Rate { .. }));
        let cap = shared.filter_map(|cap| cap.of_limit(limit)).min();
        if floor > 0 || cap.is_some() {
            let mut spec = lane.spec.clone();
            spec.effective = cap.map_or(u64::MAX, |cap| cap.max(1));
            let measures = Measures::Lane(u8::try_from(at).unwrap_or(u8::MAX));
            meters.push(Meter { measures, spec, floor, capped: cap.is_some() });
        }
    }
    meters.extend(rule.caps.iter().filter_map(|cap| cap_of_its_own(config, cap)));
    AgentPlan { tier: rule.priority.unwrap_or_default(), meters }
}

/// A cap given as a rate has a period of its own, whatever the pool's limits have.
fn cap_of_its_own(config: &PoolConfig, cap: &Share) -> Option<Meter> {
    let (Of::Unit(unit), Portion::Rate { amount, period }) = (&cap.of, cap.portion) else {
        return None;
    };
    let same_unit = config.limits.iter().find(|limit| limit.id().unit() == Some(unit));
    let spec = Spec {
        stated: amount,
        effective: amount,
        period: period + config.slack,
        refill: 0,
        charged: same_unit.map_or(Charged::Start, |limit| limit.charged),
        slack: config.slack,
    };
    Some(Meter { measures: Measures::Unit(unit.clone()), spec, floor: 0, capped: true })
}

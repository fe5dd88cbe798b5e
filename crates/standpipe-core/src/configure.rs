//! Putting a configuration into force: limits change, what was used stays.
//!
//! A limit stays the same while unit, kind and period do, and keeps its count. A new window takes
//! over what an older one of its unit knows; what is in flight counts on every new limit.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::{LimitId, PoolConfig, Resets};
use crate::event::{Configure, Key};
use crate::facts::Provenance;
use crate::lease::{Charge, Lease, Target};
use crate::outcome::{Answer, Configured, Reason};
use crate::plan::{Lane, LaneKind, Measures, Meter, Plan};
use crate::precedence::Weight;
use crate::state::{Index, State};
use crate::tally::{Count, Tally};
use crate::ticket::{Phase, Place};
use crate::time::Instant;

/// Where a new lane gets its count from.
#[derive(Clone, Copy)]
enum From {
    /// It is this old lane.
    Same(usize),
    /// It copies the entries of this old lane.
    Copy(usize),
    Nothing,
}

impl State {
    pub(crate) fn configure(&mut self, configure: &Configure, now: Instant) -> Answer {
        if let Err(invalid) = configure.config.check() {
            return Answer::Configured(Configured::Invalid(invalid));
        }
        Answer::Configured(match self.weigh(configure, now) {
            Weight::Same => Configured::Same,
            Weight::Kept => Configured::Kept,
            Weight::Applies(config, provenance) => {
                self.put_into_force(*config, provenance, now);
                Configured::Applied
            }
        })
    }

    /// Whether a configuration would change anything. One that would not need not be sent.
    #[must_use]
    pub fn would_configure(&self, configure: &Configure, now: Instant) -> bool {
        let weight = self.weigh(configure, now.max(self.facts.clock));
        configure.config.check().is_ok() && matches!(weight, Weight::Applies(..))
    }

    pub(crate) fn put_into_force(
        &mut self,
        config: PoolConfig,
        provenance: Provenance,
        now: Instant,
    ) {
        let old = core::mem::take(&mut self.index.plan);
        self.facts.trouble.obey(&config.policy);
        self.facts.trouble.told.truncate(bounds::LIMITS.saturating_sub(config.limits.len()));
        self.facts.outlook.obey(&config);
        let new = Plan::of(&config, &self.facts.trouble, &self.facts.outlook);
        self.facts.outlook.keep(|limit| new.lanes.iter().any(|lane| lane.id == *limit));
        if !config.policy.promotes {
            for agent in &mut self.facts.agents {
                (agent.denied, agent.promoted) = (None, None);
            }
        }
        let waiting = self.facts.tickets.iter().filter(|(_, ticket)| ticket.phase != Phase::Lapsed);
        let waiting: Vec<Place> = waiting.map(|(place, _)| *place).collect();
        for ticket in self.facts.tickets.values_mut() {
            (ticket.phase, ticket.aside) = (Phase::Lapsed, 0);
            if config.policy.comeback.is_none() {
                ticket.returns = Instant(0);
            }
        }
        let from: Vec<From> = new.lanes.iter().map(|lane| find(lane, &old.lanes)).collect();
        self.carry_lanes(&old, &new, &from, now);
        self.carry_meters(&config, &old, &new, &from);
        self.carry_charges(&config, &old, &new, &from, now);
        self.facts.config = Some(config);
        self.facts.provenance = provenance;
        self.facts.used = now;
        self.index = Index::of(&self.facts);
        self.set_gate();
        self.fill_what_was_forgotten(now);
        self.turn_out_impossible(now);
        self.stand_these(&waiting, now);
    }

    fn carry_lanes(&mut self, old: &Plan, new: &Plan, from: &[From], now: Instant) {
        let before = core::mem::take(&mut self.facts.lanes);
        let carried = new.lanes.iter().zip(from).map(|(lane, from)| match *from {
            From::Same(at) => {
                let mut tally = before[at].clone();
                let refill = old.lanes[at].spec.as_refill();
                if let Count::Bucket(bucket) = &mut tally.count {
                    bucket.rescale(now, refill, lane.spec.as_refill());
                }
                if lane.resets != Resets::Provider {
                    tally.reset = None;
                }
                tally
            }
            From::Copy(at) => Tally::new(before[at].count.clone()),
            From::Nothing => lane.fresh(),
        });
        self.facts.lanes = carried.collect();
    }

    fn carry_meters(&mut self, config: &PoolConfig, old: &Plan, new: &Plan, from: &[From]) {
        for (agent, load) in self.facts.agents.iter_mut().zip(&self.index.loads) {
            let before = core::mem::take(&mut agent.meters);
            let rule = config.agents.iter().position(|rule| rule.name == agent.name);
            let old_meters = load.rule.map_or(&[][..], |at| &old.agents[usize::from(at)].meters);
            let new_meters = rule.map_or(&[][..], |at| &new.agents[at].meters);
            let carried =
                new_meters.iter().map(|meter| match same_meter(meter, old_meters, from) {
                    Some(at) => before[at].clone(),
                    None => meter.fresh(&new.lanes),
                });
            agent.meters = carried.collect();
        }
    }

    fn carry_charges(
        &mut self,
        config: &PoolConfig,
        old: &Plan,
        new: &Plan,
        from: &[From],
        now: Instant,
    ) {
        for lease in self.facts.leases.values_mut() {
            let before = core::mem::take(&mut lease.charges);
            for (at, lane) in new.lanes.iter().enumerate() {
                let to = Target::Lane(u8::try_from(at).unwrap_or(u8::MAX));
                let tally = &mut self.facts.lanes[at];
                let charge = carry_charge(lane, from[at], to, tally, lease, &before, now);
                lease.charges.extend(charge);
            }
            let agent = &mut self.facts.agents[usize::from(lease.agent)];
            let load = self.index.loads[usize::from(lease.agent)];
            let rule = config.agents.iter().position(|rule| rule.name == agent.name);
            let old_meters = load.rule.map_or(&[][..], |at| &old.agents[usize::from(at)].meters);
            let new_meters = rule.map_or(&[][..], |at| &new.agents[at].meters);
            for (at, (meter, tally)) in new_meters.iter().zip(&mut agent.meters).enumerate() {
                let to = Target::Meter(u8::try_from(at).unwrap_or(u8::MAX));
                let known = same_meter(meter, old_meters, from)
                    .and_then(|at| charge_to(&before, meter_target(at)));
                let need = meter.need(&new.lanes, &lease.call.cost);
                match known {
                    Some(charge) => lease.charges.push(Charge { to, ..charge.clone() }),
                    None => lease.charges.push(Charge::take(to, tally, &meter.spec, need, now)),
                }
            }
        }
    }

    /// A waiting call that a lowered limit can never hold is told so.
    pub(crate) fn turn_out_impossible(&mut self, now: Instant) {
        let impossible = self.facts.tickets.iter().filter(|(place, ticket)| {
            let asker = self.asker_of(**place, ticket);
            self.stopped(&asker, now).is_some_and(|refusal| refusal.reason == Reason::Never)
        });
        let keys: Vec<Key> = impossible.map(|(_, ticket)| ticket.key).collect();
        self.end_tickets(Reason::Never, now, |ticket| keys.contains(&ticket.key));
    }
}

/// A lease's charge on a new lane: the one it had, the one it had on the lane this copies, or a new
/// one as of now.
fn carry_charge(
    lane: &Lane,
    from: From,
    to: Target,
    tally: &mut Tally,
    lease: &Lease,
    before: &[Charge],
    now: Instant,
) -> Option<Charge> {
    let need = lane.need(&lease.call.cost);
    match from {
        From::Same(old) => {
            charge_to(before, lane_target(old)).map(|charge| Charge { to, ..charge.clone() })
        }
        From::Copy(old) => charge_to(before, lane_target(old)).map(|charge| {
            tally.held = tally.held.saturating_add(charge.holds());
            Charge { to, ..charge.clone() }
        }),
        From::Nothing if lane.kind == LaneKind::Gate => None,
        From::Nothing => Some(Charge::take(to, tally, &lane.spec, need, now)),
    }
}

/// The old lane that a new one is, or takes over from.
fn find(lane: &Lane, old: &[Lane]) -> From {
    let gate = |lane: &Lane| lane.kind == LaneKind::Gate;
    let same = |other: &Lane| other.id == lane.id && gate(other) == gate(lane);
    if let Some(at) = old.iter().position(same) {
        return From::Same(at);
    }
    let LimitId::Window(unit, _) = &lane.id else { return From::Nothing };
    if gate(lane) {
        return From::Nothing;
    }
    let windows = old.iter().enumerate().filter(|(_, other)| {
        !gate(other) && matches!(&other.id, LimitId::Window(counted, _) if counted == unit)
    });
    match windows.max_by_key(|(_, other)| other.spec.period) {
        Some((at, _)) => From::Copy(at),
        None => From::Nothing,
    }
}

/// The number of the old meter that a new one is.
fn same_meter(meter: &Meter, old: &[Meter], from: &[From]) -> Option<usize> {
    old.iter().position(|other| match (&meter.measures, &other.measures) {
        (Measures::Lane(new), Measures::Lane(old)) => {
            matches!(from[usize::from(*new)], From::Same(at) if at == usize::from(*old))
        }
        (Measures::Unit(new), Measures::Unit(old)) => {
            new == old && meter.spec.period == other.spec.period
        }
        _ => false,
    })
}

fn charge_to(charges: &[Charge], to: Target) -> Option<&Charge> {
    charges.iter().find(|charge| charge.to == to)
}

fn lane_target(at: usize) -> Target {
    Target::Lane(u8::try_from(at).unwrap_or(u8::MAX))
}

fn meter_target(at: usize) -> Target {
    Target::Meter(u8::try_from(at).unwrap_or(u8::MAX))
}

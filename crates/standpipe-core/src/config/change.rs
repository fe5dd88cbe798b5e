//! Puts a configuration into force: limits change, what was used stays.
//!
//! An unchanged limit keeps its counter. A new or changed limit counts the remembered charges of
//! its unit as if it had always been in force; see `usage/history.rs`.

use alloc::vec::Vec;

use crate::agents::agent::Agent;
use crate::bounds;
use crate::config::compiled::{AgentUsage, CompiledConfig, Constraint, ConstraintKind, UsageOf};
use crate::config::precedence::Precedence;
use crate::config::{Headroom, LimitId, PoolConfig, Resets};
use crate::event::{Configure, Key};
use crate::facts::{Facts, Provenance};
use crate::lease::{Charge, Target};
use crate::outcome::{Answer, Configured, Reason};
use crate::provider::cascade::Cascade;
use crate::provider::learn::Learned;
use crate::provider::return_windows::Returning;
use crate::queue::ticket::{Phase, QueueKey};
use crate::rules::retry_budget::RetryUsage;
use crate::rules::zone::Zone;
use crate::state::{Index, State};
use crate::time::{Instant, Span};
use crate::unit::Unit;
use crate::usage::counter::{Count, CounterSpec, UsageCounter};
use crate::usage::history::{CountsFrom, Replayed, charges_of};
use crate::usage::money::Spending;

/// A counter under a new configuration.
struct Carried {
    /// The index of the old counter that it continues; otherwise it was replayed from history.
    same: Option<usize>,
    count: Replayed,
}

impl State {
    pub(crate) fn configure(&mut self, configure: &Configure, now: Instant) -> Answer {
        if let Err(invalid) = configure.config.check() {
            return Answer::Configured(Configured::Invalid(invalid));
        }
        Answer::Configured(match self.resolve(configure, now) {
            Precedence::Same => Configured::Same,
            Precedence::Kept => Configured::Kept,
            Precedence::Applies(config, provenance) => {
                self.install(*config, provenance, now);
                Configured::Applied
            }
        })
    }

    /// Whether a configuration would change anything. If not, it need not be sent.
    #[must_use]
    pub fn would_configure(&self, configure: &Configure, now: Instant) -> bool {
        let weight = self.resolve(configure, now.max(self.facts.clock));
        configure.config.check().is_ok() && matches!(weight, Precedence::Applies(..))
    }

    pub(crate) fn install(&mut self, config: PoolConfig, provenance: Provenance, now: Instant) {
        let old = core::mem::take(&mut self.index.compiled);
        self.facts.apply_policies(&config);
        let free = bounds::LIMITS.saturating_sub(config.limits.len());
        self.facts.learned.limits.truncate(free);
        let new = CompiledConfig::of(&config, &self.facts);
        let there = |limit: &LimitId| new.constraints.iter().any(|own| own.id == *limit);
        self.facts.auto_margins.retain(|margin| there(&margin.limit));
        self.facts.external.retain(|external| there(&external.limit));
        if !config.policy.promotes {
            for agent in &mut self.facts.agents {
                (agent.denied, agent.promoted) = (None, None);
            }
        }
        let waiting = self.facts.tickets.iter().filter(|(_, ticket)| ticket.phase != Phase::Lapsed);
        let waiting: Vec<QueueKey> = waiting.map(|(queue_key, _)| *queue_key).collect();
        for ticket in self.facts.tickets.values_mut() {
            (ticket.phase, ticket.earmarked) = (Phase::Lapsed, 0);
            if config.policy.comeback.is_none() {
                ticket.returns = Instant(0);
            }
        }
        if self.facts.config.as_ref().is_some_and(|before| config.enforce && !before.enforce) {
            self.facts.enforced = now;
        }
        self.carry_histories(&config, &new, now);
        let mut constraints = self.carry_constraints(&config, &old, &new, now);
        let mut usages = self.carry_usages(&config, &old, &new, now);
        self.carry_charges(&config, &new, &mut constraints, &mut usages, now);
        self.facts.counters =
            constraints.into_iter().map(|constraint| constraint.count.counter).collect();
        for (agent, carried) in self.facts.agents.iter_mut().zip(usages) {
            agent.usages = carried.into_iter().map(|usage| usage.count.counter).collect();
        }
        self.facts.config = Some(config);
        self.facts.provenance = provenance;
        self.facts.used = now;
        self.index = Index::of(&self.facts);
        self.set_gate();
        self.refuse_impossible(now);
        self.enqueue_these(&waiting, now);
        if self.is_shadow() {
            // In shadow mode every waiter is admitted with its next claim.
            self.effects.wake.extend(self.facts.tickets.values().map(|ticket| ticket.key));
        }
    }

    fn carry_constraints(
        &self,
        config: &PoolConfig,
        old: &CompiledConfig,
        new: &CompiledConfig,
        now: Instant,
    ) -> Vec<Carried> {
        let constraints = new.constraints.iter().map(|constraint| {
            match self.same_constraint(config, constraint, old) {
                Some(at) => {
                    let mut counter =
                        carried(&self.facts.counters[at], &old.constraints[at], constraint, now);
                    if self.facts.enforced == now {
                        counter.forgive_debt(now, &constraint.spec);
                    }
                    Carried { same: Some(at), count: Replayed::unchanged(counter) }
                }
                None => {
                    Carried { same: None, count: self.replay_constraint(constraint, old, new, now) }
                }
            }
        });
        constraints.collect()
    }

    /// The old constraint that a new one continues. A window that counts longer than before has
    /// forgotten too much, and a bucket with another refill has refilled wrongly: both are
    /// replayed.
    fn same_constraint(
        &self,
        config: &PoolConfig,
        constraint: &Constraint,
        old: &CompiledConfig,
    ) -> Option<usize> {
        let at = old.constraints.iter().position(|other| is_same_limit(constraint, other))?;
        let other = &old.constraints[at];
        let keeps = match constraint.id {
            _ if constraint.kind == ConstraintKind::Gate => true,
            LimitId::Window(..) => constraint.spec.period <= other.spec.period,
            LimitId::Bucket(..) => {
                let rule = |config: &PoolConfig| {
                    let limits = config.limits.iter();
                    limits
                        .clone()
                        .find(|limit| limit.id() == constraint.id)
                        .map(|limit| limit.rule.clone())
                };
                let before = self.facts.config.as_ref().and_then(rule);
                before == rule(config) && constraint.spec.period == other.spec.period
            }
            LimitId::Parallel | LimitId::Unanswered => true,
        };
        keeps.then_some(at)
    }

    fn replay_constraint(
        &self,
        constraint: &Constraint,
        old: &CompiledConfig,
        new: &CompiledConfig,
        now: Instant,
    ) -> Replayed {
        let history = self.history_of(constraint.id.unit(), constraint.spec.charged);
        let charges = history.and_then(|at| self.facts.units[at].charges());
        let lost = self.lost_within(constraint, new.lease_ttl, now);
        let since = CountsFrom { lost, enforced: self.facts.enforced };
        let mut replayed = Replayed::new(constraint.fresh(), &constraint.spec, charges, since, now);
        let forgiven = self.facts.enforced == now;
        if forgiven {
            return replayed;
        }
        if let Some(at) = old.constraints.iter().position(|other| is_same_limit(constraint, other))
        {
            replayed.keep_debt(
                &self.facts.counters[at],
                &old.constraints[at].spec,
                &constraint.spec,
                now,
            );
        }
        replayed
    }

    /// When the state was lost, and how long unknown leases may be in flight, if the limit has not
    /// recovered since.
    fn lost_within(
        &self,
        constraint: &Constraint,
        lease_ttl: Span,
        now: Instant,
    ) -> Option<(Instant, Span)> {
        let learned = match constraint.kind {
            ConstraintKind::Slots => lease_ttl,
            ConstraintKind::Rate | ConstraintKind::Gate => constraint.spec.remembers(),
        };
        let lost = self.facts.state_lost_at.filter(|_| constraint.limit().is_some())?;
        (now < lost + learned).then_some((lost, lease_ttl))
    }

    fn carry_usages(
        &self,
        config: &PoolConfig,
        old: &CompiledConfig,
        new: &CompiledConfig,
        now: Instant,
    ) -> Vec<Vec<Carried>> {
        let agents = self.facts.agents.iter().zip(&self.index.agent_loads);
        let each = agents.map(|(agent, load)| {
            let before = load.rule.map_or(&[][..], |at| &old.agents[usize::from(at)].usages);
            let usages = usages_for(config, new, agent).iter();
            let carried = usages.map(|usage| {
                let same = before.iter().position(|other| is_same_usage(usage, new, other, old));
                let count = match same {
                    Some(at) => Replayed::unchanged(agent.usages[at].clone()),
                    None => self.replay_usage(usage, new, agent, now),
                };
                Carried { same, count }
            });
            carried.collect()
        });
        each.collect()
    }

    fn replay_usage(
        &self,
        usage: &AgentUsage,
        new: &CompiledConfig,
        agent: &Agent,
        now: Instant,
    ) -> Replayed {
        let history = self.history_of(usage.unit(&new.constraints), usage.spec.charged);
        // An agent without a history of its own counts as if all charges were its own.
        let charges = history.and_then(|at| match agent.units.get(at) {
            Some(own) => charges_of(own),
            None => self.facts.units[at].charges(),
        });
        let since = CountsFrom { lost: None, enforced: self.facts.enforced };
        Replayed::new(usage.fresh(&new.constraints), &usage.spec, charges, since, now)
    }

    /// Carries what leases hold of constraints and usages. Histories are carried already.
    fn carry_charges(
        &mut self,
        config: &PoolConfig,
        new: &CompiledConfig,
        constraints: &mut [Carried],
        usages: &mut [Vec<Carried>],
        now: Instant,
    ) {
        let number = |unit: Option<&Unit>, spec: &CounterSpec| {
            self.history_of(unit, spec.charged).and_then(|at| u8::try_from(at).ok())
        };
        let of_constraints: Vec<_> = new
            .constraints
            .iter()
            .map(|constraint| number(constraint.id.unit(), &constraint.spec))
            .collect();
        let of_usages: Vec<Vec<_>> = self
            .facts
            .agents
            .iter()
            .map(|agent| {
                let usages = usages_for(config, new, agent).iter();
                usages.map(|usage| number(usage.unit(&new.constraints), &usage.spec)).collect()
            })
            .collect();
        let facts = &mut self.facts;
        for lease in facts.leases.values_mut() {
            let before = core::mem::take(&mut lease.charges);
            let cost = &lease.call.cost;
            for (at, (constraint, carried)) in
                (0_u8..).zip(new.constraints.iter().zip(&mut *constraints))
            {
                let remembered = of_constraints[usize::from(at)].map(Target::Unit);
                let of_gate = constraint.kind == ConstraintKind::Gate && carried.same.is_none();
                let part =
                    Part { to: Target::Constraint(at), need: constraint.need(cost), remembered };
                if !of_gate {
                    let charge =
                        carried.charge(part, &before, &constraint.spec, Target::Constraint, now);
                    lease.charges.extend(charge);
                }
            }
            let agent = &facts.agents[usize::from(lease.agent)];
            let own = usages_for(config, new, agent).iter();
            let carried = &mut usages[usize::from(lease.agent)];
            for (at, (usage, carried)) in (0_u8..).zip(own.zip(carried)) {
                let history = of_usages[usize::from(lease.agent)][usize::from(at)];
                let has_own = !agent.units.is_empty();
                let target = if has_own { Target::AgentUnit } else { Target::Unit };
                let need = usage.need(&new.constraints, cost);
                let part = Part { to: Target::Usage(at), need, remembered: history.map(target) };
                let charge = carried.charge(part, &before, &usage.spec, Target::Usage, now);
                lease.charges.extend(charge);
            }
            lease.charges.extend(before.into_iter().filter(|charge| charge.to.is_history()));
        }
    }

    /// Refuses waiting calls that a lowered limit can never hold.
    pub(crate) fn refuse_impossible(&mut self, now: Instant) {
        let impossible = self.facts.tickets.iter().filter(|(queue_key, ticket)| {
            let candidate = self.candidate_of(**queue_key, ticket);
            self.never_fits(&candidate).is_some()
        });
        let keys: Vec<Key> = impossible.map(|(_, ticket)| ticket.key).collect();
        self.end_tickets(Reason::Never, now, |ticket| keys.contains(&ticket.key));
    }
}

impl Facts {
    /// Drops what belongs to policies that a configuration does not have.
    pub(crate) fn apply_policies(&mut self, config: &PoolConfig) {
        let policy = &config.policy;
        if policy.comeback.is_none() {
            (self.returning, self.ramp) = (Returning::default(), None);
        }
        if !policy.cascade {
            self.cascade = Cascade::default();
        }
        if !policy.learn {
            self.learned = Learned::default();
        }
        if !policy.gates() {
            self.unanswered.clear();
        }
        if policy.retries.is_none() {
            self.retry_usage = RetryUsage::default();
        }
        if !policy.zones.are_on() {
            self.zone = Zone::Green;
        }
        if !policy.protects() {
            self.tier_activity = [None; 3];
        }
        if !policy.promotes {
            self.paused_total = Span::ZERO;
        }
        if config.headroom != Headroom::Auto {
            self.auto_margins.clear();
        }
        if !policy.reconciles {
            self.external.clear();
        }
        if !policy.estimates {
            self.sizes.clear();
        }
        if !policy.breaker {
            self.pre_emptive = false;
        }
        if config.prices.is_empty() {
            self.spending = Spending::default();
        }
    }
}

/// The part of a lease in one constraint or usage.
struct Part {
    to: Target,
    need: u64,
    /// Where the lease's charge of the unit is remembered.
    remembered: Option<Target>,
}

impl Carried {
    /// A lease's charge: the one it had, the remembered one, or a new one as of now.
    fn charge(
        &mut self,
        part: Part,
        before: &[Charge],
        spec: &CounterSpec,
        target: fn(u8) -> Target,
        now: Instant,
    ) -> Option<Charge> {
        let find = |to: Target| before.iter().find(|charge| charge.to == to);
        let Part { to, need, remembered } = part;
        if let Some(old) = self.same {
            let old = find(target(u8::try_from(old).unwrap_or(u8::MAX)))?;
            return Some(Charge { to, ..old.clone() });
        }
        Some(match remembered.and_then(find) {
            Some(remembered) => self.count.charge_of(to, remembered),
            None => Charge::take(to, &mut self.count.counter, spec, need, now),
        })
    }
}

/// The floors and caps that a configuration declares for an agent.
fn usages_for<'a>(
    config: &PoolConfig,
    compiled: &'a CompiledConfig,
    agent: &Agent,
) -> &'a [AgentUsage] {
    let rule = config.agents.iter().position(|rule| rule.name == agent.name);
    rule.map_or(&[], |rule| &compiled.agents[rule].usages)
}

/// The counter of an unchanged limit.
fn carried(
    counter: &UsageCounter,
    old: &Constraint,
    new: &Constraint,
    now: Instant,
) -> UsageCounter {
    let mut counter = counter.clone();
    if let Count::Bucket(bucket) = &mut counter.count {
        bucket.rescale(now, old.spec.as_refill(), new.spec.as_refill());
    }
    if new.resets != Resets::Provider {
        counter.reset = None;
    }
    counter
}

/// Whether two constraints are the same limit, or the pace of the same limit.
fn is_same_limit(constraint: &Constraint, other: &Constraint) -> bool {
    let gate = |constraint: &Constraint| constraint.kind == ConstraintKind::Gate;
    other.id == constraint.id && gate(other) == gate(constraint)
}

/// Whether a usage counts what an old one did, and no longer than that.
fn is_same_usage(
    usage: &AgentUsage,
    new: &CompiledConfig,
    other: &AgentUsage,
    old: &CompiledConfig,
) -> bool {
    let same = match (&usage.measures, &other.measures) {
        (UsageOf::Constraint(new_constraint), UsageOf::Constraint(old_constraint)) => {
            let (new, old) = (
                &new.constraints[usize::from(*new_constraint)],
                &old.constraints[usize::from(*old_constraint)],
            );
            is_same_limit(new, old)
        }
        (UsageOf::Unit(unit), UsageOf::Unit(known)) => unit == known,
        _ => false,
    };
    same && usage.spec.period <= other.spec.period
}

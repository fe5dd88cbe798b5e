//! Validates facts that come from outside, and the index in tests.
//!
//! Bytes that decode can still be nonsense; [`State::from_facts`] rejects them. [`State::check`]
//! computes the index again and compares.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::agents::agent::AgentId;
use crate::bounds;
use crate::config::compiled::{CompiledConfig, Constraint, ConstraintKind};
use crate::config::{Charged, LimitId, PoolConfig, Priority};
use crate::facts::Facts;
use crate::lease::{Charge, LeaseOwner, Target};
use crate::provider::cascade;

use crate::provider::learn::LearnedLimit;
use crate::queue::ticket::{Phase, QueueKey, Ticket};
use crate::rules::gate;
use crate::state::{Index, State, constraints_in};
use crate::time::Instant;
use crate::usage::counter::{Count, ResetPhase, UsageCounter};
use crate::usage::history::{charges_of, has_histories};
use crate::usage::window::Grain;

/// Why facts are not those of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidFacts(pub &'static str);

impl core::fmt::Display for InvalidFacts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "these facts cannot be a ledger's: {}", self.0)
    }
}

impl core::error::Error for InvalidFacts {}

type Checked = Result<(), InvalidFacts>;

impl State {
    /// Builds a ledger from facts.
    ///
    /// # Errors
    ///
    /// If the facts contradict each other or exceed a bound.
    pub fn from_facts(facts: Facts) -> Result<Self, InvalidFacts> {
        if let Some(config) = &facts.config {
            config.check().map_err(|_| InvalidFacts("its configuration is not valid"))?;
        }
        // Compiling the configuration calculates with these figures, so check them first.
        bounded(&facts)?;
        figures(&facts)?;
        let compiled = CompiledConfig::of_facts(&facts);
        policies(&facts)?;
        refusals(&facts, &compiled)?;
        forecasts(&facts, &compiled)?;
        constraints(&facts, &compiled)?;
        histories(&facts)?;
        agents(&facts, &compiled)?;
        leases(&facts, &compiled)?;
        tickets(&facts, &compiled)?;
        ids(&facts)?;
        let index = Index::of(&facts);
        let number = |at: usize| u8::try_from(at).unwrap_or(u8::MAX);
        let held = facts.counters.iter().enumerate().all(|(at, counter)| {
            let constraint = Target::Constraint(number(at));
            compiled.gate == Some(at) || counter.held == held_by_leases(&facts, constraint)
        });
        let remembered = facts.units.iter().enumerate().all(|(at, history)| {
            history.counter.held == held_by_leases(&facts, Target::Unit(number(at)))
        });
        ensure(held && remembered, "what is held is not what leases hold")?;
        let mut state = Self { facts, index, ..Self::default() };
        state.restrictions = state.restrictions_at(state.facts.clock);
        state.next = state.next_change(state.facts.clock);
        Ok(state)
    }

    /// Checks all invariants. For tests.
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let again = Self::from_facts(self.facts.clone()).map_err(|why| format!("{why}"))?;
        if again.index != self.index {
            return Err(format!("the index differs: {:?} not {:?}", self.index, again.index));
        }
        if again.restrictions != self.restrictions {
            return Err(format!(
                "the restrictions are {:?}, not {:?}",
                self.restrictions, again.restrictions
            ));
        }
        if again.next != self.next {
            return Err(format!("next is {:?}, not {:?}", self.next, again.next));
        }
        let now = self.facts.clock;
        for (at, constraint) in self.index.compiled.constraints.iter().enumerate() {
            let earmarked = &self.index.earmarks[at];
            let all: u64 = earmarked.by_tier.iter().sum();
            let counter = &self.facts.counters[at];
            let alone = counter.is_empty_at(now, &constraint.spec)
                || counter.probe_open_at(now, &constraint.spec);
            if all > counter.free_at(now, &constraint.spec)
                && !(alone && earmarked.holders.len() == 1)
            {
                return Err(format!(
                    "{all} earmarked on constraint {at}, more than is free: {counter:?}"
                ));
            }
        }
        let due = |ticket: &Ticket| matches!(ticket.phase, Phase::Due(_));
        for ticket in self.facts.tickets.values().filter(|ticket| due(ticket)) {
            for (at, constraint) in self.index.compiled.constraints.iter().enumerate() {
                if constraint.need(&ticket.call.cost) > 0 && ticket.earmarked & (1 << at) == 0 {
                    return Err(format!("due without its units: {ticket:?}"));
                }
            }
        }
        Ok(())
    }
}

const fn ensure(holds: bool, why: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(InvalidFacts(why)) }
}

fn bounded(facts: &Facts) -> Checked {
    let fits = facts.agents.len() <= bounds::AGENT_RECORDS
        && facts.sessions.len() <= bounds::SESSIONS_KEPT + 1
        && facts.leases.len() <= bounds::LEASES
        && facts.tickets.len() <= bounds::TICKETS
        && facts.ids.len() <= bounds::IDS + bounds::LEASES + bounds::TICKETS;
    ensure(fits && facts.arrivals < 1 << 62, "a bound is exceeded")?;
    let past = facts.sessions.values().all(|session| session.last_seen <= facts.clock)
        && facts.agents.iter().all(|agent| agent.active <= facts.clock)
        && facts.used.max(facts.enforced) <= facts.clock;
    ensure(past, "something happened after the last event")
}

/// Checks every figure that compiling the configuration calculates with.
fn figures(facts: &Facts) -> Checked {
    let limits = facts.config.as_ref().map_or(0, |config| config.limits.len());
    let refused = facts.learned.limits.len() + limits <= bounds::LIMITS
        && facts.learned.limits.iter().all(LearnedLimit::is_sound)
        && facts.learned.concurrency.is_none_or(|learned_concurrency| {
            (1..=bounds::AMOUNT).contains(&learned_concurrency.calls)
        })
        && facts.ramp.is_none_or(|ramp| (1..64).contains(&ramp.halvings));
    ensure(refused, "what is remembered of refusals is beyond bounds")?;
    let shares = facts.auto_margins.iter().all(|own| (500..=1_000).contains(&own.per_mille));
    let outside = facts
        .external
        .iter()
        .all(|own| own.gap.max(own.believed) <= bounds::AMOUNT && own.initial <= own.believed);
    ensure(shares && outside, "what is foreseen is beyond bounds")
}

fn constraints(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    ensure(
        facts.counters.len() == compiled.constraints.len(),
        "limits and counts differ in number",
    )?;
    for (counter, constraint) in facts.counters.iter().zip(&compiled.constraints) {
        let fits = match (&counter.count, constraint.kind) {
            (Count::Window(window), ConstraintKind::Rate) => window.grain() == Grain::Limit,
            (Count::Bucket(bucket), ConstraintKind::Rate) => {
                bucket.is_sound(constraint.spec.as_refill()) && bucket.facts().at <= facts.clock
            }
            (Count::Slots, ConstraintKind::Slots) => true,
            (Count::Slots, ConstraintKind::Gate) => constraint.id == LimitId::Unanswered,
            (Count::Gate { last }, ConstraintKind::Gate) => {
                last.is_none_or(|last| last <= facts.clock)
            }
            _ => false,
        };
        ensure(fits && same_kind(counter, constraint), "a count is not of its limit's kind")?;
        let carried = counter.reset.as_ref().map_or(0, |reset| match reset.phase {
            ResetPhase::Announced => 0,
            ResetPhase::Passed { carried }
            | ResetPhase::Probing { carried, .. }
            | ResetPhase::Spent { carried } => carried,
        });
        ensure(carried <= bounds::AMOUNT, "a reset carries too much")?;
        let passed = |at: Instant| at <= facts.clock;
        let announced = counter.reset.as_ref().is_none_or(|reset| {
            reset.phase != ResetPhase::Announced || !passed(reset.at) || reset.at == facts.clock
        });
        ensure(announced, "a reset was missed")?;
    }
    Ok(())
}

/// Checks that the histories of agents are those of the pool's units.
fn histories(facts: &Facts) -> Checked {
    let mut units = alloc::collections::BTreeSet::new();
    for history in &facts.units {
        let twice = !units.insert((&history.unit, history.charged == Charged::Start));
        ensure(!twice, "a unit is remembered twice")?;
        ensure(history.is_sound(), "a history that cannot be")?;
    }
    ensure(facts.units.len() <= 2 * bounds::UNIT_HISTORIES, "too many histories")?;
    for (at, agent) in facts.agents.iter().enumerate() {
        let own = if has_histories(at, facts.units.len()) { facts.units.len() } else { 0 };
        let coarse = |counter: &UsageCounter| {
            let plain = counter.reset.is_none() && counter.learning.is_none();
            plain && charges_of(counter).is_some_and(|own| own.grain() == Grain::Coarse)
        };
        let fits = agent.units.len() == own && agent.units.iter().all(coarse);
        ensure(fits, "an agent's histories are not those of its pool")?;
    }
    Ok(())
}

/// Checks that only policies in force have state.
fn policies(facts: &Facts) -> Checked {
    let unconfigured = PoolConfig::new(Vec::new());
    let config = facts.config.as_ref().unwrap_or(&unconfigured);
    let mut applied = Facts {
        returning: facts.returning.clone(),
        cascade: facts.cascade.clone(),
        ramp: facts.ramp,
        learned: facts.learned.clone(),
        unanswered: facts.unanswered.clone(),
        retry_usage: facts.retry_usage.clone(),
        zone: facts.zone,
        tier_activity: facts.tier_activity,
        paused_total: facts.paused_total,
        auto_margins: facts.auto_margins.clone(),
        external: facts.external.clone(),
        sizes: facts.sizes.clone(),
        pre_emptive: facts.pre_emptive,
        spending: facts.spending.clone(),
        ..Facts::default()
    };
    let before = applied.clone();
    applied.apply_policies(config);
    ensure(applied == before, "a policy that is not in force has state")
}

/// Checks what follows from refusals against the calls in flight and the known agents.
fn refusals(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let retries = [&facts.retry_usage.admissions, &facts.retry_usage.retries];
    let bounded = facts.cascade.throttled.len() <= cascade::AGENTS
        && retries.iter().all(|window| window.grain() == Grain::Agent);
    ensure(bounded, "what is remembered of refusals is beyond bounds")?;
    let known = |agent: &AgentId| usize::from(*agent) < facts.agents.len();
    let throttled = facts.cascade.throttled.iter().all(|(agent, _)| known(agent));
    ensure(throttled, "an unknown agent was throttled")?;
    let there = facts.unanswered.iter().all(|key| facts.leases.contains_key(key));
    ensure(there, "an unanswered call has no lease")?;
    let waited =
        compiled.gate.map(|gate| facts.counters.get(gate).map_or(0, |counter| counter.held));
    let counted = waited.is_none_or(|held| held == facts.unanswered.len() as u64);
    ensure(counted, "the gate does not count the unanswered calls")?;
    let open = gate::shut(facts).is_none();
    ensure(!open || facts.unanswered.is_empty(), "an open gate tracks calls")
}

/// Checks margins, outside use, sizes and spending against the limits and the known agents.
fn forecasts(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let rates = |limit: &LimitId| {
        compiled
            .constraints
            .iter()
            .any(|constraint| constraint.kind == ConstraintKind::Rate && constraint.id == *limit)
    };
    let warm =
        |limit: &LimitId| facts.auto_margins.iter().filter(|own| own.limit == *limit).count();
    let auto_margins =
        facts.auto_margins.iter().all(|own| rates(&own.limit) && warm(&own.limit) == 1);
    let seen = |limit: &LimitId| facts.external.iter().filter(|own| own.limit == *limit).count();
    let outside = facts.external.iter().all(|own| {
        let usage = own.charged.grain() == Grain::Agent;
        rates(&own.limit) && seen(&own.limit) == 1 && usage
    });
    ensure(auto_margins && outside, "it knows of limits that are not there")?;
    let known = |agent: &AgentId| usize::from(*agent) < facts.agents.len();
    let sizes = facts.sizes.keys().all(|(agent, _)| agent.as_ref().is_none_or(known));
    let bounded = facts.sizes.len() <= bounds::HISTOGRAMS + 2 * bounds::LIMITS;
    ensure(sizes && bounded, "sizes of nobody")?;
    let days = [&facts.spending.spent, &facts.spending.wasted]
        .iter()
        .all(|day| day.grain() == Grain::Agent);
    let past = facts.tier_activity.iter().flatten().all(|at| *at <= facts.clock);
    ensure(days && past && facts.paused_total.0 <= facts.clock.0, "a past that has not been")
}

fn same_kind(counter: &UsageCounter, constraint: &Constraint) -> bool {
    matches!(
        (&counter.count, &constraint.id),
        (Count::Window(_), LimitId::Window(..))
            | (Count::Bucket(_), LimitId::Bucket(..))
            | (Count::Slots, LimitId::Parallel | LimitId::Unanswered)
            | (Count::Gate { .. }, _)
    )
}

fn agents(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let mut names = alloc::collections::BTreeSet::new();
    for (number, agent) in facts.agents.iter().enumerate() {
        ensure(names.insert(&agent.name), "an agent is there twice")?;
        let past = agent.admitted.into_iter().chain(agent.denied.map(|denied| denied.last));
        ensure(past.into_iter().all(|at| at <= facts.clock), "an agent of the future")?;
        let denied = agent.denied.is_some() || agent.promoted.is_some();
        ensure(compiled.promotes || !denied, "nobody is denied where nobody is promoted")?;
        let arrived =
            agent.promoted.is_none_or(|promoted| (1..=facts.arrivals).contains(&promoted.arrival));
        ensure(arrived, "promoted without an arrival")?;
        let ticket = agent.promoted.and_then(|promoted| promoted.ticket);
        let stands = ticket.is_none_or(|key| {
            let mut tickets = facts.tickets.iter();
            tickets.any(|(queue_key, ticket)| {
                let its = ticket.key == key && usize::from(ticket.agent) == number;
                its && queue_key.tier == Priority::Standard
            })
        });
        ensure(stands, "promoted without a ticket")?;
        let rules = facts.config.iter().flat_map(|config| &config.agents);
        let rule = rules.into_iter().position(|rule| rule.name == agent.name);
        let usages = rule.map_or(&[][..], |rule| &compiled.agents[rule].usages);
        ensure(agent.usages.len() == usages.len(), "an agent's usages are not its rule's")?;
        for (counter, usage) in agent.usages.iter().zip(usages) {
            let fits = match (&counter.count, &usage.fresh(&compiled.constraints).count) {
                (Count::Window(window), Count::Window(_)) => window.grain() == Grain::Agent,
                (Count::Slots, Count::Slots) => true,
                _ => false,
            };
            let plain = counter.reset.is_none() && counter.learning.is_none();
            ensure(fits && plain, "a usage is not of its kind")?;
        }
    }
    Ok(())
}

fn leases(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let mut held = alloc::vec![0_u64; facts.agents.len()];
    for lease in facts.leases.values() {
        let Some(agent) = facts.agents.get(usize::from(lease.agent)) else {
            return Err(InvalidFacts("a lease of nobody"));
        };
        for charge in &lease.charges {
            let (there, gate) = match charge.to {
                Target::Constraint(at) => {
                    let constraint = compiled.constraints.get(usize::from(at));
                    (
                        constraint.is_some(),
                        constraint
                            .is_some_and(|constraint| constraint.kind == ConstraintKind::Gate),
                    )
                }
                Target::Usage(at) => (usize::from(at) < agent.usages.len(), false),
                Target::Unit(at) => (usize::from(at) < facts.units.len(), false),
                Target::AgentUnit(at) => (usize::from(at) < agent.units.len(), false),
            };
            ensure(there, "a charge to nothing")?;
            let figures = [charge.estimate, charge.charged].iter().all(|n| *n <= bounds::AMOUNT);
            ensure(figures && !(gate && charge.when == Charged::End), "a charge beyond bounds")?;
            if let Target::Usage(_) | Target::AgentUnit(_) = charge.to {
                held[usize::from(lease.agent)] += charge.holds();
            }
        }
        if let LeaseOwner::Session(session) = lease.owner {
            ensure(facts.sessions.contains_key(&session), "a lease of a session not known")?;
        }
        ensure(lease.progressed <= facts.clock, "a lease of the future")?;
    }
    for (agent, held) in facts.agents.iter().zip(held) {
        let counters = agent.usages.iter().chain(&agent.units);
        let limited = counters.map(|counter| counter.held).fold(0, u64::saturating_add);
        ensure(limited == held, "what usages hold is not what leases hold")?;
    }
    Ok(())
}

fn held_by_leases(facts: &Facts, target: Target) -> u64 {
    let charges = facts.leases.values().flat_map(|lease| &lease.charges);
    let its = charges.filter(|charge| charge.to == target);
    its.map(Charge::holds).fold(0, u64::saturating_add)
}

fn tickets(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let mut keys = alloc::collections::BTreeSet::new();
    for (queue_key, ticket) in &facts.tickets {
        let QueueKey { arrival, .. } = *queue_key;
        ensure((1..=facts.arrivals).contains(&arrival), "a ticket that never came")?;
        ensure(usize::from(ticket.agent) < facts.agents.len(), "a ticket of nobody")?;
        let fresh = keys.insert(ticket.key) && !facts.leases.contains_key(&ticket.key);
        ensure(fresh, "two things of one name")?;
        ensure(ticket.since <= facts.clock, "a ticket of the future")?;
        let needs = |at: usize| {
            compiled
                .constraints
                .get(at)
                .is_some_and(|constraint| constraint.need(&ticket.call.cost) > 0)
        };
        ensure(constraints_in(ticket.earmarked).all(needs), "units earmarked for nothing")?;
        let stands = match ticket.phase {
            Phase::Line(at) => {
                let at = usize::from(at);
                needs(at) && ticket.earmarked & (1 << at) == 0
            }
            Phase::Due(since) => since <= facts.clock,
            Phase::Held { .. } | Phase::Lapsed | Phase::TooLate => ticket.earmarked == 0,
        };
        ensure(stands, "a ticket is in a phase that it cannot be in")?;
        if let Some(session) = ticket.session {
            ensure(facts.sessions.contains_key(&session), "a ticket of a session not known")?;
        }
    }
    Ok(())
}

fn ids(facts: &Facts) -> Checked {
    let tickets: alloc::collections::BTreeSet<_> =
        facts.tickets.values().map(|ticket| ticket.key).collect();
    for known in facts.ids.values() {
        let lives = facts.leases.contains_key(&known.first) || tickets.contains(&known.first);
        let ended = known.ended.is_some_and(|ended| ended <= facts.clock);
        ensure(ended || known.ended.is_none() && lives, "an id of nothing")?;
    }
    Ok(())
}

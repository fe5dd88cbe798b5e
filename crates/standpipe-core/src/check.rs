//! Validates facts that come from outside, and the index in tests.
//!
//! Bytes that decode can still be nonsense; [`State::from_facts`] rejects them. [`State::check`]
//! computes the index again and compares.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::bounds;
use crate::config::compiled::{CompiledConfig, Constraint, ConstraintKind};
use crate::config::policy::CascadeThreshold;
use crate::config::{Charged, LimitId, PoolConfig, Priority};
use crate::facts::Facts;
use crate::id::{AgentId, ConstraintId};
use crate::lease::LeaseOwner;

use crate::provider::learn::LearnedLimit;
use crate::queue::fair::TAGS;
use crate::queue::ticket::{Phase, QueueKey, Ticket};
use crate::rules::gate;
use crate::state::{Index, State};
use crate::time::{Instant, Span};
use crate::usage::calendar::Calendar;
use crate::usage::counter::{Count, ResetPhase, UsageCounter};
use crate::usage::history::Resolution;
use crate::usage::unit_usage::has_histories;

/// The resolution of what is counted beside the units.
const BY_AGENT: Resolution<'_> =
    Resolution { periods: &[bounds::SPAN], slices: bounds::AGENT_SLICES };

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
        refusals(&facts)?;
        forecasts(&facts, &compiled)?;
        constraints(&facts, &compiled)?;
        units(&facts, &compiled)?;
        agents(&facts, &compiled)?;
        leases(&facts, &compiled)?;
        tickets(&facts, &compiled)?;
        ids(&facts)?;
        let index = Index::of(&facts);
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
        for (at, constraint) in self.index.compiled.constraints.rows() {
            let earmarked = &self.index.earmarks[at];
            let all: u64 = earmarked.by_tier.iter().sum();
            let usage = self.usage(at);
            let alone = usage.is_empty_at(now) || usage.probe_open_at(now);
            if all > usage.free_at(now) && !(alone && earmarked.holders.len() == 1) {
                return Err(format!(
                    "{all} earmarked on {at:?}, more than is free: {constraint:?}"
                ));
            }
        }
        let due = |ticket: &Ticket| matches!(ticket.phase, Phase::Due(_));
        for ticket in self.facts.tickets.values().filter(|ticket| due(ticket)) {
            for (at, constraint) in self.index.compiled.constraints.rows() {
                if constraint.need(&ticket.call.cost) > 0 && !ticket.earmarked.contains(at) {
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
    let time = facts.virtual_time.iter().all(|time| *time < TAGS);
    ensure(fits && time && facts.arrivals < 1 << 62, "a bound is exceeded")?;
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
    let shares = facts.auto_margins.iter().all(|own| own.per_mille <= 500);
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
        let past = |at: Instant| at <= facts.clock;
        let fits = match (&counter.count, constraint.kind, &constraint.id) {
            (Count::Window { began }, ConstraintKind::Rate, LimitId::Window(..)) => {
                began.is_none_or(|began| past(began.at) && began.carried <= bounds::AMOUNT)
            }
            (Count::Bucket(bucket), ConstraintKind::Rate, LimitId::Bucket(..)) => {
                past(bucket.at) && bucket.missing <= u128::MAX / 2
            }
            (Count::Slots, ConstraintKind::Slots, _) => true,
            (Count::Slots, ConstraintKind::Gate, id) => *id == LimitId::Unanswered,
            (Count::Pace { last }, ConstraintKind::Gate, _) => last.is_none_or(past),
            _ => false,
        };
        ensure(fits, "a count is not of its limit's kind")?;
        let paced = counter.spread.is_none_or(|own| past(own.at) && own.missing <= u128::MAX / 2);
        let has = counter.spread.is_some() == constraint.has_spread_bucket();
        ensure(paced && has, "the pace of a limit is not its policy's")?;
        let carried = counter.reset.as_ref().map_or(0, |reset| match reset.phase {
            ResetPhase::Announced => 0,
            ResetPhase::Passed { carried }
            | ResetPhase::Probing { carried, .. }
            | ResetPhase::Spent { carried } => carried,
        });
        ensure(carried <= bounds::AMOUNT, "a reset carries too much")?;
        let days = calendar_is_sound(counter, constraint, facts.clock);
        ensure(days, "a calendar is not of its limit, or a reset was missed")?;
        let announced = counter.reset.as_ref().is_none_or(|reset| {
            reset.phase != ResetPhase::Announced || !past(reset.at) || reset.at == facts.clock
        });
        ensure(announced, "a reset was missed")?;
    }
    Ok(())
}

fn calendar_is_sound(counter: &UsageCounter, constraint: &Constraint, clock: Instant) -> bool {
    let Calendar { last, next } = counter.calendar;
    let ordered = [last, next].into_iter().flatten().all(|own| own.earliest <= own.latest);
    let ahead = next.is_none_or(|next| next.releases(&constraint.spec) >= clock);
    let past = last.is_none_or(|last| last.latest <= clock);
    let none = last.is_none() && next.is_none();
    ordered && ahead && past && (none || constraint.resets.is_calendar())
}

/// Checks that the units are those that the configuration counts, and the histories of agents those
/// of the pool's units.
fn units(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let mut units = alloc::collections::BTreeSet::new();
    for (usage, periods) in facts.units.iter().zip(&compiled.units) {
        let twice = !units.insert((&usage.unit, usage.charged == Charged::Start));
        ensure(!twice, "a unit is counted twice")?;
        let kept = usage.kept_for();
        ensure(kept <= bounds::SPAN && kept > Span::ZERO, "a unit is counted for no time")?;
        let known = usage.history.last_mark() < usage.next_mark && usage.next_mark < 1 << 62;
        let fits = usage.history.is_within(periods.of_pool(), facts.clock);
        ensure(known && fits, "a history exceeds its resolution")?;
    }
    ensure(facts.units.len() <= 2 * bounds::UNIT_HISTORIES, "too many histories")?;
    for (at, agent) in facts.agents.rows() {
        let has_rule = facts.config.as_ref().is_some_and(|own| own.agent(&agent.name).is_some());
        let has = has_rule || has_histories(at, facts.units.len());
        let own = if has { facts.units.len() } else { 0 };
        let mut histories = agent.units.iter().zip(facts.units.iter().zip(&compiled.units));
        let fits = histories.all(|(own, (usage, periods))| {
            let known = own.history.last_mark() < usage.next_mark;
            known && own.history.is_within(periods.of_agent(), facts.clock)
        });
        ensure(agent.units.len() == own && fits, "an agent's histories are not its pool's")?;
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
        tier_activity: facts.tier_activity,
        paused_total: facts.paused_total,
        virtual_time: facts.virtual_time,
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
fn refusals(facts: &Facts) -> Checked {
    let retries = [&facts.retry_usage.admissions, &facts.retry_usage.retries];
    let bounded = facts.cascade.throttled.len() <= usize::from(CascadeThreshold::MAX_AGENTS)
        && retries.iter().all(|history| history.is_within(BY_AGENT, facts.clock));
    ensure(bounded, "what is remembered of refusals is beyond bounds")?;
    let order = facts.throttling.order.as_ref();
    let running = |at: Instant| facts.pause.is_some() && at <= facts.clock;
    ensure(order.is_none_or(|order| running(order.at)), "no pause runs that was ordered")?;
    let known = |agent: &AgentId| usize::from(*agent) < facts.agents.len();
    let throttled = facts.cascade.throttled.iter().all(|(agent, _)| known(agent));
    ensure(throttled, "an unknown agent was throttled")?;
    let there = facts.unanswered.iter().all(|key| facts.leases.contains_key(key));
    ensure(there, "an unanswered call has no lease")?;
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
        let usage = own.charged.is_within(BY_AGENT, facts.clock);
        rates(&own.limit) && seen(&own.limit) == 1 && usage
    });
    ensure(auto_margins && outside, "margins or outside use of unknown limits")?;
    let known = |agent: &AgentId| usize::from(*agent) < facts.agents.len();
    let sizes = facts.sizes.keys().all(|(agent, _)| agent.as_ref().is_none_or(known));
    let bounded = facts.sizes.len() <= bounds::HISTOGRAMS + 2 * bounds::LIMITS;
    ensure(sizes && bounded, "sizes of an unknown agent")?;
    let days = [&facts.spending.spent, &facts.spending.wasted]
        .iter()
        .all(|day| day.is_within(BY_AGENT, facts.clock));
    let past = facts.tier_activity.iter().flatten().all(|at| *at <= facts.clock);
    ensure(
        days && past && facts.paused_total.0 <= facts.clock.0,
        "spending, activity or pauses lie in the future",
    )
}

fn agents(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let mut names = alloc::collections::BTreeSet::new();
    for (number, agent) in facts.agents.rows() {
        ensure(names.insert(&agent.name), "an agent is there twice")?;
        let past = agent.admitted.into_iter().chain(agent.denied.map(|denied| denied.last));
        ensure(past.into_iter().all(|at| at <= facts.clock), "an agent was active in the future")?;
        let denied = agent.denied.is_some() || agent.promoted.is_some();
        ensure(compiled.promotes || !denied, "an agent is denied although promotion is off")?;
        let promoted = agent.promoted.map_or(0, |promoted| promoted.tag);
        ensure(tags_fit(agent.tags.into_iter().chain([promoted]), compiled), OUT_OF_RANGE)?;
        let arrived =
            agent.promoted.is_none_or(|promoted| (1..=facts.arrivals).contains(&promoted.arrival));
        ensure(arrived, "promoted without an arrival")?;
        let ticket = agent.promoted.and_then(|promoted| promoted.ticket);
        let stands = ticket.is_none_or(|key| {
            let mut tickets = facts.tickets.iter();
            tickets.any(|(queue_key, ticket)| {
                let its = ticket.key == key && ticket.agent == number;
                its && queue_key.tier == Priority::Standard
            })
        });
        ensure(stands, "promoted without a ticket")?;
    }
    Ok(())
}

const OUT_OF_RANGE: &str = "a fair tag is out of range";

/// Whether tags leave room for all tickets, and are zero in order of arrival.
fn tags_fit(tags: impl IntoIterator<Item = u64>, compiled: &CompiledConfig) -> bool {
    tags.into_iter().all(|tag| tag == 0 || compiled.fair && tag < TAGS)
}

fn leases(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let mut held = alloc::vec![0_u64; facts.units.len()];
    let mut of_agents: Vec<Vec<u64>> =
        facts.agents.iter().map(|agent| alloc::vec![0; agent.units.len()]).collect();
    for lease in facts.leases.values() {
        let Some(of_agent) = of_agents.get_mut(usize::from(lease.agent)) else {
            return Err(InvalidFacts("a lease of an unknown agent"));
        };
        ensure(lease.charges.len() == facts.units.len(), "a lease is not charged to all units")?;
        for (at, charge) in lease.charges.iter().enumerate() {
            let figures = [charge.estimate, charge.charged].iter().all(|n| *n <= bounds::AMOUNT);
            ensure(figures && usize::from(charge.unit) == at, "a charge is out of range")?;
            held[at] = held[at].saturating_add(charge.holds());
            if let Some(own) = of_agent.get_mut(at) {
                *own = own.saturating_add(charge.holds());
            }
        }
        let left = lease.left.is_empty() || lease.left.len() == compiled.constraints.len();
        ensure(left, "what was left is of other limits")?;
        if let LeaseOwner::Session(session) = lease.owner {
            ensure(facts.sessions.contains_key(&session), "a lease of a session not known")?;
        }
        ensure(lease.progressed <= facts.clock, "a lease began in the future")?;
    }
    let pool = facts.units.iter().map(|usage| usage.held).eq(held);
    let agents = facts.agents.iter().zip(&of_agents);
    let mut agents =
        agents.map(|(agent, held)| agent.units.iter().map(|own| own.held).eq(held.iter().copied()));
    ensure(pool && agents.all(|same| same), "what is held is not what leases hold")
}

fn tickets(facts: &Facts, compiled: &CompiledConfig) -> Checked {
    let mut keys = alloc::collections::BTreeSet::new();
    for (queue_key, ticket) in &facts.tickets {
        let QueueKey { arrival, .. } = *queue_key;
        ensure((1..=facts.arrivals).contains(&arrival), "a ticket without an arrival")?;
        ensure(tags_fit([ticket.start, queue_key.tag], compiled), OUT_OF_RANGE)?;
        ensure(usize::from(ticket.agent) < facts.agents.len(), "a ticket of an unknown agent")?;
        let fresh = keys.insert(ticket.key) && !facts.leases.contains_key(&ticket.key);
        ensure(fresh, "a ticket and a lease have the same key")?;
        ensure(ticket.since <= facts.clock, "a ticket was queued in the future")?;
        let needs = |at: ConstraintId| {
            compiled
                .constraints
                .row(at)
                .is_some_and(|constraint| constraint.need(&ticket.call.cost) > 0)
        };
        ensure(ticket.earmarked.iter().all(needs), "units earmarked for nothing")?;
        let stands = match ticket.phase {
            Phase::Line(at) => needs(at) && !ticket.earmarked.contains(at),
            Phase::Due(until) => until > facts.clock,
            Phase::Held { .. } | Phase::Lapsed | Phase::TooLate => ticket.earmarked.is_empty(),
        };
        ensure(stands, "a ticket's phase contradicts its earmarks")?;
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
        ensure(ended || known.ended.is_none() && lives, "an id without a call")?;
    }
    Ok(())
}

//! Whether facts can be a ledger's, and whether a ledger is in order.
//!
//! The first guards what comes from outside: bytes that decode may still be nonsense. The second is
//! for tests: it works the index out anew and compares.

use alloc::format;
use alloc::string::String;

use crate::agent::AgentId;
use crate::bounds;
use crate::cascade;
use crate::config::{Charged, LimitId, Priority};
use crate::facts::Facts;
use crate::gate;
use crate::lease::{Charge, Holder, Target};
use crate::outlook::Outlook;
use crate::plan::{Lane, LaneKind, Plan};
use crate::policy::Policy;
use crate::state::{Index, State, lanes_of};
use crate::tally::{Count, ResetPhase, Tally};
use crate::ticket::{Phase, Place, Ticket};
use crate::time::Instant;
use crate::trouble::Told;
use crate::window::Grain;

/// Why facts cannot be a ledger's.
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
    /// A ledger that knows these facts.
    ///
    /// # Errors
    /// When they contradict each other or exceed a bound.
    pub fn from_facts(facts: Facts) -> Result<Self, InvalidFacts> {
        if let Some(config) = &facts.config {
            config.check().map_err(|_| InvalidFacts("its configuration is not valid"))?;
        }
        let plan = Plan::of_facts(&facts);
        bounded(&facts)?;
        trouble(&facts, &plan)?;
        outlook(&facts, &plan)?;
        lanes(&facts, &plan)?;
        agents(&facts, &plan)?;
        leases(&facts, &plan)?;
        tickets(&facts, &plan)?;
        ids(&facts)?;
        let index = Index::of(&facts);
        let held =
            facts.lanes.iter().enumerate().all(|(at, tally)| {
                plan.gate == Some(at) || tally.held == held_by_leases(&facts, at)
            });
        ensure(held, "what is held is not what leases hold")?;
        let mut state = Self { facts, index, ..Self::default() };
        state.light = state.light_at(state.facts.clock);
        state.next = state.next_change(state.facts.clock);
        Ok(state)
    }

    /// Whether everything that should hold, does. For tests.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), String> {
        let again = Self::from_facts(self.facts.clone()).map_err(|why| format!("{why}"))?;
        if again.index != self.index {
            return Err(format!("the index differs: {:?} not {:?}", self.index, again.index));
        }
        if again.light != self.light {
            return Err(format!("the light is {:?}, not {:?}", self.light, again.light));
        }
        if again.next != self.next {
            return Err(format!("next is {:?}, not {:?}", self.next, again.next));
        }
        let now = self.facts.clock;
        for (at, lane) in self.index.plan.lanes.iter().enumerate() {
            let aside = &self.index.asides[at];
            let all: u64 = aside.by_tier.iter().sum();
            let tally = &self.facts.lanes[at];
            let alone = tally.is_empty_at(now, &lane.spec) || tally.probe_open_at(now, &lane.spec);
            if all > tally.free_at(now, &lane.spec) && !(alone && aside.holders.len() == 1) {
                return Err(format!("{all} set aside on lane {at}, more than is free: {tally:?}"));
            }
        }
        let due = |ticket: &Ticket| matches!(ticket.phase, Phase::Due(_));
        for ticket in self.facts.tickets.values().filter(|ticket| due(ticket)) {
            for (at, lane) in self.index.plan.lanes.iter().enumerate() {
                if lane.need(&ticket.call.cost) > 0 && ticket.aside & (1 << at) == 0 {
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
    let fits = facts.agents.len() <= bounds::AGENTS
        && facts.sessions.len() <= bounds::SESSIONS_KEPT + 1
        && facts.leases.len() <= bounds::LEASES
        && facts.tickets.len() <= bounds::TICKETS
        && facts.ids.len() <= bounds::IDS + bounds::LEASES + bounds::TICKETS;
    ensure(fits && facts.arrivals < 1 << 62, "a bound is exceeded")?;
    let past = facts.sessions.values().all(|session| session.heard <= facts.clock)
        && facts.agents.iter().all(|agent| agent.active <= facts.clock)
        && facts.used <= facts.clock;
    ensure(past, "something was heard after the last event")
}

fn lanes(facts: &Facts, plan: &Plan) -> Checked {
    ensure(facts.lanes.len() == plan.lanes.len(), "limits and counts differ in number")?;
    for (tally, lane) in facts.lanes.iter().zip(&plan.lanes) {
        let fits = match (&tally.count, lane.kind) {
            (Count::Window(window), LaneKind::Rate) => window.grain() == Grain::Limit,
            (Count::Bucket(bucket), LaneKind::Rate) => {
                bucket.is_sound(lane.spec.as_refill()) && bucket.facts().at <= facts.clock
            }
            (Count::Slots, LaneKind::Slots) => true,
            (Count::Slots, LaneKind::Gate) => lane.id == LimitId::Unanswered,
            (Count::Gate { last }, LaneKind::Gate) => last.is_none_or(|last| last <= facts.clock),
            _ => false,
        };
        ensure(fits && same_kind(tally, lane), "a count is not of its limit's kind")?;
        let carried = tally.reset.as_ref().map_or(0, |reset| match reset.phase {
            ResetPhase::Announced => 0,
            ResetPhase::Passed { carried }
            | ResetPhase::Probing { carried, .. }
            | ResetPhase::Spent { carried } => carried,
        });
        ensure(carried <= bounds::AMOUNT, "a reset carries too much")?;
        let passed = |at: Instant| at <= facts.clock;
        let announced = tally.reset.as_ref().is_none_or(|reset| {
            reset.phase != ResetPhase::Announced || !passed(reset.at) || reset.at == facts.clock
        });
        ensure(announced, "a reset was missed")?;
    }
    Ok(())
}

/// What is remembered of refusals fits what the pool was told, and what is in flight.
fn trouble(facts: &Facts, plan: &Plan) -> Checked {
    let trouble = &facts.trouble;
    let mut obeyed = trouble.clone();
    let policy = facts.config.as_ref().map_or(&Policy::NONE, |config| &config.policy);
    obeyed.obey(policy);
    ensure(obeyed == *trouble, "it remembers what its policy does not ask for")?;
    let limits = facts.config.as_ref().map_or(0, |config| config.limits.len());
    let bounded = trouble.refused.len() <= cascade::AGENTS
        && trouble.told.len() + limits <= bounds::LIMITS
        && trouble.told.iter().all(Told::is_sound)
        && trouble.bears.is_none_or(|bears| (1..=bounds::AMOUNT).contains(&bears.calls))
        && trouble.ramp.is_none_or(|ramp| (1..64).contains(&ramp.halvings))
        && [&trouble.admissions, &trouble.retries].iter().all(|few| few.grain() == Grain::Meter);
    ensure(bounded, "what is remembered of refusals is beyond bounds")?;
    let known = |agent: &AgentId| usize::from(*agent) < facts.agents.len();
    ensure(trouble.refused.iter().all(|(agent, _)| known(agent)), "a refusal of nobody")?;
    let there = trouble.unanswered.iter().all(|key| facts.leases.contains_key(key));
    ensure(there, "an answer is awaited of nobody")?;
    let waited = plan.gate.map(|gate| facts.lanes.get(gate).map_or(0, |tally| tally.held));
    let counted = waited.is_none_or(|held| held == trouble.unanswered.len() as u64);
    ensure(counted, "the gate does not count those whose answers are awaited")?;
    let open = gate::shut(facts).is_none();
    ensure(!open || trouble.unanswered.is_empty(), "an open gate waits for nobody")
}

/// What is foreseen fits what the pool was told, and who is there.
fn outlook(facts: &Facts, plan: &Plan) -> Checked {
    let outlook = &facts.outlook;
    let mut obeyed = outlook.clone();
    match &facts.config {
        Some(config) => obeyed.obey(config),
        None => obeyed = Outlook::default(),
    }
    ensure(obeyed == *outlook, "it foresees what its policy does not ask for")?;
    let rates = |limit: &LimitId| {
        plan.lanes.iter().any(|lane| lane.kind == LaneKind::Rate && lane.id == *limit)
    };
    let warm = |limit: &LimitId| outlook.warmth.iter().filter(|own| own.limit == *limit).count();
    let warmth = outlook.warmth.iter().all(|own| {
        rates(&own.limit) && warm(&own.limit) == 1 && (500..=1_000).contains(&own.per_mille)
    });
    let seen = |limit: &LimitId| outlook.outside.iter().filter(|own| own.limit == *limit).count();
    let outside = outlook.outside.iter().all(|own| {
        let meter = own.charged.grain() == Grain::Meter
            && own.gap.max(own.standing) <= bounds::AMOUNT
            && own.early <= own.standing;
        rates(&own.limit) && seen(&own.limit) == 1 && meter
    });
    ensure(warmth && outside, "it knows of limits that are not there")?;
    let known = |agent: &AgentId| usize::from(*agent) < facts.agents.len();
    let sizes = outlook.sizes.keys().all(|(agent, _)| agent.as_ref().is_none_or(known));
    let bounded = outlook.sizes.len() <= bounds::HISTOGRAMS + 2 * bounds::LIMITS;
    ensure(sizes && bounded, "sizes of nobody")?;
    let days = [&outlook.spent, &outlook.wasted].iter().all(|day| day.grain() == Grain::Meter);
    let past = outlook.active.iter().flatten().all(|at| *at <= facts.clock);
    ensure(days && past && outlook.paused.0 <= facts.clock.0, "a past that has not been")
}

fn same_kind(tally: &Tally, lane: &Lane) -> bool {
    matches!(
        (&tally.count, &lane.id),
        (Count::Window(_), LimitId::Window(..))
            | (Count::Bucket(_), LimitId::Bucket(..))
            | (Count::Slots, LimitId::Parallel | LimitId::Unanswered)
            | (Count::Gate { .. }, _)
    )
}

fn agents(facts: &Facts, plan: &Plan) -> Checked {
    let mut names = alloc::collections::BTreeSet::new();
    for (number, agent) in facts.agents.iter().enumerate() {
        ensure(names.insert(&agent.name), "an agent is there twice")?;
        let past = agent.admitted.into_iter().chain(agent.denied.map(|denied| denied.last));
        ensure(past.into_iter().all(|at| at <= facts.clock), "an agent of the future")?;
        let denied = agent.denied.is_some() || agent.promoted.is_some();
        ensure(plan.promotes || !denied, "nobody is denied where nobody is promoted")?;
        let arrived =
            agent.promoted.is_none_or(|promoted| (1..=facts.arrivals).contains(&promoted.arrival));
        ensure(arrived, "promoted without an arrival")?;
        let ticket = agent.promoted.and_then(|promoted| promoted.ticket);
        let stands = ticket.is_none_or(|key| {
            let mut tickets = facts.tickets.iter();
            tickets.any(|(place, ticket)| {
                let its = ticket.key == key && usize::from(ticket.agent) == number;
                its && place.tier == Priority::Standard
            })
        });
        ensure(stands, "promoted without a ticket")?;
        let rules = facts.config.iter().flat_map(|config| &config.agents);
        let rule = rules.into_iter().position(|rule| rule.name == agent.name);
        let meters = rule.map_or(&[][..], |rule| &plan.agents[rule].meters);
        ensure(agent.meters.len() == meters.len(), "an agent's meters are not its rule's")?;
        for (tally, meter) in agent.meters.iter().zip(meters) {
            let fits = match (&tally.count, &meter.fresh(&plan.lanes).count) {
                (Count::Window(window), Count::Window(_)) => window.grain() == Grain::Meter,
                (Count::Slots, Count::Slots) => true,
                _ => false,
            };
            let plain = tally.reset.is_none() && tally.learning.is_none();
            ensure(fits && plain, "a meter is not of its kind")?;
        }
    }
    Ok(())
}

fn leases(facts: &Facts, plan: &Plan) -> Checked {
    let mut held = alloc::vec![0_u64; facts.agents.len()];
    for lease in facts.leases.values() {
        let Some(agent) = facts.agents.get(usize::from(lease.agent)) else {
            return Err(InvalidFacts("a lease of nobody"));
        };
        for charge in &lease.charges {
            let (there, gate) = match charge.to {
                Target::Lane(at) => {
                    let lane = plan.lanes.get(usize::from(at));
                    (lane.is_some(), lane.is_some_and(|lane| lane.kind == LaneKind::Gate))
                }
                Target::Meter(at) => (usize::from(at) < agent.meters.len(), false),
            };
            ensure(there, "a charge to nothing")?;
            let figures = [charge.estimate, charge.charged].iter().all(|n| *n <= bounds::AMOUNT);
            ensure(figures && !(gate && charge.when == Charged::End), "a charge beyond bounds")?;
            if let Target::Meter(_) = charge.to {
                held[usize::from(lease.agent)] += charge.holds();
            }
        }
        if let Holder::Session(session) = lease.holder {
            ensure(facts.sessions.contains_key(&session), "a lease of a session not known")?;
        }
        ensure(lease.progressed <= facts.clock, "a lease of the future")?;
    }
    for (agent, held) in facts.agents.iter().zip(held) {
        let metered = agent.meters.iter().map(|tally| tally.held).fold(0, u64::saturating_add);
        ensure(metered == held, "what is metered as held is not what leases hold")?;
    }
    Ok(())
}

fn held_by_leases(facts: &Facts, lane: usize) -> u64 {
    let charges = facts.leases.values().flat_map(|lease| &lease.charges);
    let its =
        charges.filter(|charge| matches!(charge.to, Target::Lane(at) if usize::from(at) == lane));
    its.map(Charge::holds).fold(0, u64::saturating_add)
}

fn tickets(facts: &Facts, plan: &Plan) -> Checked {
    let mut keys = alloc::collections::BTreeSet::new();
    for (place, ticket) in &facts.tickets {
        let Place { arrival, .. } = *place;
        ensure((1..=facts.arrivals).contains(&arrival), "a ticket that never came")?;
        ensure(usize::from(ticket.agent) < facts.agents.len(), "a ticket of nobody")?;
        let fresh = keys.insert(ticket.key) && !facts.leases.contains_key(&ticket.key);
        ensure(fresh, "two things of one name")?;
        ensure(ticket.since <= facts.clock, "a ticket of the future")?;
        let needs =
            |at: usize| plan.lanes.get(at).is_some_and(|lane| lane.need(&ticket.call.cost) > 0);
        ensure(lanes_of(ticket.aside).all(needs), "units set aside for nothing")?;
        let stands = match ticket.phase {
            Phase::Line(at) => {
                let at = usize::from(at);
                needs(at) && ticket.aside & (1 << at) == 0
            }
            Phase::Due(since) => since <= facts.clock,
            Phase::Held { .. } | Phase::Lapsed | Phase::TooLate => ticket.aside == 0,
        };
        ensure(stands, "a ticket stands where it cannot")?;
        if let Some(session) = ticket.session {
            ensure(facts.sessions.contains_key(&session), "a ticket of a session not known")?;
        }
    }
    Ok(())
}

fn ids(facts: &Facts) -> Checked {
    let tickets: alloc::collections::BTreeSet<_> =
        facts.tickets.values().map(|ticket| ticket.key).collect();
    for ((agent, _), known) in &facts.ids {
        ensure(usize::from(*agent) < facts.agents.len(), "an id of nobody")?;
        let lives = facts.leases.contains_key(&known.first) || tickets.contains(&known.first);
        let ended = known.ended.is_some_and(|ended| ended <= facts.clock);
        ensure(ended || known.ended.is_none() && lives, "an id of nothing")?;
    }
    Ok(())
}

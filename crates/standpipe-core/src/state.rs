//! The ledger of one pool: its facts, and an index over them.
//!
//! `State` is a value without a clock, a thread or a file. Events change it in `apply.rs`, time
//! changes it in `advance.rs`.
//!
//! Invariant: the index is what [`Index::of`] would compute from the facts; [`State::check`]
//! compares both.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::agents::activity::FloorCalls;
use crate::config::Priority;
use crate::config::compiled::{CompiledConfig, UsageOf};
use crate::event::Key;
use crate::facts::Facts;
use crate::id::{AgentId, ConstraintId, ConstraintSet, Id, IdVec, RuleId};
use crate::lease::call::CallId;
use crate::lease::session::Silence;
use crate::name::AgentName;
use crate::outcome::Notice;
use crate::queue::ticket::QueueKey;
use crate::rules::gate;
use crate::rules::zone::TierRestrictions;
use crate::time::Instant;

/// The ledger of one pool.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) facts: Facts,
    pub(crate) index: Index,
    pub(crate) effects: Effects,
    /// The next instant at which time alone changes something, as of the clock. Every event needs
    /// it.
    pub(crate) next: Option<Instant>,
    /// What zone and yield demand of waiting calls, as of the clock.
    pub(crate) restrictions: TierRestrictions,
}

/// What became of a reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was admitted and is in flight.
    Lease,
    /// It waits.
    Ticket,
    /// It was refused, or it has ended.
    Absent,
}

/// Side effects of the event that is being applied; empty between events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub(crate) notices: Vec<Notice>,
    pub(crate) wake: Vec<Key>,
}

/// Everything that is derived from the facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) compiled: CompiledConfig,
    /// The tickets in the line of each constraint.
    pub(crate) lines: IdVec<ConstraintId, BTreeSet<QueueKey>>,
    /// The units earmarked on each constraint.
    pub(crate) earmarks: IdVec<ConstraintId, Earmarks>,
    /// What all tickets together need of each constraint.
    pub(crate) demand: IdVec<ConstraintId, u64>,
    /// The tags and arrivals waiting in each tier, in order. A ticket's position is its index here.
    pub(crate) order: [VecDeque<(u64, u64)>; 3],
    pub(crate) queue_key_of: BTreeMap<Key, QueueKey>,
    pub(crate) agent_of: BTreeMap<AgentName, AgentId>,
    /// By agent.
    pub(crate) agent_loads: IdVec<AgentId, AgentLoad>,
    /// The agents with a floor or a cap.
    pub(crate) limited: BTreeSet<AgentId>,
    /// The tickets of agents with a floor or a cap; in fair order, of all.
    pub(crate) tickets_by_agent: BTreeSet<(AgentId, QueueKey)>,
    /// The agents with a floor, and those of their tickets that are due.
    pub(crate) floor_owners: BTreeSet<AgentId>,
    pub(crate) due_owners: BTreeSet<QueueKey>,
    /// The tickets of floor owners that stand in a line.
    pub(crate) line_owners: BTreeSet<(AgentId, QueueKey)>,
    pub(crate) timers: BTreeSet<(Instant, Timer)>,
    /// Sessions by the time of their last event.
    pub(crate) last_seen: BTreeSet<(Instant, u64)>,
    /// Which silent sessions were looked at, so that no event looks at them again.
    pub(crate) silence: Silence,
    /// How many leases and tickets each session has.
    pub(crate) in_flight_by_session: BTreeMap<u64, u32>,
    pub(crate) ended_ids: BTreeSet<(Instant, CallId)>,
    pub(crate) too_late: BTreeSet<QueueKey>,
    /// The calls of agents with a floor, by constraint.
    pub(crate) floor_calls: IdVec<ConstraintId, FloorCalls>,
    /// How many slots the calls in flight hold.
    pub(crate) slots: u64,
    /// How many calls are in flight, by tier.
    pub(crate) tier_leases: [u32; 3],
    /// Background agents that wait and are denied, by since when.
    pub(crate) denied: BTreeSet<(Instant, AgentId)>,
    /// The constraints that changed since their lines were last served.
    pub(crate) dirty: ConstraintSet,
    /// The constraints to which units returned other than by ageing.
    pub(crate) returned: ConstraintSet,
    /// How many more calls the gate admits.
    pub(crate) gate_room: u64,
}

/// The units earmarked on one constraint for tickets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Earmarks {
    pub(crate) by_tier: [u64; 3],
    pub(crate) holders: BTreeSet<QueueKey>,
}

/// What one agent has in flight and waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentLoad {
    /// The index of its rule in the configuration.
    pub(crate) rule: Option<RuleId>,
    /// The constraints on which it has a floor.
    pub(crate) floors: ConstraintSet,
    pub(crate) leases: u32,
    /// The slots that its leases hold.
    pub(crate) slots: u64,
    pub(crate) tickets: u32,
    /// Tickets in the background tier.
    pub(crate) background: u32,
}

/// What happens at an instant. The order of the variants is the order at equal instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    LeaseExpiry(Key),
    TicketDeadline(QueueKey),
    TicketRecheck(QueueKey),
    ProviderReset(ConstraintId),
    CalendarReset(ConstraintId),
}

impl State {
    /// A pool that nobody has used or configured.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything a snapshot holds.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The stamp of the last event.
    #[must_use]
    pub const fn clock(&self) -> Instant {
        self.facts.clock
    }

    /// What became of a reserve.
    #[must_use]
    pub fn find(&self, key: Key) -> Found {
        if self.facts.leases.contains_key(&key) {
            Found::Lease
        } else if self.index.queue_key_of.contains_key(&key) {
            Found::Ticket
        } else {
            Found::Absent
        }
    }

    /// The number of a session's last event, while the session is remembered.
    #[must_use]
    pub fn last_number(&self, session: u64) -> Option<u64> {
        self.facts.sessions.get(&session).map(|session| session.last)
    }

    /// The number of tickets up to and including a queue key.
    pub(crate) fn position(&self, queue_key: QueueKey) -> usize {
        let higher = Priority::ALL.iter().filter(|tier| **tier < queue_key.tier);
        let before: usize = higher.map(|tier| self.index.order[*tier as usize].len()).sum();
        let own = &self.index.order[queue_key.tier as usize];
        before + own.partition_point(|other| *other < queue_key.in_tier()) + 1
    }

    pub(crate) fn mark_dirty(&mut self, constraint: ConstraintId) {
        self.index.dirty.insert(constraint);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.facts == other.facts
    }
}

impl Eq for State {}

impl Index {
    /// Computes the index. The facts must be sound.
    pub(crate) fn of(facts: &Facts) -> Self {
        let compiled = CompiledConfig::of_facts(facts);
        let constraints = compiled.constraints.len();
        let mut index = Self {
            compiled,
            lines: alloc::vec![BTreeSet::new(); constraints].into(),
            earmarks: alloc::vec![Earmarks::default(); constraints].into(),
            floor_calls: alloc::vec![FloorCalls::default(); constraints].into(),
            demand: alloc::vec![0; constraints].into(),
            ..Self::default()
        };
        let width = index.compiled.gate.map_or(0, |_| gate::width(facts));
        index.gate_room = width.saturating_sub(facts.unanswered.len() as u64);
        index.add_agents(facts);
        for (number, session) in &facts.sessions {
            index.last_seen.insert((session.last_seen, *number));
        }
        for (key, lease) in &facts.leases {
            index.add_lease(*key, lease);
        }
        for (queue_key, ticket) in &facts.tickets {
            index.add_ticket(*queue_key, ticket);
        }
        for (id, agent) in facts.agents.rows() {
            let stands = agent.promoted.is_some_and(|promoted| promoted.ticket.is_some());
            let waits = index.agent_loads[id].background > 0 && !stands;
            if let Some(denied) = agent.denied.filter(|_| waits) {
                index.denied.insert((denied.since, id));
            }
        }
        for (id, known) in &facts.ids {
            if let Some(ended) = known.ended {
                index.ended_ids.insert((ended, id.clone()));
            }
        }
        for (constraint, counter) in facts.counters.rows() {
            if let Some(reset) = &counter.reset {
                index.watch_reset(constraint, reset);
            }
            index.watch_calendar(constraint, &counter.calendar);
        }
        index
    }

    fn add_agents(&mut self, facts: &Facts) {
        for (id, agent) in facts.agents.rows() {
            self.agent_of.insert(agent.name.clone(), id);
            self.agent_loads.push(AgentLoad::default());
            let rules = facts.config.iter().flat_map(|config| &config.agents);
            let rule = rules.into_iter().position(|rule| rule.name == agent.name);
            self.index_rule(id, rule.map(RuleId::of));
        }
    }

    pub(crate) fn index_rule(&mut self, agent: AgentId, rule: Option<RuleId>) {
        let load = &mut self.agent_loads[agent];
        (load.rule, load.floors) = (rule, ConstraintSet::default());
        let Some(rule) = rule else { return };
        let usages = &self.compiled.agents[rule].usages;
        if !usages.is_empty() {
            self.limited.insert(agent);
        }
        for usage in usages.iter().filter(|usage| usage.owned) {
            self.floor_owners.insert(agent);
            if let UsageOf::Constraint(constraint) = usage.measures {
                load.floors.insert(constraint);
            }
        }
    }

    /// Increments the session's count of leases and tickets.
    pub(crate) fn session_holds(&mut self, session: u64) {
        *self.in_flight_by_session.entry(session).or_default() += 1;
    }

    /// Decrements the session's count of leases and tickets.
    pub(crate) fn session_released(&mut self, session: u64) {
        if let Some(count) = self.in_flight_by_session.get_mut(&session) {
            *count -= 1;
            if *count == 0 {
                self.in_flight_by_session.remove(&session);
                self.silence.released.push(session);
            }
        }
    }
}

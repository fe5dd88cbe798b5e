//! The ledger of one pool: its facts, and an index over them.
//!
//! `State` is a value without a clock, a thread or a file. Events change it in `apply.rs`, time
//! changes it in `advance.rs`.
//!
//! Invariant: the index is what [`Index::of`] would compute from the facts; [`State::check`]
//! compares both.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::agents::agent::AgentId;
use crate::bounds;
use crate::config::Priority;
use crate::config::compiled::CompiledConfig;
use crate::event::Key;
use crate::facts::Facts;
use crate::lease::call::CallId;
use crate::lease::{Lease, LeaseOwner};
use crate::name::AgentName;
use crate::outcome::Notice;
use crate::queue::ticket::{Phase, QueueKey, Ticket};
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
    pub(crate) lines: Vec<BTreeSet<QueueKey>>,
    /// The units earmarked on each constraint.
    pub(crate) earmarks: Vec<Earmarks>,
    /// The arrivals waiting in each tier, in order. A ticket's position is its index here.
    pub(crate) order: [VecDeque<u64>; 3],
    pub(crate) queue_key_of: BTreeMap<Key, QueueKey>,
    pub(crate) agent_of: BTreeMap<AgentName, AgentId>,
    /// By agent.
    pub(crate) agent_loads: Vec<AgentLoad>,
    /// The agents with a floor or a cap, and their tickets.
    pub(crate) limited: BTreeSet<AgentId>,
    pub(crate) limited_tickets: BTreeSet<(AgentId, QueueKey)>,
    /// The agents with a floor, and those of their tickets that are due.
    pub(crate) floor_owners: BTreeSet<AgentId>,
    pub(crate) due_owners: BTreeSet<QueueKey>,
    /// The tickets of floor owners that stand in a line.
    pub(crate) line_owners: BTreeSet<(AgentId, QueueKey)>,
    pub(crate) timers: BTreeSet<(Instant, Timer)>,
    /// Sessions by the time of their last event.
    pub(crate) last_seen: BTreeSet<(Instant, u64)>,
    /// How many leases and tickets each session has.
    pub(crate) in_flight_by_session: BTreeMap<u64, u32>,
    pub(crate) ended_ids: BTreeSet<(Instant, CallId)>,
    pub(crate) too_late: BTreeSet<QueueKey>,
    /// How many calls are in flight, by tier.
    pub(crate) tier_leases: [u32; 3],
    /// Background agents that wait and are denied, by since when.
    pub(crate) denied: BTreeSet<(Instant, AgentId)>,
    /// Constraints, as bits, that changed since their lines were last served.
    pub(crate) dirty: u64,
    /// Constraints, as bits, to which units returned other than by ageing.
    pub(crate) returned: u64,
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
    pub(crate) rule: Option<u16>,
    pub(crate) leases: u32,
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
    ProviderReset(u8),
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

    /// When a lease expires; [`Instant::NEVER`] if it does not, or if there is no such lease.
    #[must_use]
    pub fn lease_ends(&self, key: Key) -> Instant {
        self.facts.leases.get(&key).map_or(Instant::NEVER, |lease| self.lease_ends_at(lease))
    }

    pub(crate) fn lease_ends_at(&self, lease: &Lease) -> Instant {
        let longest = self.index.compiled.longest_lease;
        let too_long = longest.map_or(Instant::NEVER, |longest| lease.progressed + longest);
        let alone = match lease.owner {
            LeaseOwner::Ttl { expires, .. } => expires,
            LeaseOwner::Session(_) => Instant::NEVER,
        };
        alone.min(too_long)
    }

    /// The number of tickets up to and including a queue key.
    pub(crate) fn position(&self, queue_key: QueueKey) -> usize {
        let higher = Priority::ALL.iter().filter(|tier| **tier < queue_key.tier);
        let before: usize = higher.map(|tier| self.index.order[*tier as usize].len()).sum();
        let own = &self.index.order[queue_key.tier as usize];
        before + own.partition_point(|arrival| *arrival < queue_key.arrival) + 1
    }

    pub(crate) fn mark_dirty(&mut self, constraint: usize) {
        self.index.dirty |= 1 << constraint;
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
            lines: alloc::vec![BTreeSet::new(); constraints],
            earmarks: alloc::vec![Earmarks::default(); constraints],
            ..Self::default()
        };
        let width = index.compiled.gate.map_or(0, |_| gate::width(facts));
        index.gate_room = width.saturating_sub(facts.unanswered.len() as u64);
        index.add_agents(facts);
        for (number, session) in &facts.sessions {
            index.last_seen.insert((session.last_seen, *number));
        }
        for (key, lease) in &facts.leases {
            index.agent_loads[usize::from(lease.agent)].leases += 1;
            index.add_lease(*key, lease);
        }
        for (queue_key, ticket) in &facts.tickets {
            index.add_ticket(*queue_key, ticket);
        }
        for (at, agent) in facts.agents.iter().enumerate() {
            let stands = agent.promoted.is_some_and(|promoted| promoted.ticket.is_some());
            let waits = index.agent_loads[at].background > 0 && !stands;
            if let Some(denied) = agent.denied.filter(|_| waits) {
                let id = AgentId::try_from(at).unwrap_or(AgentId::MAX);
                index.denied.insert((denied.since, id));
            }
        }
        for (id, known) in &facts.ids {
            if let Some(ended) = known.ended {
                index.ended_ids.insert((ended, id.clone()));
            }
        }
        for (constraint, counter) in facts.counters.iter().enumerate() {
            if let Some(reset) = &counter.reset {
                index.watch_reset(constraint, reset);
            }
        }
        index
    }

    fn add_agents(&mut self, facts: &Facts) {
        for (at, agent) in facts.agents.iter().enumerate() {
            let id = AgentId::try_from(at).unwrap_or(AgentId::MAX);
            self.agent_of.insert(agent.name.clone(), id);
            self.agent_loads.push(AgentLoad::default());
            let rules = facts.config.iter().flat_map(|config| &config.agents);
            let rule = rules.into_iter().position(|rule| rule.name == agent.name);
            self.index_rule(id, rule);
        }
    }

    pub(crate) fn index_rule(&mut self, agent: AgentId, rule: Option<usize>) {
        let load = &mut self.agent_loads[usize::from(agent)];
        load.rule = rule.and_then(|rule| u16::try_from(rule).ok());
        let Some(rule) = rule else { return };
        let usages = &self.compiled.agents[rule].usages;
        if !usages.is_empty() {
            self.limited.insert(agent);
        }
        if usages.iter().any(|usage| usage.owned) {
            self.floor_owners.insert(agent);
        }
    }

    /// Decrements the session's in-flight count.
    pub(crate) fn session_released(&mut self, session: u64) {
        if let Some(count) = self.in_flight_by_session.get_mut(&session) {
            *count -= 1;
            if *count == 0 {
                self.in_flight_by_session.remove(&session);
            }
        }
    }

    pub(crate) fn add_ticket(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        let own = &mut self.order[queue_key.tier as usize];
        let at = own.partition_point(|arrival| *arrival < queue_key.arrival);
        own.insert(at, queue_key.arrival);
        self.queue_key_of.insert(ticket.key, queue_key);
        self.timers.insert((ticket.deadline, Timer::TicketDeadline(queue_key)));
        let load = &mut self.agent_loads[usize::from(ticket.agent)];
        load.tickets += 1;
        load.background += u32::from(queue_key.tier == Priority::Background);
        if self.limited.contains(&ticket.agent) {
            self.limited_tickets.insert((ticket.agent, queue_key));
        }
        if let Some(session) = ticket.session {
            *self.in_flight_by_session.entry(session).or_default() += 1;
        }
        self.add_phase(queue_key, ticket);
        for constraint in constraints_in(ticket.earmarked) {
            let need = self.compiled.constraints[constraint].need(&ticket.call.cost);
            self.earmarks[constraint].by_tier[queue_key.tier as usize] += need;
            self.earmarks[constraint].holders.insert(queue_key);
        }
    }

    pub(crate) fn remove_ticket(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        let own = &mut self.order[queue_key.tier as usize];
        if let Ok(at) = own.binary_search(&queue_key.arrival) {
            own.remove(at);
        }
        self.queue_key_of.remove(&ticket.key);
        self.timers.remove(&(ticket.deadline, Timer::TicketDeadline(queue_key)));
        let load = &mut self.agent_loads[usize::from(ticket.agent)];
        load.tickets -= 1;
        load.background -= u32::from(queue_key.tier == Priority::Background);
        self.limited_tickets.remove(&(ticket.agent, queue_key));
        if let Some(session) = ticket.session {
            self.session_released(session);
        }
        self.remove_phase(queue_key, ticket);
        for constraint in constraints_in(ticket.earmarked) {
            let need = self.compiled.constraints[constraint].need(&ticket.call.cost);
            self.earmarks[constraint].by_tier[queue_key.tier as usize] -= need;
            self.earmarks[constraint].holders.remove(&queue_key);
        }
    }

    pub(crate) fn add_phase(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        match ticket.phase {
            Phase::Line(constraint) => {
                self.lines[usize::from(constraint)].insert(queue_key);
                if self.floor_owners.contains(&ticket.agent) {
                    self.line_owners.insert((ticket.agent, queue_key));
                }
            }
            Phase::TooLate => {
                self.too_late.insert(queue_key);
            }
            Phase::Lapsed => {}
            Phase::Held { .. } | Phase::Due(_) => {
                self.timers.insert((self.next_event_at(ticket), Timer::TicketRecheck(queue_key)));
            }
        }
        let due = matches!(ticket.phase, Phase::Due(_));
        if due && self.floor_owners.contains(&ticket.agent) {
            self.due_owners.insert(queue_key);
        }
    }

    pub(crate) fn remove_phase(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        match ticket.phase {
            Phase::Line(constraint) => {
                self.lines[usize::from(constraint)].remove(&queue_key);
                self.line_owners.remove(&(ticket.agent, queue_key));
            }
            Phase::TooLate => {
                self.too_late.remove(&queue_key);
            }
            Phase::Lapsed => {}
            Phase::Held { .. } | Phase::Due(_) => {
                self.timers.remove(&(self.next_event_at(ticket), Timer::TicketRecheck(queue_key)));
            }
        }
        self.due_owners.remove(&queue_key);
    }

    /// When time alone moves a ticket that is held back or due.
    fn next_event_at(&self, ticket: &Ticket) -> Instant {
        match ticket.phase {
            Phase::Held { until, .. } => until,
            Phase::Due(since) => since + self.compiled.claim,
            _ => Instant::NEVER,
        }
    }
}

/// The constraints whose bits are set.
pub(crate) fn constraints_in(bits: u64) -> impl Iterator<Item = usize> {
    (0..bounds::CONSTRAINTS).filter(move |constraint| bits & (1 << constraint) != 0)
}

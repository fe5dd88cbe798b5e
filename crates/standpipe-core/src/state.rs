//! The ledger of one pool: its facts, and the index that makes them quick to ask.
//!
//! `State` is a value. Nothing in it knows a clock, a thread or a file.
//!
//! Invariant: the index is what [`Index::of`] would work out from the facts; [`State::check`]
//! proves it.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::bounds;
use crate::config::Priority;
use crate::event::Key;
use crate::facts::Facts;
use crate::lease::{Holder, Lease};
use crate::name::{AgentName, Text};
use crate::outcome::Notice;
use crate::plan::Plan;
use crate::ticket::{Phase, Place, Ticket};
use crate::time::Instant;
use crate::zone::Light;

/// The ledger of one pool.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) facts: Facts,
    pub(crate) index: Index,
    pub(crate) news: News,
    /// When time alone changes something next, as of the clock: asked by every event.
    pub(crate) next: Option<Instant>,
    /// What the light says to those who wait, as of the clock.
    pub(crate) light: Light,
}

/// What became of a reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was admitted and is in flight.
    Lease,
    /// It waits.
    Ticket,
    /// It was refused, or has ended.
    Neither,
}

/// What happened while an event was applied; empty between events.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    pub(crate) notices: Vec<Notice>,
    pub(crate) wake: Vec<Key>,
}

/// What follows from the facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) plan: Plan,
    /// Who stands in the line of each lane.
    pub(crate) lines: Vec<BTreeSet<Place>>,
    /// What is set aside on each lane.
    pub(crate) asides: Vec<Aside>,
    /// The arrivals that wait in each tier, in order: a ticket's position is its place here.
    pub(crate) order: [VecDeque<u64>; 3],
    pub(crate) place_of: BTreeMap<Key, Place>,
    pub(crate) agent_of: BTreeMap<AgentName, AgentId>,
    /// By agent.
    pub(crate) loads: Vec<Load>,
    /// The agents with a floor or a cap, where their tickets are, and their leases.
    pub(crate) metered: BTreeSet<AgentId>,
    pub(crate) metered_tickets: BTreeSet<(AgentId, Place)>,
    pub(crate) metered_leases: BTreeSet<(AgentId, Key)>,
    /// The agents with a floor, and those of their tickets that are due.
    pub(crate) floor_owners: BTreeSet<AgentId>,
    pub(crate) due_owners: BTreeSet<Place>,
    /// Those of them that stand in a line.
    pub(crate) line_owners: BTreeSet<(AgentId, Place)>,
    /// Leases by when they end at the latest, whatever is heard of their session.
    pub(crate) lease_ends: BTreeSet<(Instant, Key)>,
    /// The leases of each session, and the sessions that have any by when they were last heard.
    pub(crate) session_leases: BTreeSet<(u64, Key)>,
    pub(crate) lease_sessions: BTreeSet<(Instant, u64)>,
    pub(crate) timers: BTreeSet<(Instant, Timer)>,
    /// Sessions by when they were last heard.
    pub(crate) heard: BTreeSet<(Instant, u64)>,
    /// By session: how many leases and tickets are its.
    pub(crate) holdings: BTreeMap<u64, u32>,
    pub(crate) ended_ids: BTreeSet<(Instant, AgentId, Text)>,
    pub(crate) too_late: BTreeSet<Place>,
    /// By tier: the calls in flight.
    pub(crate) tier_leases: [u32; 3],
    /// Who is denied in the background and waits, by since when.
    pub(crate) denied: BTreeSet<(Instant, AgentId)>,
    /// Lanes, as bits, on which something changed since lines were last served.
    pub(crate) dirty: u64,
    /// Lanes, as bits, on which units came back otherwise than by age.
    pub(crate) returned: u64,
}

/// What is set aside on a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aside {
    pub(crate) by_tier: [u64; 3],
    pub(crate) holders: BTreeSet<Place>,
}

/// What an agent has under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Its rule in the configuration.
    pub(crate) rule: Option<u16>,
    pub(crate) leases: u32,
    pub(crate) tickets: u32,
    /// Those of them in the background.
    pub(crate) background: u32,
    /// Ids that refer to it.
    pub(crate) ids: u32,
}

/// Why something happens at an instant. The order is the order of events at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    LeaseEnds(Key),
    TicketEnds(Place),
    TicketStirs(Place),
    ProviderResets(u8),
}

impl State {
    /// A pool nobody has used or configured.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All it knows.
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
        } else if self.index.place_of.contains_key(&key) {
            Found::Ticket
        } else {
            Found::Neither
        }
    }

    /// The number of a session's last event, while the session is remembered.
    #[must_use]
    pub fn last_number(&self, session: u64) -> Option<u64> {
        self.facts.sessions.get(&session).map(|session| session.last)
    }

    /// When a lease ends if nothing is heard from now on; never, if there is no such lease.
    #[must_use]
    pub fn lease_ends(&self, key: Key) -> Instant {
        self.facts.leases.get(&key).map_or(Instant::NEVER, |lease| self.lease_ends_at(lease))
    }

    pub(crate) fn lease_ends_at(&self, lease: &Lease) -> Instant {
        let longest = self.index.plan.longest_lease;
        let too_long = longest.map_or(Instant::NEVER, |longest| lease.progressed + longest);
        let alone = match lease.holder {
            Holder::Ttl { expires, .. } => expires,
            Holder::Session(session) => self.session_ends(session),
        };
        alone.min(too_long)
    }

    pub(crate) fn session_ends(&self, session: u64) -> Instant {
        let session = self.facts.sessions.get(&session);
        session.map_or(Instant::NEVER, |session| session.heard + bounds::SILENCE)
    }

    /// How many tickets stand before a place, and itself.
    pub(crate) fn position(&self, place: Place) -> usize {
        let higher = Priority::ALL.iter().filter(|tier| **tier < place.tier);
        let before: usize = higher.map(|tier| self.index.order[*tier as usize].len()).sum();
        let own = &self.index.order[place.tier as usize];
        before + own.partition_point(|arrival| *arrival < place.arrival) + 1
    }

    pub(crate) fn mark_dirty(&mut self, lane: usize) {
        self.index.dirty |= 1 << lane;
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.facts == other.facts
    }
}

impl Eq for State {}

impl Index {
    /// Works everything out. The facts must be sound.
    pub(crate) fn of(facts: &Facts) -> Self {
        let plan = Plan::of_facts(facts);
        let lanes = plan.lanes.len();
        let mut index = Self {
            plan,
            lines: alloc::vec![BTreeSet::new(); lanes],
            asides: alloc::vec![Aside::default(); lanes],
            ..Self::default()
        };
        index.add_agents(facts);
        for (number, session) in &facts.sessions {
            index.heard.insert((session.heard, *number));
        }
        for (key, lease) in &facts.leases {
            index.loads[usize::from(lease.agent)].leases += 1;
            index.add_lease(*key, lease, &facts.sessions);
        }
        for (place, ticket) in &facts.tickets {
            index.add_ticket(*place, ticket);
        }
        for (at, agent) in facts.agents.iter().enumerate() {
            let stands = agent.promoted.is_some_and(|promoted| promoted.ticket.is_some());
            let waits = index.loads[at].background > 0 && !stands;
            if let Some(denied) = agent.denied.filter(|_| waits) {
                let id = AgentId::try_from(at).unwrap_or(AgentId::MAX);
                index.denied.insert((denied.since, id));
            }
        }
        for ((agent, id), known) in &facts.ids {
            index.loads[usize::from(*agent)].ids += 1;
            if let Some(ended) = known.ended {
                index.ended_ids.insert((ended, *agent, id.clone()));
            }
        }
        for (lane, tally) in facts.lanes.iter().enumerate() {
            if let Some(reset) = &tally.reset {
                index.watch_reset(lane, reset);
            }
        }
        index
    }

    fn add_agents(&mut self, facts: &Facts) {
        for (at, agent) in facts.agents.iter().enumerate() {
            let id = AgentId::try_from(at).unwrap_or(AgentId::MAX);
            self.agent_of.insert(agent.name.clone(), id);
            self.loads.push(Load::default());
            let rules = facts.config.iter().flat_map(|config| &config.agents);
            let rule = rules.into_iter().position(|rule| rule.name == agent.name);
            self.obey_rule(id, rule);
        }
    }

    pub(crate) fn obey_rule(&mut self, agent: AgentId, rule: Option<usize>) {
        let load = &mut self.loads[usize::from(agent)];
        load.rule = rule.and_then(|rule| u16::try_from(rule).ok());
        let Some(rule) = rule else { return };
        let meters = &self.plan.agents[rule].meters;
        if !meters.is_empty() {
            self.metered.insert(agent);
        }
        if meters.iter().any(|meter| meter.floor > 0) {
            self.floor_owners.insert(agent);
        }
    }

    /// A session has one thing less.
    pub(crate) fn let_go(&mut self, session: u64) {
        if let Some(count) = self.holdings.get_mut(&session) {
            *count -= 1;
            if *count == 0 {
                self.holdings.remove(&session);
            }
        }
    }

    pub(crate) fn add_ticket(&mut self, place: Place, ticket: &Ticket) {
        let own = &mut self.order[place.tier as usize];
        let at = own.partition_point(|arrival| *arrival < place.arrival);
        own.insert(at, place.arrival);
        self.place_of.insert(ticket.key, place);
        self.timers.insert((ticket.deadline, Timer::TicketEnds(place)));
        let load = &mut self.loads[usize::from(ticket.agent)];
        load.tickets += 1;
        load.background += u32::from(place.tier == Priority::Background);
        if self.metered.contains(&ticket.agent) {
            self.metered_tickets.insert((ticket.agent, place));
        }
        if let Some(session) = ticket.session {
            *self.holdings.entry(session).or_default() += 1;
        }
        self.add_phase(place, ticket);
        for lane in lanes_of(ticket.aside) {
            let need = self.plan.lanes[lane].need(&ticket.call.cost);
            self.asides[lane].by_tier[place.tier as usize] += need;
            self.asides[lane].holders.insert(place);
        }
    }

    pub(crate) fn remove_ticket(&mut self, place: Place, ticket: &Ticket) {
        let own = &mut self.order[place.tier as usize];
        if let Ok(at) = own.binary_search(&place.arrival) {
            own.remove(at);
        }
        self.place_of.remove(&ticket.key);
        self.timers.remove(&(ticket.deadline, Timer::TicketEnds(place)));
        let load = &mut self.loads[usize::from(ticket.agent)];
        load.tickets -= 1;
        load.background -= u32::from(place.tier == Priority::Background);
        self.metered_tickets.remove(&(ticket.agent, place));
        if let Some(session) = ticket.session {
            self.let_go(session);
        }
        self.remove_phase(place, ticket);
        for lane in lanes_of(ticket.aside) {
            let need = self.plan.lanes[lane].need(&ticket.call.cost);
            self.asides[lane].by_tier[place.tier as usize] -= need;
            self.asides[lane].holders.remove(&place);
        }
    }

    pub(crate) fn add_phase(&mut self, place: Place, ticket: &Ticket) {
        match ticket.phase {
            Phase::Line(lane) => {
                self.lines[usize::from(lane)].insert(place);
                if self.floor_owners.contains(&ticket.agent) {
                    self.line_owners.insert((ticket.agent, place));
                }
            }
            Phase::TooLate => {
                self.too_late.insert(place);
            }
            Phase::Lapsed => {}
            Phase::Held { .. } | Phase::Due(_) => {
                self.timers.insert((self.stirs(ticket), Timer::TicketStirs(place)));
            }
        }
        let due = matches!(ticket.phase, Phase::Due(_));
        if due && self.floor_owners.contains(&ticket.agent) {
            self.due_owners.insert(place);
        }
    }

    pub(crate) fn remove_phase(&mut self, place: Place, ticket: &Ticket) {
        match ticket.phase {
            Phase::Line(lane) => {
                self.lines[usize::from(lane)].remove(&place);
                self.line_owners.remove(&(ticket.agent, place));
            }
            Phase::TooLate => {
                self.too_late.remove(&place);
            }
            Phase::Lapsed => {}
            Phase::Held { .. } | Phase::Due(_) => {
                self.timers.remove(&(self.stirs(ticket), Timer::TicketStirs(place)));
            }
        }
        self.due_owners.remove(&place);
    }

    /// When time alone moves a ticket that is held or due.
    fn stirs(&self, ticket: &Ticket) -> Instant {
        match ticket.phase {
            Phase::Held { until, .. } => until,
            Phase::Due(since) => since + self.plan.claim,
            _ => Instant::NEVER,
        }
    }
}

/// The lanes whose bits are set.
pub(crate) fn lanes_of(bits: u64) -> impl Iterator<Item = usize> {
    (0..bounds::LANES).filter(move |lane| bits & (1 << lane) != 0)
}

//! The table of tickets, with its indexes: order, lines, earmarks, timers, and the counts a ticket
//! is part of.
//!
//! Invariant: tickets are changed through these functions only, so the indexes follow. `serve.rs`
//! decides where tickets go.

use crate::config::Priority;
use crate::id::ConstraintId;
use crate::queue::ticket::{Phase, QueueKey, Ticket};
use crate::state::{Index, State, Timer};
use crate::time::Instant;

impl State {
    pub(crate) fn insert_ticket(&mut self, queue_key: QueueKey, ticket: Ticket) {
        self.index.add_ticket(queue_key, &ticket);
        self.facts.tickets.insert(queue_key, ticket);
    }

    pub(crate) fn remove_ticket(&mut self, queue_key: QueueKey) -> Option<Ticket> {
        let ticket = self.facts.tickets.remove(&queue_key)?;
        self.index.remove_ticket(queue_key, &ticket);
        Some(ticket)
    }

    /// Changes a ticket, if it exists.
    pub(crate) fn update_ticket(&mut self, queue_key: QueueKey, change: impl FnOnce(&mut Ticket)) {
        if let Some(ticket) = self.facts.tickets.get_mut(&queue_key) {
            self.index.remove_ticket(queue_key, ticket);
            change(ticket);
            self.index.add_ticket(queue_key, ticket);
        }
    }

    pub(crate) fn set_phase(&mut self, queue_key: QueueKey, phase: Phase) {
        let Some(ticket) = self.facts.tickets.get_mut(&queue_key) else { return };
        self.index.remove_phase(queue_key, ticket);
        ticket.phase = phase;
        self.index.add_phase(queue_key, ticket);
    }

    /// Earmarks what a ticket needs of a constraint.
    pub(crate) fn earmark(&mut self, queue_key: QueueKey, constraint: ConstraintId) {
        let Some(ticket) = self.facts.tickets.get_mut(&queue_key) else { return };
        let need = self.index.compiled.constraints[constraint].need(&ticket.call.cost);
        if need > 0 && !ticket.earmarked.contains(constraint) {
            ticket.earmarked.insert(constraint);
            self.index.earmarks[constraint].by_tier[queue_key.tier as usize] += need;
            self.index.earmarks[constraint].holders.insert(queue_key);
        }
    }

    /// Releases what is earmarked for a ticket on a constraint.
    pub(crate) fn release_earmark(&mut self, queue_key: QueueKey, constraint: ConstraintId) {
        let Some(ticket) = self.facts.tickets.get_mut(&queue_key) else { return };
        if ticket.earmarked.contains(constraint) {
            ticket.earmarked.remove(constraint);
            let need = self.index.compiled.constraints[constraint].need(&ticket.call.cost);
            self.index.earmarks[constraint].by_tier[queue_key.tier as usize] -= need;
            self.index.earmarks[constraint].holders.remove(&queue_key);
            self.mark_dirty(constraint);
        }
    }
}

impl Index {
    pub(crate) fn add_ticket(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        let own = &mut self.order[queue_key.tier as usize];
        let at = own.partition_point(|other| *other < queue_key.in_tier());
        own.insert(at, queue_key.in_tier());
        self.queue_key_of.insert(ticket.key, queue_key);
        self.timers.insert((ticket.deadline, Timer::TicketDeadline(queue_key)));
        let load = &mut self.agent_loads[ticket.agent];
        load.tickets += 1;
        load.background += u32::from(queue_key.tier == Priority::Background);
        if self.compiled.fair || self.limited.contains(&ticket.agent) {
            self.tickets_by_agent.insert((ticket.agent, queue_key));
        }
        let tier = queue_key.tier as usize;
        self.count_floor_calls(ticket.agent, |calls| calls.tickets[tier] += 1);
        if let Some(session) = ticket.session {
            self.session_holds(session);
        }
        self.add_phase(queue_key, ticket);
        for (demand, constraint) in self.demand.iter_mut().zip(&self.compiled.constraints) {
            *demand += constraint.need(&ticket.call.cost);
        }
        for constraint in ticket.earmarked.iter() {
            let need = self.compiled.constraints[constraint].need(&ticket.call.cost);
            self.earmarks[constraint].by_tier[queue_key.tier as usize] += need;
            self.earmarks[constraint].holders.insert(queue_key);
        }
    }

    fn remove_ticket(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        let own = &mut self.order[queue_key.tier as usize];
        if let Ok(at) = own.binary_search(&queue_key.in_tier()) {
            own.remove(at);
        }
        self.queue_key_of.remove(&ticket.key);
        self.timers.remove(&(ticket.deadline, Timer::TicketDeadline(queue_key)));
        let load = &mut self.agent_loads[ticket.agent];
        load.tickets -= 1;
        load.background -= u32::from(queue_key.tier == Priority::Background);
        self.tickets_by_agent.remove(&(ticket.agent, queue_key));
        let tier = queue_key.tier as usize;
        self.count_floor_calls(ticket.agent, |calls| calls.tickets[tier] -= 1);
        if let Some(session) = ticket.session {
            self.session_released(session);
        }
        self.remove_phase(queue_key, ticket);
        for (demand, constraint) in self.demand.iter_mut().zip(&self.compiled.constraints) {
            *demand -= constraint.need(&ticket.call.cost);
        }
        for constraint in ticket.earmarked.iter() {
            let need = self.compiled.constraints[constraint].need(&ticket.call.cost);
            self.earmarks[constraint].by_tier[queue_key.tier as usize] -= need;
            self.earmarks[constraint].holders.remove(&queue_key);
        }
    }

    fn add_phase(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        match ticket.phase {
            Phase::Line(constraint) => {
                self.lines[constraint].insert(queue_key);
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

    fn remove_phase(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        match ticket.phase {
            Phase::Line(constraint) => {
                self.lines[constraint].remove(&queue_key);
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
            Phase::Due(until) => until,
            _ => Instant::NEVER,
        }
    }
}

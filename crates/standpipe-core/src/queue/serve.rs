//! How tickets move: into lines, to the front, to due, and back when somebody goes before them.
//!
//! A ticket stands in one line at a time. When room comes to the head of a line, its units are
//! earmarked and it joins the line of what it still lacks; lacking nothing, it is due. Earmarked
//! units are withheld only from tickets behind. Lines are ordered by queue key; a floor
//! owner passes others only if it can pass on every constraint at once.
//!
//! Invariant after [`State::serve`]: no constraint has more units earmarked than are free (except
//! for one call that passes alone), and no head of a line could be given what it waits for.

use alloc::vec::Vec;

use crate::bounds;
use crate::fuel::Fuel;
use crate::id::{ConstraintId, ConstraintSet};
use crate::lease::admission::Candidate;
use crate::outcome::{Notice, Reason};
use crate::queue::ticket::{Phase, QueueKey, Ticket};
use crate::rules::order::Rank;
use crate::state::State;
use crate::time::Instant;
use crate::usage::view::UsageView;

impl State {
    /// Gives freed units to tickets in line, in order, until nothing moves.
    pub(crate) fn serve(&mut self, now: Instant) {
        if self.facts.tickets.is_empty() {
            (self.index.dirty, self.index.returned) = Default::default();
            return;
        }
        self.retry_too_late(now);
        // Each round advances a ticket, releases an earmark, or finds a line at rest.
        let mut fuel = Fuel::new(16 + 8 * (self.facts.tickets.len() + 1) * bounds::CONSTRAINTS);
        loop {
            while let Some(constraint) = self.index.dirty.pop_first().filter(|_| fuel.burn()) {
                self.serve_constraint(constraint, now, &mut fuel);
            }
            let Some(owner) = self.owner_that_passes(now).filter(|_| fuel.burn()) else { break };
            self.make_due(owner, now);
        }
        self.index.dirty = ConstraintSet::default();
        self.wake_earlier();
    }

    fn serve_constraint(&mut self, constraint: ConstraintId, now: Instant, fuel: &mut Fuel) {
        self.release_excess(constraint, now);
        while let Some(head) = self.index.lines[constraint].first().copied().filter(|_| fuel.burn())
        {
            if !self.ticket_lacks(head, constraint, now) {
                self.earmark(head, constraint);
                self.advance_ticket(head, now);
                self.release_excess(constraint, now);
            } else if self.is_too_late(head, now) {
                self.dequeue(head);
                self.set_phase(head, Phase::TooLate);
            } else {
                self.release_behind(head, constraint, now);
                return;
            }
        }
    }

    /// A ticket in line whose agent's floor lets it pass on every constraint.
    fn owner_that_passes(&self, now: Instant) -> Option<QueueKey> {
        let passes = |queue_key: &QueueKey| {
            let Some(ticket) = self.facts.tickets.get(queue_key) else { return false };
            let candidate = Candidate { passes: true, ..self.candidate_of(*queue_key, ticket) };
            let owned = self.index.floor_owners.contains(&ticket.agent);
            let shortfalls = |constraint: ConstraintId| {
                !ticket.earmarked.contains(constraint) && self.refuses(&candidate, constraint, now)
            };
            let constraints = self.index.lines.ids();
            owned
                && matches!(ticket.phase, Phase::Line(_))
                && !constraints.into_iter().any(shortfalls)
        };
        if self.index.line_owners.is_empty() {
            return None;
        }
        // No ticket can pass where no ticket is in a line.
        let constraints =
            self.index.lines.ids().filter(|constraint| !self.index.lines[*constraint].is_empty());
        let heads = constraints
            .clone()
            .filter_map(|constraint| self.index.lines[constraint].first().copied());
        let others = constraints.flat_map(|constraint| self.floor_covered_in_line(constraint, now));
        heads.chain(others).filter(passes).min()
    }

    /// Tickets in the line of a constraint whose agent's floor may let them pass there. All others
    /// come after the head.
    fn floor_covered_in_line(
        &self,
        constraint: ConstraintId,
        now: Instant,
    ) -> impl Iterator<Item = QueueKey> {
        let line = &self.index.lines[constraint];
        let gives = |usage: UsageView<'_>| usage.free_at(now) > 0 || usage.probe_open_at(now);
        let floored = self.index.compiled.constraints[constraint].floored;
        let open = floored && !line.is_empty() && gives(self.usage(constraint));
        let owners = self.index.floor_owners.iter().copied().filter(move |_| open);
        let unfilled = owners.filter(move |owner| self.unfilled(*owner, constraint, now) > 0);
        let its = unfilled.flat_map(|owner| self.tickets_of(owner));
        its.filter(|queue_key| line.contains(queue_key))
    }

    /// Whether a ticket cannot be served before its deadline.
    fn is_too_late(&self, queue_key: QueueKey, now: Instant) -> bool {
        let Some(ticket) = self.facts.tickets.get(&queue_key) else { return false };
        // A ticket that waits for a call in flight to end may still be in time.
        let instant = self.admitted_at(&self.candidate_of(queue_key, ticket), now);
        instant.is_some_and(|at| at > ticket.deadline)
    }

    fn ticket_lacks(&self, queue_key: QueueKey, constraint: ConstraintId, now: Instant) -> bool {
        let ticket = self.facts.tickets.get(&queue_key);
        ticket.is_some_and(|ticket| {
            self.refuses(&self.candidate_of(queue_key, ticket), constraint, now)
        })
    }

    pub(crate) fn candidate_of<'a>(
        &self,
        queue_key: QueueKey,
        ticket: &'a Ticket,
    ) -> Candidate<'a> {
        let rule = self.index.agent_loads[ticket.agent].rule;
        let passes = matches!(ticket.phase, Phase::Due(_));
        let (cost, returns, holds) = (&ticket.call.cost, ticket.returns, ticket.holds);
        Candidate {
            agent: Some(ticket.agent),
            rule,
            cost,
            queue_key,
            passes,
            returns,
            holds,
            is_retry: false,
            since: Some(ticket.since),
            start: ticket.start,
            ignores_gate: false,
        }
    }

    /// Puts a ticket where it belongs: held back, too late, in a line, or due.
    pub(crate) fn enqueue(&mut self, queue_key: QueueKey, now: Instant) {
        self.dequeue(queue_key);
        let Some(ticket) = self.facts.tickets.get(&queue_key) else { return };
        let candidate = self.candidate_of(queue_key, ticket);
        if let Some((reason, until)) = self.held_back(&candidate, now) {
            self.set_phase(queue_key, Phase::Held { reason, until });
            return;
        }
        if self.is_too_late(queue_key, now) {
            self.set_phase(queue_key, Phase::TooLate);
        } else {
            self.advance_ticket(queue_key, now);
        }
    }

    /// Moves a ticket to the next line, or makes it due.
    pub(crate) fn advance_ticket(&mut self, queue_key: QueueKey, now: Instant) {
        let Some(ticket) = self.facts.tickets.get(&queue_key) else { return };
        match self.line_for(&self.candidate_of(queue_key, ticket), ticket.earmarked, now) {
            Some(constraint) => {
                self.set_phase(queue_key, Phase::Line(constraint));
                self.mark_dirty(constraint);
            }
            None => self.make_due(queue_key, now),
        }
    }

    /// Earmarks everything for a ticket that lacks nothing.
    fn make_due(&mut self, queue_key: QueueKey, now: Instant) {
        let Some(ticket) = self.facts.tickets.get(&queue_key) else { return };
        let (key, earmarked) = (ticket.key, ticket.earmarked);
        let until = now + self.claim_time(ticket.session);
        for constraint in self.index.compiled.constraints.ids() {
            if !earmarked.contains(constraint) {
                self.earmark(queue_key, constraint);
                self.mark_dirty(constraint);
            }
        }
        self.set_phase(queue_key, Phase::Due(until));
        self.effects.wake.push(key);
    }

    /// Takes a ticket out of its line and releases its earmarks, so that it blocks nobody.
    pub(crate) fn dequeue(&mut self, queue_key: QueueKey) {
        let Some(ticket) = self.facts.tickets.get(&queue_key) else { return };
        if let Phase::Line(constraint) = ticket.phase {
            self.mark_dirty(constraint);
        }
        let earmarked = self.facts.tickets[&queue_key].earmarked;
        for constraint in earmarked.iter() {
            self.release_earmark(queue_key, constraint);
        }
        self.set_phase(queue_key, Phase::Lapsed);
    }

    /// Releases earmarks from the last ticket backwards until no more units are earmarked than are
    /// free.
    fn release_excess(&mut self, constraint: ConstraintId, now: Instant) {
        if self.index.earmarks[constraint].holders.is_empty() {
            return;
        }
        let usage = self.usage(constraint);
        let free = usage.free_at(now);
        let alone = usage.is_empty_at(now) || usage.probe_open_at(now);
        let (ramp_left, is_first) = self.ramp_left(constraint, now).unwrap_or((u64::MAX, true));
        loop {
            let earmarked = &self.index.earmarks[constraint];
            let all: u64 = earmarked.by_tier.iter().sum();
            let single = earmarked.holders.len() == 1;
            let fits = all <= free || single && alone;
            if fits && (all <= ramp_left || single && is_first) {
                return;
            }
            let Some(last) = self.last_earmarked(constraint, now) else { return };
            self.release(last, constraint);
        }
    }

    /// Releases the earmarks of tickets behind the head of a line.
    fn release_behind(&mut self, head: QueueKey, constraint: ConstraintId, now: Instant) {
        while let Some(last) = self.last_earmarked(constraint, now) {
            if self.rank_of_ticket(last, constraint, now) < Rank::of(head) {
                return;
            }
            self.release(last, constraint);
        }
    }

    /// Releases one earmark. A due ticket goes back into the line.
    fn release(&mut self, queue_key: QueueKey, constraint: ConstraintId) {
        self.release_earmark(queue_key, constraint);
        if let Some(Phase::Due(_)) = self.facts.tickets.get(&queue_key).map(|ticket| ticket.phase) {
            self.set_phase(queue_key, Phase::Line(constraint));
        }
    }

    /// The ticket with earmarks on a constraint that ranks behind all others.
    fn last_earmarked(&self, constraint: ConstraintId, now: Instant) -> Option<QueueKey> {
        let holders = &self.index.earmarks[constraint].holders;
        if self.index.compiled.constraints[constraint].floored {
            // In the lowest tier, tickets covered by a floor rank before the others.
            let last = holders.last()?;
            let mut tier = holders.range(QueueKey::first_of(last.tier)..).rev();
            let behind =
                |queue_key: &&QueueKey| !self.rank_of_ticket(**queue_key, constraint, now).covered;
            tier.find(behind).or(Some(last)).copied()
        } else {
            holders.last().copied()
        }
    }

    /// Units returned: tickets that were too late for their deadline may be in time now.
    fn retry_too_late(&mut self, now: Instant) {
        if self.index.returned.is_empty() || self.index.too_late.is_empty() {
            return;
        }
        let mut after = None;
        for _ in 0..bounds::TOO_LATE_LOOKS {
            let next = match after {
                None => self.index.too_late.first().copied(),
                Some(last) => self.index.too_late.range(next_to(last)..).next().copied(),
            };
            let Some(queue_key) = next else { return };
            self.enqueue(queue_key, now);
            after = Some(queue_key);
        }
    }

    fn wake_earlier(&mut self) {
        let returned = core::mem::take(&mut self.index.returned);
        // Tickets that are held back stand in no line, but the returned units may admit them as
        // soon as the pause or their return window ends.
        let opened = self.index.compiled.gate.is_some_and(|gate| returned.contains(gate));
        if !returned.is_empty() && self.facts.pause.is_some() || opened {
            let first = self.facts.tickets.values().take(bounds::WAKE_EARLIER);
            self.effects.wake.extend(first.map(|ticket| ticket.key));
        }
        if returned.is_empty() {
            return;
        }
        for line in &self.index.lines {
            for queue_key in line.iter().take(bounds::WAKE_EARLIER) {
                let Some(ticket) = self.facts.tickets.get(queue_key) else { continue };
                let needs = |constraint: ConstraintId| {
                    self.index.compiled.constraints[constraint].need(&ticket.call.cost) > 0
                };
                if returned.iter().any(needs) {
                    self.effects.wake.push(ticket.key);
                }
            }
        }
    }

    /// Enqueues every ticket again, in order, after a pause began or ended. Lapsed tickets block
    /// nobody until they are claimed.
    pub(crate) fn enqueue_all(&mut self, now: Instant) {
        let waiting = self.facts.tickets.iter().filter(|(_, ticket)| ticket.phase != Phase::Lapsed);
        let queue_keys: Vec<QueueKey> = waiting.map(|(queue_key, _)| *queue_key).collect();
        self.enqueue_these(&queue_keys, now);
    }

    pub(crate) fn enqueue_these(&mut self, queue_keys: &[QueueKey], now: Instant) {
        for queue_key in queue_keys {
            self.dequeue(*queue_key);
        }
        for queue_key in queue_keys {
            self.enqueue(*queue_key, now);
        }
    }

    /// Ends the selected tickets at once with a reason.
    pub(crate) fn end_tickets(
        &mut self,
        why: Reason,
        now: Instant,
        meant: impl Fn(&Ticket) -> bool,
    ) {
        let tickets = self.facts.tickets.iter().filter(|(_, ticket)| meant(ticket));
        let queue_keys: Vec<QueueKey> = tickets.map(|(queue_key, _)| *queue_key).collect();
        for queue_key in queue_keys {
            self.effects.wake.push(self.facts.tickets[&queue_key].key);
            self.end_ticket(queue_key, Some(why), now);
        }
    }

    /// Ends a ticket without a lease.
    pub(crate) fn end_ticket(&mut self, queue_key: QueueKey, why: Option<Reason>, now: Instant) {
        self.dequeue(queue_key);
        let Some(ticket) = self.remove_ticket(queue_key) else { return };
        self.pass_ended_ticket(queue_key, &ticket);
        self.touch_agent(ticket.agent, now);
        self.touch_tier(queue_key.tier, ticket.agent, now);
        self.denied_ticket_ended(ticket.agent, ticket.key, now);
        self.id_unused(ticket.call.id.as_deref(), ticket.key);
        if let Some(why) = why {
            let agent = self.facts.agents[ticket.agent].name.clone();
            let waited = now.since(ticket.since);
            self.effects.notices.push(Notice::TicketEnded {
                ticket: ticket.key,
                agent,
                why,
                waited,
            });
        }
    }
}

const fn next_to(queue_key: QueueKey) -> QueueKey {
    QueueKey { arrival: queue_key.arrival.saturating_add(1), ..queue_key }
}

//! What time alone changes, in order.
//!
//! Every change has an instant of its own, so the number of steps does not matter: advancing to an
//! instant in between and then on gives the same state as advancing at once.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::Resets;
use crate::config::compiled::ConstraintKind;
use crate::fuel::Fuel;
use crate::id::ConstraintId;
use crate::lease::admission::Candidate;
use crate::outcome::{Notice, Reason, Reclaim};
use crate::queue::ticket::{Phase, QueueKey};
use crate::rules::floors_now::FloorsNow;
use crate::state::{Index, State, Timer};
use crate::time::Instant;
use crate::usage::counter::{Reset, ResetPhase};

impl State {
    /// Advances the ledger to `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        let mut next = self.next;
        let mut fuel = Fuel::new(bounds::CHANGES);
        while let Some(instant) = next.filter(|next| *next <= now) {
            // Without fuel, everything that is left happens at the end: late, never early.
            let instant = if fuel.burn() { instant } else { now };
            self.facts.clock = instant;
            self.forget_expired(instant);
            self.fire(instant);
            self.serve(instant);
            next = self.next_change(instant).filter(|_| instant < now || fuel.burn());
        }
        self.facts.clock = now;
        self.forget_expired(now);
    }

    /// The next instant after `now` at which time alone changes something.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let always = [
            self.index.timers.first().map(|(at, _)| *at),
            self.facts.pause,
            self.facts.terminal.and_then(|terminal| terminal.until),
            self.gate_next_event(),
            self.ramp_next_step(),
            self.zone_next_event(now),
            self.promotion_next_event(),
        ];
        let always = always.into_iter().flatten().map(|at| at.max(now)).min();
        always.into_iter().chain(self.lines_next_event(now)).min()
    }

    /// When time alone may give units to a ticket in a line.
    fn lines_next_event(&self, now: Instant) -> Option<Instant> {
        if self.facts.tickets.is_empty() {
            return None;
        }
        let constraints = self.index.lines.ids();
        let heads = constraints.filter_map(|at| self.constraint_next_event(at, now));
        heads.chain(self.owners_next_event(now)).min()
    }

    /// When time alone may give units to the head of a line.
    fn constraint_next_event(&self, constraint: ConstraintId, now: Instant) -> Option<Instant> {
        let head = *self.index.lines[constraint].first()?;
        let ticket = self.facts.tickets.get(&head)?;
        let room = self.room_comes(&self.candidate_of(head, ticket), constraint, now);
        if !self.index.compiled.constraints[constraint].floored {
            return room;
        }
        // Floors move with their owners' use and idle time. Looking at each of those instants is
        // enough.
        let ageing = self.index.floor_owners.iter().filter_map(|owner| {
            let usage = self.floor_usage(*owner, constraint)?;
            self.agent_usage(Some(*owner), usage).next_ageing(now)
        });
        let owners = self.index.floor_owners.iter();
        let lending = owners.filter_map(|owner| self.next_lending(*owner, constraint, now));
        let waited = self.floors_end(&self.candidate_of(head, ticket), constraint);
        let all = room.into_iter().chain(ageing).chain(lending).chain(waited);
        all.filter(|at| *at > now).min()
    }

    /// When time alone may let a floor owner pass. It need not stand in the line of the constraint
    /// that it lacks.
    fn owners_next_event(&self, now: Instant) -> Option<Instant> {
        let queue_keys = self.index.line_owners.iter().map(|(_, queue_key)| *queue_key);
        let mut owners = queue_keys.filter_map(|queue_key| {
            let ticket = self.facts.tickets.get(&queue_key)?;
            Some(Candidate { passes: true, ..self.candidate_of(queue_key, ticket) })
        });
        let first = owners.next()?;
        let constraints = self.index.compiled.constraints.ids();
        let rooms =
            constraints.clone().filter_map(|constraint| self.room_comes(&first, constraint, now));
        let rooms = rooms.min();
        // The next room depends on the size of the call.
        let rates = constraints
            .filter(|at| self.index.compiled.constraints[*at].kind == ConstraintKind::Rate);
        let rates = rates.map(|constraint| (constraint, FloorsNow::new(self, constraint, now)));
        let rates: Vec<_> = rates.collect();
        let of_others = owners.flat_map(|candidate| {
            let rooms = rates.iter().filter_map(move |(constraint, kept)| {
                self.room_beside(&candidate, *constraint, kept.from(self, &candidate, now), now)
            });
            rooms.min()
        });
        rooms.into_iter().chain(of_others).min()
    }

    /// When time alone next frees units of a constraint that may be enough for a candidate.
    pub(crate) fn room_comes(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> Option<Instant> {
        self.room_beside(
            candidate,
            constraint,
            self.kept_for_others(candidate, constraint, now),
            now,
        )
    }

    fn room_beside(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        kept: u64,
        now: Instant,
    ) -> Option<Instant> {
        let declared = &self.index.compiled.constraints[constraint];
        let need = declared.need(candidate.cost);
        let before = match self.index.earmarks[constraint].holders.is_empty() {
            true => 0,
            false => {
                let rank = self.rank(candidate, constraint, need, now);
                self.earmarked_before(constraint, rank, now)
            }
        };
        let want = need.saturating_add(before).saturating_add(kept);
        self.usage(constraint).next_room(want, now)
    }

    fn forget_expired(&mut self, now: Instant) {
        self.forget_old_ids(now);
        self.forget_idle_sessions(now);
    }

    /// Runs everything that is due at exactly this instant.
    fn fire(&mut self, now: Instant) {
        while let Some((at, timer)) = self.index.timers.first().copied() {
            if at > now {
                break;
            }
            self.index.timers.pop_first();
            match timer {
                Timer::LeaseExpiry(key) => self.reclaim(key, Reclaim::Expired, now),
                Timer::TicketDeadline(queue_key) => {
                    self.end_ticket(queue_key, Some(Reason::Deadline), now)
                }
                Timer::TicketRecheck(queue_key) => self.on_timer(queue_key, now),
                Timer::ProviderReset(constraint) => self.provider_resets(constraint),
                Timer::CalendarReset(constraint) => self.calendar_resets(constraint),
            }
        }
        self.end_pause_and_terminal(now);
        self.expire_gate(now);
        self.advance_ramp(now);
        self.promote_all(now);
        self.update_zone(now);
        // Units may have aged out anywhere, so every line is served.
        for constraint in self.index.lines.ids() {
            self.mark_dirty(constraint);
        }
    }

    /// A due ticket that nobody claimed lapses. A ticket that was held back is enqueued again.
    fn on_timer(&mut self, queue_key: QueueKey, now: Instant) {
        match self.facts.tickets.get(&queue_key).map(|ticket| ticket.phase) {
            Some(Phase::Due(_)) => self.lapse(queue_key),
            Some(_) => self.enqueue(queue_key, now),
            None => {}
        }
    }

    fn end_pause_and_terminal(&mut self, now: Instant) {
        if self.facts.pause.is_some_and(|until| until <= now) {
            self.end_pause_now(now);
        }
        let terminal = self.facts.terminal.and_then(|terminal| terminal.until);
        if let Some(at) = terminal.filter(|until| *until <= now) {
            self.facts.terminal = None;
            self.effects.notices.push(Notice::Resumed { at, by: None });
        }
    }

    /// The provider's window ends as announced. Calls in flight now may count in the next window.
    fn provider_resets(&mut self, constraint: ConstraintId) {
        let carried = self.charged_in_flight(constraint);
        if let Some(Reset { phase: phase @ ResetPhase::Announced, .. }) =
            &mut self.facts.counters[constraint].reset
        {
            *phase = ResetPhase::Passed { carried };
        }
        self.mark_dirty(constraint);
    }
}

impl Index {
    /// Sets a timer for the end of the provider's window.
    pub(crate) fn watch_reset(&mut self, constraint: ConstraintId, reset: &Reset) {
        let counts = self.compiled.constraints[constraint].resets == Resets::Provider;
        if counts && reset.phase == ResetPhase::Announced {
            self.timers.insert((reset.at, Timer::ProviderReset(constraint)));
        }
    }
}

//! The end of sessions: when a participant reports that a process died, its leases and tickets end.
//!
//! No session ends by time alone, because a stopped process is alive and keeps its leases. A
//! session without leases and tickets is forgotten [`bounds::SILENCE`] after its last event.

use alloc::vec::Vec;
use core::ops::Bound;

use crate::bounds;
use crate::event::Key;
use crate::lease::LeaseOwner;
use crate::lease::session::Session;
use crate::outcome::{Answer, Notice, Reclaim};
use crate::queue::ticket::QueueKey;
use crate::state::State;
use crate::time::{Instant, Span};

impl State {
    /// Ends the leases and tickets of a session. Leases settle at their estimate. Tickets with an
    /// id keep their position without blocking anybody; the others are removed.
    pub(crate) fn end_session(&mut self, session: u64, now: Instant) {
        if !self.index.in_flight_by_session.contains_key(&session) {
            return;
        }
        self.effects.notices.push(Notice::SessionEnded { session });
        let its = |holder: LeaseOwner| holder == LeaseOwner::Session(session);
        let leases = self.facts.leases.iter().filter(|(_, lease)| its(lease.owner));
        let leases: Vec<Key> = leases.map(|(key, _)| *key).collect();
        for lease in leases {
            // The process may have died before it handed the lease to its caller, so the next
            // reserve with this id may make the call. The units of this lease stay charged.
            let id = self.facts.leases.get(&lease).and_then(|lease| lease.call.id.clone());
            self.id_unused(id.as_deref(), lease);
            self.reclaim(lease, Reclaim::OwnerGone, now);
        }
        let tickets = self.facts.tickets.iter().filter(|(_, t)| t.session == Some(session));
        let tickets: Vec<QueueKey> = tickets.map(|(queue_key, _)| *queue_key).collect();
        for queue_key in tickets {
            self.abandon_ticket(queue_key, now);
        }
    }

    /// Returns how long units stay earmarked for a ticket that becomes due. A session that missed
    /// turns since its last event may be dead, and each of its tickets would keep units from others
    /// for the whole time, one after another.
    pub(crate) fn claim_time(&self, session: Option<u64>) -> Span {
        let missed = session.and_then(|session| self.facts.sessions.get(&session));
        let shift = missed.map_or(0, |known| known.missed.saturating_mul(3).min(63));
        let whole = self.index.compiled.claim;
        Span((whole.0 >> shift).max(whole.0 / bounds::SHORTEST_CLAIM).max(1))
    }

    /// Handles a due ticket that nobody claimed in time.
    pub(crate) fn lapse(&mut self, queue_key: QueueKey) {
        let session = self.facts.tickets.get(&queue_key).and_then(|ticket| ticket.session);
        if let Some(known) = session.and_then(|session| self.facts.sessions.get_mut(&session)) {
            known.missed = known.missed.saturating_add(1);
        }
        self.dequeue(queue_key);
    }

    /// Handles a caller that left and may ask again with its id.
    pub(crate) fn leave(&mut self, ticket: Key, now: Instant) -> Answer {
        if let Some(queue_key) = self.index.queue_key_of.get(&ticket) {
            self.abandon_ticket(*queue_key, now);
        }
        Answer::Done
    }

    /// Removes a ticket whose session ended, or detaches it if its id can take it over.
    fn abandon_ticket(&mut self, queue_key: QueueKey, now: Instant) {
        let Some(ticket) = self.facts.tickets.get(&queue_key) else { return };
        if ticket.call.id.is_none() {
            self.end_ticket(queue_key, None, now);
            return;
        }
        self.dequeue(queue_key);
        self.update_ticket(queue_key, |ticket| ticket.session = None);
    }

    /// Returns the sessions with leases or tickets that sent no event for [`bounds::SILENCE`]. A
    /// participant may report them as ended if it cannot test whether their process is alive.
    pub fn silent_sessions(&self, now: Instant) -> impl Iterator<Item = u64> {
        let silent = self
            .index
            .last_seen
            .iter()
            .take_while(move |(last_seen, _)| *last_seen + bounds::SILENCE <= now);
        silent.map(|(_, session)| *session).filter(|session| self.session_in_use(*session))
    }

    /// Records an event of a session.
    pub(crate) fn touch_session(&mut self, session: u64, number: u64, now: Instant) {
        let new = Session { last: number, last_seen: now, ended: false, missed: 0 };
        let known = self.facts.sessions.insert(session, new);
        if known.is_some_and(|known| known.last_seen == now) {
            return;
        }
        if let Some(known) = known {
            self.index.last_seen.remove(&(known.last_seen, session));
        }
        self.index.last_seen.insert((now, session));
    }

    fn session_in_use(&self, session: u64) -> bool {
        self.index.in_flight_by_session.contains_key(&session)
    }

    /// Forgets silent sessions without leases and tickets. This needs no timer: only an event of
    /// the session can tell the difference.
    pub(crate) fn forget_idle_sessions(&mut self, now: Instant) {
        while let Some(session) = self.index.silence.released.pop() {
            let known = self.facts.sessions.get(&session);
            let silent = known.is_some_and(|known| known.last_seen + bounds::SILENCE <= now);
            if silent && !self.session_in_use(session) {
                self.forget_session(session);
            }
        }
        if now < self.index.silence.next {
            return;
        }
        let behind = self.index.silence.checked.map_or(Bound::Unbounded, Bound::Excluded);
        let mut unchecked = self.index.last_seen.range((behind, Bound::Unbounded)).peekable();
        let (mut idle, mut checked) = (Vec::new(), self.index.silence.checked);
        while let Some(seen) = unchecked.next_if(|seen| seen.0 + bounds::SILENCE <= now) {
            checked = Some(*seen);
            if !self.session_in_use(seen.1) {
                idle.push(seen.1);
            }
        }
        // Sessions that are seen from now on are silent later than that.
        let next = unchecked.peek().map_or(now, |(last_seen, _)| now.min(*last_seen));
        (self.index.silence.checked, self.index.silence.next) = (checked, next + bounds::SILENCE);
        for session in idle {
            self.forget_session(session);
        }
    }

    pub(crate) fn forget_session(&mut self, session: u64) {
        if let Some(known) = self.facts.sessions.remove(&session) {
            self.index.last_seen.remove(&(known.last_seen, session));
        }
    }

    /// Makes room for a session: evicts the idle one with the oldest last event. Idle sessions are
    /// only remembered to recognise late duplicates of their events.
    pub(crate) fn evict_idle_session(&mut self) {
        if self.facts.sessions.len() < bounds::SESSIONS_KEPT {
            return;
        }
        let idle = |session: &u64| !self.session_in_use(*session);
        let oldest = self.index.last_seen.iter().map(|(_, session)| *session).find(idle);
        if let Some(session) = oldest {
            self.forget_session(session);
        }
    }
}

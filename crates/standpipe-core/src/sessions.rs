//! Sessions end by silence or by a death that was seen; what they held ends with them.

use alloc::vec::Vec;

use crate::bounds;
use crate::event::Key;
use crate::lease::Holder;
use crate::outcome::{Notice, Reclaim};
use crate::state::State;
use crate::ticket::Place;
use crate::time::Instant;

impl State {
    /// Ends what a session holds: its leases are settled at their estimate, its tickets are gone,
    /// but for those with an id, which keep their place without blocking anybody.
    pub(crate) fn end_session(&mut self, session: u64, now: Instant) {
        if !self.index.holdings.contains_key(&session) {
            return;
        }
        self.news.notices.push(Notice::SessionEnded { session });
        let its = |holder: Holder| holder == Holder::Session(session);
        let leases = self.facts.leases.iter().filter(|(_, lease)| its(lease.holder));
        let leases: Vec<Key> = leases.map(|(key, _)| *key).collect();
        for lease in leases {
            self.reclaim(lease, Reclaim::OwnerGone, now);
        }
        let tickets = self.facts.tickets.iter().filter(|(_, t)| t.session == Some(session));
        let tickets: Vec<Place> = tickets.map(|(place, _)| *place).collect();
        for place in tickets {
            self.leave_ticket(place, now);
        }
    }

    fn leave_ticket(&mut self, place: Place, now: Instant) {
        let Some(ticket) = self.facts.tickets.get(&place) else { return };
        if ticket.call.id.is_none() {
            self.end_ticket(place, None, now);
            return;
        }
        self.step_out(place);
        let ticket = self.facts.tickets.get_mut(&place);
        if let Some(session) = ticket.and_then(|ticket| ticket.session.take()) {
            self.index.let_go(session);
        }
    }

    pub(crate) fn forget_session(&mut self, session: u64) {
        if let Some(known) = self.facts.sessions.remove(&session) {
            self.index.heard.remove(&(known.heard, session));
        }
    }

    /// Sessions that hold nothing are remembered only to recognise late copies of their events;
    /// when there are too many, the one not heard of for longest goes.
    pub(crate) fn make_room_for_a_session(&mut self) {
        if self.facts.sessions.len() < bounds::SESSIONS_KEPT {
            return;
        }
        let idle = |session: &u64| !self.index.holdings.contains_key(session);
        let oldest = self.index.heard.iter().map(|(_, session)| *session).find(idle);
        if let Some(session) = oldest {
            self.forget_session(session);
        }
    }
}

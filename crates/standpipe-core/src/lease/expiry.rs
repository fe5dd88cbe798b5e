//! The index of leases: when each expires, and the counts it is part of.
//!
//! A lease with a time to live expires with it. Any lease expires after `longest_lease` without
//! progress. A lease of a session does not expire by itself: whether its process is dead is a fact
//! that a participant appends, never a conclusion from time.

use crate::event::Key;
use crate::lease::{Lease, LeaseOwner};
use crate::state::{Index, Timer};
use crate::time::Instant;

impl Index {
    pub(crate) fn add_lease(&mut self, key: Key, lease: &Lease) {
        for at in self.timers_of(lease).into_iter().flatten() {
            self.timers.insert((at, Timer::LeaseExpiry(key)));
        }
        if let LeaseOwner::Session(session) = lease.owner {
            *self.in_flight_by_session.entry(session).or_default() += 1;
        }
        self.tier_leases[lease.tier as usize] += 1;
    }

    pub(crate) fn remove_lease(&mut self, key: Key, lease: &Lease) {
        for at in self.timers_of(lease).into_iter().flatten() {
            self.timers.remove(&(at, Timer::LeaseExpiry(key)));
        }
        if let LeaseOwner::Session(session) = lease.owner {
            self.session_released(session);
        }
        self.tier_leases[lease.tier as usize] -= 1;
    }

    /// Records the time of a session's last event.
    pub(crate) fn check_sequence(&mut self, session: u64, before: Instant, now: Instant) {
        self.last_seen.remove(&(before, session));
        self.last_seen.insert((now, session));
    }

    /// When a lease expires by itself.
    fn timers_of(&self, lease: &Lease) -> [Option<Instant>; 2] {
        let too_long = self.compiled.longest_lease.map(|longest| lease.progressed + longest);
        let expires = match lease.owner {
            LeaseOwner::Ttl { expires, .. } => Some(expires),
            LeaseOwner::Session(_) => None,
        };
        [too_long, expires]
    }
}

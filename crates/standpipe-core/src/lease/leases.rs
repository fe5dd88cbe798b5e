//! The table of leases, with its indexes: when each expires, and the counts it is part of.
//!
//! A lease with a time to live expires with it. Any lease expires after `longest_lease` without
//! progress. A lease of a session does not expire by itself: whether its process is dead is a fact
//! that a participant appends, never a conclusion from time.
//!
//! Invariant: leases are changed through these functions only, so the indexes follow.

use crate::event::Key;
use crate::lease::{Lease, LeaseOwner};
use crate::state::{Index, State, Timer};
use crate::time::Instant;

impl State {
    pub(crate) fn insert_lease(&mut self, key: Key, lease: Lease) {
        self.index.add_lease(key, &lease);
        self.facts.leases.insert(key, lease);
    }

    pub(crate) fn remove_lease(&mut self, key: Key) -> Option<Lease> {
        let lease = self.facts.leases.remove(&key)?;
        self.index.remove_lease(key, &lease);
        Some(lease)
    }

    /// Changes a lease, if it exists.
    pub(crate) fn update_lease(&mut self, key: Key, change: impl FnOnce(&mut Lease)) {
        if let Some(lease) = self.facts.leases.get_mut(&key) {
            self.index.remove_lease(key, lease);
            change(lease);
            self.index.add_lease(key, lease);
        }
    }

    /// Returns when a lease expires; [`Instant::NEVER`] if it does not, or if there is no such
    /// lease.
    #[must_use]
    pub fn lease_ends(&self, key: Key) -> Instant {
        let lease = self.facts.leases.get(&key);
        let timers = lease.into_iter().flat_map(|lease| self.index.timers_of(lease));
        timers.flatten().min().unwrap_or(Instant::NEVER)
    }
}

impl Index {
    pub(crate) fn add_lease(&mut self, key: Key, lease: &Lease) {
        for at in self.timers_of(lease).into_iter().flatten() {
            self.timers.insert((at, Timer::LeaseExpiry(key)));
        }
        if let LeaseOwner::Session(session) = lease.owner {
            self.session_holds(session);
        }
        let slots = lease.call.cost.slots();
        self.slots += slots;
        self.agent_loads[lease.agent].slots += slots;
        self.agent_loads[lease.agent].leases += 1;
        self.tier_leases[lease.tier as usize] += 1;
        self.count_floor_calls(lease.agent, |calls| calls.leases[lease.tier as usize] += 1);
    }

    fn remove_lease(&mut self, key: Key, lease: &Lease) {
        for at in self.timers_of(lease).into_iter().flatten() {
            self.timers.remove(&(at, Timer::LeaseExpiry(key)));
        }
        if let LeaseOwner::Session(session) = lease.owner {
            self.session_released(session);
        }
        let slots = lease.call.cost.slots();
        self.slots -= slots;
        self.agent_loads[lease.agent].slots -= slots;
        self.agent_loads[lease.agent].leases -= 1;
        self.tier_leases[lease.tier as usize] -= 1;
        self.count_floor_calls(lease.agent, |calls| calls.leases[lease.tier as usize] -= 1);
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

//! In which order leases end if nothing is heard, without a look at all of them.
//!
//! A lease ends with its time to live or its session's silence, and at the latest when it has gone
//! on too long without progress. A heartbeat moves all leases of a session at once, so these are
//! not kept in one order: the order of their sessions and that of the leases are merged when asked.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::bounds;
use crate::event::Key;
use crate::lease::{Holder, Lease};
use crate::session::Session;
use crate::state::{Index, State, Timer};
use crate::time::Instant;

/// Before and after all names.
const FIRST: Key = Key { session: 0, number: 0 };
const LAST: Key = Key { session: u64::MAX, number: u64::MAX };

impl State {
    /// Every lease and when it ends if nothing is heard, the earliest first.
    pub(crate) fn endings(&self) -> impl Iterator<Item = (Instant, &Lease)> {
        let mut alone = self.index.lease_ends.iter().copied().peekable();
        let sessions = self.index.lease_sessions.iter();
        let silent = sessions.flat_map(|(heard, session)| {
            let ends = *heard + bounds::SILENCE;
            self.leases_of_session(*session).map(move |key| (ends, key))
        });
        let mut silent = silent.peekable();
        let merged = core::iter::from_fn(move || {
            let with_session = match (alone.peek(), silent.peek()) {
                (Some((alone, _)), Some((silent, _))) => silent <= alone,
                (alone, _) => alone.is_none(),
            };
            let next = if with_session { silent.next() } else { alone.next() };
            next.map(|(at, key)| (at, key, with_session))
        });
        merged.filter_map(|(at, key, with_session)| {
            let lease = self.facts.leases.get(&key)?;
            // A lease of a session may be there twice: the earlier counts, the session's of equals.
            let counts = match lease.holder {
                Holder::Ttl { .. } => true,
                Holder::Session(_) if with_session => at == self.lease_ends_at(lease),
                Holder::Session(session) => at < self.session_ends(session),
            };
            counts.then_some((at, lease))
        })
    }

    /// Those of one agent with a floor or a cap.
    pub(crate) fn endings_of<'a>(
        &'a self,
        agent: AgentId,
    ) -> Box<dyn Iterator<Item = (Instant, &'a Lease)> + 'a> {
        let count = self.index.loads[usize::from(agent)].leases as usize;
        // Among few the first is found by sorting them, among many by going through all in order.
        if count * count > self.facts.leases.len() {
            return Box::new(self.endings().filter(move |(_, lease)| lease.agent == agent));
        }
        let its = self.leases_of_agent(agent);
        let mut endings: Vec<_> = its.map(|lease| (self.lease_ends_at(lease), lease)).collect();
        endings.sort_by_key(|(ends, _)| *ends);
        Box::new(endings.into_iter())
    }

    /// No lease ends before the first of these if nothing is heard, and none after the second.
    pub(crate) fn all_end_between(&self) -> Option<(Instant, Instant)> {
        let (first, _) = self.endings().next()?;
        let alone = self.index.lease_ends.last().map(|(at, _)| *at);
        let silent = self.index.lease_sessions.last().map(|(heard, _)| *heard + bounds::SILENCE);
        Some((first, alone.max(silent)?))
    }

    /// When the last lease of an agent with a floor or a cap ends if nothing is heard.
    pub(crate) fn last_ending_of(&self, agent: AgentId) -> Option<Instant> {
        self.leases_of_agent(agent).map(|lease| self.lease_ends_at(lease)).max()
    }

    fn leases_of_session(&self, session: u64) -> impl Iterator<Item = Key> {
        let its = self.index.session_leases.range((session, FIRST)..=(session, LAST));
        its.map(|(_, key)| *key)
    }

    fn leases_of_agent(&self, agent: AgentId) -> impl Iterator<Item = &Lease> {
        let its = self.index.metered_leases.range((agent, FIRST)..=(agent, LAST));
        its.filter_map(|(_, key)| self.facts.leases.get(key))
    }
}

impl Index {
    pub(crate) fn add_lease(&mut self, key: Key, lease: &Lease, sessions: &BTreeMap<u64, Session>) {
        for at in self.timers_of(lease).into_iter().flatten() {
            self.timers.insert((at, Timer::LeaseEnds(key)));
        }
        if let Some(latest) = self.timers_of(lease).into_iter().flatten().min() {
            self.lease_ends.insert((latest, key));
        }
        if let Holder::Session(session) = lease.holder {
            *self.holdings.entry(session).or_default() += 1;
            self.session_leases.insert((session, key));
            if let Some(known) = sessions.get(&session) {
                self.lease_sessions.insert((known.heard, session));
            }
        }
        self.tier_leases[lease.tier as usize] += 1;
        if self.metered.contains(&lease.agent) {
            self.metered_leases.insert((lease.agent, key));
        }
    }

    pub(crate) fn remove_lease(
        &mut self,
        key: Key,
        lease: &Lease,
        sessions: &BTreeMap<u64, Session>,
    ) {
        for at in self.timers_of(lease).into_iter().flatten() {
            self.timers.remove(&(at, Timer::LeaseEnds(key)));
        }
        if let Some(latest) = self.timers_of(lease).into_iter().flatten().min() {
            self.lease_ends.remove(&(latest, key));
        }
        if let Holder::Session(session) = lease.holder {
            self.let_go(session);
            self.session_leases.remove(&(session, key));
            let mut others = self.session_leases.range((session, FIRST)..=(session, LAST));
            if others.next().is_none()
                && let Some(known) = sessions.get(&session)
            {
                self.lease_sessions.remove(&(known.heard, session));
            }
        }
        self.tier_leases[lease.tier as usize] -= 1;
        self.metered_leases.remove(&(lease.agent, key));
    }

    /// A session was heard: its leases live on.
    pub(crate) fn hear(&mut self, session: u64, before: Instant, now: Instant) {
        self.heard.remove(&(before, session));
        self.heard.insert((now, session));
        if self.lease_sessions.remove(&(before, session)) {
            self.lease_sessions.insert((now, session));
        }
    }

    /// When a lease ends whatever is heard of its session.
    fn timers_of(&self, lease: &Lease) -> [Option<Instant>; 2] {
        let too_long = self.plan.longest_lease.map(|longest| lease.progressed + longest);
        let expires = match lease.holder {
            Holder::Ttl { expires, .. } => Some(expires),
            Holder::Session(_) => None,
        };
        [too_long, expires]
    }
}

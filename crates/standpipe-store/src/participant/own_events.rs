//! The record of a process's own events, from which it recovers after the store lost entries.
//!
//! It holds the leases in flight, the leases that ended and the throttles reported in the last ten
//! minutes, the last configuration and the last pause. Tickets are not recorded: a waiter claims
//! its ticket, and a claim of an unknown ticket is a new reserve.
//!
//! Memory is bounded: the record has at most [`MAX_BYTES`], some 25,000 calls. Beyond that the
//! oldest ended leases and throttles are dropped, even within the ten minutes; leases in flight
//! never are, and the ledger bounds their number. `recover.rs` appends what
//! [`OwnEvents::actions_to_recover`] returns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use standpipe_core::{
    Action, AgentName, Answer, Commit, Configure, Decision, Event, Found, Instant, Key,
    LeaseAnswer, Notice, Recovered, Reserve, Source, Span, State, Throttled, bounds,
};

use crate::entry::{self, Content};

/// What a process records of its own events.
#[derive(Debug, Default)]
pub(super) struct OwnEvents {
    leases: BTreeMap<Key, OwnLease>,
    /// Those in flight among `leases`, which are few.
    in_flight: BTreeSet<Key>,
    /// The ended ones among `leases`, oldest first.
    ended: VecDeque<(Instant, Key)>,
    throttles: VecDeque<Recorded<Throttled>>,
    configure: Option<Recorded<Box<Configure>>>,
    pause: Option<Recorded<(Span, Option<AgentName>)>>,
    /// The last event that is known to be in the log.
    last: Option<(Key, Instant)>,
    /// The bytes of `leases`, `ended` and `throttles`, as far as they can be estimated.
    bytes: usize,
}

/// A lease of this process.
#[derive(Debug)]
struct OwnLease {
    /// The event that admitted the lease, or recovered its admission.
    admitted: Key,
    /// The encoded event: of a thousand leases hardly one is recovered, so it stays encoded.
    body: Box<[u8]>,
    /// What few leases have.
    changes: Option<Box<Changes>>,
    ended: Option<Ended>,
    /// An event of this process created the lease, and [`OwnEvents::take_created`] has not yet
    /// returned `true` for it.
    unreported: bool,
}

/// What events after its admission changed about a lease.
#[derive(Debug, Default)]
struct Changes {
    /// The ttl, if a heartbeat changed it.
    ttl: Option<Span>,
    /// The last commit that reported progress: its key, and the encoded event.
    progress: Option<(Key, Box<[u8]>)>,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug)]
enum Ended {
    /// This event settled the lease: a commit, or a throttle that named it.
    Settled(Key),
    /// This event cancelled the lease: the call was never made.
    Cancelled(Key),
    /// The ledger reclaimed the lease.
    Reclaimed,
}

/// A value that an event carried, with the event's key and stamp.
#[derive(Debug)]
struct Recorded<T> {
    key: Key,
    at: Instant,
    what: T,
}

impl OwnEvents {
    /// Records an event of this process that is in the log, with its answer.
    ///
    /// `body` is the encoded event. `created` is set if the event created the lease that it was
    /// given, and unset if the lease already existed under the same call id.
    pub(super) fn record(
        &mut self,
        event: &Event,
        body: Vec<u8>,
        at: Instant,
        answer: &Answer,
        created: bool,
    ) {
        let key = event.key;
        if *answer == Answer::SessionEnded {
            // The state ignored the event, so there is nothing to recover.
            return;
        }
        self.last = Some((key, at));
        match (&event.action, answer) {
            (Action::Reserve(_), Answer::Decided(Decision::Admit(grant))) if !grant.settled => {
                self.insert_lease(grant.lease, key, body, created);
            }
            (Action::Recovered(Recovered::Reserve { lease, .. }), _) => {
                self.insert_lease(*lease, key, body, false).admitted = key;
            }
            (Action::Recovered(Recovered::Commit { lease }), _) => {
                self.end_lease(*lease, Ended::Settled(key), at);
            }
            (Action::Commit(commit), Answer::Lease(LeaseAnswer::Lives(_))) => {
                let progress = Some((key, body.into_boxed_slice()));
                self.change_lease(commit.lease, |changes| changes.progress = progress);
            }
            (Action::Commit(Commit { lease, .. }), Answer::Lease(LeaseAnswer::Ended)) => {
                self.end_lease(*lease, Ended::Settled(key), at);
            }
            (
                Action::Cancel { lease } | Action::Withdraw { lease } | Action::Redate { lease },
                Answer::Lease(LeaseAnswer::Ended),
            ) => {
                self.end_lease(*lease, Ended::Cancelled(key), at);
            }
            (Action::Heartbeat { lease: Some(lease), ttl: Some(ttl) }, _) => {
                self.change_lease(*lease, |changes| changes.ttl = Some(*ttl));
            }
            (Action::Throttled(throttled), _)
            | (Action::Recovered(Recovered::Throttled(throttled)), _) => {
                if let Some(lease) = throttled.lease {
                    self.end_lease(lease, Ended::Settled(key), at);
                }
                if matches!(event.action, Action::Recovered(_)) {
                    self.remove_restored(throttled);
                }
                self.bytes += throttle_bytes(throttled);
                self.throttles.push_back(Recorded { key, at, what: throttled.clone() });
            }
            (Action::Configure(configure), _) => {
                self.configure = Some(Recorded { key, at, what: configure.clone() });
            }
            (Action::Pause { length, by }, _) => {
                self.pause = Some(Recorded { key, at, what: (*length, by.clone()) });
            }
            (Action::Resume { .. }, _) => self.pause = None,
            _ => {}
        }
    }

    /// Removes the record that a restored throttle replaces. Otherwise each loss would double them.
    fn remove_restored(&mut self, throttled: &Throttled) {
        if let Some(at) = self.throttles.iter().position(|recorded| recorded.what == *throttled) {
            self.throttles.remove(at);
            self.bytes -= throttle_bytes(throttled);
        }
    }

    /// Returns the key of the last event that is known to be in the log.
    pub(super) fn last_written(&self) -> Option<Key> {
        self.last.map(|(key, _)| key)
    }

    /// Records a configuration that the pool already has, or a newer one, so that it was not
    /// appended. Its key has number 0.
    pub(super) fn record_known_config(&mut self, session: u64, configure: &Configure, at: Instant) {
        if self.configure.as_ref().is_none_or(|recorded| *recorded.what != *configure) {
            let (key, what) = (Key { session, number: 0 }, Box::new(configure.clone()));
            self.configure = Some(Recorded { key, at, what });
        }
    }

    /// Returns `true` on the first call for a lease that an event of this process created.
    pub(super) fn take_created(&mut self, lease: Key) -> bool {
        let own = self.leases.get_mut(&lease);
        own.is_some_and(|own| std::mem::take(&mut own.unreported))
    }

    /// Records the leases that the ledger reclaimed.
    pub(super) fn record_reclaims(&mut self, notices: &[Notice], at: Instant) {
        for notice in notices {
            if let Notice::Reclaimed { lease, .. } = notice {
                self.end_lease(*lease, Ended::Reclaimed, at);
            }
        }
    }

    /// Records, after a jump, leases whose admission is in the log but which the state no longer
    /// has: the ledger reclaimed them in an entry that the replica did not see.
    pub(super) fn detect_reclaims(
        &mut self,
        state: &State,
        is_lost: &dyn Fn(Key) -> bool,
        now: Instant,
    ) {
        let admitted = |lease: &Key| self.leases.get(lease).map(|own| own.admitted);
        let is_gone = |lease: &&Key| {
            state.find(**lease) != Found::Lease && !admitted(lease).is_some_and(is_lost)
        };
        for lease in self.in_flight.iter().filter(is_gone).copied().collect::<Vec<_>>() {
            self.end_lease(lease, Ended::Reclaimed, now);
        }
    }

    /// Returns, after a jump, whether the log lost an event of this session that it once had.
    pub(super) fn lost_by(&self, state: &State, session: u64) -> bool {
        let Some((last, stamped)) = self.last.filter(|(last, _)| last.session == session) else {
            return false;
        };
        match state.last_number(session) {
            Some(number) => number < last.number,
            // The state drops sessions that were silent for long. One that it does not know
            // although it was recently heard of was lost.
            None => state.clock() < stamped + bounds::SILENCE,
        }
    }

    /// Drops records that are too old to recover, and the oldest ones beyond [`MAX_BYTES`].
    pub(super) fn prune(&mut self, now: Instant) {
        loop {
            let ended = self.ended.front().map(|(at, _)| *at);
            let throttled = self.throttles.front().map(|recorded| recorded.at);
            let Some(oldest) = ended.into_iter().chain(throttled).min() else { break };
            if now < oldest + RETENTION && self.bytes <= MAX_BYTES {
                break;
            }
            if ended == Some(oldest) {
                let lease = self.ended.pop_front().map(|(_, lease)| lease);
                let own = lease.and_then(|lease| self.leases.remove(&lease));
                self.bytes -= own.map_or(0, |own| own.bytes());
            } else if let Some(recorded) = self.throttles.pop_front() {
                self.bytes -= throttle_bytes(&recorded.what);
            }
        }
    }

    /// Returns the actions that restore the events for which `is_lost` holds, in the order in
    /// which they must be appended.
    pub(super) fn actions_to_recover(
        &self,
        state: &State,
        is_lost: &dyn Fn(Key) -> bool,
        now: Instant,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        let configure = self.configure.as_ref();
        if let Some(recorded) = configure.filter(|config| config.is_needed_by(state, is_lost, now))
        {
            actions.push(Action::Configure(recorded.what.clone()));
        }
        for (lease, own) in &self.leases {
            own.push_lost(*lease, is_lost, &mut actions);
        }
        let throttles = self.throttles.iter().filter(|recorded| is_lost(recorded.key));
        actions.extend(
            throttles
                .map(|recorded| Action::Recovered(Recovered::Throttled(recorded.what.clone()))),
        );
        if let Some(recorded) = self.pause.as_ref().filter(|recorded| is_lost(recorded.key)) {
            let (length, by) = &recorded.what;
            let length = (recorded.at + *length).since(now);
            if length > Span::ZERO {
                actions.push(Action::Pause { length, by: by.clone() });
            }
        }
        actions
    }

    fn insert_lease(
        &mut self,
        lease: Key,
        admitted: Key,
        body: Vec<u8>,
        unreported: bool,
    ) -> &mut OwnLease {
        self.leases.entry(lease).or_insert_with(|| {
            let body = body.into_boxed_slice();
            let own = OwnLease { admitted, body, changes: None, ended: None, unreported };
            self.bytes += own.bytes();
            self.in_flight.insert(lease);
            own
        })
    }

    fn change_lease(&mut self, lease: Key, change: impl FnOnce(&mut Changes)) {
        let Some(own) = self.leases.get_mut(&lease) else { return };
        self.bytes -= own.bytes();
        change(own.changes.get_or_insert_default());
        self.bytes += own.bytes();
    }

    fn end_lease(&mut self, lease: Key, how: Ended, at: Instant) {
        let Some(own) = self.leases.get_mut(&lease) else { return };
        if own.ended.is_none() {
            self.ended.push_back((at, lease));
            self.in_flight.remove(&lease);
        }
        // A reclaim never replaces what this process itself reported.
        own.ended = match (own.ended, how) {
            (Some(before), Ended::Reclaimed) => Some(before),
            _ => Some(how),
        };
    }
}

impl Recorded<Box<Configure>> {
    /// Returns whether this configuration must be appended again.
    ///
    /// A process also restores a configuration that another one appended, because that one may be
    /// dead and a pool without limits admits nobody. The exception is a change at run time: it
    /// would override later changes by others, so only its author restores it, unless the pool has
    /// no configuration at all.
    fn is_needed_by(&self, state: &State, is_lost: &dyn Fn(Key) -> bool, now: Instant) -> bool {
        let own = self.key.number > 0 && is_lost(self.key);
        let declared = self.what.source != Source::Change && state.would_configure(&self.what, now);
        own || declared || state.facts().config.is_none()
    }
}

impl OwnLease {
    /// Decodes the reserve of this lease.
    fn reserve(&self) -> Option<Box<Reserve>> {
        let Content::Event(event) = entry::decode_body(&self.body) else { return None };
        let mut reserve = match event.action {
            Action::Reserve(reserve) => reserve,
            Action::Recovered(Recovered::Reserve { reserve, .. }) => reserve,
            _ => return None,
        };
        let ttl = self.changes.as_ref().and_then(|changes| changes.ttl);
        reserve.ttl = ttl.or(reserve.ttl);
        Some(reserve)
    }

    /// Decodes the last commit that reported progress, and returns it with its key.
    fn progress(&self) -> Option<(Key, Commit)> {
        let (key, body) = self.changes.as_ref()?.progress.as_ref()?;
        match entry::decode_body(body) {
            Content::Event(Event { action: Action::Commit(commit), .. }) => Some((*key, commit)),
            _ => None,
        }
    }

    /// Returns about how many bytes the record of this lease takes, with its place among the ended
    /// ones.
    fn bytes(&self) -> usize {
        let progress = |changes: &Changes| {
            changes.progress.as_ref().map_or(0, |(_, body)| body.len() + ALLOCATION)
        };
        let changes = |changes: &Changes| size_of::<Changes>() + ALLOCATION + progress(changes);
        // Keys mostly grow, so the nodes of the map are half full; the queue can be as well.
        2 * (size_of::<(Key, Self)>() + size_of::<(Instant, Key)>())
            + self.body.len()
            + ALLOCATION
            + self.changes.as_deref().map_or(0, changes)
    }

    /// Appends to `actions` what restores this lease.
    fn push_lost(&self, lease: Key, is_lost: &dyn Fn(Key) -> bool, actions: &mut Vec<Action>) {
        // A cancelled call was never made, so a lost admission of it need not count.
        let cancelled = matches!(self.ended, Some(Ended::Cancelled(_)));
        let admission_lost = is_lost(self.admitted);
        if admission_lost
            && !cancelled
            && let Some(reserve) = self.reserve()
        {
            actions.push(Action::Recovered(Recovered::Reserve { lease, reserve }));
        }
        match (&self.ended, self.progress()) {
            (Some(Ended::Settled(key)), _) if admission_lost || is_lost(*key) => {
                actions.push(Action::Recovered(Recovered::Commit { lease }));
            }
            (Some(Ended::Reclaimed), _) if admission_lost => {
                actions.push(Action::Recovered(Recovered::Commit { lease }));
            }
            (Some(Ended::Cancelled(key)), _) if !admission_lost && is_lost(*key) => {
                actions.push(Action::Cancel { lease });
            }
            (None, Some((key, commit))) if admission_lost || is_lost(key) => {
                actions.push(Action::Commit(commit));
            }
            _ => {}
        }
    }
}

/// How long ended leases and throttles are kept.
const RETENTION: Span = Span::secs(600);

/// The most bytes that a process keeps of its own events on one pool. With the configuration, of
/// which there is one, that is less than 8 MB.
const MAX_BYTES: usize = 7_500_000;

/// What the allocator adds to an allocation, rounding included.
const ALLOCATION: usize = 16;

/// The longest name of a unit.
const LONGEST_UNIT: usize = 32;

/// Returns about how many bytes the record of a throttle takes.
fn throttle_bytes(throttled: &Throttled) -> usize {
    let agent = throttled.agent.as_ref().map_or(0, |agent| agent.as_str().len() + ALLOCATION);
    let unit = throttled.hit.as_ref().map_or(0, |_| LONGEST_UNIT + ALLOCATION);
    // A queue can be half full.
    2 * size_of::<Recorded<Throttled>>() + agent + unit
}

#[cfg(test)]
mod tests;

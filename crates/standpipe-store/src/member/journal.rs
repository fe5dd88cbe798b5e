//! What a process remembers of its own doings, in case the store forgets them.
//!
//! Its leases in flight, those that ended in the last 10 min, its reports of refusals, and what it
//! told the pool. It is asked only after a fork. Tickets are not kept: a waiter claims an unknown
//! ticket, and that is a new reserve.
//!
//! Invariant: at most [`MOST`] leases that have ended are kept; the oldest go first.

use std::collections::{BTreeMap, VecDeque};

use standpipe_core::{
    Action, Answer, Commit, Configure, Decision, Event, Found, Instant, Key, LeaseAnswer, Notice,
    Recovered, Reserve, Source, Span, State, Throttled, bounds,
};

/// What a process remembers of its own doings.
#[derive(Debug, Default)]
pub(super) struct Journal {
    leases: BTreeMap<Key, Held>,
    /// Those of them that have ended, oldest first.
    ended: VecDeque<(Instant, Key)>,
    throttles: VecDeque<Noted<Throttled>>,
    configure: Option<Noted<Box<Configure>>>,
    pause: Option<Noted<Span>>,
    /// Its last event that is known to be in the log.
    last: Option<(Key, Instant)>,
}

/// A lease of this process.
#[derive(Debug)]
struct Held {
    /// The event that admitted it.
    admitted: Key,
    reserve: Box<Reserve>,
    progress: Option<(Key, Commit)>,
    ended: Option<Ended>,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug)]
enum Ended {
    /// By a commit or a refusal, in this event.
    Settled(Key),
    /// By this event; the call was never sent.
    Cancelled(Key),
    /// By the ledger.
    Reclaimed,
}

/// Something said, in which event and when.
#[derive(Debug)]
struct Noted<T> {
    key: Key,
    at: Instant,
    what: T,
}

impl Journal {
    /// An event of this process is in the log, and this was its answer.
    pub(super) fn note(&mut self, event: &Event, at: Instant, answer: &Answer) {
        let key = event.key;
        if *answer == Answer::SessionEnded {
            // It was ignored, and the state knows nothing of it.
            return;
        }
        self.last = Some((key, at));
        match (&event.action, answer) {
            (Action::Reserve(reserve), Answer::Decided(Decision::Admit(grant)))
                if !grant.settled =>
            {
                self.hold(grant.lease, key, reserve);
            }
            (Action::Recovered(Recovered::Reserve { lease, reserve }), _) => {
                self.hold(*lease, key, reserve).admitted = key;
            }
            (Action::Recovered(Recovered::Commit { lease }), _) => {
                self.end(*lease, Ended::Settled(key), at);
            }
            (Action::Commit(commit), Answer::Lease(LeaseAnswer::Lives(_))) => {
                if let Some(held) = self.leases.get_mut(&commit.lease) {
                    held.progress = Some((key, commit.clone()));
                }
            }
            (Action::Commit(Commit { lease, .. }), Answer::Lease(LeaseAnswer::Ended)) => {
                self.end(*lease, Ended::Settled(key), at);
            }
            (Action::Cancel { lease }, Answer::Lease(LeaseAnswer::Ended)) => {
                self.end(*lease, Ended::Cancelled(key), at);
            }
            (Action::Heartbeat { lease: Some(lease), ttl: Some(ttl) }, _) => {
                if let Some(held) = self.leases.get_mut(lease) {
                    held.reserve.ttl = Some(*ttl);
                }
            }
            (Action::Throttled(throttled), _)
            | (Action::Recovered(Recovered::Throttled(throttled)), _) => {
                if let Some(lease) = throttled.lease {
                    self.end(lease, Ended::Settled(key), at);
                }
                self.throttles.push_back(Noted { key, at, what: throttled.clone() });
            }
            (Action::Configure(configure), _) => {
                self.configure = Some(Noted { key, at, what: configure.clone() });
            }
            (Action::Pause { length }, _) => self.pause = Some(Noted { key, at, what: *length }),
            (Action::Resume, _) => self.pause = None,
            _ => {}
        }
    }

    /// The log has such a configuration, or a better one, without an event of this process.
    pub(super) fn note_configured(&mut self, session: u64, configure: &Configure, at: Instant) {
        if self.configure.as_ref().is_none_or(|noted| *noted.what != *configure) {
            let (key, what) = (Key { session, number: 0 }, Box::new(configure.clone()));
            self.configure = Some(Noted { key, at, what });
        }
    }

    /// The ledger ended some of its leases.
    pub(super) fn see(&mut self, notices: &[Notice], at: Instant) {
        for notice in notices {
            if let Notice::Reclaimed { lease, .. } = notice {
                self.end(*lease, Ended::Reclaimed, at);
            }
        }
    }

    /// Entries were jumped over: leases that are no longer there, though their admission is, were
    /// ended by the ledger meanwhile.
    pub(super) fn find_ended(&mut self, state: &State, lacks: &dyn Fn(Key) -> bool, now: Instant) {
        let held = self.leases.iter().filter(|(_, held)| held.ended.is_none());
        let gone = held
            .filter(|(lease, held)| state.find(**lease) != Found::Lease && !lacks(held.admitted));
        for lease in gone.map(|(lease, _)| *lease).collect::<Vec<_>>() {
            self.end(lease, Ended::Reclaimed, now);
        }
    }

    /// After a jump: whether the log lacks an event that it had.
    pub(super) fn lost(&self, state: &State, session: u64) -> bool {
        let Some((last, heard)) = self.last.filter(|(last, _)| last.session == session) else {
            return false;
        };
        match state.last_number(session) {
            Some(number) => number < last.number,
            // Forgotten after a silence, or never heard of.
            None => state.clock() < heard + bounds::SILENCE,
        }
    }

    /// Forgets what is too old to matter.
    pub(super) fn prune(&mut self, now: Instant) {
        let old = |at: Instant| now >= at + KEPT;
        while let Some((at, lease)) = self.ended.front().copied() {
            if !old(at) && self.ended.len() <= MOST {
                break;
            }
            self.ended.pop_front();
            self.leases.remove(&lease);
        }
        while self.throttles.front().is_some_and(|noted| old(noted.at))
            || self.throttles.len() > MOST
        {
            self.throttles.pop_front();
        }
    }

    /// What a log that lost some of this process's events has to be told. `lacks` says which.
    pub(super) fn missing(
        &self,
        state: &State,
        lacks: &dyn Fn(Key) -> bool,
        now: Instant,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(noted) = self.configure.as_ref().filter(|noted| noted.misses(state, lacks, now))
        {
            actions.push(Action::Configure(noted.what.clone()));
        }
        for (lease, held) in &self.leases {
            held.missing(*lease, lacks, &mut actions);
        }
        let throttles = self.throttles.iter().filter(|noted| lacks(noted.key));
        actions.extend(
            throttles.map(|noted| Action::Recovered(Recovered::Throttled(noted.what.clone()))),
        );
        if let Some(noted) = self.pause.as_ref().filter(|noted| lacks(noted.key)) {
            let length = (noted.at + noted.what).since(now);
            if length > Span::ZERO {
                actions.push(Action::Pause { length });
            }
        }
        actions
    }

    fn hold(&mut self, lease: Key, admitted: Key, reserve: &Reserve) -> &mut Held {
        self.leases.entry(lease).or_insert_with(|| Held {
            admitted,
            reserve: Box::new(reserve.clone()),
            progress: None,
            ended: None,
        })
    }

    fn end(&mut self, lease: Key, how: Ended, at: Instant) {
        let Some(held) = self.leases.get_mut(&lease) else { return };
        if held.ended.is_none() {
            self.ended.push_back((at, lease));
        }
        held.ended = match (held.ended, how) {
            (Some(before), Ended::Reclaimed) => Some(before),
            _ => Some(how),
        };
    }
}

impl Noted<Box<Configure>> {
    /// Whether it has to be told again. Also one that somebody else had told, who may be dead: a
    /// pool without limits admits nobody. A change would beat what others changed since, so it is
    /// told again only by who made it, or where there is nothing to beat.
    fn misses(&self, state: &State, lacks: &dyn Fn(Key) -> bool, now: Instant) -> bool {
        let ours = self.key.number > 0 && lacks(self.key);
        let lasting = self.what.source != Source::Change && state.would_configure(&self.what, now);
        ours || lasting || state.facts().config.is_none()
    }
}

impl Held {
    fn missing(&self, lease: Key, lacks: &dyn Fn(Key) -> bool, actions: &mut Vec<Action>) {
        let never_sent = matches!(self.ended, Some(Ended::Cancelled(_)));
        let admission = lacks(self.admitted);
        if admission && !never_sent {
            let reserve = self.reserve.clone();
            actions.push(Action::Recovered(Recovered::Reserve { lease, reserve }));
        }
        match (&self.ended, &self.progress) {
            (Some(Ended::Settled(key)), _) if admission || lacks(*key) => {
                actions.push(Action::Recovered(Recovered::Commit { lease }));
            }
            (Some(Ended::Reclaimed), _) if admission => {
                actions.push(Action::Recovered(Recovered::Commit { lease }));
            }
            (Some(Ended::Cancelled(key)), _) if !admission && lacks(*key) => {
                actions.push(Action::Cancel { lease });
            }
            (None, Some((key, commit))) if admission || lacks(*key) => {
                actions.push(Action::Commit(commit.clone()));
            }
            _ => {}
        }
    }
}

/// How long what has ended is remembered.
const KEPT: Span = Span::secs(600);

/// How much of it at most.
const MOST: usize = 65_536;

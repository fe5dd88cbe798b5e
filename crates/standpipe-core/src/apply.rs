//! Events in, outcomes out.
//!
//! This file only dispatches; what each event means is in the folder of its subject.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::bounds;
use crate::event::{Action, Event, Key, Recovered, Reserve};
use crate::lease::Ending;
use crate::name::AgentName;
use crate::outcome::{Answer, Decision, LeaseAnswer, Notice, Outcome, Reclaim};
use crate::provider::throttle::{PauseCause, PauseOrder};
use crate::rules::spread;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::Amounts;
use crate::usage::bucket::Bucket;
use crate::usage::counter::Count;

impl State {
    /// Applies one event at the instant its store stamped it with.
    ///
    /// Total and deterministic: no event panics, and the same events at the same instants give the
    /// same state and the same outcomes on every replica. An instant before the last one counts as
    /// the last.
    pub fn apply(&mut self, event: &Event, now: Instant) -> Outcome {
        let now = now.max(self.facts.clock);
        self.advance(now);
        let answer = match self.accept_event(event, now) {
            Some(rejected) => rejected,
            None => self.act(event.key, &event.action, now),
        };
        self.advance_ramp(now);
        self.update_zone(now);
        // Units that one limit gained or lost can change whether a ticket in another line still
        // meets its deadline.
        for (constraint, line) in self.index.lines.rows() {
            self.index.dirty.insert_if(constraint, !line.is_empty());
        }
        self.serve(now);
        let mut effects = core::mem::take(&mut self.effects);
        remove_repeated(&mut effects.wake);
        self.next = self.next_change(now);
        Outcome { answer, notices: effects.notices, wake: effects.wake, next: self.next }
    }

    /// Returns what a reserve would be answered at an instant, without side effects.
    #[must_use]
    pub fn peek(&self, reserve: &Reserve, now: Instant) -> Decision {
        let now = now.max(self.facts.clock);
        if self.next.is_some_and(|next| next <= now) {
            let mut ahead = self.clone();
            ahead.advance(now);
            return ahead.decide(reserve, now);
        }
        self.decide(reserve, now)
    }

    /// Rejects duplicates and events of ended sessions. Numbers of a session increase and begin
    /// with 1; a recovered event may begin with any number, because the store lost the earlier
    /// ones.
    fn accept_event(&mut self, event: &Event, now: Instant) -> Option<Answer> {
        let Key { session, number } = event.key;
        let recovers = matches!(event.action, Action::Recovered(_));
        match self.facts.sessions.get(&session) {
            Some(known) if number <= known.last => return Some(Answer::Duplicate),
            Some(known) if known.ended => return Some(Answer::SessionEnded),
            Some(_) => {}
            None if number == 0 => return Some(Answer::Duplicate),
            None if number > 1 && !recovers => return Some(Answer::SessionEnded),
            None => self.evict_idle_session(),
        }
        self.touch_session(session, number, now);
        None
    }

    fn act(&mut self, key: Key, action: &Action, now: Instant) -> Answer {
        match action {
            Action::Heartbeat { lease: Some(lease), ttl } => self.extend(*lease, *ttl, now),
            Action::Heartbeat { lease: None, .. } => Answer::Done,
            Action::SessionEnded { session } => self.session_ended(*session, now),
            Action::Configure(configure) => self.configure(configure, now),
            Action::Pause { length, by } => self.pause(*length, by.clone(), now),
            Action::Resume { by } => self.resume(by.clone(), now),
            Action::Calendar { resets } => self.calendar_announced(resets, now),
            Action::Forgotten => self.state_lost(now),
            other => self.act_on_calls(key, other, now),
        }
    }

    fn act_on_calls(&mut self, key: Key, action: &Action, now: Instant) -> Answer {
        match action {
            Action::Reserve(reserve) => Answer::Decided(self.reserve(key, reserve, now)),
            Action::Commit(commit) => self.commit(commit, now),
            Action::Cancel { lease } => self.cancel(*lease, now),
            Action::OwnerEnded { lease } => self.owner_ended(*lease, now),
            Action::Redate { lease } => self.redate(*lease, now),
            Action::Withdraw { lease } => self.withdraw(*lease, now),
            Action::Leave { ticket } => self.leave(*ticket, now),
            Action::Throttled(throttled) => self.throttled(key, throttled, now),
            Action::Observed(observed) => self.observed(observed, now),
            Action::Recovered(recovered) => self.recovered(key, recovered, now),
            _ => Answer::Done,
        }
    }

    fn session_ended(&mut self, session: u64, now: Instant) -> Answer {
        self.end_session(session, now);
        if let Some(known) = self.facts.sessions.get_mut(&session) {
            known.ended = true;
        }
        Answer::Done
    }

    fn owner_ended(&mut self, lease: Key, now: Instant) -> Answer {
        if !self.facts.leases.contains_key(&lease) {
            return Answer::Lease(LeaseAnswer::Gone);
        }
        self.reclaim(lease, Reclaim::OwnerGone, now);
        Answer::Lease(LeaseAnswer::Ended)
    }

    fn pause(&mut self, length: Span, by: Option<AgentName>, now: Instant) -> Answer {
        let order = PauseCause::Order(PauseOrder { by, at: now });
        self.pause_until(now + length.min(bounds::SPAN), order, now);
        Answer::Done
    }

    fn resume(&mut self, by: Option<AgentName>, now: Instant) -> Answer {
        if self.facts.pause.is_some() {
            self.count_pause(now);
        }
        let was_stopped = self.facts.pause.take().is_some() | self.facts.terminal.take().is_some();
        if was_stopped || self.is_returning(now) {
            self.effects.notices.push(Notice::Resumed { at: now, by });
        }
        self.clear_incident(now);
        self.enqueue_all(now);
        Answer::Done
    }

    /// Handles the loss of the store's state: all limits count as full, including those that are
    /// configured later. Caps and floors of agents begin anew.
    fn state_lost(&mut self, now: Instant) -> Answer {
        self.facts.state_lost_at = Some(now);
        for usage in &mut self.facts.units {
            usage.history.clear();
        }
        for own in self.facts.agents.iter_mut().flat_map(|agent| &mut agent.units) {
            own.history.clear();
        }
        let constraints = self.index.compiled.constraints.iter();
        for (counter, constraint) in self.facts.counters.iter_mut().zip(constraints) {
            let next_mark = constraint.unit.map_or(0, |unit| self.facts.units[unit].next_mark);
            let spec = &constraint.spec;
            if let Some(bucket) = &mut counter.spread {
                *bucket = Bucket::empty(now, spread::burst(spec), next_mark, spread::refill(spec));
            }
            match &mut counter.count {
                // Windows and slots count from the loss by themselves.
                Count::Window { began } => *began = None,
                Count::Slots => {}
                Count::Bucket(bucket) => {
                    *bucket = Bucket::empty(now, spec.effective, next_mark, spec.as_refill());
                }
                Count::Pace { last } => *last = Some(now),
            }
        }
        self.enqueue_all(now);
        Answer::Done
    }

    fn recovered(&mut self, key: Key, recovered: &Recovered, now: Instant) -> Answer {
        match recovered {
            Recovered::Reserve { lease, reserve } => self.reinstate(*lease, key, reserve, now),
            Recovered::Commit { lease } => {
                self.end_lease(*lease, Ending::Used, &Amounts::default(), now)
            }
            Recovered::Throttled(throttled) => self.throttled(key, throttled, now),
        }
    }
}

/// Removes every key that is there already, and keeps the order.
fn remove_repeated(keys: &mut Vec<Key>) {
    // A set costs more than it saves while there are few.
    const FEW: usize = 16;
    if keys.len() > FEW {
        let mut seen = BTreeSet::new();
        keys.retain(|key| seen.insert(*key));
        return;
    }
    let mut kept = 0;
    for at in 0..keys.len() {
        let key = keys[at];
        if !keys[..kept].contains(&key) {
            keys[kept] = key;
            kept += 1;
        }
    }
    keys.truncate(kept);
}

/// Converts a reserve for callers that build events by hand.
impl From<Reserve> for Action {
    fn from(reserve: Reserve) -> Self {
        Self::Reserve(Box::new(reserve))
    }
}

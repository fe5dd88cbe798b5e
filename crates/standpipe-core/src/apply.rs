//! Events in, outcomes out. Only branches: what each event means is in the file of its idea.

use alloc::boxed::Box;

use crate::bounds;
use crate::event::{Action, Event, Key, Recovered, Reserve};
use crate::lease::Ending;
use crate::outcome::{Answer, Decision, LeaseAnswer, Notice, Outcome, Reclaim};
use crate::session::Session;
use crate::state::State;
use crate::tally::Count;
use crate::time::{Instant, Span};
use crate::unit::Amounts;

impl State {
    /// Applies one event at the instant its store stamped it with, and says what came of it.
    ///
    /// Total and deterministic: no event panics, and the same events at the same instants give the
    /// same state and the same outcomes everywhere. An instant before the last one counts as the
    /// last.
    pub fn apply(&mut self, event: &Event, now: Instant) -> Outcome {
        let now = now.max(self.facts.clock);
        self.advance(now);
        let answer = match self.hear(event, now) {
            Some(unheard) => unheard,
            None => self.act(event.key, &event.action, now),
        };
        self.mind_the_light(now);
        // What one limit gave or took may decide whether a call in line for another is still in
        // time.
        for lane in 0..self.index.lines.len() {
            if !self.index.lines[lane].is_empty() {
                self.mark_dirty(lane);
            }
        }
        self.serve(now);
        let mut news = core::mem::take(&mut self.news);
        news.wake.dedup();
        self.next = self.next_change(now);
        Outcome { answer, notices: news.notices, wake: news.wake, next: self.next }
    }

    /// What a reserve would be answered at an instant, with no side effect.
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

    /// Whether a session may speak: its number must be greater than its last, and a session begins
    /// with 1. A recovered event may begin with any, because the store lost what was before.
    fn hear(&mut self, event: &Event, now: Instant) -> Option<Answer> {
        let Key { session, number } = event.key;
        let recovers = matches!(event.action, Action::Recovered(_));
        match self.facts.sessions.get_mut(&session) {
            Some(known) if number <= known.last => return Some(Answer::Copy),
            Some(known) if known.ended => return Some(Answer::SessionEnded),
            Some(known) => {
                self.index.hear(session, known.heard, now);
                (known.last, known.heard) = (number, now);
            }
            None if number == 0 => return Some(Answer::Copy),
            None if number > 1 && !recovers => return Some(Answer::SessionEnded),
            None => {
                self.make_room_for_a_session();
                let new = Session { last: number, heard: now, ended: false };
                self.facts.sessions.insert(session, new);
                self.index.heard.insert((now, session));
            }
        }
        None
    }

    fn act(&mut self, key: Key, action: &Action, now: Instant) -> Answer {
        match action {
            Action::Heartbeat { lease: Some(lease), ttl } => self.extend(*lease, *ttl, now),
            Action::Heartbeat { lease: None, .. } => Answer::Done,
            Action::SessionEnded { session } => self.session_ended(*session, now),
            Action::Configure(configure) => self.configure(configure, now),
            Action::Pause { length } => self.pause(*length, now),
            Action::Resume => self.resume(now),
            Action::Forgotten => self.forget(now),
            about_calls => self.act_on_calls(key, about_calls, now),
        }
    }

    fn act_on_calls(&mut self, key: Key, action: &Action, now: Instant) -> Answer {
        match action {
            Action::Reserve(reserve) => Answer::Decided(self.reserve(key, reserve, now)),
            Action::Commit(commit) => self.commit(commit, now),
            Action::Cancel { lease } => self.cancel(*lease, now),
            Action::OwnerEnded { lease } => self.owner_ended(*lease, now),
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

    fn pause(&mut self, length: Span, now: Instant) -> Answer {
        self.pause_until(now + length.min(bounds::SPAN), None, now);
        Answer::Done
    }

    fn resume(&mut self, now: Instant) -> Answer {
        if self.facts.pause.is_some() {
            self.count_pause(now);
        }
        let stopped = self.facts.pause.take().is_some() | self.facts.terminal.take().is_some();
        if stopped {
            self.news.notices.push(Notice::Resumed);
        }
        self.lift(now);
        self.stand_all(now);
        Answer::Done
    }

    /// The store lost what it knew: all limits count as full.
    fn forget(&mut self, now: Instant) -> Answer {
        self.facts.forgotten = Some(now);
        if self.facts.config.is_some() {
            self.fill_what_was_forgotten(now);
            self.stand_all(now);
        }
        Answer::Done
    }

    /// Limits that are told after the state was lost count as full too, unless all would have come
    /// back by now.
    pub(crate) fn fill_what_was_forgotten(&mut self, now: Instant) {
        let Some(forgotten) = self.facts.forgotten.take() else { return };
        let lease_ttl = self.index.plan.lease_ttl;
        let limits = self.index.plan.lanes.iter().filter(|lane| lane.limit().is_some());
        // The gate comes last, and is no limit: who is unanswered is not forgotten but gone.
        for (tally, lane) in self.facts.lanes.iter_mut().zip(limits) {
            let learned = match tally.count {
                Count::Slots => lease_ttl,
                _ => lane.spec.period,
            };
            if now < forgotten + learned {
                tally.assume_full(now, lease_ttl, &lane.spec);
            }
        }
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

/// For callers who build events by hand.
impl From<Reserve> for Action {
    fn from(reserve: Reserve) -> Self {
        Self::Reserve(Box::new(reserve))
    }
}

//! When queued calls are admitted if nothing else happens: the queue replayed on a copy of the
//! ledger.
//!
//! In a replay calls are admitted in their order and use what they reserved. No call comes, and
//! none is cancelled. The first replay ends no call, so that its instants are those of time alone.
//! What it does not admit needs a slot or an answer. The second replay ends every call at once, so
//! that its instants are early, and a call that times out even there is too late.
//!
//! What happens meanwhile can make an admission earlier or later: a forecast is no bound.

use std::collections::{BTreeMap, BTreeSet};

use standpipe_core::{
    Action, AgentId, Amounts, Answer, Commit, Decision, Event, Instant, Key, Outcome, Probe,
    Queued, Reason, Reserve, Rule, Span, State,
};

use super::claim_of;

/// The most calls whose admission is forecast.
const MAX_CALLS: usize = 64;
/// A longer queue is not replayed, because a view must be cheap.
const MAX_TICKETS: usize = 256;
/// The most instants that a replay visits.
const MAX_STEPS: usize = 512;
/// An event that only lets time pass.
const PASS: Action = Action::Heartbeat { lease: None, ttl: None };
/// A new call is replayed with this timeout.
const PATIENCE: Span = Span::secs(86_400);
/// The most calls that time out for which a replay shows when their turn would come.
const MAX_LATE: usize = 8;

/// What is expected of a queued call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is admitted then.
    At(Instant),
    /// It is admitted then at the earliest, because calls in flight have to end first.
    After(Instant),
    /// Its timeout ends before its turn.
    TimesOut {
        /// When its turn would come with a longer timeout, if that is known.
        turn: Option<Instant>,
        /// Whether that is early, because calls in flight have to end first.
        or_later: bool,
    },
}

impl Expected {
    /// Whether it is an instant of time alone before another.
    fn is_before(&self, instant: Instant) -> bool {
        matches!(self, Self::At(at) if *at < instant)
    }
}

/// Returns what is expected of each queued call; calls without a forecast are left out.
pub(crate) fn forecasts(state: &State, now: Instant) -> BTreeMap<Key, Expected> {
    let waiting = state.facts().tickets.values().map(|ticket| ticket.key);
    let waiting: Vec<Key> = waiting.collect();
    let run = |ends| Replay::of(state, now, ends).map(Replay::run).unwrap_or_default();
    let by_time = if waiting.is_empty() { Run::default() } else { run(false) };
    let is_known = |key: &Key| by_time.admitted.contains_key(key);
    let early = if waiting.iter().all(is_known) { Run::default() } else { run(true) };
    let doubted = doubted_from(state, &by_time, &early);
    let mut late = 0;
    let expected = |key: &Key| {
        let by_time = by_time.at(*key).filter(|own| own.is_before(doubted));
        let expected = by_time.or_else(|| early.after(*key, now))?;
        let Expected::TimesOut { .. } = expected else { return Some((*key, expected)) };
        late += 1;
        let turn = (late <= MAX_LATE).then(|| turn_of(state, *key, now)).flatten();
        Some((*key, turn.unwrap_or(expected)))
    };
    let mut expected: BTreeMap<Key, Expected> = waiting.iter().filter_map(expected).collect();
    blur_capped(state, now, &mut expected);
    expected
}

/// Calls of one agent that only its cap delays keep no line among themselves: whichever asks first
/// is admitted. So each of them may be the first, and none has an instant of its own.
fn blur_capped(state: &State, now: Instant, expected: &mut BTreeMap<Key, Expected>) {
    let mut capped: BTreeMap<AgentId, Vec<Key>> = BTreeMap::new();
    for ticket in state.facts().tickets.values().take(MAX_CALLS) {
        let claim = claim_of(state, ticket).map(|claim| state.peek(&claim, now));
        if let Some(Decision::Wait(Queued { refusal, .. }) | Decision::Refuse(refusal)) = claim
            && refusal.reason == Reason::Cap
        {
            capped.entry(ticket.agent).or_default().push(ticket.key);
        }
    }
    for keys in capped.into_values().filter(|keys| keys.len() > 1) {
        let instant = |key: &Key| match expected.get(key) {
            Some(Expected::At(at) | Expected::After(at)) => Some(*at),
            _ => None,
        };
        let Some(first) = keys.iter().filter_map(instant).min() else { continue };
        for key in keys {
            if let Some(Expected::At(_)) = expected.get(&key) {
                expected.insert(key, Expected::After(first));
            }
        }
    }
}

/// Returns from when on the first replay is in doubt: there a call gives up for want of what calls
/// in flight have. It may get that, so those behind it do not wait until its timeout.
fn doubted_from(state: &State, by_time: &Run, early: &Run) -> Instant {
    let tickets = state.facts().tickets.values();
    let is_doubted = |key: &Key| by_time.timed_out.contains(key) && !early.timed_out.contains(key);
    let doubted = tickets.filter(|ticket| is_doubted(&ticket.key)).map(|ticket| ticket.deadline);
    doubted.min().unwrap_or(Instant::NEVER)
}

/// Returns when the turn of a call would come that times out before it: a call like it in its
/// place, with a longer timeout.
fn turn_of(state: &State, key: Key, now: Instant) -> Option<Expected> {
    let ticket = state.facts().tickets.values().find(|ticket| ticket.key == key)?;
    let replay = |ends| Replay::of(state, now, ends)?.in_place_of(key);
    let by_time = replay(false).and_then(|(like_it, run)| run.at(like_it));
    let expected = by_time.or_else(|| {
        let (like_it, run) = replay(true)?;
        run.after(like_it, now)
    });
    let (turn, or_later) = match expected? {
        Expected::At(at) => (at, false),
        Expected::After(at) => (at, true),
        Expected::TimesOut { .. } => return None,
    };
    let is_late = turn > ticket.deadline;
    is_late.then_some(Expected::TimesOut { turn: Some(turn), or_later })
}

/// Returns what is expected of a new call behind those that wait already.
pub(crate) fn forecast_of(state: &State, reserve: &Reserve, now: Instant) -> Option<Expected> {
    let (ticket, by_time) = Replay::of(state, now, false)?.with_new(reserve)?;
    let is_certain = by_time.admitted.contains_key(&ticket) && by_time.timed_out.is_empty();
    let early = match is_certain {
        true => Run::default(),
        false => Replay::of(state, now, true)?.with_new(reserve)?.1,
    };
    let doubted = doubted_from(state, &by_time, &early);
    let by_time = by_time.at(ticket).filter(|own| own.is_before(doubted));
    by_time.or_else(|| early.after(ticket, now))
}

/// The result of a replay.
#[derive(Default)]
struct Run {
    admitted: BTreeMap<Key, Instant>,
    timed_out: BTreeSet<Key>,
}

impl Run {
    fn at(&self, key: Key) -> Option<Expected> {
        self.admitted.get(&key).map(|at| Expected::At(*at))
    }

    /// Nothing is said of a call that would be admitted now if calls ended.
    fn after(&self, key: Key, now: Instant) -> Option<Expected> {
        let late = Expected::TimesOut { turn: None, or_later: false };
        let late = self.timed_out.contains(&key).then_some(late);
        let at = self.admitted.get(&key).filter(|at| **at > now);
        late.or_else(|| at.map(|at| Expected::After(*at)))
    }
}

struct Replay {
    state: State,
    at: Instant,
    /// Whether calls end as soon as they are admitted.
    ends: bool,
    /// The session of the replay's own events, which no process has.
    session: u64,
    number: u64,
    /// The call whose admission ends the replay.
    last: Option<Key>,
    run: Run,
}

impl Replay {
    fn of(state: &State, at: Instant, ends: bool) -> Option<Self> {
        let facts = state.facts();
        let session = (0..u64::MAX).rev().find(|id| !facts.sessions.contains_key(id))?;
        let is_short = facts.tickets.len() <= MAX_TICKETS;
        let state = is_short.then(|| state.clone())?;
        Some(Self { state, at, ends, session, number: 0, last: None, run: Run::default() })
    }

    /// Continues at a later instant with a session of its own: the ledger removes a
    /// silent session and rejects its events.
    fn advance(&mut self, at: Instant) {
        self.at = at;
        let sessions = &self.state.facts().sessions;
        let unused = (0..self.session).rev().find(|id| !sessions.contains_key(id));
        (self.session, self.number) = (unused.unwrap_or(0), 0);
    }

    /// Runs it with one call more.
    fn with_new(mut self, reserve: &Reserve) -> Option<(Key, Run)> {
        let call = Reserve { patience: PATIENCE, id: None, ticket: None, ..reserve.clone() };
        let outcome = self.apply(Action::from(call));
        let Answer::Decided(Decision::Wait(Queued { ticket, .. })) = outcome.answer else {
            return None;
        };
        self.last = Some(ticket);
        Some((ticket, self.run()))
    }

    /// Runs it with a call that is like a queued one and has its place: those behind it are gone.
    fn in_place_of(mut self, key: Key) -> Option<(Key, Run)> {
        let mut tickets = self.state.facts().tickets.iter();
        let (place, ticket) = tickets.find(|(_, ticket)| ticket.key == key)?;
        let mut like_it = Reserve { ticket: None, ..claim_of(&self.state, ticket)? };
        like_it.priority = Some(place.tier);
        let behind = self.state.facts().tickets.range(place..).map(|(_, ticket)| ticket.key);
        for lease in behind.collect::<Vec<_>>() {
            let _gone = self.apply(Action::Cancel { lease });
        }
        self.with_new(&like_it)
    }

    fn apply(&mut self, action: Action) -> Outcome {
        self.number += 1;
        let key = Key { session: self.session, number: self.number };
        self.state.apply(&Event { key, action }, self.at)
    }

    fn run(mut self) -> Run {
        let mut due: Vec<Key> = self.state.facts().tickets.values().map(|t| t.key).collect();
        if self.ends {
            let leases: Vec<Key> = self.state.facts().leases.keys().copied().collect();
            leases.into_iter().for_each(|lease| drop(self.end(lease)));
        }
        for _ in 0..MAX_STEPS {
            self.admit(due);
            let leases = self.state.facts().leases.len();
            let now = self.apply(PASS);
            let Some(next) = now.next.filter(|_| !self.is_done() && !self.is_gated()) else {
                break;
            };
            let waiting: Vec<Key> = self.state.facts().tickets.values().map(|t| t.key).collect();
            self.advance(next);
            let then = self.apply(PASS);
            // A lease that expires frees a slot, and when calls end is not known.
            if self.has_slots() && self.state.facts().leases.len() < leases {
                break;
            }
            let present: BTreeSet<Key> =
                self.state.facts().tickets.values().map(|t| t.key).collect();
            self.run.timed_out.extend(waiting.into_iter().filter(|key| !present.contains(key)));
            due = now.wake;
            due.extend(then.wake);
        }
        self.run
    }

    fn is_done(&self) -> bool {
        let is_last = |last: Key| self.run.admitted.contains_key(&last);
        let is_empty = self.state.facts().tickets.is_empty();
        is_empty || self.run.admitted.len() >= MAX_CALLS || self.last.is_some_and(is_last)
    }

    fn has_slots(&self) -> bool {
        let facts = self.state.facts();
        let limits = facts.config.iter().flat_map(|config| &config.limits);
        let is_stated = limits.into_iter().any(|limit| matches!(limit.rule, Rule::Parallel { .. }));
        is_stated || facts.learned.concurrency.is_some()
    }

    /// Whether calls wait for the answers of others, which have no known instant.
    fn is_gated(&self) -> bool {
        let facts = self.state.facts();
        let is_probed = matches!(facts.returning.probe, Probe::Sent { .. });
        is_probed || facts.cascade.sequential.is_some() || self.state.cautious().is_some()
    }

    /// Claims the tickets that are due, and those that become due by that.
    fn admit(&mut self, mut tickets: Vec<Key>) {
        let mut at = 0;
        while let Some(ticket) = tickets.get(at).copied() {
            at += 1;
            let Some(claim) = self.claim(ticket) else { continue };
            if let Decision::Admit(_) = self.state.peek(&claim, self.at) {
                self.run.admitted.insert(ticket, self.at);
                tickets.extend(self.apply(Action::from(claim)).wake);
                if self.ends {
                    tickets.extend(self.end(ticket));
                }
            }
        }
    }

    /// Ends a call at its estimate. Returns the tickets that become due.
    fn end(&mut self, lease: Key) -> Vec<Key> {
        let used = Amounts::default();
        let commit = Commit { lease, used, progress: false, refused: false };
        self.apply(Action::Commit(commit)).wake
    }

    fn claim(&self, key: Key) -> Option<Reserve> {
        let mut tickets = self.state.facts().tickets.values();
        claim_of(&self.state, tickets.find(|ticket| ticket.key == key)?)
    }
}

#[cfg(test)]
mod tests {
    use standpipe_core::{
        AgentName, AgentRule, Amounts, Configure, Limit, LimitSelector, PoolConfig, Portion,
        ReturnWindows, Share, Source, ThrottleKind, Throttled, Unit,
    };

    use super::*;

    const SECOND: u64 = 1_000_000;

    struct Queue {
        state: State,
        number: u64,
    }

    impl Queue {
        /// Two requests per 10 s, and slots if a number is given.
        fn new(slots: Option<u64>) -> Self {
            let rule = Rule::Window { unit: Unit::Requests, amount: 2, period: Span::secs(10) };
            let slots = slots.map(|amount| Rule::Parallel { amount });
            let limits = [rule].into_iter().chain(slots).map(Limit::new).collect();
            let mut queue = Self { state: State::new(), number: 0 };
            let (source, mut config) = (Source::Code, PoolConfig::new(limits));
            config.policy.comeback = Some(ReturnWindows::USUAL);
            let _ = queue.apply(Action::Configure(Box::new(Configure { source, config })));
            queue
        }

        fn apply(&mut self, action: Action) -> Outcome {
            self.number += 1;
            let key = Key { session: u64::MAX - 1, number: self.number };
            self.state.apply(&Event { key, action }, Instant(0))
        }

        fn call(timeout: u64) -> Reserve {
            let cost = Amounts::cost([]).unwrap();
            let call = Reserve::new(AgentName::new("blog").unwrap(), cost);
            Reserve { patience: Span::secs(timeout), ..call }
        }

        fn reserve(&mut self, calls: usize, timeout: u64) {
            for _ in 0..calls {
                let _ = self.apply(Action::from(Self::call(timeout)));
            }
        }

        /// The forecasts in the order of arrival.
        fn expected(&self) -> Vec<Expected> {
            forecasts(&self.state, Instant(0)).into_values().collect()
        }
    }

    const fn at(seconds: u64) -> Expected {
        Expected::At(Instant(seconds * SECOND))
    }

    const fn after(seconds: u64) -> Expected {
        Expected::After(Instant(seconds * SECOND))
    }

    #[test]
    fn calls_are_expected_one_period_after_those_ahead_of_them() {
        let mut queue = Queue::new(None);
        queue.reserve(7, 600);
        assert_eq!(queue.expected(), [at(10), at(10), at(20), at(20), at(30)]);
        let new = forecast_of(&queue.state, &Queue::call(0), Instant(0));
        assert_eq!(new, Some(at(30)));
        // Nothing of it happened.
        assert_eq!(queue.state.facts().tickets.len(), 5);
    }

    #[test]
    fn a_call_that_times_out_first_lets_those_behind_it_pass() {
        let mut queue = Queue::new(None);
        queue.reserve(4, 600);
        queue.reserve(2, 15);
        queue.reserve(1, 600);
        let late = Expected::TimesOut { turn: Some(Instant(20 * SECOND)), or_later: false };
        assert_eq!(queue.expected(), [at(10), at(10), late, late, at(20)]);
    }

    #[test]
    fn what_waits_for_a_slot_is_expected_when_the_rate_allows_it_at_the_earliest() {
        let mut queue = Queue::new(Some(1));
        queue.reserve(2, 600);
        assert_eq!(queue.expected(), [], "it is admitted as soon as the slot is free");
        queue.reserve(3, 600);
        assert_eq!(queue.expected(), [after(10), after(10), after(20)]);
        queue.reserve(1, 15);
        let late = Expected::TimesOut { turn: Some(Instant(20 * SECOND)), or_later: true };
        assert_eq!(queue.expected()[3], late);
    }

    /// The one ahead needs both slots, of which a call holds one. It is admitted when that call
    /// ends, and does not have to give up before those behind it have their turn.
    #[test]
    fn the_timeout_of_a_call_that_waits_for_slots_is_no_instant_for_those_behind_it() {
        let mut queue = Queue::new(Some(2));
        queue.reserve(1, 600);
        let both = Amounts::cost([(Unit::Parallel, 2)]).unwrap();
        let both = Reserve {
            patience: Span::secs(5),
            ..Reserve::new(AgentName::new("two").unwrap(), both)
        };
        let _ = queue.apply(Action::from(both));
        // The second request of the window is that of the call ahead.
        assert_eq!(forecast_of(&queue.state, &Queue::call(0), Instant(0)), Some(after(10)));
        queue.reserve(1, 600);
        assert_eq!(queue.expected(), [after(10)]);
    }

    #[test]
    fn calls_that_one_cap_delays_have_one_bound_and_no_order() {
        let mut queue = Queue::new(None);
        let cap = Share {
            of: LimitSelector::Unit(Unit::Requests),
            portion: Portion::Rate { amount: 1, period: Span::secs(10) },
        };
        let rule = AgentRule {
            name: AgentName::new("blog").unwrap(),
            priority: None,
            floors: Vec::new(),
            caps: vec![cap],
            weight: 1,
        };
        let window = Rule::Window { unit: Unit::Requests, amount: 9, period: Span::secs(10) };
        let mut config = PoolConfig::new(vec![Limit::new(window)]);
        config.agents = vec![rule];
        let source = Source::Change;
        let _ = queue.apply(Action::Configure(Box::new(Configure { source, config })));
        queue.reserve(2, 600);
        assert_eq!(queue.expected(), [at(10)], "one alone has its instant");
        queue.reserve(2, 600);
        assert_eq!(queue.expected(), [after(10); 3]);
    }

    #[test]
    fn what_waits_for_the_answer_to_a_probe_has_a_lower_bound() {
        let mut queue = Queue::new(None);
        let kind = ThrottleKind::Quota;
        let retry_after = Some(Span::secs(5));
        let refused = Throttled { lease: None, agent: None, kind, retry_after, hit: None };
        let _ = queue.apply(Action::Throttled(refused));
        queue.reserve(2, 600);
        let [Expected::At(_), Expected::After(_)] = queue.expected()[..] else {
            panic!("{:?}", queue.expected())
        };
    }

    #[test]
    fn a_long_pause_is_no_timeout() {
        let mut queue = Queue::new(Some(1));
        queue.reserve(2, 3_600);
        let _ = queue.apply(Action::Pause { length: Span::secs(1_800), by: None });
        let [Expected::After(at)] = queue.expected()[..] else { panic!("{:?}", queue.expected()) };
        assert!(at >= Instant(1_800 * SECOND), "{at:?}");
    }

    #[test]
    fn a_long_queue_is_not_replayed() {
        let mut queue = Queue::new(None);
        queue.reserve(2 + MAX_TICKETS, 86_400);
        assert_eq!(queue.expected().len(), MAX_CALLS);
        queue.reserve(1, 86_400);
        assert!(queue.expected().is_empty());
    }
}

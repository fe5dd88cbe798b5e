//! One pass per call: own entries are not read back, a waiting reserve is judged once, and a
//! refusal leaves no entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Configure, Decision, Instant, Key, LeaseOwner, Limit,
    PoolConfig, Reserve, Rule, Source, Span, Unit,
};
use standpipe_store::fault_injection::{Fault, FaultQueue, FaultyLog};
use standpipe_store::trace::ManualClock;
use standpipe_store::{
    Log, LogRead, MemoryLog, Participant, Position, Replica, Snapshot, StoreError,
};

/// A log that counts calls, and appends each entry twice while it is told to.
#[derive(Clone)]
struct Counted {
    log: MemoryLog,
    appends: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
    doubles: bool,
}

impl Counted {
    fn calls(&self) -> (u64, u64) {
        (self.appends.swap(0, Ordering::Relaxed), self.reads.swap(0, Ordering::Relaxed))
    }
}

impl Log for Counted {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        self.appends.fetch_add(1, Ordering::Relaxed);
        match self.doubles {
            true => self.log.append(from, &[bodies, bodies].concat()),
            false => self.log.append(from, bodies),
        }
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.log.read(from)
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.log.write_snapshot(snapshot)
    }
}

/// A pool with two slots and ten requests an hour.
fn pool() -> Counted {
    let time = ManualClock::default();
    time.set(Instant(1_000_000));
    let log = MemoryLog::new(time.clock());
    let period = Span::secs(3_600);
    let limits = vec![
        Limit::new(Rule::Window { unit: Unit::Requests, amount: 10, period }),
        Limit::new(Rule::Parallel { amount: 2 }),
    ];
    let configure = Configure { source: Source::Code, config: PoolConfig::new(limits) };
    participant(&log).submit(vec![Action::Configure(Box::new(configure))]).unwrap();
    Counted { log, appends: Arc::default(), reads: Arc::default(), doubles: false }
}

fn participant<L: Log + Clone>(log: &L) -> Participant<L> {
    static SESSIONS: AtomicU64 = AtomicU64::new(1_000);
    Participant::new(log.clone(), || SESSIONS.fetch_add(1, Ordering::SeqCst))
}

fn call(requests: u64, patience: Span) -> Reserve {
    let cost = Amounts::cost([(Unit::Requests, requests)]).unwrap();
    Reserve { patience, ..Reserve::new(AgentName::new("blog").unwrap(), cost) }
}

fn decide<L: Log>(participant: &mut Participant<L>, reserve: Reserve) -> Decision {
    let outcomes = participant.submit(vec![Action::Reserve(Box::new(reserve))]).unwrap();
    match outcomes.into_iter().next().unwrap().answer {
        Answer::Decided(decision) => decision,
        other => panic!("{other:?} is no decision"),
    }
}

fn lease_of(decision: &Decision) -> Key {
    match decision {
        Decision::Admit(grant) => grant.lease,
        other => panic!("not admitted: {other:?}"),
    }
}

fn end(log: &Counted) -> u64 {
    let mut replica = Replica::new();
    replica.catch_up(&mut log.log.clone(), |_, _, _| ()).unwrap();
    replica.position().number
}

#[test]
fn an_append_is_one_call_and_its_own_entries_are_not_returned() {
    let log = pool();
    let mut alone = participant(&log);
    alone.refresh().unwrap();
    log.calls();
    for patience in [Span::ZERO, Span::secs(9)] {
        lease_of(&decide(&mut alone, call(1, patience)));
        assert_eq!(log.calls(), (1, 0), "{patience:?}");
    }
    let body = vec![vec![1, 2, 3]];
    let mut direct = log.log.clone();
    let LogRead::Tail(mut tail) = direct.append(alone.replica().position(), &body).unwrap() else {
        panic!("nothing was lost");
    };
    let appended = tail.appended.unwrap();
    assert_eq!((appended.after, tail.entries.len()), (alone.replica().position(), 0));
    tail.include_appended(&body);
    let LogRead::Tail(read) = direct.read(appended.after).unwrap() else {
        panic!("nothing was lost");
    };
    assert_eq!((tail.entries, tail.appended, tail.head), (read.entries, None, read.head));
}

#[test]
fn a_refused_reserve_that_does_not_wait_leaves_no_entry() {
    let log = pool();
    let (mut holder, mut other) = (participant(&log), participant(&log));
    lease_of(&decide(&mut holder, call(1, Span::ZERO)));
    let lease = lease_of(&decide(&mut holder, call(1, Span::ZERO)));
    other.refresh().unwrap();
    let before = end(&log);
    for _ in 0..3 {
        assert!(matches!(decide(&mut other, call(1, Span::ZERO)), Decision::Refuse(_)));
        assert!(matches!(decide(&mut other, call(11, Span::ZERO)), Decision::Refuse(_)));
    }
    assert_eq!(end(&log), before);
    holder.submit(vec![Action::Cancel { lease }]).unwrap();
    lease_of(&decide(&mut other, call(1, Span::ZERO)));
}

#[test]
fn of_waiting_reserves_that_are_refused_in_a_row_the_first_leaves_an_entry() {
    let log = pool();
    let mut one = participant(&log);
    one.refresh().unwrap();
    let before = end(&log);
    for _ in 0..5 {
        assert!(matches!(decide(&mut one, call(11, Span::secs(9))), Decision::Refuse(_)));
    }
    assert_eq!(end(&log), before + 1);
    lease_of(&decide(&mut one, call(1, Span::secs(9))));
    log.calls();
    lease_of(&decide(&mut one, call(1, Span::secs(9))));
    assert_eq!(log.calls(), (1, 0), "after an admission it does not ask first");
    assert!(matches!(decide(&mut one, call(1, Span::secs(9))), Decision::Wait(_)));
}

#[test]
fn an_engine_that_appended_something_else_than_it_was_given_is_not_believed() {
    let log = Counted { doubles: true, ..pool() };
    let mut one = participant(&log);
    lease_of(&decide(&mut one, call(1, Span::ZERO)));
    let mut fresh = Replica::new();
    fresh.catch_up(&mut log.log.clone(), |_, _, _| ()).unwrap();
    assert_eq!(one.replica().position(), fresh.position());
    assert_eq!(one.replica().state().facts(), fresh.state().facts());
}

#[test]
fn an_event_whose_answer_was_lost_is_found_in_the_log_and_counts_once() {
    let log = pool();
    let faults = FaultQueue::default();
    let mut hasty = Participant::new(FaultyLog::new(log.log.clone(), faults.clone()), || 5_000);
    hasty.refresh().unwrap();
    faults.push(Fault::LoseAnswer);
    let reserve = Action::Reserve(Box::new(call(1, Span::secs(9))));
    assert!(hasty.submit(vec![reserve.clone()]).unwrap_err().is_transient());
    let mut other = participant(&log);
    lease_of(&decide(&mut other, call(1, Span::ZERO)));
    let outcomes = hasty.resend().unwrap();
    assert!(matches!(outcomes[0].answer, Answer::Decided(Decision::Admit(_))), "{outcomes:?}");
    let again = hasty.submit(vec![reserve]).unwrap();
    assert!(matches!(again[0].answer, Answer::Decided(Decision::Wait(_))), "two slots: {again:?}");
}

#[test]
fn a_recovered_lease_has_the_ttl_of_its_last_heartbeat() {
    let log = pool();
    let mut owner = participant(&log);
    let reserve = Reserve { ttl: Some(Span::secs(60)), ..call(1, Span::ZERO) };
    let lease = lease_of(&decide(&mut owner, reserve));
    let ttl = Some(Span::secs(90));
    owner.submit(vec![Action::Heartbeat { lease: Some(lease), ttl }]).unwrap();
    log.log.lose_entries(end(&log));
    owner.submit(vec![Action::Heartbeat { lease: None, ttl: None }]).unwrap();
    let kept = &owner.replica().state().facts().leases[&lease];
    assert!(matches!(kept.owner, LeaseOwner::Ttl { ttl, .. } if ttl == Span::secs(90)), "{kept:?}");
    // A lease that was recovered once is recovered again.
    log.log.lose_entries(end(&log));
    owner.refresh().unwrap();
    assert!(owner.replica().state().facts().leases.contains_key(&lease));
}

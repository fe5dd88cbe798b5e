//! What callers ask for at the same time is sent together, and everybody gets its own answer.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use standpipe_core::{
    AgentName, Amounts, Configure, Instant, LeaseAnswer, Limit, Observed, PoolConfig, Reading,
    Reserve, Rule, Source, Unit, bounds,
};
use standpipe_store::fault_injection::{Fault, FaultQueue, FaultyLog};
use standpipe_store::{LogRead, MemoryLog, Position, Snapshot};

use super::*;

/// A log that counts how often something is appended.
struct Counted(FaultyLog<MemoryLog>, Arc<AtomicUsize>);

impl Log for Counted {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.append(from, bodies)
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.0.read(from)
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.0.write_snapshot(snapshot)
    }
}

struct Room {
    desk: Desk,
    appends: Arc<AtomicUsize>,
    faults: FaultQueue,
}

fn room(slots: u64) -> Room {
    let (appends, faults) = (Arc::new(AtomicUsize::new(0)), FaultQueue::default());
    let log = MemoryLog::new(Arc::new(|| Instant(bounds::SPAN.0)));
    let log = Counted(FaultyLog::new(log, faults.clone()), Arc::clone(&appends));
    let member = Participant::new(Box::new(log) as Box<dyn Log + Send>, || 7);
    let desk = Desk::new(
        "a/b".parse().unwrap(),
        member,
        Arc::new(Writer::default()),
        Arc::new(|| Duration::ZERO),
    );
    let config = PoolConfig::new(vec![Limit::new(Rule::Parallel { amount: slots })]);
    let configure = Configure { source: Source::Code, config };
    desk.ask(1, vec![Action::Configure(Box::new(configure))]);
    desk.counter().answer(1).unwrap();
    appends.store(0, Ordering::SeqCst);
    Room { desk, appends, faults }
}

fn reserve() -> Action {
    let agent = AgentName::new("blog").unwrap();
    Action::Reserve(Box::new(Reserve::new(agent, Amounts::cost([]).unwrap())))
}

fn lease(outcomes: &[Outcome]) -> Option<Key> {
    match &outcomes[0].answer {
        Answer::Decided(Decision::Admit(grant)) => Some(grant.lease),
        _ => None,
    }
}

#[test]
fn what_lies_in_the_inbox_goes_in_one_step_and_everybody_gets_its_own_answer() {
    let room = room(30);
    for caller in 10..50 {
        room.desk.ask(caller, vec![reserve()]);
    }
    let answers: Vec<_> =
        (10..50).rev().map(|caller| room.desk.counter().answer(caller).unwrap()).collect();
    assert_eq!(room.appends.load(Ordering::SeqCst), 1, "one call for forty");
    let leases: BTreeMap<Key, usize> =
        answers.iter().rev().enumerate().filter_map(|(at, own)| Some((lease(own)?, at))).collect();
    assert_eq!(leases.len(), 30, "as many as fit");
    assert!(leases.values().copied().eq(0..30), "in the order in which they asked");
}

#[test]
fn who_only_looks_shares_the_call_too() {
    let room = room(1);
    room.desk.ask(10, vec![reserve()]);
    room.desk.ask(11, Vec::new());
    assert_eq!(room.desk.counter().answer(11).unwrap(), []);
    assert!(lease(&room.desk.counter().answer(10).unwrap()).is_some());
    assert_eq!(room.appends.load(Ordering::SeqCst), 1);
}

#[test]
fn after_a_lost_answer_each_gets_its_own_and_who_left_leaves_nothing() {
    let room = room(3);
    for caller in 10..13 {
        room.desk.ask(caller, vec![reserve()]);
    }
    room.faults.push(Fault::LoseAnswer);
    assert!(room.desk.counter().answer(10).is_err());
    room.desk.counter().give_up(11);
    let mut counter = room.desk.counter();
    let kept = [10, 12].map(|caller| lease(&counter.answer(caller).unwrap()));
    assert!(kept.iter().all(Option::is_some) && kept[0] != kept[1], "{kept:?}");
    counter.flush().unwrap();
    assert_eq!(counter.member.replica().state().facts().leases.len(), 2, "the third is given back");
}

/// The maintenance thread reads between two attempts of a caller.
#[test]
fn b90_a_read_between_a_lost_answer_and_the_next_attempt_keeps_the_answer() {
    let room = room(1);
    room.desk.ask(10, vec![reserve()]);
    room.faults.push(Fault::LoseAnswer);
    assert!(room.desk.counter().answer(10).is_err());
    room.desk.counter().refresh().unwrap();
    let held = lease(&room.desk.counter().answer(10).unwrap()).expect("it was admitted");
    room.desk.ask(11, vec![Action::Cancel { lease: held }]);
    room.faults.push(Fault::LoseAnswer);
    assert!(room.desk.counter().answer(11).is_err());
    room.desk.counter().refresh().unwrap();
    let cancelled = room.desk.counter().answer(11).unwrap();
    let answers: Vec<_> = cancelled.iter().map(|outcome| &outcome.answer).collect();
    assert_eq!(answers, [&Answer::Lease(LeaseAnswer::Ended)]);
    assert_eq!(room.appends.load(Ordering::SeqCst), 2, "nothing was sent twice");
}

#[test]
fn however_much_is_left_for_later_all_of_it_is_sent() {
    let room = room(3);
    let mut counter = room.desk.counter();
    room.faults.push(Fault::Cut);
    let beats = (0..40_000).map(|_| Action::Heartbeat { lease: None, ttl: None });
    assert!(!counter.tell_all(beats), "not now");
    assert!(counter.has_pending());
    counter.flush().unwrap();
    let last = counter.member.last_written().unwrap();
    assert_eq!(last.number, 40_001, "behind the configuration");
    assert!(!counter.has_pending());
}

#[test]
fn what_cannot_be_sent_is_told_to_everybody_who_asked() {
    let room = room(3);
    let reading = Reading {
        unit: Unit::Requests,
        period: None,
        limit: Some(u64::MAX),
        remaining: None,
        coarse: 1,
        reset_in: None,
        full_in: None,
    };
    let observed = Observed { lease: None, readings: vec![reading; 10_000] };
    room.desk.ask(10, vec![Action::Observed(observed)]);
    room.desk.ask(11, vec![reserve()]);
    let errors = [10, 11].map(|caller| room.desk.counter().answer(caller).unwrap_err());
    assert!(errors.iter().all(|error| !error.is_transient()), "{errors:?}");
    room.desk.ask(12, vec![reserve()]);
    assert!(lease(&room.desk.counter().answer(12).unwrap()).is_some(), "and it goes on");
}

//! Actions that callers submit at the same time are sent together, and each caller gets its own
//! answers.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use standpipe_core::{
    AgentName, Amounts, Configure, Instant, LeaseAnswer, Limit, Observed, PoolConfig, Reading,
    Reserve, Rule, Source, Unit, bounds,
};
use standpipe_store::fault_injection::{Fault, FaultQueue, FaultyLog};
use standpipe_store::{LogRead, MemoryLog, Position, Snapshot};

use super::*;
use crate::journal::Writer;
use standpipe_core::{Action, Answer, Decision, Key, Outcome};
use standpipe_store::{Log, Participant, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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

struct Fixture {
    client: PoolClient,
    appends: Arc<AtomicUsize>,
    faults: FaultQueue,
}

fn fixture(slots: u64) -> Fixture {
    let (appends, faults) = (Arc::new(AtomicUsize::new(0)), FaultQueue::default());
    let log = MemoryLog::new(Arc::new(|| Instant(bounds::SPAN.0)));
    let log = Counted(FaultyLog::new(log, faults.clone()), Arc::clone(&appends));
    let participant = Participant::new(Box::new(log) as Box<dyn Log + Send>, || 7);
    let client = PoolClient::new(
        "a/b".parse().unwrap(),
        participant,
        Arc::new(Writer::default()),
        Arc::new(|| Duration::ZERO),
        false,
    );
    let config = PoolConfig::new(vec![Limit::new(Rule::Parallel { amount: slots })]);
    let configure = Configure { source: Source::Code, config };
    client.submit(1, vec![Action::Configure(Box::new(configure))]);
    client.dispatcher().answer(1).unwrap();
    appends.store(0, Ordering::SeqCst);
    Fixture { client, appends, faults }
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
fn what_is_queued_goes_in_one_step_and_each_caller_gets_its_own_answer() {
    let fixture = fixture(30);
    for caller in 10..50 {
        fixture.client.submit(caller, vec![reserve()]);
    }
    let answers: Vec<_> =
        (10..50).rev().map(|caller| fixture.client.dispatcher().answer(caller).unwrap()).collect();
    assert_eq!(fixture.appends.load(Ordering::SeqCst), 1, "one call for forty");
    let leases: BTreeMap<Key, usize> =
        answers.iter().rev().enumerate().filter_map(|(at, own)| Some((lease(own)?, at))).collect();
    assert_eq!(leases.len(), 30, "as many as fit");
    assert!(leases.values().copied().eq(0..30), "in the order of submission");
}

#[test]
fn a_read_shares_the_call_too() {
    let fixture = fixture(1);
    fixture.client.submit(10, vec![reserve()]);
    fixture.client.submit(11, Vec::new());
    assert_eq!(fixture.client.dispatcher().answer(11).unwrap(), []);
    assert!(lease(&fixture.client.dispatcher().answer(10).unwrap()).is_some());
    assert_eq!(fixture.appends.load(Ordering::SeqCst), 1);
}

#[test]
fn after_a_lost_answer_each_gets_its_own_and_a_caller_that_left_keeps_nothing() {
    let fixture = fixture(3);
    for caller in 10..13 {
        fixture.client.submit(caller, vec![reserve()]);
    }
    fixture.faults.push(Fault::LoseAnswer);
    assert!(fixture.client.dispatcher().answer(10).is_err());
    fixture.client.dispatcher().give_up(11);
    let mut dispatcher = fixture.client.dispatcher();
    let kept = [10, 12].map(|caller| lease(&dispatcher.answer(caller).unwrap()));
    assert!(kept.iter().all(Option::is_some) && kept[0] != kept[1], "{kept:?}");
    dispatcher.flush().unwrap();
    assert_eq!(
        dispatcher.participant.replica().state().facts().leases.len(),
        2,
        "the third is given back"
    );
}

/// The maintenance thread reads between two attempts of a caller.
#[test]
fn b90_a_read_between_a_lost_answer_and_the_next_attempt_keeps_the_answer() {
    let fixture = fixture(1);
    fixture.client.submit(10, vec![reserve()]);
    fixture.faults.push(Fault::LoseAnswer);
    assert!(fixture.client.dispatcher().answer(10).is_err());
    fixture.client.dispatcher().refresh().unwrap();
    let held = lease(&fixture.client.dispatcher().answer(10).unwrap()).expect("it was admitted");
    fixture.client.submit(11, vec![Action::Cancel { lease: held }]);
    fixture.faults.push(Fault::LoseAnswer);
    assert!(fixture.client.dispatcher().answer(11).is_err());
    fixture.client.dispatcher().refresh().unwrap();
    let cancelled = fixture.client.dispatcher().answer(11).unwrap();
    let answers: Vec<_> = cancelled.iter().map(|outcome| &outcome.answer).collect();
    assert_eq!(answers, [&Answer::Lease(LeaseAnswer::Ended)]);
    assert_eq!(fixture.appends.load(Ordering::SeqCst), 2, "nothing was sent twice");
}

#[test]
fn however_much_is_left_for_later_all_of_it_is_sent() {
    let fixture = fixture(3);
    let mut dispatcher = fixture.client.dispatcher();
    fixture.faults.push(Fault::Cut);
    let beats = (0..40_000).map(|_| Action::Heartbeat { lease: None, ttl: None });
    assert!(!dispatcher.send_or_keep_all(beats), "not now");
    assert!(dispatcher.has_pending());
    drop(dispatcher);
    // A turn does not try again after a failure; the next one does.
    let mut dispatcher = fixture.client.dispatcher();
    dispatcher.flush().unwrap();
    let last = dispatcher.participant.last_written().unwrap();
    assert_eq!(last.number, 40_001, "behind the configuration");
    assert!(!dispatcher.has_pending());
}

#[test]
fn an_error_that_is_not_transient_reaches_every_caller() {
    let fixture = fixture(3);
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
    fixture.client.submit(10, vec![Action::Observed(observed)]);
    fixture.client.submit(11, vec![reserve()]);
    let errors = [10, 11].map(|caller| fixture.client.dispatcher().answer(caller).unwrap_err());
    assert!(errors.iter().all(|error| !error.is_transient()), "{errors:?}");
    fixture.client.submit(12, vec![reserve()]);
    assert!(
        lease(&fixture.client.dispatcher().answer(12).unwrap()).is_some(),
        "the next one works"
    );
}

/// Each caller that tried by itself would wait for a timeout of its own.
#[test]
fn b94_a_caller_that_waited_behind_a_failed_step_shares_the_failure() {
    let fixture = fixture(3);
    let queued_at = Some(std::time::Instant::now());
    fixture.client.submit(10, vec![reserve()]);
    fixture.client.submit(11, vec![reserve()]);
    fixture.faults.push(Fault::Cut);
    assert!(fixture.client.dispatcher().answer(10).is_err());
    let mut dispatcher = fixture.client.dispatcher();
    dispatcher.begin_turn(dispatcher::Turn::Blocking { queued_at });
    assert!(dispatcher.answer(11).is_err());
    assert_eq!(fixture.appends.load(Ordering::SeqCst), 1, "no attempt of its own");
    drop(dispatcher);
    assert!(lease(&fixture.client.dispatcher().answer(11).unwrap()).is_some(), "the next one is");
}

//! A member's own ways: batches, callers that give up, wake-ups, and what it brings back after a
//! fork.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests assert, too")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Commit, Configure, Decision, Found, Instant, Key,
    LeaseAnswer, Limit, Observed, PoolConfig, Reading, Reserve, Rule, SEMANTICS, Source, Span,
    ThrottleKind, Throttled, Unit,
};
use standpipe_store::faulty::{Fault, Faults, Faulty};
use standpipe_store::trace::Time;
use standpipe_store::{
    Log, Member, MemoryLog, Position, Replica, Since, Snapshot, StoreError, hash,
};

/// A pool with these limits, and its clock, at one second.
fn pool(limits: Vec<Limit>) -> (MemoryLog, Time) {
    let time = Time::default();
    time.set(Instant(1_000_000));
    let log = MemoryLog::new(time.clock());
    let config = PoolConfig::new(limits);
    let configure = Configure { source: Source::Code, config };
    member(&log).submit(vec![Action::Configure(Box::new(configure))]).unwrap();
    (log, time)
}

fn member<L: Log + Clone>(log: &L) -> Member<L> {
    static SESSIONS: AtomicU64 = AtomicU64::new(1);
    Member::new(log.clone(), || SESSIONS.fetch_add(1, Ordering::SeqCst))
}

fn requests(amount: u64) -> Limit {
    Limit::new(Rule::Window { unit: Unit::Requests, amount, period: Span::secs(3_600) })
}

fn parallel(amount: u64) -> Limit {
    Limit::new(Rule::Parallel { amount })
}

fn reserve(patience: Span) -> Action {
    let mut reserve = Reserve::new(AgentName::new("blog").unwrap(), Amounts::cost([]).unwrap());
    reserve.patience = patience;
    Action::Reserve(Box::new(reserve))
}

fn commit(lease: Key, progress: bool) -> Action {
    Action::Commit(Commit { lease, used: Amounts::default(), progress, refused: false })
}

fn heartbeat() -> Action {
    Action::Heartbeat { lease: None, ttl: None }
}

fn admitted<L: Log>(member: &mut Member<L>) -> Key {
    let outcomes = member.submit(vec![reserve(Span::ZERO)]).unwrap();
    match &outcomes[0].answer {
        Answer::Decided(Decision::Admit(grant)) => grant.lease,
        other => panic!("not admitted: {other:?}"),
    }
}

fn now(log: &MemoryLog) -> Replica {
    let mut replica = Replica::new();
    replica.catch_up(&mut log.clone(), |_, _, _| ()).unwrap();
    replica
}

#[test]
fn a_batch_too_large_for_one_call_is_split_and_answered_in_order() {
    let (log, _) = pool(vec![parallel(4_000)]);
    let mut busy = member(&log);
    let outcomes = busy.submit(vec![reserve(Span::ZERO); 3_000]).unwrap();
    let leases: Vec<Key> = outcomes
        .iter()
        .map(|outcome| match &outcome.answer {
            Answer::Decided(Decision::Admit(grant)) => grant.lease,
            other => panic!("not admitted: {other:?}"),
        })
        .collect();
    assert!(leases.is_sorted());
    assert_eq!(leases.len(), 3_000);
}

#[test]
fn an_event_too_large_for_the_log_is_told_and_leaves_nothing() {
    let (log, _) = pool(vec![parallel(1)]);
    let mut busy = member(&log);
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
    let before = now(&log).position();
    let error = busy.submit(vec![Action::Observed(observed)]).unwrap_err();
    assert!(!error.is_transient(), "{error}");
    assert!(error.to_string().contains("at most 60000"), "{error}");
    assert_eq!(now(&log).position(), before);
    admitted(&mut busy);
}

#[test]
fn a_caller_that_gives_up_leaves_a_cancel_for_the_next_append() {
    for fault in [Fault::Cut, Fault::LoseAnswer] {
        let (log, _) = pool(vec![parallel(1)]);
        let faults = Faults::default();
        let mut hasty = Member::new(Faulty::new(log.clone(), faults.clone()), || 77);
        hasty.refresh().unwrap();
        faults.push(fault);
        assert!(hasty.submit(vec![reserve(Span::secs(9))]).unwrap_err().is_transient());
        let unsure = hasty.submit(vec![heartbeat()]).unwrap_err();
        assert!(!unsure.is_transient(), "what is under way comes first: {unsure}");
        hasty.give_up();
        assert_eq!(hasty.under_way().count(), 0);
        hasty.submit(vec![heartbeat()]).unwrap();
        assert_eq!(now(&log).state().facts().leases.len(), 0, "{fault:?}");
        admitted(&mut member(&log));
    }
}

#[test]
fn a_session_whose_first_event_never_arrived_is_begun_anew_also_over_a_jump() {
    let (log, _) = pool(vec![requests(10_000)]);
    let faults = Faults::default();
    let mut sessions = 7_000..;
    let log_of_its_own = Faulty::new(log.clone(), faults.clone());
    let mut unlucky = Member::new(log_of_its_own, move || sessions.next().unwrap());
    unlucky.refresh().unwrap();
    faults.push(Fault::Cut);
    assert!(unlucky.submit(vec![reserve(Span::ZERO)]).is_err());
    unlucky.give_up();
    // So much happens meanwhile that it begins with a snapshot.
    let mut busy = member(&log);
    for _ in 0..1_000 {
        busy.submit(vec![heartbeat()]).unwrap();
    }
    log.clone().write_snapshot(&busy.replica().snapshot()).unwrap();
    let lease = admitted(&mut unlucky);
    assert_eq!(now(&log).state().find(lease), Found::Lease);
}

#[test]
fn what_is_not_a_reserve_is_still_sent_when_nobody_waits_for_it() {
    let (log, _) = pool(vec![parallel(1)]);
    let faults = Faults::default();
    let mut hasty = Member::new(Faulty::new(log.clone(), faults.clone()), || 77);
    let lease = admitted(&mut hasty);
    faults.push(Fault::Cut);
    assert!(hasty.submit(vec![commit(lease, false)]).is_err());
    hasty.give_up();
    hasty.submit(vec![heartbeat()]).unwrap();
    assert_eq!(now(&log).state().find(lease), Found::Neither);
}

#[test]
fn an_abandoned_ticket_is_gone_with_the_next_append() {
    let (log, _) = pool(vec![parallel(1)]);
    let mut holder = member(&log);
    admitted(&mut holder);
    let mut waiter = member(&log);
    let outcomes = waiter.submit(vec![reserve(Span::secs(60))]).unwrap();
    let Answer::Decided(Decision::Wait(hold)) = &outcomes[0].answer else { panic!() };
    waiter.abandon(hold.ticket);
    waiter.submit(vec![heartbeat()]).unwrap();
    assert_eq!(now(&log).state().facts().tickets.len(), 0);
}

#[test]
fn the_appender_wakes_whose_turn_came() {
    #[derive(Clone)]
    struct Bell(MemoryLog, Arc<Mutex<Vec<u64>>>);
    impl Log for Bell {
        fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
            self.0.append(from, bodies)
        }
        fn read(&mut self, from: Position) -> Result<Since, StoreError> {
            self.0.read(from)
        }
        fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
            self.0.write_snapshot(snapshot)
        }
        fn wake(&self, sessions: &[u64]) {
            self.1.lock().unwrap().extend_from_slice(sessions);
        }
    }
    let (log, _) = pool(vec![parallel(1)]);
    let bell = Bell(log, Arc::default());
    let (mut holder, mut waiter) = (member(&bell), member(&bell));
    let lease = admitted(&mut holder);
    waiter.submit(vec![reserve(Span::secs(60))]).unwrap();
    assert!(bell.1.lock().unwrap().is_empty());
    holder.submit(vec![commit(lease, false)]).unwrap();
    assert_eq!(*bell.1.lock().unwrap(), [waiter.session()]);
}

#[test]
fn after_everything_was_lost_the_living_bring_back_configuration_and_leases() {
    let (log, _) = pool(vec![requests(100), parallel(2)]);
    let mut honest = member(&log);
    let config = now(&log).state().facts().config.clone().unwrap();
    let change =
        Configure { source: Source::Change, config: PoolConfig { slack: Span(7), ..config } };
    honest.submit(vec![Action::Configure(Box::new(change.clone()))]).unwrap();
    let (lease, cancelled) = (admitted(&mut honest), admitted(&mut honest));
    honest.submit(vec![Action::Cancel { lease: cancelled }]).unwrap();
    log.lose(now(&log).position().number);
    assert_eq!(now(&log).position(), Position::START);
    honest.refresh().unwrap();
    let state = now(&log);
    assert_eq!(state.state().facts().config.as_ref(), Some(&change.config));
    assert_eq!(state.state().find(lease), Found::Lease);
    assert_eq!(state.state().find(cancelled), Found::Neither);
    let ended = honest.submit(vec![commit(lease, false)]).unwrap();
    assert_eq!(ended[0].answer, Answer::Lease(LeaseAnswer::Ended));
}

#[test]
fn a_configuration_comes_back_also_when_whoever_told_it_is_dead() {
    let (log, _) = pool(vec![parallel(2)]);
    let config = PoolConfig::new(vec![parallel(2)]);
    for source in [Source::Code, Source::File { version: Some(3), written: 0 }] {
        let configure = Configure { source, config: config.clone() };
        let configure = vec![Action::Configure(Box::new(configure))];
        let mut dead = member(&log);
        dead.submit(configure.clone()).unwrap();
        let mut living = member(&log);
        let outcomes = living.submit(configure).unwrap();
        assert_eq!(outcomes[0].answer, Answer::Configured(standpipe_core::Configured::Same));
        living.submit(vec![heartbeat()]).unwrap();
        drop(dead);
        log.lose(now(&log).position().number);
        living.refresh().unwrap();
        assert_eq!(now(&log).state().facts().config.as_ref(), Some(&config), "{source:?}");
        admitted(&mut living);
    }
}

#[test]
fn what_was_said_of_a_lease_comes_back_as_it_was_meant() {
    let (log, time) = pool(vec![requests(100), parallel(9)]);
    let mut honest = member(&log);
    let (progressed, cancelled) = (admitted(&mut honest), admitted(&mut honest));
    honest.submit(vec![heartbeat()]).unwrap();
    time.set(Instant(5_000_000));
    honest.submit(vec![commit(progressed, true)]).unwrap();
    honest.submit(vec![Action::Cancel { lease: cancelled }]).unwrap();
    let throttled = Throttled {
        hit: None,
        lease: None,
        agent: None,
        kind: ThrottleKind::Quota,
        retry_after: Some(Span::secs(30)),
    };
    honest.submit(vec![Action::Throttled(throttled)]).unwrap();
    log.lose(3);
    time.set(Instant(6_000_000));
    honest.refresh().unwrap();
    let facts = now(&log).state().facts().clone();
    assert_eq!(facts.leases[&progressed].progressed, Instant(6_000_000));
    assert!(!facts.leases.contains_key(&cancelled), "never sent, so given back");
    assert_eq!(facts.pause, Some(Instant(36_000_000)));
}

#[test]
fn a_process_survives_fork_after_fork() {
    let (log, _) = pool(vec![requests(100), parallel(9)]);
    let mut honest = member(&log);
    let lease = admitted(&mut honest);
    for _ in 0..5 {
        log.lose(1);
        member(&log).submit(vec![heartbeat()]).unwrap();
        honest.refresh().unwrap();
        let state = now(&log);
        assert_eq!(state.state().find(lease), Found::Lease);
        assert_eq!(state.state().facts().leases.len(), 1);
    }
}

#[test]
fn a_fork_is_noticed_also_by_who_was_left_far_behind() {
    let (log, _) = pool(vec![requests(10_000), parallel(9)]);
    let mut asleep = member(&log);
    let lease = admitted(&mut asleep);
    log.lose(1);
    let mut busy = member(&log);
    // Two snapshots on, the sleeper's position has been trimmed.
    for _ in 0..2_000 {
        busy.submit(vec![heartbeat()]).unwrap();
    }
    asleep.refresh().unwrap();
    assert_eq!(now(&log).state().find(lease), Found::Lease);
}

#[test]
fn a_pool_of_other_semantics_is_told_apart_from_damage() {
    let (log, _) = pool(vec![parallel(1)]);
    let mut busy = member(&log);
    for _ in 0..20 {
        busy.submit(vec![heartbeat()]).unwrap();
    }
    let mut snapshot = busy.replica().snapshot();
    assert_eq!(u32::from(snapshot.bytes[0]), SEMANTICS);
    snapshot.bytes[0] += 1;
    snapshot.mark.hash = hash(0, &snapshot.bytes);
    log.clone().write_snapshot(&snapshot).unwrap();
    let error = member(&log).submit(vec![heartbeat()]).unwrap_err();
    assert!(error.is_foreign() && !error.is_damaged(), "{error}");
    assert!(error.to_string().contains("semantics"), "{error}");
}

#[test]
fn what_nobody_awaits_is_owed_sent_with_nothing_and_its_outcome_kept() {
    let (log, _) = pool(vec![parallel(1)]);
    let faults = Faults::default();
    let mut hasty = Member::new(Faulty::new(log.clone(), faults.clone()), || 78);
    let held = admitted(&mut hasty);
    let ticket = match &hasty.submit(vec![reserve(Span::secs(9))]).unwrap()[0].answer {
        Answer::Decided(Decision::Wait(hold)) => hold.ticket,
        other => panic!("does not wait: {other:?}"),
    };
    assert!(!hasty.is_owing());
    faults.push(Fault::Cut);
    assert!(hasty.submit(vec![commit(held, false)]).unwrap_err().is_transient());
    hasty.give_up();
    assert!(hasty.is_owing(), "the commit is still to be sent");
    assert_eq!(hasty.submit(Vec::new()).unwrap(), []);
    assert!(!hasty.is_owing());
    let unheard = hasty.take_unheard();
    assert_eq!(unheard.len(), 1);
    assert_eq!(unheard[0].wake, [ticket], "its own waiter is to be told");
    assert_eq!(hasty.take_unheard(), []);
}

/// A log that cannot even be called, while it is away.
struct Unreachable(MemoryLog, Arc<AtomicBool>);

impl Unreachable {
    fn check(&self) -> Result<(), StoreError> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(StoreError::transient("away, on purpose").unsent()),
            false => Ok(()),
        }
    }
}

impl Log for Unreachable {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        self.check()?;
        self.0.append(from, bodies)
    }

    fn read(&mut self, from: Position) -> Result<Since, StoreError> {
        self.check()?;
        self.0.read(from)
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.0.write_snapshot(snapshot)
    }
}

#[test]
fn what_never_left_is_not_called_back_however_long_a_store_is_away() {
    let (log, _) = pool(vec![parallel(1)]);
    let away = Arc::new(AtomicBool::new(false));
    let mut patient = Member::new(Unreachable(log.clone(), Arc::clone(&away)), || 77);
    patient.refresh().unwrap();
    away.store(true, Ordering::SeqCst);
    for _ in 0..100 {
        assert!(patient.submit(vec![reserve(Span::secs(9))]).unwrap_err().is_transient());
        patient.give_up();
    }
    assert!(!patient.is_owing(), "nothing of it is known there");
    away.store(false, Ordering::SeqCst);
    let before = now(&log).position().number;
    admitted(&mut patient);
    assert!(
        now(&log).position().number - before <= 2,
        "its own reserve, under a session that counts"
    );
}

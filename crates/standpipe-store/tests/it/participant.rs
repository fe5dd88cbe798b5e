//! The participant: batches, callers that give up, wake-ups, and recovery after a fork.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Commit, Configure, Decision, Found, Instant, Key,
    LeaseAnswer, Limit, Observed, Outcome, PoolConfig, Reading, Reserve, Rule, SEMANTICS, Source,
    Span, ThrottleKind, Throttled, Unit,
};
use standpipe_store::fault_injection::{Fault, FaultQueue, FaultyLog};
use standpipe_store::trace::ManualClock;
use standpipe_store::{
    Log, LogRead, MemoryLog, Participant, Position, Replica, Snapshot, StoreError, hash,
};

/// Creates a pool with these limits and a clock at one second.
fn pool(limits: Vec<Limit>) -> (MemoryLog, ManualClock) {
    let time = ManualClock::default();
    time.set(Instant(1_000_000));
    let log = MemoryLog::new(time.clock());
    let config = PoolConfig::new(limits);
    let configure = Configure { source: Source::Code, config };
    participant(&log).submit(vec![Action::Configure(Box::new(configure))]).unwrap();
    (log, time)
}

fn participant<L: Log + Clone>(log: &L) -> Participant<L> {
    static SESSIONS: AtomicU64 = AtomicU64::new(1);
    Participant::new(log.clone(), || SESSIONS.fetch_add(1, Ordering::SeqCst))
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

fn admitted<L: Log>(participant: &mut Participant<L>) -> Key {
    let outcomes = participant.submit(vec![reserve(Span::ZERO)]).unwrap();
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
    let mut busy = participant(&log);
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
    let mut busy = participant(&log);
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
        let faults = FaultQueue::default();
        let mut sessions = 77..;
        let next = move || sessions.next().unwrap();
        let mut hasty = Participant::new(FaultyLog::new(log.clone(), faults.clone()), next);
        hasty.refresh().unwrap();
        faults.push(fault);
        assert!(hasty.submit(vec![reserve(Span::secs(9))]).unwrap_err().is_transient());
        let unsure = hasty.submit(vec![heartbeat()]).unwrap_err();
        assert!(!unsure.is_transient(), "the unanswered submit comes first: {unsure}");
        hasty.give_up();
        assert_eq!(hasty.unanswered_events().count(), 0);
        hasty.submit(vec![heartbeat()]).unwrap();
        assert_eq!(now(&log).state().facts().leases.len(), 0, "{fault:?}");
        admitted(&mut participant(&log));
    }
}

#[test]
fn a_session_whose_first_event_never_arrived_is_begun_anew_also_over_a_jump() {
    let (log, _) = pool(vec![requests(10_000)]);
    let faults = FaultQueue::default();
    let mut sessions = 7_000..;
    let log_of_its_own = FaultyLog::new(log.clone(), faults.clone());
    let mut unlucky = Participant::new(log_of_its_own, move || sessions.next().unwrap());
    unlucky.refresh().unwrap();
    faults.push(Fault::Cut);
    assert!(unlucky.submit(vec![reserve(Span::ZERO)]).is_err());
    unlucky.give_up();
    // Enough entries follow that it starts from a snapshot.
    let mut busy = participant(&log);
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
    let faults = FaultQueue::default();
    let mut hasty = Participant::new(FaultyLog::new(log.clone(), faults.clone()), || 77);
    let lease = admitted(&mut hasty);
    faults.push(Fault::Cut);
    assert!(hasty.submit(vec![commit(lease, false)]).is_err());
    hasty.give_up();
    hasty.submit(vec![heartbeat()]).unwrap();
    assert_eq!(now(&log).state().find(lease), Found::Absent);
}

#[test]
fn an_abandoned_ticket_is_gone_with_the_next_append() {
    let (log, _) = pool(vec![parallel(1)]);
    let mut holder = participant(&log);
    admitted(&mut holder);
    let mut waiter = participant(&log);
    let outcomes = waiter.submit(vec![reserve(Span::secs(60))]).unwrap();
    let Answer::Decided(Decision::Wait(queued)) = &outcomes[0].answer else { panic!() };
    waiter.cancel_later(queued.ticket);
    waiter.submit(vec![heartbeat()]).unwrap();
    assert_eq!(now(&log).state().facts().tickets.len(), 0);
}

#[test]
fn the_appender_wakes_whose_turn_came() {
    #[derive(Clone)]
    struct RecordingLog(MemoryLog, Arc<Mutex<Vec<u64>>>);
    impl Log for RecordingLog {
        fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
            self.0.append(from, bodies)
        }
        fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
            self.0.read(from)
        }
        fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
            self.0.write_snapshot(snapshot)
        }
        fn wake_sessions(&self, sessions: &[u64]) {
            self.1.lock().unwrap().extend_from_slice(sessions);
        }
    }
    let (log, _) = pool(vec![parallel(1)]);
    let recorder = RecordingLog(log, Arc::default());
    let (mut holder, mut waiter) = (participant(&recorder), participant(&recorder));
    let lease = admitted(&mut holder);
    waiter.submit(vec![reserve(Span::secs(60))]).unwrap();
    assert!(recorder.1.lock().unwrap().is_empty());
    holder.submit(vec![commit(lease, false)]).unwrap();
    assert_eq!(*recorder.1.lock().unwrap(), [waiter.session()]);
}

#[test]
fn after_everything_was_lost_the_living_bring_back_configuration_and_leases() {
    let (log, _) = pool(vec![requests(100), parallel(2)]);
    let mut owner = participant(&log);
    let config = now(&log).state().facts().config.clone().unwrap();
    let change =
        Configure { source: Source::Change, config: PoolConfig { slack: Span(7), ..config } };
    owner.submit(vec![Action::Configure(Box::new(change.clone()))]).unwrap();
    let (lease, cancelled) = (admitted(&mut owner), admitted(&mut owner));
    owner.submit(vec![Action::Cancel { lease: cancelled }]).unwrap();
    log.lose_entries(now(&log).position().number);
    assert_eq!(now(&log).position(), Position::START);
    owner.refresh().unwrap();
    let state = now(&log);
    assert_eq!(state.state().facts().config.as_ref(), Some(&change.config));
    assert_eq!(state.state().find(lease), Found::Lease);
    assert_eq!(state.state().find(cancelled), Found::Absent);
    let ended = owner.submit(vec![commit(lease, false)]).unwrap();
    assert_eq!(ended[0].answer, Answer::Lease(LeaseAnswer::Ended));
}

#[test]
fn a_configuration_comes_back_also_when_whoever_told_it_is_dead() {
    let (log, _) = pool(vec![parallel(2)]);
    let config = PoolConfig::new(vec![parallel(2)]);
    for source in [Source::Code, Source::File { version: Some(3), written: 0 }] {
        let configure = Configure { source, config: config.clone() };
        let configure = vec![Action::Configure(Box::new(configure))];
        let mut dead = participant(&log);
        dead.submit(configure.clone()).unwrap();
        let mut living = participant(&log);
        let outcomes = living.submit(configure).unwrap();
        assert_eq!(outcomes[0].answer, Answer::Configured(standpipe_core::Configured::Same));
        living.submit(vec![heartbeat()]).unwrap();
        drop(dead);
        log.lose_entries(now(&log).position().number);
        living.refresh().unwrap();
        assert_eq!(now(&log).state().facts().config.as_ref(), Some(&config), "{source:?}");
        admitted(&mut living);
    }
}

#[test]
fn what_was_said_of_a_lease_comes_back_as_it_was_meant() {
    let (log, time) = pool(vec![requests(100), parallel(9)]);
    let mut owner = participant(&log);
    let (progressed, cancelled) = (admitted(&mut owner), admitted(&mut owner));
    owner.submit(vec![heartbeat()]).unwrap();
    time.set(Instant(5_000_000));
    owner.submit(vec![commit(progressed, true)]).unwrap();
    owner.submit(vec![Action::Cancel { lease: cancelled }]).unwrap();
    let throttled = Throttled {
        hit: None,
        lease: None,
        agent: None,
        kind: ThrottleKind::Quota,
        retry_after: Some(Span::secs(30)),
    };
    owner.submit(vec![Action::Throttled(throttled)]).unwrap();
    log.lose_entries(3);
    time.set(Instant(6_000_000));
    owner.refresh().unwrap();
    let facts = now(&log).state().facts().clone();
    assert_eq!(facts.leases[&progressed].progressed, Instant(6_000_000));
    assert!(!facts.leases.contains_key(&cancelled), "the call was never made");
    assert_eq!(facts.pause, Some(Instant(36_000_000)));
}

/// A restored throttle replaces the one it restores. Otherwise each loss would double them.
#[test]
fn a_throttle_is_restored_once_however_often_the_store_loses_it() {
    let (log, _) = pool(vec![requests(100)]);
    let mut owner = participant(&log);
    owner.submit(vec![heartbeat()]).unwrap();
    let (kind, retry_after) = (ThrottleKind::Quota, Some(Span::secs(30)));
    let throttled = Throttled { hit: None, lease: None, agent: None, kind, retry_after };
    owner.submit(vec![Action::Throttled(throttled)]).unwrap();
    for _ in 0..4 {
        log.lose_entries(1);
        participant(&log).submit(vec![heartbeat()]).unwrap();
        owner.refresh().unwrap();
        assert_eq!(owner.take_restored(), Some(1));
    }
}

#[test]
fn a_process_survives_fork_after_fork() {
    let (log, _) = pool(vec![requests(100), parallel(9)]);
    let mut owner = participant(&log);
    let lease = admitted(&mut owner);
    for _ in 0..5 {
        log.lose_entries(1);
        participant(&log).submit(vec![heartbeat()]).unwrap();
        owner.refresh().unwrap();
        let state = now(&log);
        assert_eq!(state.state().find(lease), Found::Lease);
        assert_eq!(state.state().facts().leases.len(), 1);
    }
}

#[test]
fn a_fork_is_noticed_also_by_who_was_left_far_behind() {
    let (log, _) = pool(vec![requests(10_000), parallel(9)]);
    let mut asleep = participant(&log);
    let lease = admitted(&mut asleep);
    log.lose_entries(1);
    let mut busy = participant(&log);
    // After two snapshots the sleeper's position is trimmed.
    for _ in 0..2_000 {
        busy.submit(vec![heartbeat()]).unwrap();
    }
    asleep.refresh().unwrap();
    assert_eq!(now(&log).state().find(lease), Found::Lease);
}

#[test]
fn a_pool_of_other_semantics_is_told_apart_from_damage() {
    let (log, _) = pool(vec![parallel(1)]);
    let mut busy = participant(&log);
    for _ in 0..20 {
        busy.submit(vec![heartbeat()]).unwrap();
    }
    let mut snapshot = busy.replica().snapshot();
    assert_eq!(u32::from(snapshot.bytes[0]), SEMANTICS);
    snapshot.bytes[0] += 1;
    snapshot.id.hash = hash(0, &snapshot.bytes);
    log.clone().write_snapshot(&snapshot).unwrap();
    let error = participant(&log).submit(vec![heartbeat()]).unwrap_err();
    assert!(error.is_incompatible() && !error.is_damaged(), "{error}");
    assert!(error.to_string().contains("semantics"), "{error}");
}

#[test]
fn what_nobody_awaits_is_owed_sent_with_nothing_and_its_outcome_kept() {
    let (log, _) = pool(vec![parallel(1)]);
    let faults = FaultQueue::default();
    let mut hasty = Participant::new(FaultyLog::new(log.clone(), faults.clone()), || 78);
    let held = admitted(&mut hasty);
    let ticket = match &hasty.submit(vec![reserve(Span::secs(9))]).unwrap()[0].answer {
        Answer::Decided(Decision::Wait(queued)) => queued.ticket,
        other => panic!("does not wait: {other:?}"),
    };
    assert!(!hasty.has_pending());
    faults.push(Fault::Cut);
    assert!(hasty.submit(vec![commit(held, false)]).unwrap_err().is_transient());
    hasty.give_up();
    assert!(hasty.has_pending(), "the commit is still to be sent");
    assert_eq!(hasty.submit(Vec::new()).unwrap(), []);
    assert!(!hasty.has_pending());
    let unclaimed = hasty.take_unclaimed_outcomes();
    assert_eq!(unclaimed.len(), 1);
    assert_eq!(unclaimed[0].wake, [ticket], "its own waiter is woken");
    assert_eq!(hasty.take_unclaimed_outcomes(), []);
}

/// Outcomes that a read found stay in the queue. They must not keep the next submit from reading.
#[test]
fn b90_a_submit_returns_what_a_read_found_and_reads_what_is_new() {
    let (log, _) = pool(vec![parallel(2)]);
    let faults = FaultQueue::default();
    let mut hasty = Participant::new(FaultyLog::new(log.clone(), faults.clone()), || 78);
    let held = admitted(&mut participant(&log));
    hasty.refresh().unwrap();
    faults.push(Fault::LoseAnswer);
    let asked = hasty.submit_for(vec![(1, reserve(Span::ZERO))]);
    assert!(asked.unwrap_err().is_transient());
    hasty.refresh().unwrap();
    assert_eq!(hasty.unanswered_events().count(), 0, "the read found it");
    let mut other = participant(&log);
    other.submit(vec![commit(held, false)]).unwrap();
    // Without the end of `held`, which only a new read shows, this one is refused.
    let outcomes = hasty.submit_for(vec![(2, reserve(Span::ZERO))]).unwrap();
    let admitted = |(caller, outcome): &(u64, Outcome)| match &outcome.answer {
        Answer::Decided(Decision::Admit(_)) => *caller,
        other => panic!("caller {caller} is not admitted: {other:?}"),
    };
    assert_eq!(outcomes.iter().map(admitted).collect::<Vec<_>>(), [1, 2]);
    other.submit(vec![heartbeat()]).unwrap();
    assert!(hasty.submit_for(Vec::new()).unwrap().is_empty());
    assert_eq!(hasty.replica().position(), now(&log).position(), "a submit of nothing reads");
}

/// A server that is killed in the middle of a recovery.
#[test]
fn b91_a_recovery_that_fails_is_repeated() {
    for fault in [Fault::Cut, Fault::LoseAnswer] {
        for sends in [false, true] {
            let (log, _) = pool(vec![parallel(1)]);
            let faults = FaultQueue::default();
            let faulty = FaultyLog::new(log.clone(), faults.clone());
            let mut sessions = 78..;
            let mut holder = Participant::new(faulty, move || sessions.next().unwrap());
            let lease = admitted(&mut holder);
            log.lose_entries(1);
            // The call that finds the fork succeeds, the one that loads the present log does not.
            faults.push(Fault::None);
            faults.push(fault);
            let found = match sends {
                true => holder.submit(vec![heartbeat()]).map(drop),
                false => holder.refresh(),
            };
            assert!(found.unwrap_err().is_transient());
            match sends {
                true => drop(holder.resend().unwrap()),
                false => holder.refresh().unwrap(),
            }
            assert_eq!(now(&log).state().find(lease), Found::Lease, "{fault:?}, sends: {sends}");
        }
    }
}

/// A log whose calls fail before they are sent while the flag is set.
struct Unreachable(MemoryLog, Arc<AtomicBool>);

impl Unreachable {
    fn check(&self) -> Result<(), StoreError> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(StoreError::transient("injected fault: unavailable").unsent()),
            false => Ok(()),
        }
    }
}

impl Log for Unreachable {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        self.check()?;
        self.0.append(from, bodies)
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
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
    let mut sessions = 77..;
    let next = move || sessions.next().unwrap();
    let mut patient = Participant::new(Unreachable(log.clone(), Arc::clone(&away)), next);
    patient.refresh().unwrap();
    away.store(true, Ordering::SeqCst);
    for _ in 0..100 {
        assert!(patient.submit(vec![reserve(Span::secs(9))]).unwrap_err().is_transient());
        patient.give_up();
    }
    assert!(!patient.has_pending(), "nothing reached the store");
    away.store(false, Ordering::SeqCst);
    let before = now(&log).position().number;
    admitted(&mut patient);
    assert!(
        now(&log).position().number - before <= 2,
        "its own reserve, under a session that counts"
    );
}

/// A log that stores an append, reports damage, and then fails before it sends the quarantine.
struct StoredButUnquarantined(MemoryLog);

impl Log for StoredButUnquarantined {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        self.0.append(from, bodies)?;
        Err(StoreError::damaged("injected fault: the answer is damaged"))
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.0.read(from)
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.0.write_snapshot(snapshot)
    }

    fn quarantine(&mut self) -> Result<bool, StoreError> {
        Err(StoreError::transient("injected fault: unavailable").unsent())
    }
}

#[test]
fn an_error_after_an_append_is_never_unsent() {
    let (log, _) = pool(vec![parallel(1)]);
    let mut caller = Participant::new(StoredButUnquarantined(log.clone()), || 77);
    caller.refresh().unwrap();
    let error = caller.submit(vec![reserve(Span::secs(9))]).unwrap_err();
    assert!(error.is_transient() && !error.is_unsent(), "{error}");
    assert_eq!(now(&log).state().facts().leases.len(), 1);
}

//! Entries that are not understood, and entries that are damaged.

use standpipe_core::{Action, Answer, Decision, Event, Instant, Key, SEMANTICS, Span};

use super::Harness;
use super::fixture::{Fixture, admitted, ok, only, parallel, reserve, state_bytes};
use crate::entry::{body, body_of};
use crate::fault_injection::{Fault, FaultQueue, FaultyLog};
use crate::log::{Log, LogRead, Position};
use crate::replica::{CaughtUp, Replica};

/// Every process skips and counts entries of other semantics and malformed ones, whether it reads
/// them or starts from a snapshot.
pub fn what_nobody_understands_is_skipped_alike<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![parallel(3)]);
    let mut witness = fixture.participant();
    ok(witness.refresh());
    let odd = [body_of(SEMANTICS + 1, b"from the future"), body_of(SEMANTICS, &[0xff; 9])];
    ok(fixture.log().append(Position::START, &odd));
    ok(fixture.participant().submit(vec![reserve(Span::ZERO)]));
    ok(witness.refresh());
    let new = fixture.replica();
    assert_eq!((witness.replica().skipped(), new.skipped()), (2, 2));
    assert_eq!(state_bytes(witness.replica().state()), state_bytes(new.state()));
    // Enough entries follow that a new reader starts from a snapshot.
    ok(fixture.log().write_snapshot(&new.snapshot()));
    for _ in 0..400 {
        ok(witness.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
    }
    ok(fixture.log().write_snapshot(&witness.replica().snapshot()));
    let late = fixture.replica();
    assert_eq!(late.skipped(), 2);
    assert_eq!(late.position(), witness.replica().position());
}

/// An entry with a wrong checksum stops every reader before it. Nothing after it is decided.
pub fn damage_is_never_skipped<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![parallel(3)]);
    let mut before = fixture.participant();
    ok(before.refresh());
    for _ in 0..3 {
        ok(fixture.participant().submit(vec![reserve(Span::ZERO)]));
    }
    fixture.harness.corrupt_entry(&fixture.pool, 3);
    let known = before.replica().position();
    for _ in 0..3 {
        let error = before.submit(vec![reserve(Span::ZERO)]).err();
        assert!(error.as_ref().is_some_and(|error| error.is_damaged()), "{error:?}");
        assert!(before.replica().position().number < 3, "stopped before the damage");
        assert!(before.replica().position().number >= known.number);
        before.give_up();
    }
    let mut new = Replica::new();
    let error = new.catch_up(&mut fixture.log(), |_, _, _| ()).err();
    assert!(error.as_ref().is_some_and(|error| error.is_damaged()), "{error:?}");
}

/// A read that was damaged only in transit is repeated and succeeds.
pub fn damage_on_the_way_is_read_again<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![parallel(3)]);
    let faults = FaultQueue::default();
    for bit in 0..200 {
        let mut log = FaultyLog::new(fixture.log(), faults.clone());
        faults.push(Fault::FlipBit(bit * 7));
        let mut replica = Replica::new();
        ok(replica.catch_up(&mut log, |_, _, _| ()));
        assert_eq!(state_bytes(replica.state()), state_bytes(fixture.replica().state()));
    }
    // The same with a damaged snapshot.
    let mut busy = fixture.participant();
    for _ in 0..400 {
        ok(busy.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
    }
    for bit in 0..200 {
        let mut log = FaultyLog::new(fixture.log(), faults.clone());
        faults.push(Fault::FlipSnapshotBit(bit));
        let mut replica = Replica::new();
        assert_eq!(ok(replica.catch_up(&mut log, |_, _, _| ())), CaughtUp::BySnapshot);
        assert_eq!(state_bytes(replica.state()), state_bytes(busy.replica().state()));
    }
}

/// A tail in which an intact entry is missing, duplicated or out of order never leads to admission
/// to a slot that is in use. This holds for each call that a reserve makes, for one and for
/// repeated faults, and whether or not the reader starts from a snapshot.
pub fn a_tail_that_lacks_an_entry_admits_nobody<H: Harness>(harness: &H) {
    let faults = [
        Fault::DropEntry(0),
        Fault::DropEntry(1),
        Fault::DropLast,
        Fault::DoubleEntry(0),
        Fault::SwapEntries(0),
    ];
    for jumps in [false, true] {
        for fault in faults {
            for (before, times) in [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1)] {
                a_corrupt_tail_admits_nobody(harness, jumps, fault, before, times);
            }
        }
    }
}

/// Injects the fault into `times` calls in a row, after `before` calls without one.
fn a_corrupt_tail_admits_nobody<H: Harness>(
    harness: &H,
    jumps: bool,
    fault: Fault,
    before: usize,
    times: usize,
) {
    let what = format!("{fault:?}, {times} times after {before} calls, jumps: {jumps}");
    let fixture = Fixture::with(harness, vec![parallel(1)]);
    let faults = FaultQueue::default();
    let mut late = fixture.participant_on(FaultyLog::new(fixture.log(), faults.clone()));
    let beat = Action::Heartbeat { lease: None, ttl: None };
    let mut holder = fixture.participant();
    if jumps {
        ok(holder.submit(vec![beat.clone(); 400]));
        ok(fixture.log().write_snapshot(&holder.replica().snapshot()));
    } else {
        ok(late.refresh());
    }
    let held = admitted(&only(ok(holder.submit(vec![reserve(Span::ZERO)]))));
    ok(holder.submit(vec![beat]));
    for _ in 0..before {
        faults.push(Fault::None);
    }
    for _ in 0..times {
        faults.push(fault);
    }
    let mut answered = late.submit(vec![reserve(Span::ZERO)]);
    while let Err(error) = answered {
        assert!(error.is_damaged(), "{what}: {error}");
        late.give_up();
        answered = late.submit(vec![reserve(Span::ZERO)]);
    }
    let answer = only(ok(answered));
    assert!(matches!(answer, Answer::Decided(Decision::Refuse(_))), "{what}: {answer:?}");
    let leases = fixture.replica().state().facts().leases.keys().copied().collect::<Vec<_>>();
    assert_eq!(leases, [held], "{what}");
}

/// Stamps do not go back when the clock does. Entries of one append have the same stamp.
pub fn stamps_never_go_back<H: Harness>(harness: &H) {
    let fixture = Fixture::new(harness);
    let mut log = fixture.log();
    let mut number = 0;
    let mut expected: Vec<Instant> = Vec::new();
    for seconds in [5, 6, 2, 0, 7, 3, 7, 8] {
        fixture.time.set(Instant(seconds * 1_000_000));
        let heartbeat = |number| Event {
            key: Key { session: 1, number },
            action: Action::Heartbeat { lease: None, ttl: None },
        };
        let bodies = [body(&heartbeat(number + 1)), body(&heartbeat(number + 2))];
        number += 2;
        let latest = expected.last().copied().unwrap_or_default().max(fixture.time.now());
        expected.extend([latest, latest]);
        let LogRead::Tail(tail) = ok(log.append(Position::START, &bodies)) else {
            assert_eq!(number, 0, "the start is never forked");
            return;
        };
        assert_eq!(tail.now, latest, "now is not before the last stamp");
    }
    let mut stamps = Vec::new();
    let mut replica = Replica::new();
    ok(replica.catch_up(&mut log, |_, stamp, _| stamps.push(stamp)));
    assert_eq!(stamps, expected);
}

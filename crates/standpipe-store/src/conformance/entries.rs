//! Entries that are odd, and entries that are broken.

use standpipe_core::{Action, Event, Instant, Key, SEMANTICS, Span};

use super::Harness;
use super::world::{World, parallel, reserve, sent, state_bytes};
use crate::entry::{body, body_of};
use crate::faulty::{Fault, Faults, Faulty};
use crate::log::{Log, Position, Since};
use crate::replica::{Reached, Replica};

/// Entries of other semantics, and ones that make no sense, are skipped by everybody and counted,
/// by those who read them and by those who begin with a snapshot.
pub fn what_nobody_understands_is_skipped_alike<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![parallel(3)]);
    let mut witness = world.member();
    sent(witness.refresh());
    let odd = [body_of(SEMANTICS + 1, b"from the future"), body_of(SEMANTICS, &[0xff; 9])];
    sent(world.log().append(Position::START, &odd));
    sent(world.member().submit(vec![reserve(Span::ZERO)]));
    sent(witness.refresh());
    let new = world.replica();
    assert_eq!((witness.replica().skipped(), new.skipped()), (2, 2));
    assert_eq!(state_bytes(witness.replica().state()), state_bytes(new.state()));
    // Enough follows that a new reader begins with a snapshot.
    sent(world.log().write_snapshot(&new.snapshot()));
    for _ in 0..400 {
        sent(witness.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
    }
    sent(world.log().write_snapshot(&witness.replica().snapshot()));
    let late = world.replica();
    assert_eq!(late.skipped(), 2);
    assert_eq!(late.position(), witness.replica().position());
}

/// An entry with a wrong checksum stops everybody before it; nothing is decided behind it.
pub fn damage_is_never_skipped<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![parallel(3)]);
    let mut before = world.member();
    sent(before.refresh());
    for _ in 0..3 {
        sent(world.member().submit(vec![reserve(Span::ZERO)]));
    }
    world.harness.damage(&world.pool, 3);
    let known = before.replica().position();
    for _ in 0..3 {
        let error = before.submit(vec![reserve(Span::ZERO)]).err();
        assert!(error.as_ref().is_some_and(|error| error.is_damaged()), "{error:?}");
        assert!(before.replica().position().number < 3, "stopped before the damage");
        assert!(before.replica().position().number >= known.number);
        before.give_up();
    }
    let mut new = Replica::new();
    let error = new.catch_up(&mut world.log(), |_, _, _| ()).err();
    assert!(error.as_ref().is_some_and(|error| error.is_damaged()), "{error:?}");
}

/// What was damaged only on the way is read again, and all is well.
pub fn damage_on_the_way_is_read_again<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![parallel(3)]);
    let faults = Faults::default();
    for bit in 0..200 {
        let mut log = Faulty::new(world.log(), faults.clone());
        faults.push(Fault::FlipBit(bit * 7));
        let mut replica = Replica::new();
        sent(replica.catch_up(&mut log, |_, _, _| ()));
        assert_eq!(state_bytes(replica.state()), state_bytes(world.replica().state()));
    }
    // The same with a snapshot.
    let mut busy = world.member();
    for _ in 0..400 {
        sent(busy.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
    }
    for bit in 0..200 {
        let mut log = Faulty::new(world.log(), faults.clone());
        faults.push(Fault::FlipSnapshotBit(bit));
        let mut replica = Replica::new();
        assert_eq!(sent(replica.catch_up(&mut log, |_, _, _| ())), Reached::Jump);
        assert_eq!(state_bytes(replica.state()), state_bytes(busy.replica().state()));
    }
}

/// The clock goes back and the stamps do not; entries appended together have the same stamp.
pub fn stamps_never_go_back<H: Harness>(harness: &H) {
    let world = World::new(harness);
    let mut log = world.log();
    let mut number = 0;
    let mut expected: Vec<Instant> = Vec::new();
    for seconds in [5, 6, 2, 0, 7, 3, 7, 8] {
        world.time.set(Instant(seconds * 1_000_000));
        let heartbeat = |number| Event {
            key: Key { session: 1, number },
            action: Action::Heartbeat { lease: None, ttl: None },
        };
        let bodies = [body(&heartbeat(number + 1)), body(&heartbeat(number + 2))];
        number += 2;
        let latest = expected.last().copied().unwrap_or_default().max(world.time.now());
        expected.extend([latest, latest]);
        let Since::Tail(tail) = sent(log.append(Position::START, &bodies)) else {
            assert_eq!(number, 0, "the start is never forked");
            return;
        };
        assert_eq!(tail.now, latest, "now is not before the last stamp");
    }
    let mut stamps = Vec::new();
    let mut replica = Replica::new();
    sent(replica.catch_up(&mut log, |_, stamp, _| stamps.push(stamp)));
    assert_eq!(stamps, expected);
}

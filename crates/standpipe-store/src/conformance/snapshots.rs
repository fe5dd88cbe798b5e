//! Snapshots: new readers start from them, slow readers can finish, and wrong ones stop every
//! reader.

use standpipe_core::{Action, Span};

use super::Harness;
use super::fixture::{Fixture, HOUR, ok, requests, reserve, state_bytes};
use crate::log::{Log, LogRead, Position, Snapshot, Tail};
use crate::replica::{CaughtUp, Replica};

/// A new reader gets the snapshot when the tail is longer, and appenders write a snapshot when the
/// log has outgrown the last one.
pub fn a_new_reader_begins_with_the_snapshot<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![requests(100_000, HOUR)]);
    let mut busy = fixture.participant();
    for _ in 0..1_000 {
        fixture.advance(Span::millis(1));
        ok(busy.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
    }
    let tail = tail_of(ok(fixture.log().read(Position::START)));
    assert!(tail.snapshot.is_some(), "1,000 entries on, an appender must have written a snapshot");
    assert!(tail.entries.len() < 20_000, "what follows it is short: {}", tail.entries.len());
    let mut new = Replica::new();
    assert_eq!(ok(new.catch_up(&mut fixture.log(), |_, _, _| ())), CaughtUp::BySnapshot);
    assert_eq!(new.position(), busy.replica().position());
    assert_eq!(state_bytes(new.state()), state_bytes(busy.replica().state()));
}

/// A process that still reads from the previous snapshot when a new one is written finds all
/// entries since.
pub fn a_slow_reader_can_finish<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![requests(100_000, HOUR)]);
    let mut busy = fixture.participant();
    // The state must be much longer than a few entries.
    for _ in 0..60 {
        fixture.advance(Span::millis(1));
        ok(busy.submit(vec![reserve(Span::ZERO)]));
    }
    for _ in 0..4 {
        let first = busy.replica().snapshot();
        ok(fixture.log().write_snapshot(&first));
        let mut slow = fixture.replica();
        assert_eq!(slow.position(), first.id.at);
        for _ in 0..5 {
            fixture.advance(Span::millis(1));
            ok(busy.submit(vec![reserve(Span::ZERO)]));
        }
        ok(fixture.log().write_snapshot(&busy.replica().snapshot()));
        let tail = tail_of(ok(fixture.log().read(slow.position())));
        assert_eq!(tail.snapshot, None, "a few entries are shorter than the snapshot");
        assert_eq!(ok(slow.catch_up(&mut fixture.log(), |_, _, _| ())), CaughtUp::ByEntries);
        assert_eq!(state_bytes(slow.state()), state_bytes(busy.replica().state()));
    }
}

/// A snapshot before the latest one, or of another branch of the log, is ignored.
pub fn a_snapshot_is_kept_only_if_it_is_ahead_and_on_the_log<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![requests(100_000, HOUR)]);
    let mut busy = fixture.participant();
    ok(busy.submit(vec![reserve(Span::ZERO)]));
    let old = busy.replica().snapshot();
    for _ in 0..5 {
        ok(busy.submit(vec![reserve(Span::ZERO)]));
    }
    let present = busy.replica().snapshot();
    ok(fixture.log().write_snapshot(&present));
    let mut foreign = present.clone();
    foreign.id.at.chain ^= 1;
    let mut ahead = present.clone();
    ahead.id.at.number += 1;
    for refused in [&old, &foreign, &ahead] {
        ok(fixture.log().write_snapshot(refused));
        let tail = tail_of(ok(fixture.log().read(Position::START)));
        assert_eq!(tail.latest_snapshot, Some(present.id));
    }
}

/// A snapshot whose hash does not match the state stops every reader that passes or loads it, and
/// no outcome is released.
pub fn a_wrong_snapshot_stops_everybody<H: Harness>(harness: &H) {
    let wrong = |change: &dyn Fn(&mut Snapshot)| {
        let fixture = Fixture::with(harness, vec![requests(100_000, HOUR)]);
        let mut behind = fixture.participant();
        ok(behind.refresh());
        let mut reader = fixture.replica();
        let mut busy = fixture.participant();
        for _ in 0..40 {
            ok(busy.submit(vec![reserve(Span::ZERO)]));
        }
        let mut snapshot = busy.replica().snapshot();
        change(&mut snapshot);
        ok(fixture.log().write_snapshot(&snapshot));
        let mut outcomes = 0;
        let read = reader.catch_up(&mut fixture.log(), |_, _, _| outcomes += 1).err();
        assert!(read.as_ref().is_some_and(|error| error.is_damaged()), "{read:?}");
        assert_eq!(outcomes, 0, "released although the states differ");
        let met = behind.submit(vec![reserve(Span::ZERO)]).err();
        assert!(met.as_ref().is_some_and(|error| error.is_damaged()), "{met:?}");
        let mut new = Replica::new();
        new.catch_up(&mut fixture.log(), |_, _, _| ()).err()
    };
    let another_state = wrong(&|snapshot| snapshot.id.hash ^= 1);
    assert!(another_state.is_some_and(|error| error.is_damaged()));
}

fn tail_of(read: LogRead) -> Tail {
    match read {
        LogRead::Tail(tail) => tail,
        #[expect(clippy::panic, reason = "the suite asserts")]
        LogRead::Forked => panic!("nothing was lost, but the log reports a fork"),
    }
}

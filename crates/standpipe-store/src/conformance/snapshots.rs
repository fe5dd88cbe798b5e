//! Snapshots: new readers begin with them, slow ones are not cut off, wrong ones stop everybody.

use standpipe_core::{Action, Span};

use super::Harness;
use super::world::{HOUR, World, requests, reserve, sent, state_bytes};
use crate::log::{Log, Position, Since, Snapshot, Tail};
use crate::replica::{Reached, Replica};

/// When the tail is longer than the snapshot a new reader is given the snapshot; appenders write
/// one when the log has grown longer than the last.
pub fn a_new_reader_begins_with_the_snapshot<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![requests(100_000, HOUR)]);
    let mut busy = world.member();
    for _ in 0..1_000 {
        world.pass(Span::millis(1));
        sent(busy.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
    }
    let tail = tail_of(sent(world.log().read(Position::START)));
    assert!(tail.snapshot.is_some(), "1,000 entries on, an appender must have written a snapshot");
    assert!(tail.entries.len() < 20_000, "what follows it is short: {}", tail.entries.len());
    let mut new = Replica::new();
    assert_eq!(sent(new.catch_up(&mut world.log(), |_, _, _| ())), Reached::Jump);
    assert_eq!(new.position(), busy.replica().position());
    assert_eq!(state_bytes(new.state()), state_bytes(busy.replica().state()));
}

/// Who is still reading from the previous snapshot when a new one is written finds all entries
/// since.
pub fn a_slow_reader_can_finish<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![requests(100_000, HOUR)]);
    let mut busy = world.member();
    // A state that is much longer than a few entries.
    for _ in 0..60 {
        world.pass(Span::millis(1));
        sent(busy.submit(vec![reserve(Span::ZERO)]));
    }
    for _ in 0..4 {
        let first = busy.replica().snapshot();
        sent(world.log().write_snapshot(&first));
        let mut slow = world.replica();
        assert_eq!(slow.position(), first.mark.at);
        for _ in 0..5 {
            world.pass(Span::millis(1));
            sent(busy.submit(vec![reserve(Span::ZERO)]));
        }
        sent(world.log().write_snapshot(&busy.replica().snapshot()));
        let tail = tail_of(sent(world.log().read(slow.position())));
        assert_eq!(tail.snapshot, None, "a few entries are shorter than the snapshot");
        assert_eq!(sent(slow.catch_up(&mut world.log(), |_, _, _| ())), Reached::Step);
        assert_eq!(state_bytes(slow.state()), state_bytes(busy.replica().state()));
    }
}

/// A snapshot that is behind the present one, or of another branch of the log, changes nothing.
pub fn a_snapshot_is_kept_only_if_it_is_ahead_and_on_the_log<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![requests(100_000, HOUR)]);
    let mut busy = world.member();
    sent(busy.submit(vec![reserve(Span::ZERO)]));
    let old = busy.replica().snapshot();
    for _ in 0..5 {
        sent(busy.submit(vec![reserve(Span::ZERO)]));
    }
    let present = busy.replica().snapshot();
    sent(world.log().write_snapshot(&present));
    let mut foreign = present.clone();
    foreign.mark.at.chain ^= 1;
    let mut ahead = present.clone();
    ahead.mark.at.number += 1;
    for refused in [&old, &foreign, &ahead] {
        sent(world.log().write_snapshot(refused));
        let tail = tail_of(sent(world.log().read(Position::START)));
        assert_eq!(tail.mark, Some(present.mark));
    }
}

/// A snapshot whose writer came to another state, and one that was damaged, stop everybody who
/// meets them; nobody decides on them.
pub fn a_wrong_snapshot_stops_everybody<H: Harness>(harness: &H) {
    let wrong = |change: &dyn Fn(&mut Snapshot)| {
        let world = World::with(harness, vec![requests(100_000, HOUR)]);
        let mut behind = world.member();
        sent(behind.refresh());
        let mut busy = world.member();
        for _ in 0..40 {
            sent(busy.submit(vec![reserve(Span::ZERO)]));
        }
        let mut snapshot = busy.replica().snapshot();
        change(&mut snapshot);
        sent(world.log().write_snapshot(&snapshot));
        let met = behind.submit(vec![reserve(Span::ZERO)]).err();
        assert!(met.as_ref().is_some_and(|error| error.is_damaged()), "{met:?}");
        let mut new = Replica::new();
        new.catch_up(&mut world.log(), |_, _, _| ()).err()
    };
    let another_state = wrong(&|snapshot| snapshot.mark.hash ^= 1);
    assert!(another_state.is_some_and(|error| error.is_damaged()));
}

fn tail_of(since: Since) -> Tail {
    match since {
        Since::Tail(tail) => tail,
        #[expect(clippy::panic, reason = "the suite asserts")]
        Since::Forked => panic!("nothing was lost, but the log says it forked"),
    }
}

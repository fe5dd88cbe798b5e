//! A store that lost entries and continued: every reader detects it, and live processes restore
//! their own events.

use std::collections::BTreeSet;

use standpipe_core::{Action, Answer, Decision, Event, Found, Key, Span};

use super::Harness;
use super::fixture::{
    Fixture, HOUR, admitted, commit, ok, only, parallel, requests, reserve, state_bytes, used,
};
use crate::entry;
use crate::fault_injection::{Fault, FaultQueue, FaultyLog};
use crate::log::{Log, LogRead, Position};

/// A position that is not on the log is reported as forked, whether it is before, at or after the
/// head, and nothing is appended.
pub fn a_position_that_is_not_on_the_log_is_forked<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![parallel(9)]);
    let mut busy = fixture.participant();
    let mut positions = Vec::new();
    for _ in 0..4 {
        ok(busy.submit(vec![reserve(Span::ZERO)]));
        positions.push(busy.replica().position());
    }
    let kept = positions.remove(0);
    fixture.harness.lose_entries(&fixture.pool, 3);
    for _ in 0..2 {
        ok(fixture.participant().submit(vec![reserve(Span::ZERO)]));
    }
    let head = fixture.replica().position();
    let bodies = [entry::body(&Event {
        key: Key { session: 1, number: 1 },
        action: Action::Heartbeat { lease: None, ttl: None },
    })];
    for gone in positions {
        assert_eq!(ok(fixture.log().read(gone)), LogRead::Forked, "{gone:?} is not on the log");
        assert_eq!(ok(fixture.log().append(gone, &bodies)), LogRead::Forked, "{gone:?}");
    }
    assert_eq!(fixture.replica().position(), head, "nothing was appended");
    for there in [Position::START, kept, head] {
        assert_ne!(ok(fixture.log().read(there)), LogRead::Forked, "{there:?} is on the log");
    }
}

/// The store loses three entries of a process and others continue. The process puts its lease back
/// in flight, above the limit, and its finished call is charged again. All replicas agree
/// afterwards.
pub fn a_fork_is_seen_and_what_was_lost_comes_back<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![requests(100, HOUR), parallel(2)]);
    let mut owner = fixture.participant();
    let finished = admitted(&only(ok(owner.submit(vec![reserve(Span::ZERO)]))));
    let held = admitted(&only(ok(owner.submit(vec![reserve(Span::ZERO)]))));
    ok(owner.submit(vec![commit(finished)]));
    fixture.harness.lose_entries(&fixture.pool, 3);

    let mut others = fixture.participant();
    let theirs = ok(others.submit(vec![reserve(Span::ZERO), reserve(Span::ZERO)]));
    assert_eq!(theirs.len(), 2, "the store lost the leases, so there is room");

    ok(owner.refresh());
    let state = fixture.replica();
    assert_eq!(state.state().find(held), Found::Lease, "in flight again");
    assert_eq!(state.state().find(finished), Found::Absent, "it had ended");
    assert_eq!(state.state().facts().leases.len(), 3, "above the limit of 2");
    assert_eq!(used(state.state(), 0), 4, "two of theirs, two recovered");

    let answer = only(ok(owner.submit(vec![commit(held)])));
    assert_eq!(answer, Answer::Lease(standpipe_core::LeaseAnswer::Ended));
    ok(others.refresh());
    assert_eq!(state_bytes(others.replica().state()), state_bytes(owner.replica().state()));
    let done = owner.replica().position();
    ok(owner.refresh());
    assert_eq!(owner.replica().position(), done, "recovered once");
}

/// The store loses only a commit. The lease ends again, without a refund.
pub fn a_lost_commit_comes_back_and_ends_its_lease<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![requests(100, HOUR), parallel(1)]);
    let mut owner = fixture.participant();
    let lease = admitted(&only(ok(owner.submit(vec![reserve(Span::ZERO)]))));
    ok(owner.submit(vec![commit(lease)]));
    fixture.harness.lose_entries(&fixture.pool, 1);
    ok(fixture.participant().submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
    assert_eq!(fixture.replica().state().find(lease), Found::Lease, "the store lost the commit");
    ok(owner.refresh());
    assert_eq!(fixture.replica().state().find(lease), Found::Absent);
    assert_eq!(used(fixture.replica().state(), 0), 1);
}

/// An answer is lost, then the store loses entries, then the event is sent again. It takes effect
/// once, whether or not the store had lost it.
pub fn a_fork_under_a_lost_answer_does_it_once<H: Harness>(harness: &H) {
    for lost in [1, 2] {
        let fixture = Fixture::with(harness, vec![requests(100, HOUR)]);
        let faults = FaultQueue::default();
        let mut participant = fixture.participant_on(FaultyLog::new(fixture.log(), faults.clone()));
        ok(participant.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
        ok(fixture.participant().submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
        faults.push(Fault::LoseAnswer);
        assert!(participant.submit(vec![reserve(Span::ZERO)]).is_err());
        fixture.harness.lose_entries(&fixture.pool, lost);
        let mut other = fixture.participant();
        ok(other.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
        let lease = admitted(&only(ok(participant.resend())));
        let end = fixture.replica();
        assert_eq!(end.state().find(lease), Found::Lease);
        assert_eq!(used(end.state(), 0), 1, "charged once after the store lost {lost}");
    }
}

/// The store loses its last entries, continues, and 20 s later loses entries again, among them what
/// was restored after the first loss. Living processes restore both times, also one that slept
/// through the first loss and one that waits for a lost answer: no lease is lost, no slot is given
/// twice and no call is charged twice.
pub fn a_log_that_loses_entries_twice_in_a_minute_is_restored_twice<H: Harness>(harness: &H) {
    for first in 1..=5 {
        for second in 1..=4 {
            for sleeps in [false, true] {
                restored_after_two_losses(harness, [first, second], sleeps);
            }
        }
    }
}

fn restored_after_two_losses<H: Harness>(harness: &H, losses: [u64; 2], sleeps: bool) {
    let what = format!("the store lost {losses:?}; one sleeps: {sleeps}");
    let beat = || vec![Action::Heartbeat { lease: None, ttl: None }];
    let fixture = Fixture::with(harness, vec![requests(100, HOUR), parallel(3)]);
    let mut owner = fixture.participant();
    let finished = admitted(&only(ok(owner.submit(vec![reserve(Span::ZERO)]))));
    ok(owner.submit(vec![commit(finished)]));
    let held = admitted(&only(ok(owner.submit(vec![reserve(Span::ZERO)]))));
    let mut sleeper = fixture.participant();
    let slept_on = admitted(&only(ok(sleeper.submit(vec![reserve(Span::ZERO)]))));
    let faults = FaultQueue::default();
    let mut unanswered = fixture.participant_on(FaultyLog::new(fixture.log(), faults.clone()));
    ok(unanswered.refresh());
    faults.push(Fault::LoseAnswer);
    assert!(unanswered.submit(vec![reserve(Span::ZERO)]).is_err(), "{what}");

    let mut others = fixture.participant();
    for entries in losses {
        fixture.harness.lose_entries(&fixture.pool, entries);
        ok(others.submit(beat()));
        ok(owner.refresh());
        if !sleeps {
            ok(sleeper.refresh());
        }
        assert_eq!(fixture.replica().state().find(held), Found::Lease, "{what}");
        fixture.advance(Span::secs(20));
    }
    ok(sleeper.refresh());
    let answered = admitted(&only(ok(unanswered.resend())));

    let end = fixture.replica();
    let leases = end.state().facts().leases.keys().copied().collect::<BTreeSet<_>>();
    assert_eq!(leases, BTreeSet::from([held, slept_on, answered]), "{what}");
    assert_eq!(used(end.state(), 0), 4, "each call is charged once; {what}");
    let refused = only(ok(others.submit(vec![reserve(Span::ZERO)])));
    assert!(matches!(refused, Answer::Decided(Decision::Refuse(_))), "{what}: {refused:?}");
    ok(owner.submit(vec![commit(held)]));
    ok(sleeper.submit(vec![commit(slept_on)]));
    ok(unanswered.submit(vec![commit(answered)]));
    assert!(fixture.replica().state().facts().leases.is_empty(), "{what}");
    for other in [&mut owner, &mut sleeper, &mut others] {
        ok(other.refresh());
        assert_eq!(other.replica().position(), fixture.replica().position(), "{what}");
        assert_eq!(state_bytes(other.replica().state()), state_bytes(fixture.replica().state()));
    }
}

//! A store that lost entries and went on: it is seen, and what living processes did comes back.

use standpipe_core::{Action, Answer, Event, Found, Key, Span};

use super::Harness;
use super::world::{
    HOUR, World, admitted, commit, only, parallel, requests, reserve, sent, state_bytes, used,
};
use crate::entry;
use crate::faulty::{Fault, Faults, Faulty};
use crate::log::{Log, Position, Since};

/// A position that is not on the log is answered as forked, whether it lies behind the head, at it
/// or beyond, and nothing is appended then.
pub fn a_position_that_is_not_on_the_log_is_forked<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![parallel(9)]);
    let mut busy = world.member();
    let mut left = Vec::new();
    for _ in 0..4 {
        sent(busy.submit(vec![reserve(Span::ZERO)]));
        left.push(busy.replica().position());
    }
    let kept = left.remove(0);
    world.harness.lose(&world.pool, 3);
    for _ in 0..2 {
        sent(world.member().submit(vec![reserve(Span::ZERO)]));
    }
    let head = world.replica().position();
    let bodies = [entry::body(&Event {
        key: Key { session: 1, number: 1 },
        action: Action::Heartbeat { lease: None, ttl: None },
    })];
    for gone in left {
        assert_eq!(sent(world.log().read(gone)), Since::Forked, "{gone:?} is not on the log");
        assert_eq!(sent(world.log().append(gone, &bodies)), Since::Forked, "{gone:?}");
    }
    assert_eq!(world.replica().position(), head, "nothing was appended");
    for there in [Position::START, kept, head] {
        assert_ne!(sent(world.log().read(there)), Since::Forked, "{there:?} is on the log");
    }
}

/// The store forgets three entries and others go on: the process they were of puts its lease back
/// in flight, above the limit, and its finished call back on the count; everybody agrees
/// afterwards.
pub fn a_fork_is_seen_and_what_was_lost_comes_back<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![requests(100, HOUR), parallel(2)]);
    let mut honest = world.member();
    let finished = admitted(&only(sent(honest.submit(vec![reserve(Span::ZERO)]))));
    let held = admitted(&only(sent(honest.submit(vec![reserve(Span::ZERO)]))));
    sent(honest.submit(vec![commit(finished)]));
    world.harness.lose(&world.pool, 3);

    let mut others = world.member();
    let theirs = sent(others.submit(vec![reserve(Span::ZERO), reserve(Span::ZERO)]));
    assert_eq!(theirs.len(), 2, "the store forgot, so there is room");

    sent(honest.refresh());
    let state = world.replica();
    assert_eq!(state.state().find(held), Found::Lease, "in flight again");
    assert_eq!(state.state().find(finished), Found::Neither, "it had ended");
    assert_eq!(state.state().facts().leases.len(), 3, "above the limit of 2");
    assert_eq!(used(state.state(), 0), 4, "two of theirs, two recovered");

    let answer = only(sent(honest.submit(vec![commit(held)])));
    assert_eq!(answer, Answer::Lease(standpipe_core::LeaseAnswer::Ended));
    sent(others.refresh());
    assert_eq!(state_bytes(others.replica().state()), state_bytes(honest.replica().state()));
    let done = honest.replica().position();
    sent(honest.refresh());
    assert_eq!(honest.replica().position(), done, "recovered once, not again and again");
}

/// The store forgets a commit only: the lease ends again, without a refund.
pub fn a_lost_commit_comes_back_and_ends_its_lease<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![requests(100, HOUR), parallel(1)]);
    let mut honest = world.member();
    let lease = admitted(&only(sent(honest.submit(vec![reserve(Span::ZERO)]))));
    sent(honest.submit(vec![commit(lease)]));
    world.harness.lose(&world.pool, 1);
    sent(world.member().submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
    assert_eq!(world.replica().state().find(lease), Found::Lease, "the store forgot the commit");
    sent(honest.refresh());
    assert_eq!(world.replica().state().find(lease), Found::Neither);
    assert_eq!(used(world.replica().state(), 0), 1);
}

/// An answer is lost, then the store forgets what it had done, then the event is sent again: it is
/// done once. The same when the store did not forget it.
pub fn a_fork_under_a_lost_answer_does_it_once<H: Harness>(harness: &H) {
    for forgets in [1, 2] {
        let world = World::with(harness, vec![requests(100, HOUR)]);
        let faults = Faults::default();
        let mut member = world.member_on(Faulty::new(world.log(), faults.clone()));
        sent(member.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
        sent(world.member().submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
        faults.push(Fault::LoseAnswer);
        assert!(member.submit(vec![reserve(Span::ZERO)]).is_err());
        world.harness.lose(&world.pool, forgets);
        let mut other = world.member();
        sent(other.submit(vec![Action::Heartbeat { lease: None, ttl: None }]));
        let lease = admitted(&only(sent(member.resend())));
        let end = world.replica();
        assert_eq!(end.state().find(lease), Found::Lease);
        assert_eq!(used(end.state(), 0), 1, "once, after the store forgot {forgets}");
    }
}

//! Lost answers, lost callers and lost sessions: nothing is done twice, and nothing is left behind.

use standpipe_core::{Action, Answer, Decision, Found, Instant, Key, Outcome, Span};

use super::Harness;
use super::random::Random;
use super::world::{
    HOUR, World, admitted, commit, configure, long, only, parallel, requests, reserve, sent,
    state_bytes, used,
};
use crate::faulty::{Fault, Faults, Faulty};
use crate::log::Log;
use crate::member::Member;

/// Calls are cut off before or after they were done, callers resend or give up: every admitted call
/// is charged once, every given up one is given back, and at the end nothing is in flight.
pub fn lost_answers_do_nothing_twice_and_lose_nothing<H: Harness>(harness: &H) {
    for seed in 0..3 * long() {
        let world = World::with(harness, vec![requests(100_000, HOUR), parallel(9)]);
        let faults = Faults::default();
        let mut people: Vec<Person<_>> = (0..4)
            .map(|_| Person::new(world.member_on(Faulty::new(world.log(), faults.clone()))))
            .collect();
        let mut random = Random::new(seed);
        for _ in 0..600 {
            world.pass(Span::millis(random.below(40)));
            let at = random.place(4);
            let trouble = random.one_of(&[Fault::None, Fault::Cut, Fault::LoseAnswer]);
            faults.push(trouble.unwrap_or(Fault::None));
            people[at].act(&mut random);
        }
        let mut settled = 0;
        for person in &mut people {
            person.go_home();
            settled += person.settled;
        }
        let end = world.replica();
        assert_eq!(end.state().facts().leases.len(), 0, "seed {seed}: something is in flight");
        assert_eq!(end.state().facts().tickets.len(), 0, "seed {seed}: somebody waits");
        assert_eq!(used(end.state(), 0), settled, "seed {seed}: charged, of calls that were made");
    }
}

/// Somebody who makes calls and is not told everything.
struct Person<L> {
    member: Member<L>,
    holds: Vec<Key>,
    settled: u64,
}

impl<L: Log> Person<L> {
    const fn new(member: Member<L>) -> Self {
        Self { member, holds: Vec::new(), settled: 0 }
    }

    fn act(&mut self, random: &mut Random) {
        let mut actions = Vec::new();
        if let Some(lease) = self.holds.pop() {
            let sent = random.once_in(4);
            actions.push(if sent { commit(lease) } else { Action::Cancel { lease } });
            self.settled += u64::from(sent);
        }
        if random.once_in(2) || actions.is_empty() {
            actions.push(reserve(Span::ZERO));
        }
        let asked = actions.len();
        let mut result = self.member.submit(actions);
        while let Err(error) = result {
            assert!(error.is_transient(), "{error}");
            if random.once_in(3) {
                self.member.give_up();
                return;
            }
            result = self.member.resend();
        }
        let outcomes = result.unwrap_or_default();
        assert_eq!(outcomes.len(), asked, "an outcome for everything that was asked");
        self.learn(outcomes);
    }

    fn learn(&mut self, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            match outcome.answer {
                Answer::Decided(Decision::Admit(grant)) => self.holds.push(grant.lease),
                Answer::Decided(Decision::Refuse(_)) | Answer::Lease(_) => {}
                other => assert_eq!(other, Answer::Done, "nothing else was asked"),
            }
        }
    }

    /// Settles what it holds; what was given up goes with it.
    fn go_home(&mut self) {
        let mut actions: Vec<Action> = self.holds.drain(..).map(commit).collect();
        self.settled += actions.len() as u64;
        actions.push(Action::Heartbeat { lease: None, ttl: None });
        let mut result = self.member.submit(actions);
        while let Err(error) = result {
            assert!(error.is_transient(), "{error}");
            result = self.member.resend();
        }
    }
}

/// The answer to a reserve is lost after it made a ticket, and a snapshot is written before it is
/// sent again: the sender still finds its ticket, and there is only one.
pub fn a_reserve_sent_again_finds_its_ticket<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![requests(1, Span::secs(10))]);
    let first = admitted(&only(sent(world.member().submit(vec![reserve(Span::ZERO)]))));
    let faults = Faults::default();
    let mut waiter = world.member_on(Faulty::new(world.log(), faults.clone()));
    sent(waiter.refresh());
    faults.push(Fault::LoseAnswer);
    assert!(waiter.submit(vec![reserve(Span::secs(60))]).is_err(), "the answer was lost");
    // So much happens meanwhile that the waiter has to jump.
    let mut busy = world.member();
    for _ in 0..300 {
        sent(busy.submit(vec![Action::Heartbeat { lease: Some(first), ttl: None }]));
    }
    sent(world.log().write_snapshot(&world.replica().snapshot()));
    let answer = only(sent(waiter.resend()));
    let Answer::Decided(Decision::Wait(hold)) = &answer else {
        assert_eq!(format!("{answer:?}"), "a wait", "it made a ticket");
        return;
    };
    assert_eq!((hold.position, hold.refusal.until), (1, Some(Instant(11_000_000))));
    assert_eq!(world.replica().state().facts().tickets.len(), 1);
    // And in its time it is admitted, under the name of its first reserve.
    world.time.set(Instant(11_000_000));
    let mut claim = super::world::call(Span::secs(60));
    claim.ticket = Some(hold.ticket);
    let lease = admitted(&only(sent(waiter.submit(vec![Action::Reserve(Box::new(claim))]))));
    assert_eq!(lease, hold.ticket);
}

/// A process whose session ended while it lived goes on under a new one: its leases are gone, and
/// what it sends is done.
pub fn an_ended_session_goes_on_as_a_new_one<H: Harness>(harness: &H) {
    let world = World::with(harness, vec![parallel(1)]);
    let mut sleeper = world.member();
    let lease = admitted(&only(sent(sleeper.submit(vec![reserve(Span::ZERO)]))));
    let before = sleeper.session();
    sent(world.member().submit(vec![Action::SessionEnded { session: before }]));
    let outcomes = sent(sleeper.submit(vec![commit(lease), reserve(Span::ZERO)]));
    let answers: Vec<Answer> = outcomes.into_iter().map(|outcome| outcome.answer).collect();
    assert_eq!(answers[0], Answer::Lease(standpipe_core::LeaseAnswer::Gone));
    assert_ne!(admitted(&answers[1]), lease);
    assert_ne!(sleeper.session(), before);
    // The same after a silence so long that the ledger has forgotten it.
    world.pass(Span::secs(300));
    let again = admitted(&only(sent(sleeper.submit(vec![reserve(Span::ZERO)]))));
    assert_eq!(world.replica().state().find(again), Found::Lease);
}

/// A refused reserve and a configuration that the pool has are answered without an entry.
pub fn what_changes_nothing_leaves_no_trace<H: Harness>(harness: &H) {
    let limits = vec![requests(1, HOUR)];
    let world = World::with(harness, limits.clone());
    let mut member = world.member();
    admitted(&only(sent(member.submit(vec![reserve(Span::ZERO)]))));
    let (head, before) = (world.replica().position(), state_bytes(world.replica().state()));
    for _ in 0..5 {
        world.pass(Span::secs(1));
        let answer = only(sent(world.member().submit(vec![reserve(Span::ZERO)])));
        let refused = matches!(&answer, Answer::Decided(Decision::Refuse(refusal))
            if refusal.until == Some(Instant(1_000_000) + HOUR));
        assert!(refused, "{answer:?}");
        let answer = only(sent(world.member().submit(vec![configure(limits.clone())])));
        assert_eq!(answer, Answer::Configured(standpipe_core::Configured::Same));
    }
    assert_eq!(world.replica().position(), head);
    assert_eq!(state_bytes(world.replica().state()), before);
}

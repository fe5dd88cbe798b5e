//! Lost answers, callers that give up and sessions that end: no event takes effect twice, and no
//! lease stays behind.

use standpipe_core::{Action, Answer, Decision, Found, Instant, Key, Outcome, Span};

use super::Harness;
use super::fixture::{
    Fixture, HOUR, admitted, commit, configure, iteration_factor, ok, only, parallel, requests,
    reserve, state_bytes, used,
};
use super::random::Random;
use crate::fault_injection::{Fault, FaultQueue, FaultyLog};
use crate::log::Log;
use crate::participant::Participant;

/// Calls fail before or after they take effect, answers lack entries, callers resend or give up.
/// Every call that was made is charged once, every abandoned one is refunded, the calls in flight
/// never exceed the limit, and at the end none is.
pub fn lost_answers_do_nothing_twice_and_lose_nothing<H: Harness>(harness: &H) {
    for seed in 0..3 * iteration_factor() {
        let fixture = Fixture::with(harness, vec![requests(100_000, HOUR), parallel(2)]);
        let faults = FaultQueue::default();
        let mut clients: Vec<Client<_>> = (0..4)
            .map(|_| {
                Client::new(fixture.participant_on(FaultyLog::new(fixture.log(), faults.clone())))
            })
            .collect();
        let mut random = Random::new(seed);
        for _ in 0..600 {
            fixture.advance(Span::millis(random.below(40)));
            let at = random.index(4);
            faults.push(random_fault(&mut random));
            clients[at].act(&mut random);
            let held: usize = clients.iter().map(|client| client.leases.len()).sum();
            assert!(held <= 2, "seed {seed}: {held} of 2 slots are in use");
        }
        let mut settled = 0;
        for client in &mut clients {
            client.settle_all();
            settled += client.settled;
        }
        let end = fixture.replica();
        assert_eq!(end.state().facts().leases.len(), 0, "seed {seed}: a lease is in flight");
        assert_eq!(end.state().facts().tickets.len(), 0, "seed {seed}: a ticket is queued");
        assert_eq!(used(end.state(), 0), settled, "seed {seed}: charged, of calls that were made");
    }
}

fn random_fault(random: &mut Random) -> Fault {
    let entry = random.index(4);
    let faults = [
        Fault::None,
        Fault::Cut,
        Fault::LoseAnswer,
        Fault::DropEntry(entry),
        Fault::DropLast,
        Fault::DoubleEntry(entry),
        Fault::SwapEntries(entry),
    ];
    random.one_of(&faults).unwrap_or(Fault::None)
}

/// A client that makes calls and loses some answers.
struct Client<L> {
    participant: Participant<L>,
    leases: Vec<Key>,
    settled: u64,
}

impl<L: Log> Client<L> {
    const fn new(participant: Participant<L>) -> Self {
        Self { participant, leases: Vec::new(), settled: 0 }
    }

    fn act(&mut self, random: &mut Random) {
        let mut actions = Vec::new();
        if let Some(lease) = self.leases.pop() {
            let made = random.once_in(4);
            actions.push(if made { commit(lease) } else { Action::Cancel { lease } });
            self.settled += u64::from(made);
        }
        if random.once_in(2) || actions.is_empty() {
            actions.push(reserve(Span::ZERO));
        }
        let submitted = actions.len();
        let mut result = self.participant.submit(actions);
        while let Err(error) = result {
            assert!(error.is_transient(), "{error}");
            if random.once_in(3) {
                self.participant.give_up();
                return;
            }
            result = self.participant.resend();
        }
        let outcomes = result.unwrap_or_default();
        assert_eq!(outcomes.len(), submitted, "an outcome for everything that was submitted");
        self.take_outcomes(outcomes);
    }

    fn take_outcomes(&mut self, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            match outcome.answer {
                Answer::Decided(Decision::Admit(grant)) => self.leases.push(grant.lease),
                Answer::Decided(Decision::Refuse(_)) | Answer::Lease(_) => {}
                other => assert_eq!(other, Answer::Done, "nothing else was submitted"),
            }
        }
    }

    /// Commits all leases. The append also carries the cancels of what was given up.
    fn settle_all(&mut self) {
        let mut actions: Vec<Action> = self.leases.drain(..).map(commit).collect();
        self.settled += actions.len() as u64;
        actions.push(Action::Heartbeat { lease: None, ttl: None });
        let mut result = self.participant.submit(actions);
        while let Err(error) = result {
            assert!(error.is_transient(), "{error}");
            result = self.participant.resend();
        }
    }
}

/// The answer to a reserve is lost after it created a ticket, and a snapshot is written before the
/// reserve is sent again. The sender still finds its ticket, and there is only one.
pub fn a_reserve_sent_again_finds_its_ticket<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![requests(1, Span::secs(10))]);
    let first = admitted(&only(ok(fixture.participant().submit(vec![reserve(Span::ZERO)]))));
    let faults = FaultQueue::default();
    let mut waiter = fixture.participant_on(FaultyLog::new(fixture.log(), faults.clone()));
    ok(waiter.refresh());
    faults.push(Fault::LoseAnswer);
    assert!(waiter.submit(vec![reserve(Span::secs(60))]).is_err(), "the answer was lost");
    // Enough entries follow that the waiter loads a snapshot.
    let mut busy = fixture.participant();
    for _ in 0..300 {
        ok(busy.submit(vec![Action::Heartbeat { lease: Some(first), ttl: None }]));
    }
    ok(fixture.log().write_snapshot(&fixture.replica().snapshot()));
    let answer = only(ok(waiter.resend()));
    let Answer::Decided(Decision::Wait(queued)) = &answer else {
        assert_eq!(format!("{answer:?}"), "a wait", "the reserve created a ticket");
        return;
    };
    assert_eq!((queued.position, queued.refusal.until), (1, Some(Instant(11_000_000))));
    assert_eq!(fixture.replica().state().facts().tickets.len(), 1);
    // At its instant it is admitted, under the key of the first reserve.
    fixture.time.set(Instant(11_000_000));
    let mut claim = super::fixture::call(Span::secs(60));
    claim.ticket = Some(queued.ticket);
    let lease = admitted(&only(ok(waiter.submit(vec![Action::Reserve(Box::new(claim))]))));
    assert_eq!(lease, queued.ticket);
}

/// A live process whose session was ended continues under a new one. Its leases are gone, and its
/// events take effect.
pub fn an_ended_session_goes_on_as_a_new_one<H: Harness>(harness: &H) {
    let fixture = Fixture::with(harness, vec![parallel(1)]);
    let mut sleeper = fixture.participant();
    let lease = admitted(&only(ok(sleeper.submit(vec![reserve(Span::ZERO)]))));
    let before = sleeper.session();
    ok(fixture.participant().submit(vec![Action::SessionEnded { session: before }]));
    let outcomes = ok(sleeper.submit(vec![commit(lease), reserve(Span::ZERO)]));
    let answers: Vec<Answer> = outcomes.into_iter().map(|outcome| outcome.answer).collect();
    assert_eq!(answers[0], Answer::Lease(standpipe_core::LeaseAnswer::Gone));
    assert_ne!(admitted(&answers[1]), lease);
    assert_ne!(sleeper.session(), before);
    // The same after a silence so long that the ledger has dropped the session.
    ok(sleeper.submit(vec![commit(admitted(&answers[1]))]));
    fixture.advance(Span::secs(300));
    let again = admitted(&only(ok(sleeper.submit(vec![reserve(Span::ZERO)]))));
    assert_eq!(fixture.replica().state().find(again), Found::Lease);
}

/// A refused reserve and a configuration that the pool already has append no entry.
pub fn what_changes_nothing_leaves_no_trace<H: Harness>(harness: &H) {
    let limits = vec![requests(1, HOUR)];
    let fixture = Fixture::with(harness, limits.clone());
    let mut participant = fixture.participant();
    admitted(&only(ok(participant.submit(vec![reserve(Span::ZERO)]))));
    let (head, before) = (fixture.replica().position(), state_bytes(fixture.replica().state()));
    for _ in 0..5 {
        fixture.advance(Span::secs(1));
        let answer = only(ok(fixture.participant().submit(vec![reserve(Span::ZERO)])));
        let refused = matches!(&answer, Answer::Decided(Decision::Refuse(refusal))
            if refusal.until == Some(Instant(1_000_000) + HOUR));
        assert!(refused, "{answer:?}");
        let answer = only(ok(fixture.participant().submit(vec![configure(limits.clone())])));
        assert_eq!(answer, Answer::Configured(standpipe_core::Configured::Same));
    }
    assert_eq!(fixture.replica().position(), head);
    assert_eq!(state_bytes(fixture.replica().state()), before);
}

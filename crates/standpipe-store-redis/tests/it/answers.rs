//! Answers that are lost on the way, thousands of times: nothing is done twice, nothing is lost.

use std::time::Duration;

use standpipe_core::{Action, Answer, Decision, Key, Outcome};
use standpipe_servers::{Gate, Server};
use standpipe_store::Participant;
use standpipe_store::conformance::Random;
use standpipe_store_redis::RedisLog;

use crate::support::{
    HOUR, assert_whole, beat, commit, configure, insist, member, more, parallel, read_anew,
    requests, reserve, store, used,
};

const PEOPLE: u64 = 16;
const LOSSES: usize = 2_000;
const SLOTS: u64 = 9;

#[test]
fn thousands_of_lost_answers_do_nothing_twice_and_lose_nothing() {
    let server = Server::start();
    let limits = vec![requests(100_000 * more() as u64, HOUR), parallel(SLOTS)];
    let direct = store(&server.url());
    insist(&mut member(&direct), vec![configure(limits)]);
    let each = LOSSES * more() / usize::try_from(PEOPLE).unwrap();
    let (settled, lost) = std::thread::scope(|scope| {
        let server = &server;
        let live = |seed| scope.spawn(move || Person::new(server, seed).live(each));
        let people: Vec<_> = (0..PEOPLE).map(live).collect();
        let ended = people.into_iter().map(|person| person.join().unwrap());
        ended.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    });
    assert!(lost >= LOSSES * more(), "{lost} answers were lost");
    let end = read_anew(&direct);
    assert_eq!(end.state().facts().leases.len(), 0, "in flight");
    assert_eq!(end.state().facts().tickets.len(), 0, "waiting");
    assert_eq!(used(end.state(), 0), settled, "charged, of calls that were made");
    // The window is an hour; what must be whole are the slots.
    let slots = vec![parallel(SLOTS)];
    let change = standpipe_core::PoolConfig::new(slots);
    let source = standpipe_core::Source::Change;
    let configure = standpipe_core::Configure { source, config: change };
    insist(&mut member(&direct), vec![Action::Configure(Box::new(configure))]);
    assert_whole(&direct);
}

/// Somebody who makes calls over a way that loses answers, and is not told everything.
struct Person {
    gate: Gate,
    member: Participant<RedisLog>,
    random: Random,
    seed: u64,
    holds: Vec<Key>,
    settled: u64,
}

impl Person {
    fn new(server: &Server, seed: u64) -> Self {
        let gate = Gate::before(server);
        let member = member(&store(&gate.url()));
        let random = Random::new(seed);
        Self { gate, member, random, seed, holds: Vec::new(), settled: 0 }
    }

    /// Until so many answers were lost. Answers how many calls it made, and the losses.
    fn live(mut self, losses: usize) -> (u64, usize) {
        while self.gate.lost() < losses {
            if !self.random.once_in(3) {
                // Sometimes also the answer to what is sent again.
                let count = 1 + self.random.index(2);
                self.gate.lose_next_answers_to("evalsha", count);
            }
            self.act();
        }
        self.gate.lose_next_answers_to("evalsha", 0);
        self.member.give_up();
        let mut actions: Vec<Action> = self.holds.drain(..).map(commit).collect();
        self.settled += actions.len() as u64;
        actions.push(beat());
        insist(&mut self.member, actions);
        (self.settled, self.gate.lost())
    }

    fn act(&mut self) {
        let mut actions = Vec::new();
        if let Some(lease) = self.holds.pop() {
            let sent = self.random.once_in(4);
            actions.push(if sent { commit(lease) } else { Action::Cancel { lease } });
            self.settled += u64::from(sent);
        }
        if self.random.once_in(2) || actions.is_empty() {
            actions.push(reserve());
        }
        let asked = actions.len();
        let mut lost = self.gate.lost();
        let mut result = self.member.submit(actions);
        while let Err(error) = result {
            assert!(error.is_transient(), "seed {}: {error}", self.seed);
            // It makes up its mind once for each loss: while the connection is down, every further
            // attempt fails at once.
            let news = self.gate.lost() > lost;
            lost = self.gate.lost();
            if news && self.random.once_in(3) {
                self.member.give_up();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
            result = self.member.resend();
        }
        let outcomes = result.unwrap();
        assert_eq!(outcomes.len(), asked, "seed {}: an outcome for everything", self.seed);
        self.learn(outcomes);
    }

    fn learn(&mut self, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            match outcome.answer {
                Answer::Decided(Decision::Admit(grant)) => self.holds.push(grant.lease),
                Answer::Decided(Decision::Refuse(_)) | Answer::Lease(_) => {}
                other => panic!("seed {}: nobody asked for {other:?}", self.seed),
            }
        }
    }
}

//! A random crowd of calls over real connections, each compared with the oracles of all rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use standpipe_sim::{
    Call, CallId, Logged, ManualClock, Options, ProviderServer, Random, Rule, Shape, Used, Verdict,
};

use super::client::Client;
use super::{SECOND, server};
use crate::rules::oracle::Oracle;

/// Calls that are made, and those that are being served.
pub(super) struct Crowd {
    server: ProviderServer,
    clock: Arc<ManualClock>,
    oracles: Vec<Oracle>,
    random: Random,
    /// By when they finish, in the order of their arrival.
    open: BTreeMap<(u64, u64), (Client, Used)>,
    /// Connections that are kept alive.
    idle: Vec<Client>,
    now: u64,
    expected: Vec<(u64, Verdict, Option<u64>)>,
}

impl Crowd {
    pub(super) fn new(rules: &[Rule], seed: u64) -> Self {
        let (server, clock) = server(rules, Shape::Plain);
        let options = Options::of(Shape::Plain);
        let oracles = rules.iter().map(|rule| Oracle::new(*rule, options.clone())).collect();
        Self {
            server,
            clock,
            oracles,
            random: Random::new(seed),
            open: BTreeMap::new(),
            idle: Vec::new(),
            now: 0,
            expected: Vec::new(),
        }
    }

    /// Makes so many calls, compares each and then the whole log.
    pub(super) fn play(mut self, calls: u64) -> Vec<Logged> {
        for number in 0..calls {
            let then = self.now + self.random.below(2_000_001) * self.random.below(2);
            self.finish_by(then);
            self.move_to(then);
            self.one_call(number);
        }
        self.finish_by(u64::MAX);
        let log = self.server.stop();
        let seen = log.iter().map(|call| (call.arrived, call.verdict, call.finished));
        assert_eq!(seen.collect::<Vec<_>>(), self.expected);
        log
    }

    fn one_call(&mut self, number: u64) {
        let call = Call {
            input: self.random.below(400),
            max_output: 1 + self.random.below(400),
            writes: true,
            creates: true,
            ..Call::default()
        };
        let used = Used {
            input: self.random.below(call.input * 5 / 4 + 1),
            output: self.random.below(call.max_output + 1),
            ..Used::default()
        };
        let service = self.random.below(5_001);
        let mut client = self.idle.pop().unwrap_or_else(|| Client::new(self.server.address()));
        let figures =
            [call.input, call.max_output, used.input, used.output, service].map(|n| n.to_string());
        let names = ["x-input-tokens", "x-max-output-tokens", "x-used-input", "x-used-output"];
        let names = names.into_iter().chain(["x-service-ms"]);
        let headers: Vec<_> = names.zip(figures.iter().map(String::as_str)).collect();
        client.call(&headers);
        let refusing = self.oracles.iter().position(|oracle| !oracle.allows(self.now, &call));
        match refusing {
            None => {
                // An accepted call is answered only when its time is up: the log tells before.
                let wanted = self.expected.len() + 1;
                self.server.wait_until(|log| log.len() >= wanted);
                for oracle in &mut self.oracles {
                    oracle.accepted(self.now, CallId(number), call);
                }
                let ends = self.now + service * 1_000;
                self.expected.push((self.now, Verdict::Accepted, Some(ends)));
                self.open.insert((ends, number), (client, used));
            }
            Some(rule) => {
                let answer = client.answer();
                assert_eq!(answer.status, 429, "rule {rule} at {}: {answer:?}", self.now);
                self.expected.push((self.now, Verdict::OverQuota(rule), Some(self.now)));
                self.idle.push(client);
            }
        }
    }

    fn finish_by(&mut self, then: u64) {
        while let Some(first) = self.open.first_entry()
            && first.key().0 <= then
        {
            let ((at, number), (mut client, used)) = first.remove_entry();
            self.move_to(at);
            let answer = client.answer();
            assert_eq!(answer.status, 200, "{answer:?}");
            for oracle in &mut self.oracles {
                oracle.ended(at, CallId(number), used);
            }
            self.idle.push(client);
        }
    }

    fn move_to(&mut self, then: u64) {
        if then < u64::MAX {
            self.now = then;
            self.clock.advance_to(then);
        }
    }
}

/// Plays rules with several seeds; both verdicts must be common.
#[track_caller]
pub(super) fn check(rules: &[Rule]) {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..4 {
        let log = Crowd::new(rules, seed).play(150);
        refused += log.iter().filter(|call| call.refused_by.is_some()).count();
        accepted += log.iter().filter(|call| call.refused_by.is_none()).count();
    }
    assert!(accepted > 20 && refused > 20, "{rules:?}: {accepted} accepted, {refused} refused");
}

pub(super) const PERIOD: u64 = 10 * SECOND;

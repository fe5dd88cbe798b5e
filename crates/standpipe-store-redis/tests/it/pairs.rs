//! Two faults of a server soon after one another, drawn by a seed, under processes that hold slots
//! and make calls: no slot is held twice, no limit is exceeded, and afterwards everything can be
//! had again without help. Only what the callers saw is counted.

use standpipe_core::{Key, Limit, Span};
use standpipe_servers::{Gate, Options as ServerOptions, Server};
use standpipe_store::Participant;
use standpipe_store::conformance::Random;
use standpipe_store_redis::{RedisLog, RedisStore};

use crate::damage::{Deed, PARTS};
use crate::support::{
    admitted, admitted_at, ask, assert_never_over, assert_whole, beat, catch_up, commit, configure,
    insist, member, more, parallel, pool, requests, store,
};

const SLOTS: usize = 2;
const LIMIT: usize = 12;
const PERIOD: Span = Span::secs(20);

fn limits() -> Vec<Limit> {
    vec![requests(LIMIT as u64, PERIOD), parallel(SLOTS as u64)]
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Key(&'static str, Deed),
    /// Everything is gone.
    Flush,
    /// The server starts again and lacks this many of the last entries.
    Restart(u64),
    /// The list of pools is something else.
    List,
    Scripts,
    Connections,
    /// The answers to the next steps are lost.
    Answers(usize),
    /// The server refuses to write for a while.
    Memory,
}

impl Fault {
    fn draw(random: &mut Random) -> Self {
        let deed = random.one_of(&Deed::ALL).unwrap_or(Deed::Delete);
        let part = random.one_of(&PARTS).unwrap_or("log");
        let faults = [
            Self::Key(part, deed),
            Self::Key(part, deed),
            Self::Flush,
            Self::Restart(random.below(4)),
            Self::Restart(random.below(4)),
            Self::List,
            Self::Scripts,
            Self::Connections,
            Self::Answers(random.index(4)),
            Self::Memory,
        ];
        random.one_of(&faults).unwrap_or(Self::Flush)
    }
}

/// A server, and who uses it.
struct World {
    seed: u64,
    random: Random,
    server: Server,
    gate: Gate,
    store: RedisStore,
    processes: Vec<Process>,
    clock: u64,
    faults: Vec<Fault>,
    /// When calls were admitted.
    stamps: Vec<u64>,
}

struct Process {
    member: Participant<RedisLog>,
    holds: Vec<Key>,
}

impl World {
    fn new(seed: u64) -> Self {
        let options =
            ServerOptions { persistent: true, movable_clock: true, ..ServerOptions::default() };
        let server = Server::start_with(options);
        let gate = Gate::before(&server);
        let store = store(&gate.url());
        let mut processes = Vec::new();
        for _ in 0..3 {
            let mut member = member(&store);
            insist(&mut member, vec![configure(limits())]);
            processes.push(Process { member, holds: Vec::new() });
        }
        let (random, faults, stamps) = (Random::new(seed), Vec::new(), Vec::new());
        Self { seed, random, server, gate, store, processes, clock: 0, faults, stamps }
    }

    fn live(mut self) {
        self.act(20);
        for _ in 0..2 {
            let fault = Fault::draw(&mut self.random);
            self.faults.push(fault);
            self.suffer(fault);
            let acts = self.random.index(8);
            self.act(acts);
            // In the pause after a change of server everybody has time to look.
            for process in &mut self.processes {
                catch_up(&mut process.member);
            }
            let seconds = self.random.below(5);
            self.pass(seconds);
        }
        for _ in 0..10 {
            self.act(6);
            self.pass(4);
        }
        self.end();
    }

    fn act(&mut self, acts: usize) {
        for _ in 0..acts {
            let process = &mut self.processes[self.random.index(3)];
            match self.random.below(4) {
                0 => drop(insist(&mut process.member, vec![beat()])),
                1 => {
                    let settle = process.holds.drain(..).map(commit).collect();
                    insist(&mut process.member, settle);
                }
                _ => {
                    if let Some(lease) = admitted(&ask(&mut process.member)) {
                        self.stamps.push(admitted_at(&process.member, lease).0);
                        process.holds.push(lease);
                    }
                }
            }
            let held: usize = self.processes.iter().map(|process| process.holds.len()).sum();
            let (seed, faults) = (self.seed, &self.faults);
            assert!(held <= SLOTS, "seed {seed}, {faults:?}: {held} of {SLOTS} slots are held");
        }
    }

    fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::Key(part, deed) => {
                let exists = self.server.run(&["EXISTS", &crate::support::key(part)]) == "1";
                if exists {
                    deed.does(&self.server, part);
                }
            }
            Fault::Flush => drop(self.server.run(&["FLUSHALL"])),
            Fault::Restart(lost) => {
                self.store.pool_log(&pool()).lose(lost).unwrap();
                self.server.kill();
                self.server.start_again();
            }
            Fault::List => drop(self.server.run(&["SET", "standpipe:pools", "theirs"])),
            Fault::Scripts => drop(self.server.run(&["SCRIPT", "FLUSH"])),
            Fault::Connections => {
                self.server.run(&["CLIENT", "KILL", "TYPE", "normal"]);
            }
            Fault::Answers(count) => self.gate.lose_next_answers_to("evalsha", count),
            Fault::Memory => {
                self.server.run(&["CONFIG", "SET", "maxmemory", "1"]);
                for process in &mut self.processes {
                    // Refused, and given back when it can be.
                    assert!(process.member.submit(vec![beat()]).is_err());
                    process.member.give_up();
                }
                self.server.run(&["CONFIG", "SET", "maxmemory", "0"]);
            }
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.clock += seconds;
        self.server.set_clock(&format!("+{}s", self.clock));
    }

    fn end(mut self) {
        for process in &mut self.processes {
            insist(&mut process.member, process.holds.drain(..).map(commit).collect());
        }
        assert_never_over(&self.stamps, LIMIT, PERIOD);
        self.pass(2 * PERIOD.0 / 1_000_000);
        assert_whole(&self.store);
    }
}

#[test]
fn two_faults_soon_after_one_another_break_nothing() {
    let given = std::env::var("STANDPIPE_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let seeds = given.map_or(0..25 * more() as u64, |seed| seed..seed + 1);
    for seed in seeds {
        let lived = std::panic::catch_unwind(|| World::new(seed).live());
        assert!(
            lived.is_ok(),
            "again: STANDPIPE_SEED={seed} cargo test -p standpipe-store-redis --test it pairs::"
        );
    }
}

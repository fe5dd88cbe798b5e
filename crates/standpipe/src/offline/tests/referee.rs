//! A referee over random outages: several processes on one store, each of which loses it in any of
//! the ways a link knows, for any time, while others are idle or join.
//!
//! It counts only what callers were granted, by the clock of the world, and checks after every step
//! that within one period no more was granted than limit × (1 + (cut off + joined in the last
//! minute)/N), and that no more calls are in flight. In the end nothing may be left in flight, and
//! the store must have charged every call that was made, once.

use standpipe_core::{Instant, Span};
use standpipe_store::conformance::{Random, iteration_factor};

use super::world::{Link, Process, World};
use crate::Lease;

const PERIOD: Span = Span::secs(60);

/// A pool: its requests per minute, its calls in flight, and a limit that counts every call.
struct Limits {
    requests: u64,
    parallel: u64,
}

/// One process as the referee knows it.
struct Player {
    process: Process,
    joined: Instant,
    /// Until then it does not call.
    idle_until: Instant,
    /// When its link changes next.
    changes_at: Instant,
    /// Its link goes up and down in every step.
    flaps: bool,
    held: Vec<(Lease, Instant, usize)>,
    /// When its link was last up, and when it last decided offline.
    up_at: Instant,
    offline_at: Option<Instant>,
    /// Among how many it had to share at least, whenever it was cut off.
    among: u64,
}

/// A call that was granted and not cancelled.
struct Granted {
    at: Instant,
    cancelled: bool,
}

struct Game {
    seed: u64,
    random: Random,
    world: World,
    limits: Limits,
    players: Vec<Player>,
    granted: Vec<Granted>,
}

impl Game {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let limits = Limits { requests: 8 + random.below(60), parallel: 4 + random.below(20) };
        let (world, players, granted) = (World::new(), Vec::new(), Vec::new());
        let mut game = Self { seed, random, world, limits, players, granted };
        for _ in 0..2 + game.random.below(4) {
            game.joins();
        }
        // From here on every process has been there for a minute.
        for _ in 0..70 {
            game.world.passes(Span::secs(1));
            game.players.iter().for_each(|player| player.process.maintain());
        }
        game
    }

    fn joins(&mut self) {
        let Limits { requests, parallel } = self.limits;
        let process = self.world.process(&format!(
            "requests = \"{requests}/min\"\nparallel = {parallel}\ncontent = \"1M/d\"\n\
             on_store_failure = \"share\"",
        ));
        let now = self.world.time.now();
        // It has joined when its first write came through.
        if let Ok(lease) = process.call() {
            lease.cancel().blocking().unwrap();
        }
        self.players.push(Player {
            process,
            joined: now,
            idle_until: now,
            changes_at: now + Span::secs(71),
            flaps: false,
            held: Vec::new(),
            up_at: now,
            offline_at: None,
            among: u64::MAX,
        });
    }

    /// The least that a process which is cut off now divides by: those that have been there for
    /// more than a minute. One that has been cut off itself for so long that the store has
    /// forgotten it may be unknown.
    fn sharers(&self) -> u64 {
        let now = self.world.time.now();
        let known = |player: &&Player| {
            player.joined + Span::secs(61) <= now && player.up_at + Span::secs(80) > now
        };
        (self.players.iter().filter(known).count() as u64).max(1)
    }

    fn step(&mut self) {
        let length = 50 + self.random.below(2_000);
        self.world.passes(Span::millis(length));
        if self.random.below(300) == 0 && self.players.len() < 8 {
            self.joins();
        }
        for at in 0..self.players.len() {
            self.change_link(at);
            self.players[at].process.maintain();
            if self.players[at].idle_until <= self.world.time.now() {
                self.calls(at);
            }
            self.settles(at);
            let (now, player) = (self.world.time.now(), &mut self.players[at]);
            if player.process.is_up() {
                player.up_at = now;
            }
            if player.process.is_cut_off() {
                player.offline_at = Some(now);
            }
            self.check();
        }
    }

    fn change_link(&mut self, at: usize) {
        let now = self.world.time.now();
        let sharers = self.sharers();
        let player = &mut self.players[at];
        if self.random.below(400) == 0 {
            // It stays connected and sends nothing for minutes.
            player.idle_until = now + Span::secs(self.random.below(260));
        }
        if player.changes_at > now && !player.flaps {
            return;
        }
        if player.changes_at <= now {
            player.flaps = self.random.below(4) == 0;
            player.changes_at = now + Span::secs(1 + self.random.below(90));
        }
        let was_up = player.process.is_up();
        let link = match self.random.below(8) {
            0 | 1 => Link::Cut,
            2 | 3 => Link::NoWrites,
            4 => Link::LosesAnswers,
            _ => Link::Up,
        };
        match link {
            Link::LosesAnswers => player.process.loses_answers_after(self.random.index(4)),
            _ => player.process.set(link),
        }
        if was_up && link != Link::Up {
            player.among = player.among.min(sharers);
        }
    }

    fn calls(&mut self, at: usize) {
        for _ in 0..self.random.below(4) {
            let now = self.world.time.now();
            let player = &mut self.players[at];
            let Ok(lease) = player.process.call() else { return };
            let number = self.granted.len();
            self.granted.push(Granted { at: now, cancelled: false });
            let until = now + Span::secs(self.random.below(50));
            let answered = player.process.is_up() || lease.is_local();
            match self.random.below(10) {
                _ if !answered => drop(lease),
                0 => {
                    lease.cancel().blocking().unwrap();
                    self.granted[number].cancelled = true;
                }
                1..=5 => lease.commit([]).blocking().unwrap(),
                _ => player.held.push((lease, until, number)),
            }
        }
    }

    fn settles(&mut self, at: usize) {
        let now = self.world.time.now();
        let due = self.players[at].held.extract_if(.., |(_, until, _)| *until <= now);
        let due: Vec<_> = due.collect();
        let process = &self.players[at].process;
        let (up, answered) = (process.is_up(), process.is_up() || process.is_cut_off());
        for (lease, _, number) in due {
            match self.random.below(4) {
                // Otherwise it is not known whether the store still has the call when it receives
                // this.
                0 if up => {
                    lease.cancel().blocking().unwrap();
                    self.granted[number].cancelled = true;
                }
                1 | 2 if answered => drop(lease.commit([])),
                _ => drop(lease),
            }
        }
    }

    /// The bound of the specification.
    fn check(&self) {
        let (now, Limits { requests, parallel }) = (self.world.time.now(), &self.limits);
        let lately = |at: Instant| at + PERIOD > now;
        // A process that decided offline within the period may have used its share in it.
        let offline = self.players.iter().filter(|player| player.offline_at.is_some_and(lately));
        let shares: Vec<u64> = offline.map(|player| player.among).collect();
        let bound = |limit: u64| limit + shares.iter().map(|among| limit / among).sum::<u64>();
        let made = self.granted.iter().rev().take_while(|granted| lately(granted.at));
        let made = made.filter(|granted| !granted.cancelled).count() as u64;
        let (seed, most) = (self.seed, bound(*requests));
        assert!(made <= most, "seed {seed}: {made} of {requests} a minute, at most {most}");
        let held: u64 = self.players.iter().map(|player| player.held.len() as u64).sum();
        let most = bound(*parallel);
        assert!(held <= most, "seed {seed}: {held} of {parallel} in flight, at most {most}");
    }

    /// Ends the run: the store is available to every process, and every call ends.
    fn ends(mut self) -> usize {
        let held: Vec<_> =
            self.players.iter_mut().flat_map(|player| player.held.drain(..)).collect();
        for player in &self.players {
            player.process.set(Link::Up);
        }
        for (lease, ..) in held {
            drop(lease);
        }
        for _ in 0..8 {
            self.world.passes(Span::millis(500));
            self.players.iter().for_each(|player| player.process.maintain());
        }
        let seed = self.seed;
        assert!(self.players.iter().all(|player| !player.process.is_cut_off()), "seed {seed}");
        let status = self.players[0].process.pool.status().blocking().unwrap();
        assert_eq!(status.leases, [], "seed {seed}: in flight for ever");
        assert_eq!(status.tickets, [], "seed {seed}");
        let made = self.granted.iter().filter(|granted| !granted.cancelled).count();
        let all = status.limits.iter().find(|limit| limit.limit.contains("content")).unwrap();
        assert_eq!(all.used, made as u64, "seed {seed}: every call is charged once");
        made
    }
}

#[test]
fn a_share_never_exceeds_its_bound_and_is_handed_over_once() {
    let (mut made, mut offline) = (0, 0);
    for seed in 0..40 * iteration_factor() {
        let mut game = Game::new(seed);
        for _ in 0..250 {
            game.step();
            offline += game.players.iter().filter(|player| player.process.is_cut_off()).count();
        }
        made += game.ends();
    }
    assert!(made > 1_000 && offline > 1_000, "{made} calls, {offline} times cut off");
}

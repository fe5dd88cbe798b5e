//! The one idea: replicas that have read to the same position are equal, byte for byte.

use standpipe_core::{Answer, Decision, Event, Found, Instant, Outcome, State};

use super::Harness;
use super::random::{Random, RandomEvents};
use super::world::{World, long, sent, state_bytes};
use crate::entry;
use crate::log::{Log, Since};
use crate::replica::Replica;

/// Replicas that have read to the same position have the same state, byte for byte, and saw the
/// same outcomes: whatever was appended together, sent again, read in one go or in many, with or
/// without snapshots between, from the beginning or late.
pub fn replicas_are_equal_at_equal_positions(harness: &impl Harness) {
    for seed in 0..3 * long() {
        let world = World::new(harness);
        Crowd::new(&world, seed).live(2_000);
    }
}

/// Several processes on a pool, and a bare state that is told everything one by one.
struct Crowd<'a, H: Harness> {
    world: &'a World<'a, H>,
    seed: u64,
    random: Random,
    events: RandomEvents,
    readers: Vec<(H::Log, Replica)>,
    bare: State,
    /// What the bare state answered to each entry, the first being 0.
    outcomes: Vec<(Event, Outcome)>,
}

impl<'a, H: Harness> Crowd<'a, H> {
    fn new(world: &'a World<'a, H>, seed: u64) -> Self {
        Self {
            world,
            seed,
            random: Random::new(!seed),
            events: RandomEvents::new(seed),
            readers: (0..3).map(|_| (world.log(), Replica::new())).collect(),
            bare: State::new(),
            outcomes: Vec::new(),
        }
    }

    fn live(mut self, events: usize) {
        let first = self.events.first();
        self.append(0, &[first]);
        while self.outcomes.len() < events {
            self.world.pass(self.events.pause());
            let batch = 1 + self.random.below(5);
            let mut batch: Vec<Event> = (0..batch).map(|_| self.events.event()).collect();
            if self.random.once_in(4) {
                // A copy of something that is there already, and one of something in this batch.
                let at = self.random.place(self.outcomes.len());
                batch.insert(0, self.outcomes[at].0.clone());
                batch.extend(batch.last().cloned());
            }
            let writer = self.random.place(3);
            self.append(writer, &batch);
            if self.random.once_in(30) {
                let snapshot = self.readers[writer].1.snapshot();
                sent(self.readers[writer].0.write_snapshot(&snapshot));
            }
            if self.random.once_in(50) {
                self.compare();
            }
        }
        self.compare();
    }

    /// One of the processes appends; what it reads must be what the bare state says.
    fn append(&mut self, writer: usize, batch: &[Event]) {
        let bodies: Vec<Vec<u8>> = batch.iter().map(entry::body).collect();
        let now = self.world.time.now();
        for event in batch {
            let outcome = self.bare.apply(event, now);
            assert!(is_so(&self.bare, &outcome), "seed {}: {event:?}: {outcome:?}", self.seed);
            self.outcomes.push((event.clone(), outcome));
        }
        let (log, replica) = &mut self.readers[writer];
        let from = replica.position();
        let since = sent(log.append(from, &bodies));
        let jumps = matches!(&since, Since::Tail(tail) if tail.snapshot.is_some());
        let mut seen = Vec::new();
        let see = |event: &Event, _: Instant, outcome| seen.push((event.clone(), outcome));
        sent(replica.take(log, since, see));
        if !jumps {
            let start = usize::try_from(from.number).unwrap_or(usize::MAX);
            assert_eq!(seen, self.outcomes[start..], "seed {}", self.seed);
        }
    }

    /// Everybody reads to the end, and somebody new.
    fn compare(&mut self) {
        let expected = state_bytes(&self.bare);
        let new = self.world.replica();
        for (log, replica) in &mut self.readers {
            sent(replica.catch_up(log, |_, _, _| ()));
            assert_eq!(replica.position(), new.position(), "seed {}", self.seed);
        }
        for replica in self.readers.iter().map(|(_, replica)| replica).chain([&new]) {
            let same = state_bytes(replica.state()) == expected;
            let entry = replica.position().number;
            assert!(same, "seed {}: states differ after entry {entry}", self.seed);
        }
        assert_eq!(self.bare.check(), Ok(()), "seed {}", self.seed);
    }
}

/// An answer says what the state then knows: who is admitted has a lease, who waits a ticket.
fn is_so(state: &State, outcome: &Outcome) -> bool {
    match &outcome.answer {
        Answer::Decided(Decision::Admit(grant)) => {
            grant.settled || state.find(grant.lease) == Found::Lease
        }
        Answer::Decided(Decision::Wait(hold)) => state.find(hold.ticket) == Found::Ticket,
        _ => true,
    }
}

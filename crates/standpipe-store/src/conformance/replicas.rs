//! The main guarantee: replicas at the same position are equal, byte for byte.

use standpipe_core::{Answer, Decision, Event, Found, Instant, Outcome, State};

use super::Harness;
use super::fixture::{Fixture, iteration_factor, ok, state_bytes};
use super::random::{Random, RandomEvents};
use crate::entry;
use crate::log::{Log, LogRead};
use crate::replica::Replica;

/// Replicas at the same position have the same state, byte for byte, and saw the same outcomes.
///
/// This holds for any batching of appends, for resent events, for reads in one or many steps, with
/// and without snapshots, and for late readers.
pub fn replicas_are_equal_at_equal_positions(harness: &impl Harness) {
    for seed in 0..3 * iteration_factor() {
        let fixture = Fixture::new(harness);
        Cluster::new(&fixture, seed).run(2_000);
    }
}

/// Several processes on a pool, and a reference state that applies every event directly.
struct Cluster<'a, H: Harness> {
    fixture: &'a Fixture<'a, H>,
    seed: u64,
    random: Random,
    events: RandomEvents,
    readers: Vec<(H::Log, Replica)>,
    reference: State,
    /// The outcomes of the reference state by entry, counted from 0.
    outcomes: Vec<(Event, Outcome)>,
}

impl<'a, H: Harness> Cluster<'a, H> {
    fn new(fixture: &'a Fixture<'a, H>, seed: u64) -> Self {
        Self {
            fixture,
            seed,
            random: Random::new(!seed),
            events: RandomEvents::new(seed),
            readers: (0..3).map(|_| (fixture.log(), Replica::new())).collect(),
            reference: State::new(),
            outcomes: Vec::new(),
        }
    }

    fn run(mut self, events: usize) {
        let first = self.events.first();
        self.append(0, &[first]);
        while self.outcomes.len() < events {
            self.fixture.advance(self.events.pause());
            let batch = 1 + self.random.below(5);
            let mut batch: Vec<Event> = (0..batch).map(|_| self.events.event()).collect();
            if self.random.once_in(4) {
                // A duplicate of an event in the log, and one of an event in this batch.
                let at = self.random.index(self.outcomes.len());
                batch.insert(0, self.outcomes[at].0.clone());
                batch.extend(batch.last().cloned());
            }
            let writer = self.random.index(3);
            self.append(writer, &batch);
            if self.random.once_in(30) {
                let snapshot = self.readers[writer].1.snapshot();
                ok(self.readers[writer].0.write_snapshot(&snapshot));
            }
            if self.random.once_in(50) {
                self.compare();
            }
        }
        self.compare();
    }

    /// Appends as one of the processes and compares its outcomes with the reference state.
    fn append(&mut self, writer: usize, batch: &[Event]) {
        let bodies: Vec<Vec<u8>> = batch.iter().map(entry::body).collect();
        let now = self.fixture.time.now();
        for event in batch {
            let outcome = self.reference.apply(event, now);
            assert!(
                agrees(&self.reference, &outcome),
                "seed {}: {event:?}: {outcome:?}",
                self.seed
            );
            self.outcomes.push((event.clone(), outcome));
        }
        let (log, replica) = &mut self.readers[writer];
        let from = replica.position();
        let read = ok(log.append(from, &bodies));
        let jumps = matches!(&read, LogRead::Tail(tail) if tail.snapshot.is_some());
        let mut seen = Vec::new();
        let collect = |event: &Event, _: Instant, outcome| seen.push((event.clone(), outcome));
        ok(replica.apply_append(log, read, batch.iter(), collect));
        if !jumps {
            let start = usize::try_from(from.number).unwrap_or(usize::MAX);
            assert_eq!(seen, self.outcomes[start..], "seed {}", self.seed);
        }
    }

    /// Compares the states of all processes, and of a new reader, at the head.
    fn compare(&mut self) {
        let expected = state_bytes(&self.reference);
        let new = self.fixture.replica();
        for (log, replica) in &mut self.readers {
            ok(replica.catch_up(log, |_, _, _| ()));
            assert_eq!(replica.position(), new.position(), "seed {}", self.seed);
        }
        for replica in self.readers.iter().map(|(_, replica)| replica).chain([&new]) {
            let same = state_bytes(replica.state()) == expected;
            let entry = replica.position().number;
            assert!(same, "seed {}: states differ after entry {entry}", self.seed);
        }
        assert_eq!(self.reference.check(), Ok(()), "seed {}", self.seed);
    }
}

/// Returns whether the state agrees with an outcome: an admitted reserve has a lease, a queued one
/// a ticket.
fn agrees(state: &State, outcome: &Outcome) -> bool {
    match &outcome.answer {
        Answer::Decided(Decision::Admit(grant)) => {
            grant.settled || state.find(grant.lease) == Found::Lease
        }
        Answer::Decided(Decision::Wait(queued)) => state.find(queued.ticket) == Found::Ticket,
        _ => true,
    }
}

//! The conformance suite can fail: a minimal log passes it, and each deliberate bug of that log
//! fails the behaviour that covers it.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standpipe_core::Instant;
use standpipe_store::conformance::{self, Harness};
use standpipe_store::{Appended, Clock, Log, LogRead, Position, Snapshot, StoreError, Tail, entry};

/// A deliberate bug of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    LetsStampsGoBack,
    AppendsTwice,
    AppendsInReverse,
    ReturnsOnlyItsOwn,
    DoesNotSeeForks,
    AppendsThoughForked,
    DropsWritesAfterASecondLoss,
    ReadsThenWrites,
    TakesAnySnapshot,
    KeepsNoSnapshot,
    TrimsUnderSlowReaders,
    RepairsChecksums,
    ReturnsAnotherStamp,
}

/// Each bug, and the behaviour that must fail on it.
const CAUGHT: [(Bug, &str); 13] = [
    (Bug::LetsStampsGoBack, "stamps_never_go_back"),
    (Bug::AppendsTwice, "replicas_are_equal_at_equal_positions"),
    (Bug::AppendsInReverse, "replicas_are_equal_at_equal_positions"),
    (Bug::ReturnsOnlyItsOwn, "replicas_are_equal_at_equal_positions"),
    (Bug::DoesNotSeeForks, "a_position_that_is_not_on_the_log_is_forked"),
    (Bug::AppendsThoughForked, "a_position_that_is_not_on_the_log_is_forked"),
    (
        Bug::DropsWritesAfterASecondLoss,
        "a_log_that_loses_entries_twice_in_a_minute_is_restored_twice",
    ),
    (Bug::ReadsThenWrites, "exactly_the_limit_is_admitted"),
    (Bug::TakesAnySnapshot, "a_snapshot_is_kept_only_if_it_is_ahead_and_on_the_log"),
    (Bug::KeepsNoSnapshot, "a_new_reader_begins_with_the_snapshot"),
    (Bug::TrimsUnderSlowReaders, "a_slow_reader_can_finish"),
    (Bug::RepairsChecksums, "damage_is_never_skipped"),
    (Bug::ReturnsAnotherStamp, "replicas_are_equal_at_equal_positions"),
];

#[test]
fn every_way_to_be_sloppy_is_caught() {
    let fails = |bug: Bug, name: &str| {
        let all = conformance::behaviours::<Store>();
        let behaviour = all.iter().find(|(known, _)| *known == name).expect("a behaviour").1;
        panic::catch_unwind(AssertUnwindSafe(|| behaviour(&Store(bug)))).is_err()
    };
    for (name, _) in conformance::behaviours::<Store>() {
        assert!(!fails(Bug::None, name), "a correct store fails {name}");
    }
    panic::set_hook(Box::new(|_| ()));
    let missed: Vec<_> = CAUGHT.iter().filter(|(bug, name)| !fails(*bug, name)).collect();
    let _ = panic::take_hook();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

struct Store(Bug);

impl Harness for Store {
    type Pool = BuggyLog;
    type Log = BuggyLog;

    fn open(&self, clock: Clock) -> BuggyLog {
        BuggyLog { bug: self.0, clock, stored: Arc::default() }
    }

    fn attach(&self, pool: &BuggyLog) -> BuggyLog {
        pool.clone()
    }

    fn lose_entries(&self, pool: &BuggyLog, entries: u64) {
        let mut stored = pool.lock();
        let left = stored.entries.len() - usize::try_from(entries).unwrap();
        stored.entries.truncate(left);
        stored.losses += 1;
    }

    fn corrupt_entry(&self, pool: &BuggyLog, entry: u64) {
        let mut stored = pool.lock();
        let at = usize::try_from(entry).unwrap() - 1;
        stored.entries[at].body[3] ^= 1;
        if self.0 == Bug::RepairsChecksums {
            stored.entries[at].repaired = true;
        }
    }
}

/// A minimal log that keeps every entry and scans all of them in every call.
#[derive(Clone)]
struct BuggyLog {
    bug: Bug,
    clock: Clock,
    stored: Arc<Mutex<Stored>>,
}

#[derive(Default)]
struct Stored {
    entries: Vec<Entry>,
    snapshot: Option<Snapshot>,
    /// Readers before this position get the snapshot.
    trimmed: u64,
    /// How often entries were lost.
    losses: u64,
}

#[derive(Clone)]
struct Entry {
    stamp: Instant,
    body: Vec<u8>,
    /// The encoded entry as first written.
    bytes: Vec<u8>,
    repaired: bool,
}

impl BuggyLog {
    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn position(&self, entries: &[Entry]) -> Position {
        let mut at = Position::START;
        for entry in entries {
            let original = &entry.bytes[entry.bytes.len() - entry.body.len()..];
            let body = if entry.repaired { &entry.body } else { original };
            at = Position { number: at.number + 1, chain: self.chain(at.chain, entry.stamp, body) };
        }
        at
    }

    fn tail(&self, stored: &Stored, from: Position, own: usize) -> Tail {
        let bytes = |entries: &[Entry]| -> Vec<u8> {
            let mut out = Vec::new();
            for entry in entries {
                let mut bytes = entry.bytes.clone();
                let body = bytes.len() - entry.body.len();
                bytes[body..].copy_from_slice(&entry.body);
                if entry.repaired {
                    bytes.clear();
                    entry::put(entry.stamp, &entry.body, &mut bytes);
                }
                out.extend_from_slice(&bytes);
            }
            out
        };
        let since = |at: Position| usize::try_from(at.number).unwrap().min(stored.entries.len());
        let behind = stored.snapshot.as_ref().map_or(Position::START, |snapshot| snapshot.id.at);
        let size = stored.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes.len());
        let rest = bytes(&stored.entries[since(behind)..]);
        let mut entries = bytes(&stored.entries[since(from)..]);
        let jumps = from.number < stored.trimmed || entries.len() > size + rest.len();
        let snapshot = stored.snapshot.clone().filter(|_| jumps);
        if snapshot.is_some() {
            entries.clone_from(&rest);
        } else if self.bug == Bug::ReturnsOnlyItsOwn && own > 0 {
            entries = bytes(&stored.entries[stored.entries.len() - own..]);
        }
        Tail {
            snapshot,
            entries,
            appended: None,
            head: self.position(&stored.entries),
            now: stored
                .entries
                .last()
                .map_or_else(|| (self.clock)(), |last| last.stamp.max((self.clock)())),
            latest_snapshot: stored.snapshot.as_ref().map(|snapshot| snapshot.id),
            snapshot_due: standpipe_store::log::snapshot_due(rest.len(), size),
        }
    }
}

impl Log for BuggyLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        let mut stored = self.lock();
        let prefix = stored.entries.get(..usize::try_from(from.number).unwrap());
        let trimmed = from.number < stored.trimmed;
        let forked = !trimmed && prefix.is_none_or(|prefix| self.position(prefix) != from);
        if forked && self.bug != Bug::DoesNotSeeForks && self.bug != Bug::AppendsThoughForked {
            return Ok(LogRead::Forked);
        }
        let last = stored.entries.last().map(|last| last.stamp).unwrap_or_default();
        let now = (self.clock)();
        let stamp = if self.bug == Bug::LetsStampsGoBack { now } else { now.max(last) };
        let make = |body: &Vec<u8>| {
            let mut bytes = Vec::new();
            entry::put(stamp, body, &mut bytes);
            Entry { stamp, body: body.clone(), bytes, repaired: false }
        };
        let mut new: Vec<Entry> = bodies.iter().map(make).collect();
        match self.bug {
            Bug::AppendsTwice => new.extend(bodies.iter().map(make)),
            Bug::AppendsInReverse => new.reverse(),
            _ => {}
        }
        let drops = self.bug == Bug::DropsWritesAfterASecondLoss && stored.losses > 1;
        if (self.bug == Bug::ReadsThenWrites || drops) && !new.is_empty() {
            // Computes the answer, releases the lock, and only then writes, or never.
            let mut seen = Stored {
                entries: stored.entries.clone(),
                snapshot: stored.snapshot.clone(),
                trimmed: stored.trimmed,
                losses: stored.losses,
            };
            drop(stored);
            std::thread::yield_now();
            if !drops {
                self.lock().entries.extend(new.iter().cloned());
            }
            seen.entries.extend(new);
            return Ok(LogRead::Tail(self.tail(&seen, from, bodies.len())));
        }
        stored.entries.extend(new);
        if forked && self.bug == Bug::AppendsThoughForked {
            return Ok(LogRead::Forked);
        }
        let mut tail = self.tail(&stored, from, bodies.len());
        if self.bug == Bug::ReturnsAnotherStamp && !bodies.is_empty() {
            let (others, own) = stored.entries.split_at(stored.entries.len() - bodies.len());
            let length: usize = own.iter().map(|entry| entry.bytes.len()).sum();
            tail.entries.truncate(tail.entries.len() - length);
            let stamp = Instant(stamp.0 + 1);
            tail.appended = Some(Appended { after: self.position(others), stamp });
        }
        Ok(LogRead::Tail(tail))
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.append(from, &[])
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut stored = self.lock();
        let at = snapshot.id.at;
        let present = stored.snapshot.as_ref().map_or(0, |present| present.id.at.number);
        let prefix = stored.entries.get(..usize::try_from(at.number).unwrap());
        let fits = at.number > present && prefix.is_some_and(|prefix| self.position(prefix) == at);
        if self.bug == Bug::KeepsNoSnapshot || !fits && self.bug != Bug::TakesAnySnapshot {
            return Ok(());
        }
        stored.trimmed = if self.bug == Bug::TrimsUnderSlowReaders { at.number } else { present };
        stored.snapshot = Some(snapshot.clone());
        Ok(())
    }
}

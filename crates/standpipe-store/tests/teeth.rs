//! The suite has teeth: a sloppy store passes it when it is careful, and each of its ways to be
//! sloppy is caught by the behaviour that is about it.

#![expect(clippy::unwrap_used, reason = "helpers of tests assert, too")]

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standpipe_core::Instant;
use standpipe_store::conformance::{self, Harness};
use standpipe_store::{Clock, Log, Position, Since, Snapshot, StoreError, Tail, entry};

/// A way to be sloppy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sloppy {
    No,
    LetsStampsGoBack,
    AppendsTwice,
    AppendsInReverse,
    ReturnsOnlyItsOwn,
    DoesNotSeeForks,
    AppendsThoughForked,
    ReadsThenWrites,
    TakesAnySnapshot,
    KeepsNoSnapshot,
    TrimsUnderSlowReaders,
    RepairsChecksums,
}

/// Each, and the behaviour that must fail on it.
const CAUGHT: [(Sloppy, &str); 11] = [
    (Sloppy::LetsStampsGoBack, "stamps_never_go_back"),
    (Sloppy::AppendsTwice, "replicas_are_equal_at_equal_positions"),
    (Sloppy::AppendsInReverse, "replicas_are_equal_at_equal_positions"),
    (Sloppy::ReturnsOnlyItsOwn, "replicas_are_equal_at_equal_positions"),
    (Sloppy::DoesNotSeeForks, "a_position_that_is_not_on_the_log_is_forked"),
    (Sloppy::AppendsThoughForked, "a_position_that_is_not_on_the_log_is_forked"),
    (Sloppy::ReadsThenWrites, "exactly_the_limit_is_admitted"),
    (Sloppy::TakesAnySnapshot, "a_snapshot_is_kept_only_if_it_is_ahead_and_on_the_log"),
    (Sloppy::KeepsNoSnapshot, "a_new_reader_begins_with_the_snapshot"),
    (Sloppy::TrimsUnderSlowReaders, "a_slow_reader_can_finish"),
    (Sloppy::RepairsChecksums, "damage_is_never_skipped"),
];

#[test]
fn every_way_to_be_sloppy_is_caught() {
    let fails = |way: Sloppy, name: &str| {
        let all = conformance::behaviours::<Store>();
        let behaviour = all.iter().find(|(known, _)| *known == name).expect("a behaviour").1;
        panic::catch_unwind(AssertUnwindSafe(|| behaviour(&Store(way)))).is_err()
    };
    for (name, _) in conformance::behaviours::<Store>() {
        assert!(!fails(Sloppy::No, name), "a careful store fails {name}");
    }
    panic::set_hook(Box::new(|_| ()));
    let missed: Vec<_> = CAUGHT.iter().filter(|(way, name)| !fails(*way, name)).collect();
    let _ = panic::take_hook();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

struct Store(Sloppy);

impl Harness for Store {
    type Pool = SloppyLog;
    type Log = SloppyLog;

    fn open(&self, clock: Clock) -> SloppyLog {
        SloppyLog { way: self.0, clock, kept: Arc::default() }
    }

    fn attach(&self, pool: &SloppyLog) -> SloppyLog {
        pool.clone()
    }

    fn lose(&self, pool: &SloppyLog, entries: u64) {
        let mut kept = pool.lock();
        let left = kept.entries.len() - usize::try_from(entries).unwrap();
        kept.entries.truncate(left);
    }

    fn damage(&self, pool: &SloppyLog, entry: u64) {
        let mut kept = pool.lock();
        let at = usize::try_from(entry).unwrap() - 1;
        kept.entries[at].body[3] ^= 1;
        if self.0 == Sloppy::RepairsChecksums {
            kept.entries[at].repaired = true;
        }
    }
}

/// The smallest log there can be: it keeps everything and looks at all of it every time.
#[derive(Clone)]
struct SloppyLog {
    way: Sloppy,
    clock: Clock,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    entries: Vec<Entry>,
    snapshot: Option<Snapshot>,
    /// Who asks from before this gets the snapshot.
    trimmed: u64,
}

#[derive(Clone)]
struct Entry {
    stamp: Instant,
    body: Vec<u8>,
    /// Its bytes as they were first written.
    bytes: Vec<u8>,
    repaired: bool,
}

impl SloppyLog {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn tail(&self, kept: &Kept, from: Position, own: usize) -> Tail {
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
        let since = |at: Position| usize::try_from(at.number).unwrap().min(kept.entries.len());
        let behind = kept.snapshot.as_ref().map_or(Position::START, |snapshot| snapshot.mark.at);
        let size = kept.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes.len());
        let rest = bytes(&kept.entries[since(behind)..]);
        let mut entries = bytes(&kept.entries[since(from)..]);
        let jumps = from.number < kept.trimmed || entries.len() > size + rest.len();
        let snapshot = kept.snapshot.clone().filter(|_| jumps);
        if snapshot.is_some() {
            entries.clone_from(&rest);
        } else if self.way == Sloppy::ReturnsOnlyItsOwn && own > 0 {
            entries = bytes(&kept.entries[kept.entries.len() - own..]);
        }
        Tail {
            snapshot,
            entries,
            head: self.position(&kept.entries),
            now: kept
                .entries
                .last()
                .map_or_else(|| (self.clock)(), |last| last.stamp.max((self.clock)())),
            mark: kept.snapshot.as_ref().map(|snapshot| snapshot.mark),
            snapshot_due: standpipe_store::log::snapshot_due(rest.len(), size),
        }
    }
}

impl Log for SloppyLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        let mut kept = self.lock();
        let upto = kept.entries.get(..usize::try_from(from.number).unwrap());
        let trimmed = from.number < kept.trimmed;
        let forked = !trimmed && upto.is_none_or(|upto| self.position(upto) != from);
        if forked && self.way != Sloppy::DoesNotSeeForks && self.way != Sloppy::AppendsThoughForked
        {
            return Ok(Since::Forked);
        }
        let last = kept.entries.last().map(|last| last.stamp).unwrap_or_default();
        let now = (self.clock)();
        let stamp = if self.way == Sloppy::LetsStampsGoBack { now } else { now.max(last) };
        let make = |body: &Vec<u8>| {
            let mut bytes = Vec::new();
            entry::put(stamp, body, &mut bytes);
            Entry { stamp, body: body.clone(), bytes, repaired: false }
        };
        let mut new: Vec<Entry> = bodies.iter().map(make).collect();
        match self.way {
            Sloppy::AppendsTwice => new.extend(bodies.iter().map(make)),
            Sloppy::AppendsInReverse => new.reverse(),
            _ => {}
        }
        if self.way == Sloppy::ReadsThenWrites && !new.is_empty() {
            // Decides what to answer, lets others in, and only then writes.
            let mut seen = Kept {
                entries: kept.entries.clone(),
                snapshot: kept.snapshot.clone(),
                trimmed: kept.trimmed,
            };
            drop(kept);
            std::thread::yield_now();
            self.lock().entries.extend(new.iter().cloned());
            seen.entries.extend(new);
            return Ok(Since::Tail(self.tail(&seen, from, bodies.len())));
        }
        kept.entries.extend(new);
        if forked && self.way == Sloppy::AppendsThoughForked {
            return Ok(Since::Forked);
        }
        Ok(Since::Tail(self.tail(&kept, from, bodies.len())))
    }

    fn read(&mut self, from: Position) -> Result<Since, StoreError> {
        self.append(from, &[])
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut kept = self.lock();
        let at = snapshot.mark.at;
        let present = kept.snapshot.as_ref().map_or(0, |present| present.mark.at.number);
        let upto = kept.entries.get(..usize::try_from(at.number).unwrap());
        let fits = at.number > present && upto.is_some_and(|upto| self.position(upto) == at);
        if self.way == Sloppy::KeepsNoSnapshot || !fits && self.way != Sloppy::TakesAnySnapshot {
            return Ok(());
        }
        kept.trimmed = if self.way == Sloppy::TrimsUnderSlowReaders { at.number } else { present };
        kept.snapshot = Some(snapshot.clone());
        Ok(())
    }
}

//! A log in memory behind a mutex: the simplest engine, and the reference for the others.
//!
//! Clones share one log. The clock is passed in. Nothing survives the process.
//!
//! Invariant: stamps never go back, and `entries` holds exactly the entries from `base` to the
//! head.

mod store;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standpipe_core::Instant;

use crate::entry;
use crate::error::StoreError;
use crate::log::{Appended, Clock, Log, LogRead, Position, Snapshot, Tail, snapshot_due};

pub use self::store::MemoryStore;

/// A log in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryLog {
    clock: Clock,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The position before the first entry that is not trimmed.
    base: Position,
    /// The total bytes of all entries before `base`.
    trimmed_bytes: usize,
    entries: VecDeque<StoredEntry>,
    /// The latest stamp.
    stamp: Instant,
    snapshot: Option<Snapshot>,
    previous: Option<Snapshot>,
}

/// An encoded entry, with the chain and the byte count up to its end.
#[derive(Debug)]
struct StoredEntry {
    bytes: Vec<u8>,
    chain: u64,
    /// The total bytes of all entries from the first one to this one.
    end_offset: usize,
}

impl MemoryLog {
    /// Creates an empty log with this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, shared: Arc::default() }
    }

    /// Drops the last entries, as a failover to a lagging replica does.
    #[cfg(feature = "conformance")]
    pub fn lose_entries(&self, entries: u64) {
        let mut shared = self.lock();
        for _ in 0..entries {
            shared.entries.pop_back();
        }
        let head = shared.head().number;
        if shared.snapshot.as_ref().is_some_and(|snapshot| snapshot.id.at.number > head) {
            shared.snapshot = shared.previous.take();
        }
    }

    /// Flips a bit of an entry, counted from 1, unless the entry is trimmed.
    #[cfg(feature = "conformance")]
    pub fn corrupt_entry(&self, entry: u64, bit: usize) {
        let mut shared = self.lock();
        let at = entry.checked_sub(shared.base.number + 1).and_then(|at| usize::try_from(at).ok());
        if let Some(entry) = at.and_then(|at| shared.entries.get_mut(at)) {
            crate::fault_injection::flip(&mut entry.bytes, bit);
        }
    }

    /// Ignores poisoning: the log is consistent after every statement that changes it, so a panic
    /// of another thread cannot leave it half changed.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for MemoryLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        let mut shared = self.lock();
        if shared.is_forked(from) {
            return Ok(LogRead::Forked);
        }
        shared.stamp = shared.stamp.max((self.clock)());
        let stamp = shared.stamp;
        let after = shared.head();
        for body in bodies {
            let chain = self.chain(shared.head().chain, stamp, body);
            let mut bytes = Vec::with_capacity(body.len() + 16);
            entry::put(stamp, body, &mut bytes);
            shared.push(bytes, chain);
        }
        let appended = (!bodies.is_empty()).then_some(Appended { after, stamp });
        Ok(LogRead::Tail(shared.tail(from, appended)))
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.append(from, &[])
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut shared = self.lock();
        let at = snapshot.id.at;
        let stale = shared.snapshot.as_ref().is_some_and(|latest| at.number <= latest.id.at.number);
        if stale || shared.chain_at(at.number) != Some(at.chain) {
            return Ok(());
        }
        shared.previous = shared.snapshot.replace(snapshot.clone());
        shared.trim();
        Ok(())
    }
}

impl Shared {
    fn push(&mut self, bytes: Vec<u8>, chain: u64) {
        let before = self.entries.back().map_or(self.trimmed_bytes, |last| last.end_offset);
        let end_offset = before + bytes.len();
        self.entries.push_back(StoredEntry { bytes, chain, end_offset });
    }

    fn head(&self) -> Position {
        let number = self.base.number + self.entries.len() as u64;
        Position { number, chain: self.entries.back().map_or(self.base.chain, |last| last.chain) }
    }

    /// Returns the chain after `number` entries, or `None` if it is trimmed or beyond the head.
    fn chain_at(&self, number: u64) -> Option<u64> {
        let index = usize::try_from(number.checked_sub(self.base.number)?).ok()?;
        match index.checked_sub(1) {
            None => Some(self.base.chain),
            Some(last) => self.entries.get(last).map(|entry| entry.chain),
        }
    }

    /// Returns whether a position is not on this log. A trimmed position cannot be checked; its
    /// reader gets the snapshot.
    fn is_forked(&self, from: Position) -> bool {
        from.number >= self.base.number && self.chain_at(from.number) != Some(from.chain)
    }

    /// Returns the log since a position, without the entries that the caller just appended.
    fn tail(&self, from: Position, appended: Option<Appended>) -> Tail {
        let latest = self.snapshot.as_ref().map_or(Position::START, |snapshot| snapshot.id.at);
        let since_snapshot = self.bytes_since(latest.number);
        let size = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes.len());
        let trimmed = from.number < self.base.number;
        let use_snapshot = trimmed || self.bytes_since(from.number) > size + since_snapshot;
        let snapshot = self.snapshot.as_ref().filter(|_| use_snapshot);
        let from = snapshot.map_or(from, |snapshot| snapshot.id.at);
        let end = appended.map_or(self.head(), |appended| appended.after);
        let count = usize::try_from(end.number - from.number).unwrap_or(usize::MAX);
        let others = self.since(from.number).take(count);
        Tail {
            snapshot: snapshot.cloned(),
            entries: others.flat_map(|entry| &entry.bytes).copied().collect(),
            appended,
            head: self.head(),
            now: self.stamp,
            latest_snapshot: self.snapshot.as_ref().map(|snapshot| snapshot.id),
            snapshot_due: snapshot_due(since_snapshot, size),
        }
    }

    fn bytes_since(&self, number: u64) -> usize {
        let whole = self.entries.back().map_or(self.trimmed_bytes, |last| last.end_offset);
        let first = self.since(number).next();
        first.map_or(0, |first| whole - first.end_offset + first.bytes.len())
    }

    fn since(&self, number: u64) -> impl Iterator<Item = &StoredEntry> {
        let skip = usize::try_from(number.saturating_sub(self.base.number)).unwrap_or(usize::MAX);
        self.entries.range(skip.min(self.entries.len())..)
    }

    fn trim(&mut self) {
        let Some(previous) = self.previous.as_ref().map(|snapshot| snapshot.id.at) else {
            return;
        };
        while self.base.number < previous.number
            && let Some(first) = self.entries.pop_front()
        {
            self.base = Position { number: self.base.number + 1, chain: first.chain };
            self.trimmed_bytes = first.end_offset;
        }
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog").field("head", &self.lock().head()).finish_non_exhaustive()
    }
}

//! The log of one process, behind a mutex: the simplest engine, and the measure of the others.
//!
//! Clones share it. The clock is given from outside. Nothing survives the process.
//!
//! Invariant: stamps never go back, and `entries` are those between `base` and `head`.

mod store;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standpipe_core::Instant;

use crate::entry;
use crate::error::StoreError;
use crate::log::{Clock, Log, Position, Since, Snapshot, Tail, snapshot_due};

pub use self::store::MemoryStore;

/// The log of one process.
#[derive(Clone)]
pub struct MemoryLog {
    clock: Clock,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Before the first entry kept.
    base: Position,
    /// Bytes of all entries ever before that.
    dropped: usize,
    entries: VecDeque<Kept>,
    stamp: Instant,
    snapshot: Option<Snapshot>,
    previous: Option<Snapshot>,
}

/// An entry, and what there is up to its end.
#[derive(Debug)]
struct Kept {
    bytes: Vec<u8>,
    chain: u64,
    /// Bytes of all entries ever, this one included.
    written: usize,
}

impl MemoryLog {
    /// An empty log on this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, shared: Arc::default() }
    }

    /// Forgets its last entries, as a failover to a lagging replica does.
    #[cfg(feature = "conformance")]
    pub fn lose(&self, entries: u64) {
        let mut shared = self.lock();
        for _ in 0..entries {
            shared.entries.pop_back();
        }
        let head = shared.head().number;
        if shared.snapshot.as_ref().is_some_and(|snapshot| snapshot.mark.at.number > head) {
            shared.snapshot = shared.previous.take();
        }
    }

    /// Flips a bit of an entry, the first being 1, if it is still there.
    #[cfg(feature = "conformance")]
    pub fn damage(&self, entry: u64, bit: usize) {
        let mut shared = self.lock();
        let at = entry.checked_sub(shared.base.number + 1).and_then(|at| usize::try_from(at).ok());
        if let Some(kept) = at.and_then(|at| shared.entries.get_mut(at)) {
            crate::faulty::flip(&mut kept.bytes, bit);
        }
    }

    /// A process of ours that panicked between two statements left the log whole: each step changes
    /// it only by single pushes.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for MemoryLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        let mut shared = self.lock();
        if shared.is_forked(from) {
            return Ok(Since::Forked);
        }
        shared.stamp = shared.stamp.max((self.clock)());
        let stamp = shared.stamp;
        for body in bodies {
            let chain = self.chain(shared.head().chain, stamp, body);
            let mut bytes = Vec::with_capacity(body.len() + 16);
            entry::put(stamp, body, &mut bytes);
            shared.push(bytes, chain);
        }
        Ok(Since::Tail(shared.tail(from)))
    }

    fn read(&mut self, from: Position) -> Result<Since, StoreError> {
        self.append(from, &[])
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut shared = self.lock();
        let at = snapshot.mark.at;
        let behind = shared.snapshot.as_ref().is_some_and(|now| at.number <= now.mark.at.number);
        if behind || shared.chain_at(at.number) != Some(at.chain) {
            return Ok(());
        }
        shared.previous = shared.snapshot.replace(snapshot.clone());
        shared.trim();
        Ok(())
    }
}

impl Shared {
    fn push(&mut self, bytes: Vec<u8>, chain: u64) {
        let before = self.entries.back().map_or(self.dropped, |last| last.written);
        let written = before + bytes.len();
        self.entries.push_back(Kept { bytes, chain, written });
    }

    fn head(&self) -> Position {
        let number = self.base.number + self.entries.len() as u64;
        Position { number, chain: self.entries.back().map_or(self.base.chain, |last| last.chain) }
    }

    /// The chain after so many entries, while it is known.
    fn chain_at(&self, number: u64) -> Option<u64> {
        let kept = usize::try_from(number.checked_sub(self.base.number)?).ok()?;
        match kept.checked_sub(1) {
            None => Some(self.base.chain),
            Some(last) => self.entries.get(last).map(|entry| entry.chain),
        }
    }

    /// What was trimmed is not known to be forked: its reader gets the snapshot.
    fn is_forked(&self, from: Position) -> bool {
        from.number >= self.base.number && self.chain_at(from.number) != Some(from.chain)
    }

    fn tail(&self, from: Position) -> Tail {
        let behind = self.snapshot.as_ref().map_or(Position::START, |snapshot| snapshot.mark.at);
        let since_snapshot = self.bytes_since(behind.number);
        let size = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes.len());
        let trimmed = from.number < self.base.number;
        let longer = trimmed || self.bytes_since(from.number) > size + since_snapshot;
        let snapshot = self.snapshot.as_ref().filter(|_| longer);
        let from = snapshot.map_or(from, |snapshot| snapshot.mark.at);
        Tail {
            snapshot: snapshot.cloned(),
            entries: self.since(from.number).flat_map(|entry| &entry.bytes).copied().collect(),
            head: self.head(),
            now: self.stamp,
            mark: self.snapshot.as_ref().map(|snapshot| snapshot.mark),
            snapshot_due: snapshot_due(since_snapshot, size),
        }
    }

    fn bytes_since(&self, number: u64) -> usize {
        let whole = self.entries.back().map_or(self.dropped, |last| last.written);
        let first = self.since(number).next();
        first.map_or(0, |first| whole - first.written + first.bytes.len())
    }

    fn since(&self, number: u64) -> impl Iterator<Item = &Kept> {
        let skip = usize::try_from(number.saturating_sub(self.base.number)).unwrap_or(usize::MAX);
        self.entries.range(skip.min(self.entries.len())..)
    }

    fn trim(&mut self) {
        let Some(previous) = self.previous.as_ref().map(|snapshot| snapshot.mark.at) else {
            return;
        };
        while self.base.number < previous.number
            && let Some(first) = self.entries.pop_front()
        {
            self.base = Position { number: self.base.number + 1, chain: first.chain };
            self.dropped = first.written;
        }
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog").field("head", &self.lock().head()).finish_non_exhaustive()
    }
}

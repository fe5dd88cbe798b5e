//! Fault injection for tests: a log that cuts calls off, loses answers and corrupts what is read.
//!
//! [`FaultyLog`] wraps any log; a test queues the faults for its next calls. It never changes the
//! stored data of the wrapped log. Forks and damage of the stored data come from the test harness,
//! see `standpipe_store::conformance::Harness`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use standpipe_core::Instant;

use crate::entry;
use crate::error::StoreError;
use crate::log::{Log, LogRead, Position, Snapshot, Tail};

/// A fault of one call. All except [`Fault::Cut`] and [`Fault::Busy`] let the call take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The call fails before it reaches the log. The caller cannot know that it was not sent.
    Cut,
    /// The call fails because the log is in use, and the error says that it was not sent.
    Busy,
    /// The answer is lost.
    LoseAnswer,
    /// This bit of the entries read, counted from the first and wrapping around, is flipped.
    FlipBit(usize),
    /// This bit of the snapshot read, if there is one, is flipped.
    FlipSnapshotBit(usize),
    /// This one of the entries read, counted from the first and wrapping around, is missing.
    DropEntry(usize),
    /// The last of the entries read is missing.
    DropLast,
    /// This one of the entries read occurs twice.
    DoubleEntry(usize),
    /// This one of the entries read is swapped with the next one.
    SwapEntries(usize),
}

/// The faults of the next calls. Clones share the queue.
#[derive(Clone, Debug, Default)]
pub struct FaultQueue(Arc<Mutex<VecDeque<Fault>>>);

impl FaultQueue {
    /// Queues a fault. Each call of the log takes one.
    pub fn push(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
    }

    fn next(&self) -> Fault {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.unwrap_or(Fault::None)
    }
}

/// A log whose calls fail as a [`FaultQueue`] prescribes.
#[derive(Debug)]
pub struct FaultyLog<L> {
    log: L,
    faults: FaultQueue,
}

impl<L: Log> FaultyLog<L> {
    /// Wraps a log.
    pub const fn new(log: L, faults: FaultQueue) -> Self {
        Self { log, faults }
    }

    fn inject(
        &mut self,
        call: impl FnOnce(&mut L) -> Result<LogRead, StoreError>,
    ) -> Result<LogRead, StoreError> {
        let fault = self.faults.next();
        if fault == Fault::Cut {
            return Err(StoreError::transient("injected fault: cut off before it was sent"));
        }
        if fault == Fault::Busy {
            return Err(StoreError::transient("injected fault: the log is in use").unsent());
        }
        let mut read = call(&mut self.log)?;
        if fault == Fault::LoseAnswer {
            return Err(StoreError::transient("injected fault: the answer was lost"));
        }
        if let LogRead::Tail(tail) = &mut read {
            corrupt(tail, fault);
        }
        Ok(read)
    }
}

/// Applies a fault to a tail.
fn corrupt(tail: &mut Tail, fault: Fault) {
    match (fault, &mut tail.snapshot) {
        (Fault::FlipBit(bit), _) => flip(&mut tail.entries, bit),
        (Fault::FlipSnapshotBit(bit), Some(snapshot)) => flip(&mut snapshot.bytes, bit),
        (Fault::DropEntry(at), _) => rearrange(tail, |entries, count| {
            entries.remove(at % count);
        }),
        (Fault::DropLast, _) => rearrange(tail, |entries, _| {
            entries.pop();
        }),
        (Fault::DoubleEntry(at), _) => rearrange(tail, |entries, count| {
            entries.insert(at % count, entries[at % count]);
        }),
        (Fault::SwapEntries(at), _) => rearrange(tail, |entries, count| {
            entries.swap(at % count, (at + 1) % count);
        }),
        _ => {}
    }
}

/// Changes the list of a tail's entries. Each entry stays intact, and so does the head.
fn rearrange(tail: &mut Tail, change: impl FnOnce(&mut Vec<&[u8]>, usize)) {
    let mut entries = Vec::new();
    let mut rest = tail.entries.as_slice();
    while let Ok((_, behind)) = entry::take(rest) {
        entries.push(&rest[..rest.len() - behind.len()]);
        rest = behind;
    }
    let count = entries.len();
    if count > 0 {
        change(&mut entries, count);
        tail.entries = entries.concat();
    }
}

/// Flips one bit, counted from the first and wrapping around.
pub(crate) fn flip(bytes: &mut [u8], bit: usize) {
    if !bytes.is_empty() {
        bytes[bit / 8 % bytes.len()] ^= 1 << (bit % 8);
    }
}

impl<L: Log> Log for FaultyLog<L> {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        // The faults are those of a way on which the caller's own entries come back too.
        self.inject(|log| {
            let mut read = log.append(from, bodies)?;
            if let LogRead::Tail(tail) = &mut read {
                tail.include_appended(bodies);
            }
            Ok(read)
        })
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.inject(|log| log.read(from))
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.log.write_snapshot(snapshot)
    }

    fn set_deadline(&mut self, deadline: Option<std::time::Instant>) {
        self.log.set_deadline(deadline);
    }

    fn wake_sessions(&self, sessions: &[u64]) {
        self.log.wake_sessions(sessions);
    }

    fn chain(&self, chain: u64, stamp: Instant, body: &[u8]) -> u64 {
        self.log.chain(chain, stamp, body)
    }
}

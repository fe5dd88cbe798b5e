//! A log with bad luck: it loses answers, cuts calls off, and damages what is read.
//!
//! It wraps any log; what goes wrong is set from outside, for the next calls only. It never changes
//! what the log beneath holds: forks and damage on the medium are the harness's business.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use standpipe_core::Instant;

use crate::error::StoreError;
use crate::log::{Log, Position, Since, Snapshot};

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It is cut off before it reaches the log.
    Cut,
    /// It is done, and its answer is lost.
    LoseAnswer,
    /// It is done, and a bit of the entries read, this one counted from the first, is flipped.
    FlipBit(usize),
    /// It is done, and a bit of the snapshot read, if there is one, is flipped.
    FlipSnapshotBit(usize),
}

/// The faults to come, shared by clones.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<VecDeque<Fault>>>);

impl Faults {
    /// Puts a fault behind those to come; each call of the log takes one.
    pub fn push(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
    }

    fn next(&self) -> Fault {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.unwrap_or(Fault::None)
    }
}

/// A log with bad luck.
#[derive(Debug)]
pub struct Faulty<L> {
    log: L,
    faults: Faults,
}

impl<L: Log> Faulty<L> {
    /// A log whose calls go wrong as `faults` say.
    pub const fn new(log: L, faults: Faults) -> Self {
        Self { log, faults }
    }

    fn suffer(
        &mut self,
        call: impl FnOnce(&mut L) -> Result<Since, StoreError>,
    ) -> Result<Since, StoreError> {
        let fault = self.faults.next();
        if fault == Fault::Cut {
            return Err(StoreError::transient("cut off before it was sent, on purpose"));
        }
        let mut since = call(&mut self.log)?;
        match (fault, &mut since) {
            (Fault::LoseAnswer, _) => Err(StoreError::transient("the answer was lost, on purpose")),
            (Fault::FlipBit(bit), Since::Tail(tail)) => {
                flip(&mut tail.entries, bit);
                Ok(since)
            }
            (Fault::FlipSnapshotBit(bit), Since::Tail(tail)) => {
                if let Some(snapshot) = &mut tail.snapshot {
                    flip(&mut snapshot.bytes, bit);
                }
                Ok(since)
            }
            _ => Ok(since),
        }
    }
}

/// Flips one bit, counted from the first and around.
pub(crate) fn flip(bytes: &mut [u8], bit: usize) {
    if !bytes.is_empty() {
        bytes[bit / 8 % bytes.len()] ^= 1 << (bit % 8);
    }
}

impl<L: Log> Log for Faulty<L> {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        self.suffer(|log| log.append(from, bodies))
    }

    fn read(&mut self, from: Position) -> Result<Since, StoreError> {
        self.suffer(|log| log.read(from))
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.log.write_snapshot(snapshot)
    }

    fn wake(&self, sessions: &[u64]) {
        self.log.wake(sessions);
    }

    fn chain(&self, chain: u64, stamp: Instant, body: &[u8]) -> u64 {
        self.log.chain(chain, stamp, body)
    }
}

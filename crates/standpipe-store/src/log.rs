//! The log: the one thing a store is.
//!
//! An engine orders entries and stamps them with its own clock; it decides nothing. Everything it
//! must do is [`Log::append`], in one atomic step, and [`Log::read`]; snapshots keep its log short,
//! wake-ups are hints. What the entries mean is the business of [`crate::replica`], who sends them
//! that of [`crate::member`].

use standpipe_core::{Instant, Span};

use crate::error::StoreError;
use crate::hash::hash;

/// Reads the clock of an engine that takes it from outside: `file`, `memory`, and tests, which own
/// time. It should begin no earlier than [`standpipe_core::bounds::SPAN`]: what is assumed after a
/// loss of state is stamped up to one period back, and before the origin there is nothing.
pub type Clock = std::sync::Arc<dyn Fn() -> Instant + Send + Sync>;

/// A place in a log: after so many entries, whose hashes form this chain.
///
/// Two processes at the same position have read the same entries. The same number with another
/// chain means that the store lost entries and went on: it forked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// How many entries lie before it.
    pub number: u64,
    /// The chain of their hashes.
    pub chain: u64,
}

impl Position {
    /// Before everything. Every log has it, and it is never forked.
    pub const START: Self = Self { number: 0, chain: 0 };
}

/// A store's log of one pool, as one process sees it.
///
/// Processes and threads each have a value of their own. An implementation proves itself with the
/// suite in `standpipe_store::conformance`.
pub trait Log {
    /// Appends entries, given as bodies (see [`crate::entry`]), behind all others.
    ///
    /// One atomic step: it stamps them, in order, with the engine's clock, which never goes back,
    /// and answers everything that came since `from`, these at the end. If `from` is not on this
    /// log it appends nothing and answers [`Since::Forked`]. With no bodies it is a read.
    ///
    /// # Errors
    /// When the engine cannot be reached or cannot go on. After a transient error the entries may
    /// be there or not.
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError>;

    /// Everything that came since `from`.
    ///
    /// # Errors
    /// As [`Log::append`].
    fn read(&mut self, from: Position) -> Result<Since, StoreError>;

    /// Keeps a snapshot and drops entries behind the previous one, which stays, so that who is
    /// reading it can finish. One that is not ahead of the present one, or not on this log, is
    /// dropped instead.
    ///
    /// # Errors
    /// As [`Log::append`]. The log is as it was before, or has the snapshot.
    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError>;

    /// What was read is damaged, and reading again did not help. An engine that finds the same when
    /// it looks keeps the damaged log aside and begins anew, with limits that count as full; then,
    /// or when somebody else has done so, it answers `true`.
    ///
    /// # Errors
    /// As [`Log::append`].
    fn set_aside(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Whether what is read and written is still the pool's log, as a quick look tells that costs
    /// next to nothing; none where it cannot be otherwise.
    fn is_current(&self) -> Option<bool> {
        None
    }

    /// Nothing in the log counts any more once it was silent for so long, this append included. An
    /// engine that others pay for may forget it then.
    fn lasts(&mut self, _silent: Span) {}

    /// Tells sessions to look. A hint: nothing depends on its arrival.
    fn wake(&self, _sessions: &[u64]) {}

    /// The chain after an entry that follows `chain`. An engine that has to compute it itself may
    /// have its own way; it must be the same for everybody on the store.
    fn chain(&self, chain: u64, stamp: Instant, body: &[u8]) -> u64 {
        hash(hash(chain, &stamp.0.to_le_bytes()), body)
    }
}

/// What a log answers to a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// What came since.
    Tail(Tail),
    /// The position is not on this log: the store lost entries and went on.
    Forked,
}

/// What came since a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// To begin with, when the position is too old or reading all since would be longer.
    pub snapshot: Option<Snapshot>,
    /// All entries since the position, or since the snapshot, one behind the other.
    pub entries: Vec<u8>,
    /// Where the last of them ends. Who gets there with another chain must not decide anything.
    pub head: Position,
    /// The engine's clock, not before the last stamp.
    pub now: Instant,
    /// The latest snapshot's place and hash: who passes it can see that they agree.
    pub mark: Option<Mark>,
    /// The log has grown so long that whoever appends should write a snapshot.
    pub snapshot_due: bool,
}

/// All that a pool's ledger knew at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where, and how it hashes.
    pub mark: Mark,
    /// The semantics, how many entries were skipped, and the state in the byte layout.
    pub bytes: Vec<u8>,
}

/// What a snapshot hashes to at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The position.
    pub at: Position,
    /// The hash of the snapshot's bytes there.
    pub hash: u64,
}

/// Whether a log with so many bytes behind its snapshot should get a new one: when reading them
/// takes longer than reading the snapshot. Small ones are not worth the trouble.
#[must_use]
pub const fn snapshot_due(tail: usize, snapshot: usize) -> bool {
    tail > snapshot && tail > SMALL_TAIL
}

/// A tail up to this is read in one go by every engine.
const SMALL_TAIL: usize = 4_096;

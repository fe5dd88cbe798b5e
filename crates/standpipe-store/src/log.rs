//! The contract between an engine and the rest of the crate: one ordered, stamped log per pool.
//!
//! An engine orders entries and stamps them with its own clock. It does not interpret entries and
//! decides nothing about quotas. [`Log::append`] is one atomic step; [`Log::read`] is the same step
//! with nothing to append. Snapshots keep the log short. Wake-ups are hints: no result depends on
//! their delivery.
//!
//! [`crate::entry`] defines the bytes, [`crate::replica`] applies them, [`crate::participant`]
//! sends them.

use standpipe_core::{Instant, Span};

use crate::entry;
use crate::error::StoreError;
use crate::hash::hash;

/// The clock of an engine that does not bring its own: `file`, `memory`, and tests.
///
/// It should start at [`standpipe_core::bounds::SPAN`] or later. After a loss of state the core
/// assumes usage with stamps up to one period in the past, and an [`Instant`] cannot be negative.
pub type Clock = std::sync::Arc<dyn Fn() -> Instant + Send + Sync>;

/// A position in a log: the number of entries before it and the hash chain over them.
///
/// Two processes at the same position have read the same entries. An equal number with a different
/// chain means that the store lost entries and accepted others since: the log forked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// The number of entries before this position.
    pub number: u64,
    /// The hash chain over those entries.
    pub chain: u64,
}

impl Position {
    /// The position before the first entry. It is on every log and never forked.
    pub const START: Self = Self { number: 0, chain: 0 };
}

/// The log of one pool, as one process sees it.
///
/// Every process and thread opens its own value. An implementation must pass the suite in
/// `standpipe_store::conformance`.
pub trait Log {
    /// Appends entries, given as bodies (see [`crate::entry`]), and returns the log since `from`.
    ///
    /// This is one atomic step: the engine stamps the entries in order with its clock, which never
    /// goes back, and returns everything after `from` with the new entries last. If `from` is not
    /// on this log, the engine appends nothing and returns [`LogRead::Forked`]. With no bodies this
    /// is a read.
    ///
    /// An engine need not return the new entries if this process computed their chain: it sets
    /// [`Tail::appended`], and the caller applies its events as it has them.
    ///
    /// # Errors
    /// When the engine cannot be reached or cannot continue. After a transient error the entries
    /// may or may not be in the log.
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError>;

    /// Returns everything after `from`.
    ///
    /// # Errors
    /// As [`Log::append`].
    fn read(&mut self, from: Position) -> Result<LogRead, StoreError>;

    /// Stores a snapshot and trims the entries before the previous one.
    ///
    /// The engine keeps the previous snapshot, so that a process that is reading it can finish. It
    /// ignores a snapshot that is not ahead of the latest one or whose position is not on this log.
    ///
    /// # Errors
    /// As [`Log::append`]. The log is unchanged, or it has the snapshot.
    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError>;

    /// Moves a damaged log aside. Callers report damage here that a second read did not clear.
    ///
    /// An engine that confirms the damage keeps the damaged log for inspection and starts an empty
    /// one whose limits count as full. It returns `true` when it did so or another process already
    /// had.
    ///
    /// # Errors
    /// As [`Log::append`].
    fn quarantine(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns whether this value still refers to the pool's current log, as far as a check of
    /// negligible cost can tell; `None` for an engine whose log cannot be replaced.
    fn is_current(&self) -> Option<bool> {
        None
    }

    /// Bounds the steps that follow: each returns by `deadline`, with a transient error if it could
    /// not finish. `None`, the state after opening, leaves the engine's own bounds.
    ///
    /// The deadline covers the whole step, however many locks, connections and reads it takes. A
    /// step whose deadline has passed is still tried once without waiting; if it would have to
    /// wait, the error is [unsent](StoreError::is_unsent).
    fn set_deadline(&mut self, _deadline: Option<std::time::Instant>) {}

    /// Announces how long after its last append, including the next one, the log still matters.
    ///
    /// An engine may expire a log that was idle for longer.
    fn set_lifetime(&mut self, _idle: Span) {}

    /// Wakes sessions so that they read the log. This is a hint: a lost wake-up only costs latency.
    fn wake_sessions(&self, _sessions: &[u64]) {}

    /// Returns the chain after an entry that follows `chain`.
    ///
    /// An engine that computes the chain itself may use another function, as long as every process
    /// on the store uses the same one.
    fn chain(&self, chain: u64, stamp: Instant, body: &[u8]) -> u64 {
        hash(hash(chain, &stamp.0.to_le_bytes()), body)
    }
}

/// The result of reading a log from a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRead {
    /// The log after the position.
    Tail(Tail),
    /// The position is not on this log: the store lost entries and accepted others since.
    Forked,
}

/// The log after a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The snapshot to start from. Set when the entries since the position were trimmed, or take
    /// more bytes than the snapshot and the entries after it.
    pub snapshot: Option<Snapshot>,
    /// The encoded entries after the position, or after the snapshot if there is one, up to the
    /// caller's own ones if `appended` is set, else up to the head.
    pub entries: Vec<u8>,
    /// The caller's own entries of this append, if they are not in `entries`.
    pub appended: Option<Appended>,
    /// The position after the last entry. A reader that computes another chain must not decide.
    pub head: Position,
    /// The engine's clock, never before the last stamp.
    pub now: Instant,
    /// The id of the latest snapshot. A reader that passes its position compares hashes.
    pub latest_snapshot: Option<SnapshotId>,
    /// Whether the log has grown so long that the appender should write a snapshot.
    pub snapshot_due: bool,
}

/// The entries of an append that the caller need not read back: exactly the bodies that it passed
/// in, all with one stamp, the last ones before [`Tail::head`].
///
/// The engine computed the chain from `after` to the head in this call and in this process, so
/// nothing is left that reading them back could prove. If a server computed it too, they agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The position before the first of them.
    pub after: Position,
    /// The stamp of all of them.
    pub stamp: Instant,
}

impl Tail {
    /// Encodes the caller's own entries into `entries`, for callers that have only bodies.
    ///
    /// `bodies` are those of the append that returned this tail.
    pub fn include_appended(&mut self, bodies: &[Vec<u8>]) {
        if let Some(appended) = self.appended.take() {
            bodies.iter().for_each(|body| entry::put(appended.stamp, body, &mut self.entries));
        }
    }
}

/// The complete state of a pool's ledger at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The snapshot's position and hash.
    pub id: SnapshotId,
    /// The semantics number, the number of skipped entries, and the state in the byte layout.
    pub bytes: Vec<u8>,
}

/// The position and the hash of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotId {
    /// The position whose state the snapshot holds.
    pub at: Position,
    /// The hash of the snapshot's bytes.
    pub hash: u64,
}

/// Returns whether a log with `tail` bytes after a snapshot of `snapshot` bytes should get a new
/// snapshot.
///
/// That is the case once a new reader spends more on the entries than on the snapshot. Short tails
/// never need one.
#[must_use]
pub const fn snapshot_due(tail: usize, snapshot: usize) -> bool {
    tail > snapshot && tail > SHORT_TAIL
}

/// Every engine reads a tail of up to this many bytes in one call.
const SHORT_TAIL: usize = 4_096;

//! A replica: a pool's state and the position in its log up to which the state has applied entries.
//!
//! A replica applies tails, loads snapshots and verifies both. It appends nothing and keeps no
//! history.
//!
//! Guarantees:
//!
//! - After `Ok` the replica is at the log's head, with the head's own chain, unless it returned
//!   [`CaughtUp::Forked`]. After an error it is a correct replica at an earlier position, at worst
//!   at the start.
//! - The replica applies no entry before the chain over all entries read matches the head, so a
//!   tail with a missing, duplicated or reordered entry leads to no decision.
//! - Each entry that others appended is checked and decoded once. The entries of an append of this
//!   process are not read back: the replica applies the events themselves, after the chain of the
//!   entries before them has led to the position at which the engine appended them.
//! - Outcomes that precede a snapshot's position are released only once the state there hashes to
//!   the snapshot's hash.
//!
//! [`crate::participant`] is the user of this module that also appends.

use standpipe_core::{Event, Instant, Outcome, SEMANTICS, State};

use crate::entry::{self, Content};
use crate::error::StoreError;
use crate::hash::hash;
use crate::layout::{decode_state, encode_state, put_number, take_number};
use crate::log::{Appended, Log, LogRead, Position, Snapshot, SnapshotId, Tail};

/// A pool's state and the position up to which it has read.
#[derive(Debug, Default)]
pub struct Replica {
    state: State,
    position: Position,
    now: Instant,
    skipped: u64,
}

/// How a replica reached the head of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaughtUp {
    /// It applied every entry after its position.
    ByEntries,
    /// It loaded a snapshot and jumped over entries whose outcomes it did not see.
    BySnapshot,
    /// It did not: its position is not on the log.
    Forked,
}

impl Replica {
    /// Creates a replica that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the log to its head and calls `each` with every event, its stamp and its outcome.
    ///
    /// # Errors
    /// When the store cannot be read, or is still damaged on the second read.
    pub fn catch_up<L: Log>(
        &mut self,
        log: &mut L,
        each: impl FnMut(&Event, Instant, Outcome),
    ) -> Result<CaughtUp, StoreError> {
        let read = log.read(self.position)?;
        self.apply_read(log, read, each)
    }

    /// Applies the result of a read, or of an append of which the caller has only the bodies.
    ///
    /// If the tail is damaged, the replica reads it from the log once more: damage in transit does
    /// not stop the pool.
    ///
    /// # Errors
    /// As [`Replica::catch_up`].
    pub fn apply_read<L: Log>(
        &mut self,
        log: &mut L,
        read: LogRead,
        mut each: impl FnMut(&Event, Instant, Outcome),
    ) -> Result<CaughtUp, StoreError> {
        let left_out = matches!(&read, LogRead::Tail(tail) if tail.appended.is_some());
        // The caller's own entries are on the log but not in the tail.
        let read = if left_out { log.read(self.position)? } else { read };
        self.apply_append(log, read, std::iter::empty(), &mut each)
    }

    /// Applies the result of an append of the bodies of `own` from this replica's position.
    ///
    /// # Errors
    /// As [`Replica::catch_up`].
    pub fn apply_append<'e, L: Log>(
        &mut self,
        log: &mut L,
        read: LogRead,
        own: impl Iterator<Item = &'e Event> + Clone,
        mut each: impl FnMut(&Event, Instant, Outcome),
    ) -> Result<CaughtUp, StoreError> {
        let LogRead::Tail(tail) = read else {
            return Ok(CaughtUp::Forked);
        };
        match self.apply_tail(log, &tail, own, &mut each) {
            Err(error) if error.is_damaged() => {}
            done => return done,
        }
        let from = self.position;
        match log.read(from)? {
            LogRead::Forked => Ok(CaughtUp::Forked),
            LogRead::Tail(tail) => {
                let reached = self.apply_tail(log, &tail, std::iter::empty(), &mut each)?;
                // The first attempt may have reset the replica, so this one may have replayed
                // entries from the start: the caller must treat that as a jump.
                Ok(if from == Position::START { CaughtUp::BySnapshot } else { reached })
            }
        }
    }

    /// Discards everything read so far. The next read starts at the beginning.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Returns the state at [`Replica::position`].
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Returns the position up to which the replica has read.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Returns the engine's clock as of the last read.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns how many entries of the log, from its first, were skipped as not understood.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Encodes the replica as a snapshot from which a new reader can start.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let state = encode_state(self.state.facts());
        let mut bytes = Vec::with_capacity(state.len() + 16);
        put_number(u64::from(SEMANTICS), &mut bytes);
        put_number(self.skipped, &mut bytes);
        bytes.extend_from_slice(&state);
        Snapshot { id: SnapshotId { at: self.position, hash: hash(0, &bytes) }, bytes }
    }

    /// Verifies a tail, applies it and releases its outcomes.
    fn apply_tail<'e, L: Log>(
        &mut self,
        log: &L,
        tail: &Tail,
        own: impl Iterator<Item = &'e Event> + Clone,
        each: &mut impl FnMut(&Event, Instant, Outcome),
    ) -> Result<CaughtUp, StoreError> {
        // In a box, because even an absent replica would be moved with all its bytes.
        let load = |snapshot| Self::load(snapshot).map(Box::new);
        let loaded = tail.snapshot.as_ref().map(load).transpose()?;
        let from = loaded.as_ref().map_or(self.position, |loaded| loaded.position);
        let end = tail.appended.map_or(tail.head, |appended| appended.after);
        let Some(verified) = verify_chain(log, from, &tail.entries, end)? else {
            self.reset();
            return Err(broken_chain());
        };
        if let Some(loaded) = loaded {
            *self = *loaded;
        }
        // A state that differs from the snapshot's was wrong before that position too. Outcomes
        // stay staged until the snapshot's position is passed and the hashes agree.
        let ahead = |id: &SnapshotId| (from.number + 1..=end.number).contains(&id.at.number);
        let mut unchecked = tail.latest_snapshot.filter(ahead);
        let mut staged = Vec::new();
        for VerifiedEntry { at, stamp, content } in verified {
            self.position = at;
            match content {
                Content::Event(event) => {
                    let outcome = self.state.apply(&event, stamp);
                    match unchecked {
                        Some(_) => staged.push((event, stamp, outcome)),
                        None => each(&event, stamp, outcome),
                    }
                }
                Content::Unknown(_) => self.skipped += 1,
            }
            if let Some(id) = unchecked.take_if(|id| id.at.number == at.number) {
                self.check_snapshot_hash(&id)?;
                staged.drain(..).for_each(|(event, stamp, outcome)| each(&event, stamp, outcome));
            }
        }
        if let Some(appended) = tail.appended {
            self.apply_own(appended, tail.head, own, each)?;
        }
        self.now = tail.now;
        Ok(if tail.snapshot.is_some() { CaughtUp::BySnapshot } else { CaughtUp::ByEntries })
    }

    /// Applies the events of this process's own append, from its position to the head.
    fn apply_own<'e>(
        &mut self,
        appended: Appended,
        head: Position,
        own: impl Iterator<Item = &'e Event> + Clone,
        each: &mut impl FnMut(&Event, Instant, Outcome),
    ) -> Result<(), StoreError> {
        if self.position.number + own.clone().count() as u64 != head.number {
            // The engine appended something else than it was given.
            self.reset();
            return Err(broken_chain());
        }
        for event in own {
            let outcome = self.state.apply(event, appended.stamp);
            each(event, appended.stamp, outcome);
        }
        self.position = head;
        Ok(())
    }

    /// Checks that this replica and the writer of a snapshot reached the same state.
    fn check_snapshot_hash(&mut self, id: &SnapshotId) -> Result<(), StoreError> {
        if self.snapshot().id == *id {
            return Ok(());
        }
        let number = id.at.number;
        self.reset();
        Err(StoreError::damaged(format!(
            "another process has a different state after entry {number}; run the same version of \
             Standpipe everywhere, then reset the pool"
        )))
    }

    /// Creates a replica from a snapshot.
    ///
    /// # Errors
    /// When the snapshot is damaged or has other semantics.
    pub fn load(snapshot: &Snapshot) -> Result<Self, StoreError> {
        let broken =
            |what: &str| StoreError::damaged(format!("the snapshot {what}; quarantine the pool"));
        if hash(0, &snapshot.bytes) != snapshot.id.hash {
            return Err(broken("does not match its hash"));
        }
        let cut = |_| broken("is truncated");
        let (semantics, rest) = take_number(&snapshot.bytes).map_err(cut)?;
        if semantics != u64::from(SEMANTICS) {
            return Err(StoreError::incompatible(format!(
                "the pool has semantics {semantics} and this program {SEMANTICS}; use the version \
                 of Standpipe that the others on this pool use"
            )));
        }
        let (skipped, state) = take_number(rest).map_err(cut)?;
        let facts = decode_state(state).map_err(|wrong| broken("is malformed").caused_by(wrong))?;
        let state = State::from_facts(facts)
            .map_err(|wrong| broken("holds no valid state").caused_by(wrong))?;
        Ok(Self { state, position: snapshot.id.at, now: Instant::default(), skipped })
    }
}

/// An entry on the verified chain to a log's head.
struct VerifiedEntry {
    /// The position after the entry.
    at: Position,
    stamp: Instant,
    content: Content,
}

/// Decodes the entries of a tail, or returns `None` if their chain does not lead from `from` to
/// `end` because an entry is missing, duplicated or out of order.
///
/// # Errors
/// When an entry's checksum does not match.
fn verify_chain<L: Log>(
    log: &L,
    from: Position,
    entries: &[u8],
    end: Position,
) -> Result<Option<Vec<VerifiedEntry>>, StoreError> {
    let mut at = from;
    let count = end.number.saturating_sub(from.number);
    // The store sends the count, so the bytes received bound the allocation.
    let mut verified = Vec::with_capacity(
        usize::try_from(count).unwrap_or(0).min(entries.len() / entry::STAMP_AND_CHECKSUM),
    );
    let mut rest = entries;
    while !rest.is_empty() {
        let (entry, behind) = entry::take(rest)?;
        rest = behind;
        at.chain = log.chain(at.chain, entry.stamp, entry.body);
        at.number += 1;
        verified.push(VerifiedEntry { at, stamp: entry.stamp, content: entry.content });
    }
    Ok((at == end).then_some(verified))
}

fn broken_chain() -> StoreError {
    StoreError::damaged("the entries read do not lead to the log's head; quarantine the log")
}

//! A replica: a pool's state and the position in its log up to which it has read.
//!
//! It applies tails and loads snapshots, and makes sure that it has read what everybody else has.
//! It sends nothing and keeps no history.
//!
//! Invariant: after an error it is still a true replica at its position, at worst at the start; and
//! a call that returns `Ok` left it at the log's head, with the head's own chain.

use standpipe_core::{Event, Instant, Outcome, SEMANTICS, State};

use crate::entry::{self, Content};
use crate::error::StoreError;
use crate::hash::hash;
use crate::layout::{decode_state, encode_state, put_number, take_number};
use crate::log::{Log, Mark, Position, Since, Snapshot, Tail};

/// A pool's state and the position up to which it has read.
#[derive(Debug, Default)]
pub struct Replica {
    state: State,
    position: Position,
    now: Instant,
    skipped: u64,
}

/// How a replica came to the head of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// By applying every entry since its position.
    Step,
    /// By loading a snapshot: entries it had not seen were jumped over.
    Jump,
    /// Not at all: its position is not on the log any more.
    Forked,
}

impl Replica {
    /// One that has read nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads and applies all there is, and hands every event with its stamp and its outcome to
    /// `each`.
    ///
    /// # Errors
    /// When the store cannot be read, or is still damaged when it is read again.
    pub fn catch_up<L: Log>(
        &mut self,
        log: &mut L,
        each: impl FnMut(&Event, Instant, Outcome),
    ) -> Result<Reached, StoreError> {
        let since = log.read(self.position)?;
        self.take(log, since, each)
    }

    /// Applies what a log answered to this replica's position. What turns out to be damaged is read
    /// again once.
    ///
    /// # Errors
    /// As [`Replica::catch_up`].
    pub fn take<L: Log>(
        &mut self,
        log: &mut L,
        since: Since,
        mut each: impl FnMut(&Event, Instant, Outcome),
    ) -> Result<Reached, StoreError> {
        let Since::Tail(tail) = since else {
            return Ok(Reached::Forked);
        };
        match self.follow(log, &tail, &mut each) {
            Err(error) if error.is_damaged() => {}
            done => return done,
        }
        let from = self.position;
        match log.read(from)? {
            Since::Forked => Ok(Reached::Forked),
            Since::Tail(tail) => {
                let reached = self.follow(log, &tail, &mut each)?;
                Ok(if from == Position::START { Reached::Jump } else { reached })
            }
        }
    }

    /// Begins anew; the next read is of everything.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// The state at [`Replica::position`].
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Up to where it has read.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The engine's clock when it last answered.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// How many entries there were, from the beginning, that nobody understands.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Everything it knows, for a new reader to begin with.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let state = encode_state(self.state.facts());
        let mut bytes = Vec::with_capacity(state.len() + 16);
        put_number(u64::from(SEMANTICS), &mut bytes);
        put_number(self.skipped, &mut bytes);
        bytes.extend_from_slice(&state);
        Snapshot { mark: Mark { at: self.position, hash: hash(0, &bytes) }, bytes }
    }

    fn follow<L: Log>(
        &mut self,
        log: &L,
        tail: &Tail,
        each: &mut impl FnMut(&Event, Instant, Outcome),
    ) -> Result<Reached, StoreError> {
        if let Some(snapshot) = &tail.snapshot {
            *self = Self::load(snapshot)?;
        }
        let mut rest = tail.entries.as_slice();
        while !rest.is_empty() {
            let (entry, behind) = entry::take(rest)?;
            rest = behind;
            self.position.chain = log.chain(self.position.chain, entry.stamp, entry.body);
            self.position.number += 1;
            match entry.content {
                Content::Event(event) => {
                    let outcome = self.state.apply(&event, entry.stamp);
                    each(&event, entry.stamp, outcome);
                }
                Content::Unknown(_) => self.skipped += 1,
            }
            if let Some(mark) = &tail.mark {
                self.agree(mark)?;
            }
        }
        if self.position != tail.head {
            self.reset();
            return Err(StoreError::damaged(
                "the entries read do not lead to the log's head; the log has to be set aside",
            ));
        }
        self.now = tail.now;
        Ok(if tail.snapshot.is_some() { Reached::Jump } else { Reached::Step })
    }

    /// At the place of a snapshot somebody else wrote, theirs and ours must be the same.
    fn agree(&mut self, mark: &Mark) -> Result<(), StoreError> {
        if self.position.number != mark.at.number || self.snapshot().mark == *mark {
            return Ok(());
        }
        let number = mark.at.number;
        self.reset();
        Err(StoreError::damaged(format!(
            "another process came to another state after entry {number}; run the same version of \
             Standpipe everywhere, then begin the pool anew"
        )))
    }

    /// A replica that begins with a snapshot.
    ///
    /// # Errors
    /// When the snapshot is damaged or of other semantics.
    pub fn load(snapshot: &Snapshot) -> Result<Self, StoreError> {
        let broken = |what: &str| {
            StoreError::damaged(format!("the snapshot {what}; the pool has to be set aside"))
        };
        if hash(0, &snapshot.bytes) != snapshot.mark.hash {
            return Err(broken("does not hash to what was written down"));
        }
        let cut = |_| broken("is cut short");
        let (semantics, rest) = take_number(&snapshot.bytes).map_err(cut)?;
        if semantics != u64::from(SEMANTICS) {
            return Err(StoreError::foreign(format!(
                "the pool has semantics {semantics} and this program {SEMANTICS}; use the version \
                 of Standpipe that the others on this pool use"
            )));
        }
        let (skipped, state) = take_number(rest).map_err(cut)?;
        let facts = decode_state(state).map_err(|wrong| broken("is malformed").caused_by(wrong))?;
        let state =
            State::from_facts(facts).map_err(|wrong| broken("is no state").caused_by(wrong))?;
        Ok(Self { state, position: snapshot.mark.at, now: Instant::default(), skipped })
    }
}

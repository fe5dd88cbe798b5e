//! What a story can be told to: the bare core, or a replica on a store's log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{Answer, Decision, Event, Found, Instant, Outcome, Reserve, State};

use crate::entry;
use crate::error::StoreError;
use crate::layout::{decode_state, encode_state};
use crate::log::{Clock, Log};
use crate::replica::{Reached, Replica};

/// Something that keeps a pool's ledger.
pub trait Ledger {
    /// An event happens at an instant.
    ///
    /// # Errors
    /// When the machinery fails.
    fn apply(&mut self, event: &Event, now: Instant) -> Result<Outcome, String>;

    /// A look at an instant.
    ///
    /// # Errors
    /// When the machinery fails.
    fn peek(&mut self, reserve: &Reserve, now: Instant) -> Result<Decision, String>;

    /// Writes the ledger down and goes on with what is read back.
    ///
    /// # Errors
    /// When the machinery fails, or something else is read than was written.
    fn snapshot(&mut self, now: Instant) -> Result<(), String>;

    /// The state in the byte layout.
    fn bytes(&self) -> Vec<u8>;
}

/// The bare core.
#[derive(Debug, Default)]
pub struct Bare {
    state: State,
}

impl Ledger for Bare {
    fn apply(&mut self, event: &Event, now: Instant) -> Result<Outcome, String> {
        let outcome = self.state.apply(event, now);
        self.state.check()?;
        match &outcome.answer {
            Answer::Decided(Decision::Admit(grant))
                if !grant.settled && self.state.find(grant.lease) != Found::Lease =>
            {
                Err("it says admitted, but there is no lease".to_owned())
            }
            _ => Ok(outcome),
        }
    }

    fn peek(&mut self, reserve: &Reserve, now: Instant) -> Result<Decision, String> {
        Ok(self.state.peek(reserve, now))
    }

    fn snapshot(&mut self, _now: Instant) -> Result<(), String> {
        let bytes = self.bytes();
        let facts = decode_state(&bytes).map_err(|wrong| format!("the snapshot: {wrong}"))?;
        self.state = State::from_facts(facts).map_err(|wrong| format!("the snapshot: {wrong}"))?;
        if self.bytes() == bytes {
            Ok(())
        } else {
            Err("the snapshot reads as another state than was written".to_owned())
        }
    }

    fn bytes(&self) -> Vec<u8> {
        encode_state(self.state.facts())
    }
}

/// A replica on a store's log.
#[derive(Debug)]
pub struct OnLog<L> {
    log: L,
    replica: Replica,
    time: Time,
}

impl<L: Log> OnLog<L> {
    /// A ledger on this log, whose clock is `time`'s.
    pub fn new(log: L, time: Time) -> Self {
        Self { log, replica: Replica::new(), time }
    }
}

impl<L: Log> Ledger for OnLog<L> {
    fn apply(&mut self, event: &Event, now: Instant) -> Result<Outcome, String> {
        self.time.set(now);
        let bodies = [entry::body(event)];
        let since = self.log.append(self.replica.position(), &bodies).map_err(told)?;
        let mut last = None;
        let see =
            |seen: &Event, stamp: Instant, outcome| last = Some((seen.clone(), stamp, outcome));
        let reached = self.replica.take(&mut self.log, since, see).map_err(told)?;
        match (reached, last) {
            (Reached::Forked, _) => Err("the log says it forked".to_owned()),
            (_, Some((seen, stamp, outcome))) if seen == *event && stamp == now => Ok(outcome),
            (_, Some((seen, stamp, _))) => {
                Err(format!("the log ends with {seen:?} at {stamp:?}, which is not what was sent"))
            }
            (_, None) => Err("the log does not have what was just appended".to_owned()),
        }
    }

    fn peek(&mut self, reserve: &Reserve, now: Instant) -> Result<Decision, String> {
        self.time.set(now);
        self.replica.catch_up(&mut self.log, |_, _, _| ()).map_err(told)?;
        Ok(self.replica.state().peek(reserve, self.replica.now()))
    }

    fn snapshot(&mut self, now: Instant) -> Result<(), String> {
        self.time.set(now);
        let before = self.bytes();
        self.log.write_snapshot(&self.replica.snapshot()).map_err(told)?;
        self.replica.reset();
        self.replica.catch_up(&mut self.log, |_, _, _| ()).map_err(told)?;
        if self.bytes() == before {
            Ok(())
        } else {
            Err("a new reader comes to another state".to_owned())
        }
    }

    fn bytes(&self) -> Vec<u8> {
        encode_state(self.replica.state().facts())
    }
}

fn told(error: StoreError) -> String {
    format!("the store failed: {error}")
}

/// Time that stands still until it is set; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Time(Arc<AtomicU64>);

impl Time {
    /// Makes it `now`, earlier or later.
    pub fn set(&self, now: Instant) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    /// What it is.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant(self.0.load(Ordering::SeqCst))
    }

    /// The clock that reads it.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let time = self.clone();
        Arc::new(move || time.now())
    }
}

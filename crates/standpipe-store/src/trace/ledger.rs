//! What a trace runs on: the core alone, or a replica on a store's log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{Answer, Decision, Event, Found, Instant, Outcome, Reserve, State};

use crate::entry;
use crate::error::StoreError;
use crate::layout::{decode_state, encode_state};
use crate::log::{Clock, Log};
use crate::replica::{CaughtUp, Replica};

/// A ledger that can run a trace.
pub trait Ledger {
    /// Applies an event at an instant.
    ///
    /// # Errors
    /// When the store fails.
    fn apply(&mut self, event: &Event, now: Instant) -> Result<Outcome, String>;

    /// Returns what a reserve would be answered at an instant.
    ///
    /// # Errors
    /// When the store fails.
    fn peek(&mut self, reserve: &Reserve, now: Instant) -> Result<Decision, String>;

    /// Writes a snapshot and continues from what is read back.
    ///
    /// # Errors
    /// When the store fails, or the state read back differs from the one written.
    fn snapshot(&mut self, now: Instant) -> Result<(), String>;

    /// Returns the state in the byte layout.
    fn bytes(&self) -> Vec<u8>;
}

/// The core alone, without a store.
#[derive(Debug, Default)]
pub struct CoreLedger {
    state: State,
}

impl Ledger for CoreLedger {
    fn apply(&mut self, event: &Event, now: Instant) -> Result<Outcome, String> {
        let outcome = self.state.apply(event, now);
        self.state.check()?;
        match &outcome.answer {
            Answer::Decided(Decision::Admit(grant))
                if !grant.settled && self.state.find(grant.lease) != Found::Lease =>
            {
                Err("the outcome is admitted, but there is no lease".to_owned())
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
            Err("the state read back differs from the snapshot written".to_owned())
        }
    }

    fn bytes(&self) -> Vec<u8> {
        encode_state(self.state.facts())
    }
}

/// A replica on a store's log.
#[derive(Debug)]
pub struct LogLedger<L> {
    log: L,
    replica: Replica,
    time: ManualClock,
}

impl<L: Log> LogLedger<L> {
    /// Creates a ledger on this log, whose clock must be that of `time`.
    pub fn new(log: L, time: ManualClock) -> Self {
        Self { log, replica: Replica::new(), time }
    }
}

impl<L: Log> Ledger for LogLedger<L> {
    fn apply(&mut self, event: &Event, now: Instant) -> Result<Outcome, String> {
        self.time.set(now);
        let bodies = [entry::body(event)];
        let read = self.log.append(self.replica.position(), &bodies).map_err(store_failed)?;
        let mut last = None;
        let keep_last =
            |seen: &Event, stamp: Instant, outcome| last = Some((seen.clone(), stamp, outcome));
        let own = std::iter::once(event);
        let applied = self.replica.apply_append(&mut self.log, read, own, keep_last);
        let reached = applied.map_err(store_failed)?;
        match (reached, last) {
            (CaughtUp::Forked, _) => Err("the log reports a fork".to_owned()),
            (_, Some((seen, stamp, outcome))) if seen == *event && stamp == now => Ok(outcome),
            (_, Some((seen, stamp, _))) => {
                Err(format!("the log ends with {seen:?} at {stamp:?}, which is not what was sent"))
            }
            (_, None) => Err("the log lacks the entry just appended".to_owned()),
        }
    }

    fn peek(&mut self, reserve: &Reserve, now: Instant) -> Result<Decision, String> {
        self.time.set(now);
        self.replica.catch_up(&mut self.log, |_, _, _| ()).map_err(store_failed)?;
        Ok(self.replica.state().peek(reserve, self.replica.now()))
    }

    fn snapshot(&mut self, now: Instant) -> Result<(), String> {
        self.time.set(now);
        let before = self.bytes();
        self.log.write_snapshot(&self.replica.snapshot()).map_err(store_failed)?;
        self.replica.reset();
        self.replica.catch_up(&mut self.log, |_, _, _| ()).map_err(store_failed)?;
        if self.bytes() == before {
            Ok(())
        } else {
            Err("a new reader reaches a different state".to_owned())
        }
    }

    fn bytes(&self) -> Vec<u8> {
        encode_state(self.replica.state().facts())
    }
}

fn store_failed(error: StoreError) -> String {
    format!("the store failed: {error}")
}

/// A clock that stands still until it is set. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Sets the clock, forward or back.
    pub fn set(&self, now: Instant) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant(self.0.load(Ordering::SeqCst))
    }

    /// Returns a [`Clock`] for an engine.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let time = self.clone();
        Arc::new(move || time.now())
    }
}

//! A call that is awaited on a store across a network: the clerk takes its steps.

use std::sync::Arc;

use super::waiting::{Step, Waiting};
use crate::bell::Bell;
use crate::clerk::{Errand, Progress, Slot};
use crate::desk::{Counter, Desk};
use crate::error::Error;
use crate::lease::Lease;

/// Where the outcome of a call is laid down.
pub(super) type CallSlot = Slot<Result<Lease, Error>>;

/// A call that the clerk takes the steps of.
pub(super) struct CallErrand {
    waiting: Box<Waiting>,
    slot: Arc<CallSlot>,
    outcome: Option<Result<Lease, Error>>,
}

impl CallErrand {
    pub(super) fn new(waiting: Box<Waiting>) -> Self {
        let slot = Slot::new(Arc::clone(waiting.bell()));
        Self { waiting, slot, outcome: None }
    }

    pub(super) fn slot(&self) -> Arc<CallSlot> {
        Arc::clone(&self.slot)
    }

    fn took(&mut self, step: Step) -> Progress {
        let outcome = match step {
            Step::Again => return Progress::Again,
            Step::Sleep(until) => match self.waiting.set_timer(until) {
                Ok(()) => return Progress::Sleeps,
                Err(error) => Err(error),
            },
            Step::Over(outcome) => *outcome,
        };
        self.outcome = Some(outcome);
        Progress::Over
    }
}

impl Errand for CallErrand {
    fn desk(&self) -> Arc<Desk> {
        Arc::clone(self.waiting.desk())
    }

    fn bell(&self) -> Arc<Bell> {
        Arc::clone(self.waiting.bell())
    }

    fn is_wanted(&self) -> bool {
        self.slot.is_wanted()
    }

    fn ask(&mut self) -> Option<Progress> {
        let step = self.waiting.ask()?;
        Some(self.took(step))
    }

    fn hear(&mut self, counter: &mut Counter) -> Progress {
        let step = self.waiting.hear(counter);
        self.took(step)
    }

    fn announce(self: Box<Self>) {
        let Self { waiting, slot, outcome } = *self;
        drop(waiting);
        match outcome.and_then(|outcome| slot.put(outcome)) {
            // A task that stopped awaiting does not make the call.
            Some(Ok(lease)) => lease.give_back(),
            Some(Err(_)) => {}
            None => slot.wake(),
        }
    }
}

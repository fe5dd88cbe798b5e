//! A reserve whose steps the pool's worker takes.

use std::sync::Arc;

use super::wait_state::{Step, WaitState};
use crate::client::io_worker::{Job, Progress, ResultSlot};
use crate::client::notify::Notify;
use crate::client::{Dispatcher, PoolClient};
use crate::error::Error;
use crate::lease::Lease;

/// What the future of a reserve polls.
pub(super) type ReserveHandle = ResultSlot<Result<Lease, Error>>;

/// A reserve whose steps the pool's worker takes.
pub(super) struct ReserveJob {
    wait: Box<WaitState>,
    handle: Arc<ReserveHandle>,
    result: Option<Result<Lease, Error>>,
}

impl ReserveJob {
    pub(super) fn new(wait: Box<WaitState>) -> Self {
        let handle = ResultSlot::new(Arc::clone(wait.notify()));
        Self { wait, handle, result: None }
    }

    pub(super) fn handle(&self) -> Arc<ReserveHandle> {
        Arc::clone(&self.handle)
    }

    fn proceed(&mut self, step: Step) -> Progress {
        let result = match step {
            Step::Again | Step::Blocked => return Progress::Again,
            Step::Sleep(until) => match self.wait.set_timer(until) {
                Ok(()) => return Progress::Sleeping,
                Err(error) => Err(error),
            },
            Step::Done(result) => *result,
        };
        self.result = Some(result);
        Progress::Done
    }
}

impl Job for ReserveJob {
    fn client(&self) -> Arc<PoolClient> {
        Arc::clone(self.wait.client())
    }

    fn notify(&self) -> Arc<Notify> {
        Arc::clone(self.wait.notify())
    }

    fn is_wanted(&self) -> bool {
        self.handle.is_wanted()
    }

    fn submit(&mut self) -> Option<Progress> {
        let step = self.wait.submit()?;
        Some(self.proceed(step))
    }

    fn receive(&mut self, dispatcher: &mut Dispatcher) -> Progress {
        let step = self.wait.receive(dispatcher);
        self.proceed(step)
    }

    fn finish(self: Box<Self>) {
        let Self { wait, handle, result } = *self;
        drop(wait);
        match result.and_then(|result| handle.put(result)) {
            // A task that stopped waiting does not make the call.
            Some(Ok(lease)) => lease.give_back(),
            Some(Err(_)) => {}
            None => handle.wake(),
        }
    }
}

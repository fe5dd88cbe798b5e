//! A call that waits to be admitted, for threads and for tasks.
//!
//! Both take the same steps: reserve, and while the answer is "wait", sleep until the instant that
//! was named or until a notification. A step of a task never blocks its executor: if it would, the
//! pool's worker takes over.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant as Local};

use super::reserve_job::{ReserveHandle, ReserveJob};
use super::wait_state::{self, Step, WaitState};
use crate::client::registry::StoreHandle;
use crate::error::Error;
use crate::lease::Lease;
use crate::pool::Pool;
use crate::request::Request;

/// A call that waits to be admitted: `.await` it, or call [`Reserving::blocking`].
///
/// Nothing is sent before that. Dropping it at any moment cancels its ticket, or the grant that it
/// had not returned yet.
#[must_use = "nothing is reserved until this is awaited or `blocking` is called"]
pub struct Reserving {
    stage: Stage,
}

enum Stage {
    Created {
        pool: Box<Pool>,
        request: Box<Request>,
        began: Option<Local>,
    },
    Waiting(Box<WaitState>),
    /// The pool's worker takes the steps.
    OnWorker(Arc<ReserveHandle>, Arc<StoreHandle>),
    Done,
}

/// How often a thread looks by itself when the maintenance thread could not be started.
const POLL: Duration = Duration::from_millis(250);

impl Reserving {
    pub(crate) fn new(pool: Pool, request: Request) -> Self {
        let (pool, request) = (Box::new(pool), Box::new(request));
        Self { stage: Stage::Created { pool, request, began: None } }
    }

    /// Counts the timeout from an earlier instant.
    pub(crate) fn since(mut self, instant: Local) -> Self {
        if let Stage::Created { began, .. } = &mut self.stage {
            *began = Some(instant);
        }
        self
    }

    /// Waits on this thread. No runtime is needed.
    ///
    /// # Errors
    /// [`Error::Refused`] when the call may not be made in time, or at all; the others when the
    /// request, the configuration or the store is at fault.
    pub fn blocking(mut self) -> Result<Lease, Error> {
        let mut park = None;
        loop {
            let wait = self.wait_state()?;
            match wait.step() {
                Step::Done(result) => return self.done(*result),
                Step::Again | Step::Blocked => {}
                Step::Sleep(until) => {
                    let poll = Local::now() + POLL;
                    let until = if wait.is_maintained() { until } else { until.min(poll) };
                    park.get_or_insert_with(|| wait.park()).sleep(until);
                }
            }
        }
    }

    /// Returns the state of the wait, and creates it on first use.
    fn wait_state(&mut self) -> Result<&mut WaitState, Error> {
        if matches!(self.stage, Stage::Created { .. })
            && let Stage::Created { pool, request, began } =
                std::mem::replace(&mut self.stage, Stage::Done)
        {
            let began = began.unwrap_or_else(Local::now);
            self.stage = Stage::Waiting(Box::new(WaitState::new(*pool, *request, began)?));
        }
        match &mut self.stage {
            Stage::Waiting(wait) => Ok(wait),
            _ => Err(Error::invalid("this call already has its result", "reserve again")),
        }
    }

    /// Hands the remaining steps to the pool's worker.
    fn hand_over(&mut self) -> Result<(), Error> {
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        let Stage::Waiting(wait) = stage else { return Ok(()) };
        let (store_handle, client) = (Arc::clone(wait.handle()), Arc::clone(wait.client()));
        let job = ReserveJob::new(wait);
        let handle = job.handle();
        if client.worker().run_job(store_handle.store_client(), Box::new(job)).is_err() {
            return Err(wait_state::no_thread());
        }
        self.stage = Stage::OnWorker(handle, store_handle);
        Ok(())
    }

    fn done(&mut self, result: Result<Lease, Error>) -> Result<Lease, Error> {
        self.stage = Stage::Done;
        result
    }

    fn poll_result(&mut self, context: &mut Context<'_>) -> Poll<Result<Lease, Error>> {
        loop {
            if let Stage::OnWorker(handle, store_handle) = &self.stage {
                return match store_handle.is_ours() {
                    true => handle.poll(context),
                    false => Poll::Ready(Err(wait_state::forked_parent())),
                };
            }
            let wait = self.wait_state()?;
            // The waker is in place before the step, so that no notification is lost.
            let notified = wait.notify().take_notified(context.waker());
            if !notified && wait.sleeps() {
                return Poll::Pending;
            }
            match wait.try_step() {
                Step::Done(result) => return Poll::Ready(*result),
                Step::Again => {}
                Step::Sleep(until) => wait.set_timer(until)?,
                Step::Blocked => self.hand_over()?,
            }
        }
    }
}

impl Future for Reserving {
    type Output = Result<Lease, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let result = ready!(this.poll_result(context));
        Poll::Ready(this.done(result))
    }
}

impl Drop for Reserving {
    fn drop(&mut self) {
        if let Stage::OnWorker(handle, store_handle) = &self.stage
            && store_handle.is_ours()
            && let Some(Ok(lease)) = handle.abandon()
        {
            lease.give_back();
        }
    }
}

impl fmt::Debug for Reserving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Created { .. } => "created",
            Stage::Waiting(_) | Stage::OnWorker(..) => "waiting",
            Stage::Done => "done",
        };
        f.debug_struct("Reserving").field("stage", &stage).finish_non_exhaustive()
    }
}

/// Nothing inside points to itself.
impl Unpin for Reserving {}

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

use standpipe_store::PoolName;

use super::reserve_job::{ReserveHandle, ReserveJob};
use super::set_reserve::SetReserve;
use super::wait_state::{self, Step, WaitState};
use crate::client::registry::StoreHandle;
use crate::error::Error;
use crate::lease::Lease;
use crate::maintenance::wake_listener::ParkGuard;
use crate::pool::Pool;
use crate::request::Request;

/// A call that waits to be admitted: `.await` it, or call [`Reserving::blocking`].
///
/// Nothing is sent before that. Dropping it at any moment cancels its ticket, or the grant that it
/// had not returned yet.
#[must_use = "nothing is reserved until this is awaited or `blocking` is called"]
pub struct Reserving {
    stage: Stage,
    /// Whether only the pool itself is reserved, as a part of a call on several pools.
    is_part: bool,
    /// The pool that is reserved after it for the same call.
    next: Option<PoolName>,
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
    /// The call draws on several pools.
    Several(Box<SetReserve>),
    Done,
}

/// How often a thread looks by itself when the maintenance thread could not be started.
const POLL: Duration = Duration::from_millis(250);

impl Reserving {
    pub(crate) fn new(pool: Pool, request: Request) -> Self {
        let (pool, request) = (Box::new(pool), Box::new(request));
        Self { stage: Stage::Created { pool, request, began: None }, is_part: false, next: None }
    }

    /// Reserves a call on this pool alone, whatever pools it lies within, before it is reserved on
    /// the next one.
    pub(super) fn on_one_pool(pool: Pool, request: Request, next: Option<PoolName>) -> Self {
        let mut reserving = Self::new(pool, request);
        (reserving.is_part, reserving.next) = (true, next);
        reserving
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
        while !matches!(self.stage, Stage::Several(_)) {
            if let Some(result) = self.step(&mut park) {
                return self.done(result);
            }
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        let Stage::Several(set) = stage else { return Err(already_done()) };
        set.blocking().and_then(the_lease)
    }

    /// Takes a step on this thread, which may sleep. Returns the result if it was the last one.
    pub(super) fn step(&mut self, park: &mut Option<ParkGuard>) -> Option<Result<Lease, Error>> {
        let wait = match self.wait_state() {
            Ok(wait) => wait?,
            Err(error) => return Some(Err(error)),
        };
        match wait.step() {
            Step::Done(result) => return self.followed(*result),
            Step::Again | Step::Blocked => {}
            Step::Sleep(until) => {
                let poll = Local::now() + POLL;
                let until = if wait.is_maintained() { until } else { until.min(poll) };
                park.get_or_insert_with(|| wait.park()).sleep(until);
            }
        }
        None
    }

    /// Returns whether the call waits for a pause to end.
    pub(super) fn is_paused(&self) -> bool {
        matches!(&self.stage, Stage::Waiting(wait) if wait.is_paused())
    }

    /// Returns the result, unless the ledger shows that the pool lies within another one, which
    /// the call then draws on too.
    fn followed(&mut self, result: Result<Lease, Error>) -> Option<Result<Lease, Error>> {
        let parent = result.as_ref().ok().and_then(Lease::parent).filter(|_| !self.is_part);
        let Some(parent) = parent.cloned() else { return Some(result) };
        let lease = result.ok()?;
        let began = lease.asked_at();
        self.stage = Stage::Several(Box::new(SetReserve::of_granted(lease, &parent, began)));
        None
    }

    /// Returns the state of the wait, and creates it on first use; `None` if the call draws on
    /// several pools.
    fn wait_state(&mut self) -> Result<Option<&mut WaitState>, Error> {
        if matches!(self.stage, Stage::Created { .. })
            && let Stage::Created { pool, request, began } =
                std::mem::replace(&mut self.stage, Stage::Done)
        {
            let began = began.unwrap_or_else(Local::now);
            self.stage = if !self.is_part && (request.has_also() || pool.has_parent()) {
                let set = SetReserve::new(vec![(*pool, *request)]);
                Stage::Several(Box::new(set.since(began)))
            } else {
                let wait = WaitState::new(*pool, *request, began)?.before(self.next.take());
                Stage::Waiting(Box::new(wait))
            };
        }
        match &mut self.stage {
            Stage::Waiting(wait) => Ok(Some(wait)),
            Stage::Several(_) => Ok(None),
            _ => Err(already_done()),
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
                if !store_handle.is_ours() {
                    return Poll::Ready(Err(wait_state::forked_parent()));
                }
                let result = ready!(handle.poll(context));
                match self.followed(result) {
                    Some(result) => return Poll::Ready(result),
                    None => continue,
                }
            }
            if let Stage::Several(set) = &mut self.stage {
                return set.poll(context).map(|leases| leases.and_then(the_lease));
            }
            let Some(wait) = self.wait_state()? else { continue };
            // The waker is in place before the step, so that no notification is lost.
            let notified = wait.notify().take_notified(context.waker());
            if !notified && wait.sleeps() {
                return Poll::Pending;
            }
            match wait.try_step() {
                Step::Done(result) => {
                    if let Some(result) = self.followed(*result) {
                        return Poll::Ready(result);
                    }
                }
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
            Stage::Waiting(_) | Stage::OnWorker(..) | Stage::Several(_) => "waiting",
            Stage::Done => "done",
        };
        f.debug_struct("Reserving").field("stage", &stage).finish_non_exhaustive()
    }
}

fn already_done() -> Error {
    Error::invalid("this call already has its result", "reserve again")
}

/// Returns the one lease of one call.
fn the_lease(leases: Vec<Lease>) -> Result<Lease, Error> {
    leases.into_iter().next().ok_or_else(already_done)
}

/// Nothing inside points to itself.
impl Unpin for Reserving {}

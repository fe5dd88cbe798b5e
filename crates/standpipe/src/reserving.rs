//! Waiting for a call to be admitted, with or without an async runtime.
//!
//! Both ways take the same steps: ask, and while the answer is "wait", sleep until the instant that
//! was named, or until somebody rings. A step never waits by itself.
//!
//! Invariant: whenever this is dropped, what it asked for and was not handed over is given back.

mod errand;
mod waiting;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant as Local};

use self::errand::{CallErrand, CallSlot};
use self::waiting::{Step, Waiting};
use crate::bell::Bell;
use crate::error::Error;
use crate::lease::Lease;
use crate::pool::Pool;
use crate::registry::Guard;
use crate::request::Request;

/// A call that asks to be admitted: `.await` it, or call [`Reserving::blocking`].
///
/// Nothing is asked before that. Dropping it at any moment leaves nothing behind: its ticket is
/// cancelled, and so is a grant that it had not handed over yet.
#[must_use = "nothing is asked until this is awaited or `blocking` is called"]
pub struct Reserving {
    stage: Stage,
}

enum Stage {
    Asked {
        pool: Box<Pool>,
        request: Box<Request>,
        began: Option<Local>,
    },
    Waiting(Box<Waiting>),
    /// The clerk takes its steps.
    Handed(Arc<CallSlot>, Arc<Guard>),
    Over,
}

impl Reserving {
    pub(crate) fn new(pool: Pool, request: Request) -> Self {
        let (pool, request) = (Box::new(pool), Box::new(request));
        Self { stage: Stage::Asked { pool, request, began: None } }
    }

    /// Its time runs since then.
    pub(crate) fn since(mut self, moment: Local) -> Self {
        if let Stage::Asked { began, .. } = &mut self.stage {
            *began = Some(moment);
        }
        self
    }

    /// Waits on this thread. No runtime is needed.
    ///
    /// # Errors
    /// [`Error::Refused`] when the call may not be made in time, or at all; the others when
    /// something is wrong with the request, the configuration or the store.
    pub fn blocking(mut self) -> Result<Lease, Error> {
        let mut seat = None;
        loop {
            let waiting = self.waiting()?;
            let step = waiting.step();
            match step {
                Step::Over(outcome) => return self.over(*outcome),
                Step::Again => {}
                Step::Sleep(until) => {
                    // Without a keeper nobody rings: it looks by itself, then.
                    let alone = !waiting.is_kept();
                    let soon = Local::now() + Duration::from_millis(250);
                    let until = if alone { until.min(soon) } else { until };
                    seat.get_or_insert_with(|| waiting.seat()).sleep(until);
                }
            }
        }
    }

    /// The ticket it waits with, made when it first asks.
    fn waiting(&mut self) -> Result<&mut Waiting, Error> {
        if let Stage::Asked { pool, request, began } = &self.stage {
            let began = began.unwrap_or_else(Local::now);
            match Waiting::new(pool, request, began) {
                Ok(waiting) => self.stage = Stage::Waiting(Box::new(waiting)),
                Err(error) => {
                    self.stage = Stage::Over;
                    return Err(error);
                }
            }
        }
        match &mut self.stage {
            Stage::Waiting(waiting) => Ok(waiting),
            _ => Err(Error::invalid(
                "this call has had its answer already",
                "reserve anew for another call",
            )),
        }
    }

    /// Across a network the clerk takes its steps, if there is one.
    fn hand_in(&mut self) -> Result<(), Error> {
        if matches!(self.stage, Stage::Handed(..)) || !self.waiting()?.is_remote() {
            return Ok(());
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::Waiting(waiting) = stage else { return Ok(()) };
        let guard = Arc::clone(waiting.guard());
        let errand = CallErrand::new(waiting);
        let slot = errand.slot();
        let shared = guard.shared();
        if shared.clerk().take(shared, Box::new(errand)).is_err() {
            self.stage = Stage::Over;
            return Err(waiting::no_thread());
        }
        self.stage = Stage::Handed(slot, guard);
        Ok(())
    }

    fn over(&mut self, outcome: Result<Lease, Error>) -> Result<Lease, Error> {
        self.stage = Stage::Over;
        outcome
    }
}

impl Future for Reserving {
    type Output = Result<Lease, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Err(error) = this.hand_in() {
            return Poll::Ready(Err(error));
        }
        if let Stage::Handed(slot, guard) = &this.stage {
            let outcome = match guard.is_ours() {
                true => std::task::ready!(slot.poll(context)),
                false => Err(waiting::parents()),
            };
            return Poll::Ready(this.over(outcome));
        }
        let waiting = match this.waiting() {
            Ok(waiting) => waiting,
            Err(error) => return Poll::Ready(Err(error)),
        };
        loop {
            // The waker is in place before the look, so that no ring falls between.
            let rung = waiting.bell().was_rung(context.waker());
            if !rung && waiting.sleeps() {
                return Poll::Pending;
            }
            match waiting.step() {
                Step::Over(outcome) => return Poll::Ready(this.over(*outcome)),
                Step::Again => {}
                Step::Sleep(until) => {
                    if let Err(error) = waiting.set_timer(until) {
                        return Poll::Ready(this.over(Err(error)));
                    }
                }
            }
        }
    }
}

impl Drop for Reserving {
    fn drop(&mut self) {
        if let Stage::Handed(slot, guard) = &self.stage
            && guard.is_ours()
            && let Some(Ok(lease)) = slot.leave()
        {
            lease.give_back();
        }
    }
}

impl fmt::Debug for Reserving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Asked { .. } => "asked",
            Stage::Waiting(_) | Stage::Handed(..) => "waiting",
            Stage::Over => "over",
        };
        f.debug_struct("Reserving").field("stage", &stage).finish_non_exhaustive()
    }
}

/// Polling from anywhere is safe: nothing inside points to itself.
impl Unpin for Reserving {}

/// A bell for one waiter.
fn bell() -> Arc<Bell> {
    Arc::default()
}

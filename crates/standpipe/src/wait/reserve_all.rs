//! Several calls at once, all or none. `set_reserve.rs` reserves them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::set_reserve::SetReserve;
use crate::error::Error;
use crate::lease::Lease;
use crate::pool::Pool;
use crate::request::Request;

/// Several calls that wait to be admitted, all or none: `.await` it, or call
/// [`ReserveAll::blocking`].
///
/// The timeout of every request starts with the first reserve. Dropping it at any moment cancels
/// everything.
#[must_use = "nothing is asked until this is awaited or `blocking` is called"]
pub struct ReserveAll {
    set: SetReserve,
}

impl ReserveAll {
    pub(crate) fn new(requests: Vec<(Pool, Request)>) -> Self {
        Self { set: SetReserve::new(requests) }
    }

    /// Waits on this thread. No runtime is needed.
    ///
    /// # Errors
    /// As [`Reserving::blocking`](super::Reserving::blocking), of the first request that failed.
    /// The leases before it are cancelled.
    pub fn blocking(self) -> Result<Vec<Lease>, Error> {
        self.set.blocking()
    }
}

impl Future for ReserveAll {
    type Output = Result<Vec<Lease>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().set.poll(context)
    }
}

impl fmt::Debug for ReserveAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveAll").finish_non_exhaustive()
    }
}

/// Nothing inside points to itself.
impl Unpin for ReserveAll {}

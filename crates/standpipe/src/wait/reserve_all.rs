//! Several calls at once, all or none.
//!
//! Pools are reserved in the order of their names, so that two callers of the same pools never
//! deadlock. Each call is a [`Reserving`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant as Local;

use crate::error::Error;
use crate::lease::Lease;
use crate::pool::Pool;
use crate::request::Request;
use crate::wait::Reserving;

/// Several calls that wait to be admitted, all or none: `.await` it, or call
/// [`ReserveAll::blocking`].
///
/// The timeout of every request starts with the first reserve. Dropping it at any moment cancels
/// everything.
#[must_use = "nothing is asked until this is awaited or `blocking` is called"]
pub struct ReserveAll {
    /// The requests that are left, each with its index in the caller's order; the first by name is
    /// the last here.
    requests: Vec<(usize, Pool, Request)>,
    began: Option<Local>,
    present: Option<(usize, Reserving)>,
    granted: Vec<(usize, Lease)>,
}

impl ReserveAll {
    pub(crate) fn new(requests: Vec<(Pool, Request)>) -> Self {
        let numbered = requests.into_iter().enumerate();
        let mut requests: Vec<_> =
            numbered.map(|(at, (pool, request))| (at, pool, request)).collect();
        requests.sort_by(|(one, pool, _), (other, next, _)| {
            (pool.name(), one).cmp(&(next.name(), other)).reverse()
        });
        Self { requests, began: None, present: None, granted: Vec::new() }
    }

    /// Waits on this thread. No runtime is needed.
    ///
    /// # Errors
    /// As [`Reserving::blocking`], of the first request that failed. The leases before it are
    /// cancelled.
    pub fn blocking(mut self) -> Result<Vec<Lease>, Error> {
        while let Some((at, reserving)) = self.next() {
            match reserving.blocking() {
                Ok(lease) => self.granted.push((at, lease)),
                Err(error) => {
                    self.give_back();
                    return Err(error);
                }
            }
        }
        Ok(self.leases())
    }

    /// Returns the next call to reserve, in the order of names.
    fn next(&mut self) -> Option<(usize, Reserving)> {
        if let Some(present) = self.present.take() {
            return Some(present);
        }
        let began = *self.began.get_or_insert_with(Local::now);
        let (at, pool, request) = self.requests.pop()?;
        Some((at, pool.reserve(request).since(began)))
    }

    /// Returns the leases in the caller's order.
    fn leases(&mut self) -> Vec<Lease> {
        let mut granted = std::mem::take(&mut self.granted);
        granted.sort_by_key(|(at, _)| *at);
        granted.into_iter().map(|(_, lease)| lease).collect()
    }

    fn give_back(&mut self) {
        self.requests.clear();
        for (_, lease) in self.granted.drain(..).rev() {
            lease.give_back();
        }
    }
}

impl Future for ReserveAll {
    type Output = Result<Vec<Lease>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        while let Some((at, mut reserving)) = this.next() {
            match Pin::new(&mut reserving).poll(context) {
                Poll::Pending => {
                    this.present = Some((at, reserving));
                    return Poll::Pending;
                }
                Poll::Ready(Ok(lease)) => this.granted.push((at, lease)),
                Poll::Ready(Err(error)) => {
                    this.give_back();
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(this.leases()))
    }
}

impl Drop for ReserveAll {
    fn drop(&mut self) {
        self.present = None;
        self.give_back();
    }
}

impl fmt::Debug for ReserveAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveAll")
            .field("left", &self.requests.len())
            .field("granted", &self.granted.len())
            .finish_non_exhaustive()
    }
}

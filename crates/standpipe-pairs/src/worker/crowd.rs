//! A process that goes beyond the bounds of a ledger, on pools of its own: more leases and more
//! waiters than one may have. It holds them while it draws on the other pools.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use standpipe::{Error, Lease, Pool, Request, Reserving, Standpipe};
use standpipe_core::bounds;

use crate::record::Recorder;
use crate::setup::{CROWD, LINE};

/// How many are tried beyond a bound.
const BEYOND: usize = 8;
/// How long an attempt may take, in microseconds: the store may be unavailable meanwhile.
const PATIENCE: u64 = 20_000_000;

/// What a process holds beyond its calls, until it ends.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    leases: Vec<Lease>,
    waiting: Vec<Reserving>,
}

impl Crowd {
    /// As many leases as there may be, or waiters behind one lease. A record line `broken` reports
    /// that more were admitted.
    pub(super) fn gather(mode: &str, tap: &Standpipe, recorder: &Recorder) -> Self {
        let mut crowd = Self::default();
        let gathered = match mode {
            "leases" => tap.pool(CROWD).and_then(|pool| crowd.hold(&pool)),
            "waiters" => tap.pool(LINE).and_then(|pool| crowd.wait(&pool)),
            _ => return crowd,
        };
        let (leases, waiting) = (crowd.leases.len(), crowd.waiting.len());
        let failure = gathered.err().map_or_else(String::new, |error| error.to_string());
        recorder.write("crowd", 0, "-", &format!("{leases} leases, {waiting} waiters {failure}"));
        if leases > bounds::LEASES || waiting > bounds::TICKETS {
            recorder.write("broken", 0, "-", "more leases or tickets than a ledger may have");
        }
        crowd
    }

    fn hold(&mut self, pool: &Pool) -> Result<(), Error> {
        let bound = crate::record::now() + PATIENCE;
        while self.leases.len() < bounds::LEASES + BEYOND && crate::record::now() < bound {
            let request = Request::by("crowd").timeout(Duration::ZERO);
            self.leases.push(pool.reserve(request).blocking()?);
        }
        Ok(())
    }

    /// Tickets without threads: each call is polled once and kept.
    fn wait(&mut self, pool: &Pool) -> Result<(), Error> {
        self.leases.push(pool.reserve(Request::by("crowd").timeout(Duration::ZERO)).blocking()?);
        let bound = crate::record::now() + PATIENCE;
        let mut context = Context::from_waker(Waker::noop());
        while self.waiting.len() < bounds::TICKETS + BEYOND && crate::record::now() < bound {
            let request = Request::by("crowd").timeout(Duration::from_secs(120));
            let mut call = pool.reserve(request);
            match Pin::new(&mut call).poll(&mut context) {
                std::task::Poll::Pending => self.waiting.push(call),
                // Admitted: the ledger was lost, and what this process holds is restored later.
                std::task::Poll::Ready(lease) => self.leases.push(lease?),
            }
        }
        Ok(())
    }
}

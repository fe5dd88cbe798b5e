//! The retry loop: reserve, call, read the answer, settle, wait, try again.
//!
//! The ledger counts retries for all processes together and decides how long to wait. A terminal
//! answer is never retried. The retries of SDKs beneath must be switched off, because each layer
//! would multiply the next.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant as Local};

use standpipe_core::{Reason, ThrottleKind};

use crate::client::operation::Operation;
use crate::error::Error;
use crate::explain::Verdict;
use crate::lease::Lease;
use crate::lease_id::LeaseId;
use crate::pool::Pool;
use crate::provider::reply::{Meaning, Reply};
use crate::refused::Refused;
use crate::request::Request;

/// The result of one try. `T` is the caller's own result, which the loop returns at the end.
#[derive(Debug)]
pub enum Attempt<T> {
    /// The provider answered. The answer is read in the pool's dialect.
    Answered(Reply, T),
    /// The call was never sent: its lease is cancelled, and it may be retried.
    NotSent(T),
    /// The connection broke, or there was no answer in time. The call may have been served, so it
    /// counts; it may be retried.
    Broken(T),
}

/// The error of a call that was not served.
#[derive(Debug)]
#[non_exhaustive]
pub struct NotServed<T> {
    /// Why it is not retried.
    pub why: Error,
    /// The result of the last try, if there was one.
    pub last: Option<T>,
    /// How many tries there were.
    pub tries: u32,
}

/// The waits after a failure other than quota: half a second, then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// What follows from a try.
enum Then<T> {
    Return(T),
    Again(T),
    Stop(T, Error),
}

/// A call on its way through its tries.
struct Tries {
    request: Request,
    ends: Local,
    count: u32,
    wait: Duration,
    last: Option<LeaseId>,
}

impl Pool {
    /// Makes a call and retries it within `deadline` and within the pool's retry budget, never
    /// after a terminal answer. The ledger decides how long to wait between tries.
    ///
    /// The request's own timeout is not used: every try waits up to what is left of `deadline`.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Limit, Rule, Standpipe};
    /// # fn main() -> Result<(), standpipe::Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// use std::time::Duration;
    /// use standpipe::{Attempt, Reply, Request};
    ///
    /// let pool = tap.pool("doc/retry")?;
    /// pool.limit(vec![Limit::new(Rule::Parallel { amount: 5 })]).blocking()?;
    /// let mut answers = [503, 200].into_iter();
    /// let served = pool.with_retry(Request::by("blog"), Duration::from_secs(60), |_lease| {
    ///     // Make the call here, with the SDK's own retries switched off.
    ///     let status = answers.next().unwrap_or(200);
    ///     let reply = Reply::new(status).header("retry-after", "0");
    ///     Attempt::Answered(reply, format!("status {status}"))
    /// });
    /// assert_eq!(served.map_err(|not| not.why)?, "status 200");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NotServed`] with the reason: [`Error::Refused`] when time or retries are used up or the
    /// provider's answer was terminal, and the other errors of a reserve. An error of the caller's
    /// own, such as a status of 400, is not retried: its result is returned as it is.
    pub fn with_retry<T>(
        &self,
        request: Request,
        deadline: Duration,
        mut call: impl FnMut(&Lease) -> Attempt<T>,
    ) -> Result<T, NotServed<T>> {
        let mut tries = Tries::new(request, deadline);
        let mut last = None;
        loop {
            let lease = match self.reserve(tries.next()).blocking() {
                Ok(lease) => lease,
                Err(why) => return Err(NotServed { why, last, tries: tries.count }),
            };
            let attempt = call(&lease);
            let (settling, value) = tries.settle(lease, attempt);
            match tries.after(self, settling.blocking(), value) {
                Then::Return(value) => return Ok(value),
                Then::Again(value) => last = Some(value),
                Then::Stop(value, why) => {
                    let known = self.peek(&tries.request).blocking().ok();
                    let why = until_of_stop(known, why);
                    return Err(NotServed { why, last: Some(value), tries: tries.count });
                }
            }
        }
    }

    /// Does the same as [`Pool::with_retry`] for calls that are futures, on any runtime. If it is
    /// dropped, only the call that was under way counts, at its estimate.
    ///
    /// # Errors
    /// As [`Pool::with_retry`].
    pub async fn with_retry_async<T, F: Future<Output = Attempt<T>>>(
        &self,
        request: Request,
        deadline: Duration,
        mut call: impl FnMut(LeaseId) -> F,
    ) -> Result<T, NotServed<T>> {
        let mut tries = Tries::new(request, deadline);
        let mut last = None;
        loop {
            let lease = match self.reserve(tries.next()).await {
                Ok(lease) => lease,
                Err(why) => return Err(NotServed { why, last, tries: tries.count }),
            };
            let attempt = call(lease.id().clone()).await;
            let (settling, value) = tries.settle(lease, attempt);
            match tries.after(self, settling.await, value) {
                Then::Return(value) => return Ok(value),
                Then::Again(value) => last = Some(value),
                Then::Stop(value, why) => {
                    let known = self.peek(&tries.request).await.ok();
                    let why = until_of_stop(known, why);
                    return Err(NotServed { why, last: Some(value), tries: tries.count });
                }
            }
        }
    }
}

/// Adds to a stop when the ledger admits the next call. That may be a probe before the end that the
/// provider named.
fn until_of_stop(verdict: Option<Verdict>, why: Error) -> Error {
    let stop = why.as_refused().is_some_and(Refused::is_terminal);
    let known = verdict.as_ref().filter(|_| stop).and_then(Verdict::why);
    let known = known.filter(|known| known.is_terminal());
    known.map_or(why, |known| known.clone().into())
}

impl Tries {
    fn new(request: Request, deadline: Duration) -> Self {
        // A longer deadline could overflow the clock.
        let longest = Duration::from_secs(366 * 86_400);
        let ends = Local::now() + deadline.min(longest);
        Self { request, ends, count: 0, wait: Duration::ZERO, last: None }
    }

    /// The reserve of the next try.
    fn next(&mut self) -> Request {
        self.count += 1;
        let left = self.ends.saturating_duration_since(Local::now());
        let request = self.request.clone().timeout(left);
        let request = if self.wait.is_zero() { request } else { request.hold(self.wait) };
        match &self.last {
            Some(lease) => request.retry_of(lease.clone()),
            None => request,
        }
    }

    /// Returns how a try is settled.
    fn settle<T>(&mut self, lease: Lease, attempt: Attempt<T>) -> (Operation<Meaning>, T) {
        self.last = Some(lease.id().clone());
        match attempt {
            Attempt::Answered(reply, value) => (lease.answered(reply), value),
            Attempt::NotSent(value) => (lease.cancel().map(|()| BROKEN), value),
            // The estimate counts, since the call may have been served.
            Attempt::Broken(value) => (lease.commit([]).map(|()| BROKEN), value),
        }
    }

    /// Decides what follows a try.
    fn after<T>(&mut self, pool: &Pool, settled: Result<Meaning, Error>, value: T) -> Then<T> {
        match settled {
            Ok(Meaning::Failed { transient: true }) => {
                self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
                Then::Again(value)
            }
            // A lease that expired under a long call was settled then.
            Ok(Meaning::Served | Meaning::Failed { .. }) | Err(Error::LeaseGone { .. }) => {
                Then::Return(value)
            }
            Ok(Meaning::Refused { kind: ThrottleKind::Terminal, .. }) => {
                Then::Stop(value, Error::stopped(pool.name()))
            }
            // The ledger knows how long to wait: the next reserve waits for it.
            Ok(Meaning::Refused { .. }) => {
                self.wait = Duration::ZERO;
                Then::Again(value)
            }
            Err(why) => Then::Stop(value, why),
        }
    }
}

/// A failure other than quota that may be retried.
const BROKEN: Meaning = Meaning::Failed { transient: true };

impl<T> NotServed<T> {
    /// Returns whether the retry budget was used up.
    #[must_use]
    pub fn is_out_of_retries(&self) -> bool {
        self.why.as_refused().is_some_and(|refused| refused.reason == Reason::RetryBudget)
    }
}

impl<T> fmt::Display for NotServed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tries {
            0 | 1 => self.why.fmt(f),
            tries => write!(f, "not served in {tries} tries: {}", self.why),
        }
    }
}

impl<T: fmt::Debug> StdError for NotServed<T> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.why)
    }
}

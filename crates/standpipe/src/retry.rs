//! The one retry layer: reserve, call, read the answer, settle, wait as told, try again.
//!
//! How often a call may be tried again is counted in the ledger, for everybody together; how long
//! to wait is what the ledger says. Never after a terminal answer. The retries of SDKs are switched
//! off beneath it, or every layer multiplies the next.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant as Local};

use standpipe_core::{Reason, ThrottleKind};

use crate::error::Error;
use crate::explain::Verdict;
use crate::lease::Lease;
use crate::lease_id::LeaseId;
use crate::pool::Pool;
use crate::refused::Refused;
use crate::reply::{Meaning, Reply};
use crate::request::Request;

/// What one try came to. `T` is the caller's own result, handed back at the end.
#[derive(Debug)]
pub enum Attempt<T> {
    /// The provider answered. What that means is read in the pool's dialect.
    Answered(Reply, T),
    /// The call was never sent: everything goes back, and it may be tried again.
    NotSent(T),
    /// The connection broke, or there was no answer in time: it may have been served, so it counts,
    /// and it may be tried again.
    Broken(T),
}

/// A call that was not served, though it was tried.
#[derive(Debug)]
#[non_exhaustive]
pub struct NotServed<T> {
    /// Why it is not tried again.
    pub why: Error,
    /// What the last try came to, if there was one.
    pub last: Option<T>,
    /// How many tries there were.
    pub tries: u32,
}

/// After a failure that says nothing about quota: half a second, then twice as long each time.
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
    /// Makes a call and tries it again as long as that makes sense: within `deadline` and within
    /// the ledger's retry budget, waiting as the ledger says, never after a terminal answer.
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
    /// pool.limit(vec![Limit::new(Rule::Parallel { amount: 5 })])?;
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
    /// provider said stop, and what else a reserve can answer. An error that is the caller's own,
    /// such as a status of 400, is no reason to try again: its result is returned as it is.
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
            match tries.settle(lease, attempt) {
                Then::Return(value) => return Ok(value),
                Then::Again(value) => last = Some(value),
                Then::Stop(value, why) => {
                    let why = self.until_of_stop(&tries.request, why);
                    return Err(NotServed { why, last: Some(value), tries: tries.count });
                }
            }
        }
    }

    /// [`Pool::with_retry`] for calls that are futures. No particular runtime is needed. Dropped at
    /// any moment, it leaves nothing behind but the call that was under way, at its estimate.
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
            match tries.settle(lease, attempt) {
                Then::Return(value) => return Ok(value),
                Then::Again(value) => last = Some(value),
                Then::Stop(value, why) => {
                    let why = self.until_of_stop(&tries.request, why);
                    return Err(NotServed { why, last: Some(value), tries: tries.count });
                }
            }
        }
    }

    /// Adds to a stop when the ledger admits the next call. That may be a probe before the end
    /// that the provider named.
    fn until_of_stop(&self, request: &Request, why: Error) -> Error {
        let stop = why.as_refused().is_some_and(Refused::is_terminal);
        let verdict = if stop { self.peek(request).ok() } else { None };
        let known = verdict.as_ref().and_then(Verdict::why).filter(|known| known.is_terminal());
        known.map_or(why, |known| known.clone().into())
    }
}

impl Tries {
    fn new(request: Request, deadline: Duration) -> Self {
        // What is further away than any deadline is no further away than a year.
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

    /// Settles a try, and says what follows.
    fn settle<T>(&mut self, lease: Lease, attempt: Attempt<T>) -> Then<T> {
        self.last = Some(lease.id().clone());
        let pool = lease.pool().clone();
        let (told, value) = match attempt {
            Attempt::Answered(reply, value) => (lease.answered(&reply), value),
            Attempt::NotSent(value) => (lease.cancel().map(|()| BROKEN), value),
            // The estimate counts, since it may have been served.
            Attempt::Broken(value) => (lease.commit([]).map(|()| BROKEN), value),
        };
        match told {
            Ok(Meaning::Failed { transient: true }) => {
                self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
                Then::Again(value)
            }
            // A lease that expired under a long call was settled then.
            Ok(Meaning::Served | Meaning::Failed { .. }) | Err(Error::LeaseGone { .. }) => {
                Then::Return(value)
            }
            Ok(Meaning::Refused { kind: ThrottleKind::Terminal, .. }) => {
                Then::Stop(value, Error::stopped(&pool))
            }
            // How long to wait is in the ledger now: the next reserve waits for it.
            Ok(Meaning::Refused { .. }) => {
                self.wait = Duration::ZERO;
                Then::Again(value)
            }
            Err(why) => Then::Stop(value, why),
        }
    }
}

/// Nothing was said about quota, and it may be tried again.
const BROKEN: Meaning = Meaning::Failed { transient: true };

impl<T> NotServed<T> {
    /// Whether too many of the last minute's calls were retries.
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

//! The provider of a scene: it counts every call against the limits, and its log is the referee's
//! second witness.
//!
//! It is lenient, so that the log has every call in full: what is over a limit is marked, not
//! refused. Its clock is the one of the records.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use standpipe_sim::{Clock, Logged, ProviderServer, ServerOptions, Shape, Unit, Verdict};

use crate::record::now;
use crate::setup::{Rule, Setup};

/// A call that the provider saw.
#[derive(Clone, Debug)]
pub struct ProviderCall {
    /// The pool, from the path.
    pub pool: String,
    /// The lease it was made under, from its header.
    pub lease: String,
    /// The agent, from its header.
    pub agent: String,
    /// When it arrived.
    pub arrived: u64,
    /// When its reply was sent; none if that did not happen.
    pub finished: Option<u64>,
    /// It was over one of the limits with which the scene began.
    pub over: bool,
}

impl From<Logged> for ProviderCall {
    fn from(logged: Logged) -> Self {
        Self {
            pool: logged.path.trim_start_matches('/').to_owned(),
            lease: logged.lease,
            agent: logged.agent,
            arrived: logged.arrived,
            finished: logged.finished,
            over: matches!(logged.verdict, Verdict::Over(_) | Verdict::OverQuota(_)),
        }
    }
}

/// Starts a provider with one path per pool.
///
/// # Errors
/// When it cannot listen.
pub fn start(setup: &Setup) -> Result<ProviderServer, String> {
    let mut options = ServerOptions::new(Shape::Plain, Vec::new());
    options.options.lenient = true;
    options.paths = rules(setup);
    let clock = Arc::new(MachineClock::default());
    ProviderServer::start_with(options, clock).map_err(|error| error.to_string())
}

fn rules(setup: &Setup) -> BTreeMap<String, Vec<standpipe_sim::Rule>> {
    let unit = Unit::Requests;
    let rules = setup.pools.iter().map(|pool| {
        let rule = match pool.rule {
            Rule::Parallel(amount) => Some(standpipe_sim::Rule::Concurrency { amount }),
            Rule::Window(amount, period) => {
                Some(standpipe_sim::Rule::Rolling { unit, amount, period })
            }
            Rule::Bucket(amount, period, burst) => {
                Some(standpipe_sim::Rule::Bucket { unit, amount, period, burst })
            }
            Rule::Day(..) | Rule::Absent => None,
        };
        (format!("/{}", pool.name), rule.into_iter().collect())
    });
    rules.collect()
}

/// The machine's monotonic clock, as in [`now`].
#[derive(Debug, Default)]
struct MachineClock {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Clock for MachineClock {
    fn now(&self) -> u64 {
        now()
    }

    fn wait_until(&self, at: u64) -> bool {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = at.saturating_sub(now());
            if *stopped || left == 0 {
                return !*stopped;
            }
            let waited = self.changed.wait_timeout(stopped, Duration::from_micros(left));
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

//! One shared quota, as callers use it.
//!
//! Every method returns a value that does nothing until it is awaited or `blocking` is called. The
//! bodies are in `pool/steps.rs`; [`Pool::reserve`] continues in `wait/`.

mod several;
mod steps;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use standpipe_core::{AgentName, Configured, InvalidConfig, Limit, PoolConfig};
use standpipe_dialect::Dialect;
use standpipe_store::PoolName;

use crate::client::operation::{Operation, Plan, Worker};
use crate::client::registry::StoreHandle;
use crate::client::{PoolClient, StoreClient};
use crate::config::{StoreUrl, dialect_of};
use crate::error::Error;
use crate::explain::{Explanation, Verdict};
use crate::provider::reply::{Meaning, Reply};
use crate::provider::report::{Observation, Throttle};
use crate::provider::streamed::StreamedReply;
use crate::request::Request;
use crate::status::{Pause, PoolStatus};
use crate::tap::{Standpipe, Tap};
use crate::wait::Reserving;

/// One shared quota. Clones are the same pool; it may be used from any thread.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

/// What clones of a pool share.
struct Inner {
    tap: Arc<Tap>,
    name: PoolName,
    /// The pool's client in the process that first used it.
    connected: OnceLock<(Arc<StoreHandle>, Arc<PoolClient>)>,
}

impl Pool {
    pub(crate) fn new(tap: Arc<Tap>, name: PoolName) -> Self {
        Self { inner: Arc::new(Inner { tap, name, connected: OnceLock::new() }) }
    }

    /// Returns the pool's name.
    #[must_use]
    pub fn name(&self) -> &PoolName {
        &self.inner.name
    }

    /// Reserves a call. Nothing is sent until the result is awaited or [`Reserving::blocking`] is
    /// called.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Error, Limit, Request, Rule, Standpipe};
    /// # fn main() -> Result<(), Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// use std::time::Duration;
    ///
    /// let pool = tap.pool("doc/reserve")?;
    /// pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking()?;
    /// let _first = pool.reserve(Request::by("blog")).blocking()?;
    ///
    /// let second = pool.reserve(Request::by("blog").timeout(Duration::ZERO)).blocking();
    /// assert!(matches!(second, Err(Error::Refused(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve(&self, request: Request) -> Reserving {
        Reserving::new(self.clone(), request)
    }

    /// Checks a request against the limits that the pool has and these. Changes nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is wrong with the request, and what to do.
    pub fn check(&self, request: &Request, limits: &[Limit]) -> Operation<()> {
        let request = request.clone();
        let limits = limits.to_vec();
        self.operation(move |pool| pool.check_now(&request, &limits))
    }

    /// Returns how a request would be decided now. Changes nothing.
    ///
    /// # Errors
    /// When the request cannot be understood, the pool has no limits, or the store cannot be read.
    pub fn peek(&self, request: &Request) -> Operation<Verdict> {
        let request = request.clone();
        self.operation(move |pool| pool.peek_now(&request))
    }

    /// Returns each step of the admission rule for a request. Changes nothing.
    ///
    /// # Errors
    /// As [`Pool::peek`].
    pub fn explain(&self, request: &Request) -> Operation<Explanation> {
        let request = request.clone();
        self.operation(move |pool| pool.explain_now(&request))
    }

    /// Returns the pool's limits, its leases, and its tickets with what each of them waits for.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn status(&self) -> Operation<PoolStatus> {
        self.operation(move |pool| pool.read_status())
    }

    /// Gives the pool limits from code, and returns what the pool made of them. They count only for
    /// pools that no file configures; between processes the stricter wins, limit by limit.
    ///
    /// Everything else has the defaults of a pool in a file; [`Pool::change`] sets more.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the limits cannot be used, and when the store cannot be reached.
    pub fn limit(&self, limits: Vec<Limit>) -> Operation<Configured> {
        self.operation(move |pool| pool.set_limits(limits))
    }

    /// Replaces the pool's configuration at run time. Usage so far stays.
    ///
    /// # Errors
    /// As [`Pool::limit`].
    pub fn change(&self, config: PoolConfig) -> Operation<Configured> {
        self.operation(move |pool| pool.set_config(config))
    }

    /// Returns what the pool made of the file's configuration; `None` if no file configures it.
    /// [`Configured::Kept`] means that another process has a newer one, which counts.
    ///
    /// # Errors
    /// When the store cannot be reached, or the configuration cannot be used.
    pub fn configured(&self) -> Operation<Option<Configured>> {
        self.operation(move |pool| pool.configure())
    }

    /// Returns the pool's configuration from any source; `None` if it has none.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn config(&self) -> Operation<Option<PoolConfig>> {
        self.operation(move |pool| pool.read_config())
    }

    /// Returns the default time to live of leases without a session.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn lease_ttl(&self) -> Operation<Duration> {
        let pool = self.clone();
        Operation::new(move || match (pool.known_lease_ttl(), pool.worker()) {
            (Some(ttl), _) => Plan::Ready(Ok(ttl)),
            (None, Ok(worker)) => Plan::Block(worker, Box::new(move || pool.read_lease_ttl())),
            (None, Err(error)) => Plan::Ready(Err(error)),
        })
    }

    /// Pauses the pool: no process admits a call for this long. A running pause is never shortened.
    /// Views name the tap's agent as the one that ordered it.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn pause(&self, length: Duration) -> Operation<()> {
        self.operation(move |pool| pool.send_pause(pool.inner.tap.agent(), length))
    }

    /// Pauses the pool as [`Pool::pause`] does, ordered by this agent.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name cannot be an agent's; when the store cannot be reached.
    pub fn pause_by(&self, agent: impl Into<String>, length: Duration) -> Operation<()> {
        let agent = agent.into();
        self.operation(move |pool| pool.send_pause(&agent, length))
    }

    /// Returns the current pause, if there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn paused(&self) -> Operation<Option<Pause>> {
        self.operation(move |pool| pool.read_pause())
    }

    /// Ends a pause, and a stop that a terminal answer of the provider caused.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn resume(&self) -> Operation<()> {
        self.operation(move |pool| pool.send_resume(pool.inner.tap.agent()))
    }

    /// Ends a pause or a stop as [`Pool::resume`] does, ordered by this agent.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name cannot be an agent's; when the store cannot be reached.
    pub fn resume_by(&self, agent: impl Into<String>) -> Operation<()> {
        let agent = agent.into();
        self.operation(move |pool| pool.send_resume(&agent))
    }

    /// Reports that the provider refused a call.
    ///
    /// # Errors
    /// [`Error::LeaseGone`] when it names a lease that has ended; the refusal counts all the same.
    pub fn throttle(&self, throttle: &Throttle) -> Operation<()> {
        let throttle = throttle.clone();
        self.operation(move |pool| pool.send_throttle(&throttle))
    }

    /// Reports a provider's answer that belongs to no lease. Its limits are applied, and a refusal
    /// pauses the pool. Returns its meaning and the number of limits in it.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn observe_reply(&self, reply: &Reply, agent: Option<&str>) -> Operation<(Meaning, usize)> {
        let reply = reply.clone();
        let agent = agent.map(ToOwned::to_owned);
        self.operation(move |pool| pool.send_reply(&reply, agent.as_deref()))
    }

    /// Records in the journal that a client of the proxy retries on its own, or may, if that is
    /// `guessed`. Changes nothing else.
    pub fn note_client_retry(&self, agent: &str, client: &str, guessed: bool) {
        let Ok(handle) = self.inner.tap.store_handle() else { return };
        let what = crate::journal::EventData::ClientRetry {
            agent: agent.to_owned(),
            client: client.to_owned(),
            guessed,
        };
        handle.store_client().journal().note(&self.inner.name, what);
    }

    /// Returns what a provider's answer means on this pool. Changes nothing.
    #[must_use]
    pub fn meaning_of(&self, reply: &Reply) -> Meaning {
        reply.read(self.dialect(), &self.inner.name).meaning
    }

    /// Reports limits that the provider stated.
    ///
    /// # Errors
    /// When the lease it names is on another pool, or the store cannot be reached.
    pub fn observe(&self, observation: &Observation) -> Operation<()> {
        let observation = observation.clone();
        self.operation(move |pool| pool.send_observation(&observation))
    }

    /// Extends every lease of an agent that has a time to live. Returns how many there are.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn heartbeat_agent(&self, agent: &AgentName) -> Operation<usize> {
        let agent = agent.clone();
        self.operation(move |pool| pool.send_heartbeats(&agent))
    }

    /// Returns the whole state of the pool as text, for debugging.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn dump(&self) -> Operation<String> {
        self.operation(move |pool| pool.read_dump())
    }

    /// Deletes the pool's ledger. Processes that use the pool restore their leases. Returns whether
    /// there was such a pool.
    ///
    /// # Errors
    /// When the store cannot delete single pools, or the deletion fails.
    pub fn reset(&self) -> Operation<bool> {
        self.operation(move |pool| pool.reset_now())
    }

    /// Moves the pool to another store. It must not be in use.
    ///
    /// # Errors
    /// When pools cannot be moved to the other store, the pool does not exist or is in use, or the
    /// other store has one of that name.
    pub fn move_to(&self, to: &StoreUrl) -> Operation<()> {
        let to = to.clone();
        self.operation(move |pool| pool.move_now(&to))
    }

    /// Begins to read an answer whose body passes in chunks. `head` is its status and headers.
    #[must_use]
    pub fn read_reply(&self, head: Reply) -> StreamedReply {
        StreamedReply::new(head, self.dialect())
    }

    /// Returns an operation that may block for several steps.
    pub(crate) fn operation<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Operation<T> {
        let pool = self.clone();
        Operation::new(move || match pool.worker() {
            Ok(worker) => Plan::Block(worker, Box::new(move || run(&pool))),
            Err(error) => Plan::Ready(Err(error)),
        })
    }

    /// Returns the thread that may block on this pool. To open a pool takes a step of its own,
    /// which the store's worker takes.
    fn worker(&self) -> Result<Worker, Error> {
        if let Some((handle, client)) = self.connected() {
            return Ok(Worker::of(&handle, &client));
        }
        let handle = self.inner.tap.store_handle()?;
        Ok(Worker { thread: Arc::clone(handle.store_client().worker()), handle })
    }

    /// Returns the pool's client in this process, if the pool is open.
    fn connected(&self) -> Option<(Arc<StoreHandle>, Arc<PoolClient>)> {
        if let Some((handle, client)) = self.inner.connected.get()
            && handle.is_ours()
        {
            return Some((Arc::clone(handle), Arc::clone(client)));
        }
        let handle = self.inner.tap.store_handle().ok()?;
        let client = handle.store_client().open_client(&self.inner.name)?;
        // A child process after a fork finds its parent's client here and leaves it alone.
        let _first = self.inner.connected.set((Arc::clone(&handle), Arc::clone(&client)));
        Some((handle, client))
    }

    /// Returns whether the pool learns its limits from the provider's answers: its name begins with
    /// a known provider, and no file restricts which pools exist.
    #[must_use]
    pub fn learns(&self) -> bool {
        let known = self.dialect() != Dialect::Generic;
        known && self.inner.tap.settings().unknown_pool(&self.inner.name).is_none()
    }

    /// Returns the limits that the file gives the pool.
    pub(crate) fn own_limits(&self) -> &[Limit] {
        self.inner
            .tap
            .settings()
            .pools
            .get(&self.inner.name)
            .map_or(&[], |pool| pool.limits.as_slice())
    }

    /// Returns whether the file makes the pool lie within another one.
    pub(crate) fn has_parent(&self) -> bool {
        let settings = self.inner.tap.settings().pools.get(&self.inner.name);
        settings.is_some_and(|pool| pool.within.is_some())
    }

    /// Returns another pool of the same tap.
    pub(crate) fn sibling(&self, name: &str) -> Result<Self, Error> {
        Standpipe::of(Arc::clone(&self.inner.tap)).pool(name)
    }

    /// Returns whether a file configures the pool.
    pub(crate) fn is_declared(&self) -> bool {
        self.inner.tap.settings().pools.contains_key(&self.inner.name)
    }

    /// Returns the pool's client in this process.
    pub(crate) fn connect(&self) -> Result<(Arc<StoreHandle>, Arc<PoolClient>), Error> {
        if let Some(connected) = self.connected() {
            return Ok(connected);
        }
        let handle = self.inner.tap.store_handle()?;
        let client = handle.store_client().client(&self.inner.name)?;
        Ok((handle, client))
    }

    /// Sets what the file states for an unavailable store.
    pub(crate) fn set_fallback(&self, store_client: &Arc<StoreClient>, client: &PoolClient) {
        let settings = self.inner.tap.settings().pools.get(&self.inner.name);
        let fallback = settings.map(|pool| pool.on_store_failure);
        if client.set_fallback(fallback.unwrap_or_default()) {
            store_client.begin_sharing(client);
        }
    }

    /// Returns the dialect of its provider.
    pub(crate) fn dialect(&self) -> Dialect {
        let settings = self.inner.tap.settings().pools.get(&self.inner.name);
        dialect_of(self.inner.name.as_str(), settings.and_then(|pool| pool.provider.as_deref()))
    }

    pub(crate) fn tap(&self) -> &Arc<Tap> {
        &self.inner.tap
    }
}

/// Returns the error for a configuration that no pool can have.
pub(crate) fn invalid_config(pool: &PoolName, wrong: &InvalidConfig) -> Error {
    let limit = match wrong {
        InvalidConfig::Twice(limit) => standpipe_observe::refusal::limit_text(limit),
        _ => {
            return Error::invalid(format!("`{pool}` cannot have these limits"), wrong.to_string());
        }
    };
    Error::invalid(format!("`{pool}` is given two limits for {limit}"), "keep the stricter one")
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

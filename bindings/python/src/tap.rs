//! The tap: what `standpipe.open` returns.
//!
//! Pools are kept by name, so that a call finds its pool without a step of the store. Limits from
//! code go with the first call on their pool, and again if the ledger has lost them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use standpipe::observe::Verdict;
use standpipe::{Error, Limit, Pool, Priority, Request, Settings, Standpipe, StoreUrl};
use standpipe::{Throttle, ThrottleKind};
use standpipe_server::CallDescription;

use crate::answer;
use crate::call::Call;
use crate::clock::StoppedClock;
use crate::convert;
use crate::errors::{self, invalid, raised};
use crate::lease::{Lease, unknown_kind};
use crate::pending::{IntoPython, Pending};
use crate::request::{Caller, lease_id, request};
use crate::wait;

/// How many pools are kept by name. A program that invents names begins anew.
const MAX_POOLS: usize = 1_024;

/// The kinds of refusals.
const KINDS: [ThrottleKind; 5] = [
    ThrottleKind::Quota,
    ThrottleKind::Concurrency,
    ThrottleKind::SlowDown,
    ThrottleKind::Overload,
    ThrottleKind::Terminal,
];

/// What a process opens once to reach its pools.
#[pyclass(frozen, subclass, weakref, module = "standpipe._native")]
pub(crate) struct Tap {
    tap: Standpipe,
    context: Py<PyAny>,
    priority: Option<Priority>,
    limits: HashMap<String, Vec<Limit>>,
    pools: Mutex<HashMap<String, Arc<KnownPool>>>,
    clock: Option<StoppedClock>,
}

/// A pool, and whether its limits were sent.
struct KnownPool {
    pool: Pool,
    limits: Vec<Limit>,
    sent: AtomicBool,
}

impl KnownPool {
    /// Reserves a call. Limits from code are sent before the first one, so that its units are
    /// checked against them, and once more if the ledger has lost them.
    async fn reserve(self: Arc<Self>, request: Request) -> Result<standpipe::Lease, Error> {
        if self.limits.is_empty() {
            return self.pool.reserve(request).await;
        }
        if !self.sent.load(Ordering::Relaxed) {
            self.pool.limit(self.limits.clone()).await?;
            self.sent.store(true, Ordering::Relaxed);
        }
        match self.pool.reserve(request.clone()).await {
            Err(Error::NoLimits { .. }) => {
                self.pool.limit(self.limits.clone()).await?;
                self.pool.reserve(request).await
            }
            result => result,
        }
    }
}

impl Tap {
    fn known(&self, py: Python<'_>, name: &str) -> PyResult<Arc<KnownPool>> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pools.get(name) {
            return Ok(Arc::clone(known));
        }
        let pool = self.tap.pool(name).map_err(|error| raised(py, &error))?;
        let limits = self.limits.get(name).cloned().unwrap_or_default();
        let known = Arc::new(KnownPool { pool, limits, sent: AtomicBool::new(false) });
        if pools.len() >= MAX_POOLS {
            pools.clear();
        }
        pools.insert(name.to_owned(), Arc::clone(&known));
        Ok(known)
    }

    fn request(&self, py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Request> {
        request(&Caller { context: self.context.bind(py), priority: self.priority }, given)
    }

    /// Sends the limits from code, for calls that need them in the ledger.
    fn send_limits(&self, py: Python<'_>, known: &KnownPool) -> PyResult<()> {
        if known.limits.is_empty() || known.sent.load(Ordering::Relaxed) {
            return Ok(());
        }
        let limits = known.limits.clone();
        wait::blocking(py, || known.pool.limit(limits).blocking())?;
        known.sent.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn requests(
        &self,
        py: Python<'_>,
        calls: &Bound<'_, PyList>,
        common: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<(Pool, Request)>> {
        let mut all = Vec::with_capacity(calls.len());
        for call in calls {
            let (name, own): (String, Bound<'_, PyDict>) = call.extract()?;
            let known = self.known(py, &name)?;
            self.send_limits(py, &known)?;
            let given = match common {
                Some(common) => common.copy()?,
                None => PyDict::new(py),
            };
            given.update(own.as_mapping())?;
            all.push((known.pool.clone(), self.request(py, Some(&given))?));
        }
        Ok(all)
    }

    fn leases(&self, leases: Vec<standpipe::Lease>) -> Vec<Lease> {
        leases.into_iter().map(|lease| Lease::new(self.tap.clone(), lease)).collect()
    }
}

#[pymethods]
impl Tap {
    #[new]
    #[pyo3(signature = (
        context, *, store = None, config = None, limits = None, agent = None, home = None,
        priority = None, virtual_clock = false,
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of `open` by name")]
    fn new(
        py: Python<'_>,
        context: Py<PyAny>,
        store: Option<&str>,
        config: Option<PathBuf>,
        limits: Option<&Bound<'_, PyDict>>,
        agent: Option<String>,
        home: Option<PathBuf>,
        priority: Option<&Bound<'_, PyAny>>,
        virtual_clock: bool,
    ) -> PyResult<Self> {
        let mut builder = Standpipe::builder();
        if let Some(path) = config {
            builder = builder.config(path);
        }
        if let Some(store) = store {
            let url: StoreUrl = store.parse().map_err(|wrong: standpipe::config::TextError| {
                invalid(py, &format!("`{store}`: {}", wrong.what), &wrong.remedy)
            })?;
            builder = builder.store(url);
        }
        if let Some(agent) = agent {
            builder = builder.agent(agent);
        }
        if let Some(home) = home {
            builder = builder.home(home);
        }
        let clock = virtual_clock.then(StoppedClock::default);
        if let Some(clock) = &clock {
            builder = builder.settings(Settings::default()).on(clock.store());
        }
        let mut by_pool = HashMap::new();
        for (name, own) in limits.into_iter().flatten() {
            let name = convert::string("the name of a pool", &name)?;
            let own = own.cast::<PyDict>()?;
            by_pool.insert(name.clone(), convert::limits(&name, own)?);
        }
        let tap = wait::blocking(py, || builder.open())?;
        let priority = priority.map(convert::priority).transpose()?;
        let pools = Mutex::default();
        Ok(Self { tap, context, priority, limits: by_pool, pools, clock })
    }

    /// The agent of calls that name none.
    #[getter]
    fn agent(&self) -> &str {
        self.tap.agent()
    }

    /// Where the ledger is.
    #[getter]
    fn store(&self) -> String {
        self.tap.store_location()
    }

    /// Waits until a call is admitted and returns its `Lease`; raises an error if it is refused.
    ///
    /// Named arguments: the units it takes (`requests`, `input_tokens`, `output_tokens`, …) or
    /// `cost={...}`, `agent`, `priority`, `timeout` (300 s), `model`, `task`, `ttl`, `id`, `also`,
    /// `retry_of`, `hold`, `bytes`, `max_output_tokens`.
    ///
    /// ```python
    /// with tap.reserve("my/api", tokens=1200, timeout=30) as lease:
    ///     answer = call()
    ///     lease.commit(tokens=answer.usage)
    /// ```
    #[pyo3(signature = (pool, /, *more, **call))]
    fn reserve(
        &self,
        py: Python<'_>,
        pool: &str,
        more: &Bound<'_, PyTuple>,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Lease> {
        if !more.is_empty() {
            return Err(PyTypeError::new_err(
                "reserve takes the pool and named arguments, for example \
                 reserve(\"my/api\", tokens=1200, timeout=30)",
            ));
        }
        let request = self.request(py, call)?;
        let known = self.known(py, pool)?;
        self.send_limits(py, &known)?;
        let mut reserved = wait::for_result(py, known.pool.reserve(request))?;
        if matches!(reserved, Err(Error::NoLimits { .. })) && !known.limits.is_empty() {
            // The ledger has lost them since.
            known.sent.store(false, Ordering::Relaxed);
            self.send_limits(py, &known)?;
            reserved = wait::for_result(py, known.pool.reserve(self.request(py, call)?))?;
        }
        let lease = reserved.map_err(|error| raised(py, &error))?;
        Ok(Lease::new(self.tap.clone(), lease))
    }

    /// Begins to reserve a call in an event loop.
    #[pyo3(signature = (pool, /, **call))]
    fn begin_reserve(
        &self,
        py: Python<'_>,
        pool: &str,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let request = self.request(py, call)?;
        let (known, tap) = (self.known(py, pool)?, self.tap.clone());
        Ok(Pending::new(async move {
            let lease = known.reserve(request).await?;
            Ok::<IntoPython, Error>(Box::new(move |py| {
                Ok(Py::new(py, Lease::new(tap, lease))?.into_any())
            }))
        }))
    }

    /// Reserves several calls, all or none; `Tap.reserve_all` is the public form.
    #[pyo3(signature = (calls, /, **common))]
    fn reserve_each(
        &self,
        py: Python<'_>,
        calls: &Bound<'_, PyList>,
        common: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<Lease>> {
        let requests = self.requests(py, calls, common)?;
        let leases = wait::for_result(py, self.tap.reserve_all(requests))?;
        Ok(self.leases(leases.map_err(|error| raised(py, &error))?))
    }

    /// Begins `reserve_each` in an event loop.
    #[pyo3(signature = (calls, /, **common))]
    fn begin_reserve_each(
        &self,
        py: Python<'_>,
        calls: &Bound<'_, PyList>,
        common: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let requests = self.requests(py, calls, common)?;
        let (reserving, tap) = (self.tap.reserve_all(requests), self.tap.clone());
        Ok(Pending::new(async move {
            let leases = reserving.await?;
            Ok::<IntoPython, Error>(Box::new(move |py| {
                let leases = leases.into_iter().map(|lease| Lease::new(tap.clone(), lease));
                let list = PyList::empty(py);
                for lease in leases {
                    list.append(Py::new(py, lease)?)?;
                }
                Ok(list.unbind().into_any())
            }))
        }))
    }

    /// Returns why a call would not be admitted now; `None` if it would.
    #[pyo3(signature = (pool, /, **call))]
    fn peek_details<'py>(
        &self,
        py: Python<'py>,
        pool: &str,
        call: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let request = self.request(py, call)?;
        let known = self.known(py, pool)?;
        self.send_limits(py, &known)?;
        let verdict = wait::blocking(py, || known.pool.peek(&request).blocking())?;
        match verdict {
            Verdict::Waits(refused) | Verdict::Refused(refused) => {
                let details = errors::details(py, &refused)?;
                details.set_item("message", refused.to_string())?;
                Ok(Some(details))
            }
            _ => Ok(None),
        }
    }

    /// Returns the status of one pool, or of all, as JSON.
    #[pyo3(signature = (pool = None))]
    fn status_json(&self, py: Python<'_>, pool: Option<&str>) -> PyResult<String> {
        let json = match pool {
            Some(name) => {
                let known = self.known(py, name)?;
                self.send_limits(py, &known)?;
                let status = wait::blocking(py, || known.pool.status().blocking())?;
                serde_json::to_string(&[status])
            }
            None => {
                let all = wait::blocking(py, || {
                    let names = self.tap.pools().blocking()?;
                    let pools = names.iter().map(|name| self.tap.existing_pool(name));
                    pools.map(|pool| pool.status().blocking()).collect::<Result<Vec<_>, Error>>()
                })?;
                serde_json::to_string(&all)
            }
        };
        json.map_err(|error| invalid(py, &format!("the status cannot be shown: {error}"), ""))
    }

    /// Stops admission on a pool for a while: `tap.pause("my/api", "5min")`.
    #[pyo3(signature = (pool, length, *, agent = None))]
    fn pause(
        &self,
        py: Python<'_>,
        pool: &str,
        length: &Bound<'_, PyAny>,
        agent: Option<&str>,
    ) -> PyResult<()> {
        let agent = agent.unwrap_or_else(|| self.tap.agent());
        let length = convert::duration("the length of a pause", length)?;
        let known = self.known(py, pool)?;
        self.send_limits(py, &known)?;
        wait::blocking(py, || known.pool.pause_by(agent, length).blocking())
    }

    /// Ends a pause, or a stop by the provider: `tap.resume("my/api")`.
    fn resume(&self, py: Python<'_>, pool: &str) -> PyResult<()> {
        let known = self.known(py, pool)?;
        wait::blocking(py, || known.pool.resume().blocking())
    }

    /// Reports that the provider refused a call: `tap.throttle("my/api", retry_after=30)`.
    #[pyo3(signature = (pool, *, retry_after = None, kind = None, agent = None, lease = None))]
    fn throttle(
        &self,
        py: Python<'_>,
        pool: &str,
        retry_after: Option<&Bound<'_, PyAny>>,
        kind: Option<&str>,
        agent: Option<String>,
        lease: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut throttle = Throttle::new(throttle_kind(py, kind)?);
        if let Some(after) = retry_after {
            throttle = throttle.retry_after(convert::duration("retry_after", after)?);
        }
        if let Some(agent) = agent {
            throttle = throttle.agent(agent);
        }
        if let Some(lease) = lease {
            throttle = throttle.lease(lease_id(lease)?);
        }
        let known = self.known(py, pool)?;
        self.send_limits(py, &known)?;
        wait::blocking(py, || known.pool.throttle(&throttle).blocking())
    }

    /// Reports a provider's answer that belongs to no lease.
    #[pyo3(signature = (pool, headers, *, status = 200, body = None, agent = None))]
    fn observe_answer<'py>(
        &self,
        py: Python<'py>,
        pool: &str,
        headers: Vec<(String, String)>,
        status: u16,
        body: Option<&[u8]>,
        agent: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let known = self.known(py, pool)?;
        self.send_limits(py, &known)?;
        let reply = answer::head(status, headers);
        let reply = match body {
            Some(body) => reply.unrecorded_body(body),
            None => reply,
        };
        let (meaning, limits) =
            wait::blocking(py, || known.pool.observe_reply(&reply, agent).blocking())?;
        let all = answer::meaning(py, &meaning)?;
        all.set_item("limits", limits)?;
        Ok(all)
    }

    /// Settles a lease by its id with what the call used: `tap.commit(id, tokens=900)`.
    #[pyo3(signature = (lease, /, **used))]
    fn commit(
        &self,
        py: Python<'_>,
        lease: &Bound<'_, PyAny>,
        used: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let (id, used) = (lease_id(lease)?, convert::amounts(used)?);
        wait::blocking(py, || self.tap.lease(&id)?.commit(used).blocking())
    }

    /// Releases a lease by its id; its call was never sent: `tap.cancel(id)`.
    fn cancel(&self, py: Python<'_>, lease: &Bound<'_, PyAny>) -> PyResult<()> {
        let id = lease_id(lease)?;
        wait::blocking(py, || self.tap.lease(&id)?.cancel().blocking())
    }

    /// Extends a lease by its id; returns when it ends, as Unix time: `tap.heartbeat(id)`.
    fn heartbeat(&self, py: Python<'_>, lease: &Bound<'_, PyAny>) -> PyResult<f64> {
        let id = lease_id(lease)?;
        let until = wait::blocking(py, || self.tap.lease(&id)?.heartbeat().blocking())?;
        Ok(convert::timestamp(until))
    }

    /// Reads what an HTTP request is. `None` if it uses no quota or nothing is known of it.
    #[pyo3(signature = (method, host, path, body, provider = None))]
    fn describe(
        &self,
        method: &str,
        host: &str,
        path: &str,
        body: &[u8],
        provider: Option<&str>,
    ) -> Option<Call> {
        let settings = self.tap.settings();
        let call = CallDescription::of(settings, provider, method, host, path, body)?;
        let pool = call.pool(settings).map(|name| name.to_string());
        Some(Call::new(call, pool))
    }

    /// Returns the provider at a host: of the configuration, else a well-known one.
    fn provider_at(&self, host: &str) -> Option<String> {
        standpipe_server::provider_at(self.tap.settings(), host)
    }

    /// Sends everything that is pending.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        wait::blocking(py, || self.tap.flush().blocking())?;
        py.detach(|| self.tap.flush_journal());
        Ok(())
    }

    /// Moves the clock of a tap that was opened with a virtual one.
    fn advance_clock(&self, py: Python<'_>, length: &Bound<'_, PyAny>) -> PyResult<()> {
        let length = convert::duration("the time to advance", length)?;
        self.stopped_clock(py)?.advance(length);
        Ok(())
    }

    /// Returns how far the virtual clock was moved, in seconds.
    fn virtual_time(&self, py: Python<'_>) -> PyResult<f64> {
        self.stopped_clock(py).map(|clock| clock.elapsed().as_secs_f64())
    }
}

impl Tap {
    fn stopped_clock(&self, py: Python<'_>) -> PyResult<&StoppedClock> {
        let remedy = "use the fixture `standpipe_tap`";
        self.clock.as_ref().ok_or_else(|| invalid(py, "this tap has no virtual clock", remedy))
    }
}

/// Returns a kind of refusal by its name; `quota` if none is stated.
pub(crate) fn throttle_kind(py: Python<'_>, kind: Option<&str>) -> PyResult<ThrottleKind> {
    let Some(name) = kind else { return Ok(ThrottleKind::Quota) };
    let known = KINDS.map(ThrottleKind::as_str).join(", ");
    let found = KINDS.into_iter().find(|kind| kind.as_str() == name);
    found.ok_or_else(|| unknown_kind(py, name, &known))
}

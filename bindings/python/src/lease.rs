//! Leases as Python holds them.
//!
//! A lease is settled once: by a method, by leaving its `with` block, or by being collected. What
//! it was stays readable afterwards.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use standpipe::{Amounts, Error, LeaseId, Meaning, Operation, Standpipe, Throttle, Zone};

use crate::answer::{self, Answer};
use crate::convert;
use crate::errors::{self, invalid};
use crate::pending::{IntoPython, Pending};
use crate::wait;

/// The permission for one call.
#[pyclass(frozen, weakref, module = "standpipe")]
pub(crate) struct Lease {
    tap: Standpipe,
    id: LeaseId,
    agent: String,
    cost: Amounts,
    zone: Zone,
    waited: Duration,
    expires_at: f64,
    state: Mutex<State>,
}

/// How a lease ended that an HTTP client settled.
const BY_ANSWER: &str = "settled by the answer of its call";

enum State {
    Held(Box<standpipe::Lease>),
    /// How it ended.
    Ended(&'static str),
}

impl Lease {
    pub(crate) fn new(tap: Standpipe, lease: standpipe::Lease) -> Self {
        Self {
            id: lease.id().clone(),
            agent: lease.agent().to_owned(),
            cost: lease.cost().clone(),
            zone: lease.zone(),
            waited: lease.waited(),
            expires_at: convert::timestamp(lease.expires_at()),
            state: Mutex::new(State::Held(Box::new(lease))),
            tap,
        }
    }

    pub(crate) const fn lease_id(&self) -> &LeaseId {
        &self.id
    }

    /// Ignores poisoning: the state changes in one statement.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lease, to end it this way.
    fn take(&self, py: Python<'_>, how: &'static str) -> PyResult<standpipe::Lease> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Ended(how)) {
            State::Held(lease) => Ok(*lease),
            State::Ended(before) => {
                *state = State::Ended(before);
                drop(state);
                Err(self.ended(py, before))
            }
        }
    }

    fn ended(&self, py: Python<'_>, how: &str) -> PyErr {
        let id = self.id.to_string();
        let remedy = match how {
            BY_ANSWER => "leave it to the HTTP client, or reserve again for another call",
            _ => "reserve again for another call",
        };
        let pool = self.id.pool();
        let message = format!(
            "this lease on `{pool}` was {how} before, and a lease is settled once; {remedy}"
        );
        errors::gone(py, &id, &message)
    }

    /// Checks that the lease can still be used.
    fn check_held(&self, py: Python<'_>) -> PyResult<()> {
        let how = match &*self.lock() {
            State::Held(_) => return Ok(()),
            State::Ended(how) => *how,
        };
        Err(self.ended(py, how))
    }

    fn operate<T: Send + 'static>(
        &self,
        py: Python<'_>,
        begin: impl FnOnce(&standpipe::Lease) -> Operation<T>,
    ) -> PyResult<Operation<T>> {
        self.check_held(py)?;
        match &*self.lock() {
            State::Held(lease) => Ok(begin(lease)),
            State::Ended(how) => Err(self.ended(py, how)),
        }
    }
}

/// Runs an operation of the library in an event loop: returns a coroutine.
fn awaited<T: Send + 'static>(
    py: Python<'_>,
    operation: Operation<T>,
    convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    drive(py, async move {
        let value = operation.await?;
        Ok::<IntoPython, Error>(Box::new(move |py| convert(py, value)))
    })
}

/// Returns the coroutine of a future.
fn drive(
    py: Python<'_>,
    future: impl Future<Output = Result<IntoPython, Error>> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    static DRIVE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let drive = DRIVE.import(py, "standpipe._loop", "drive")?;
    drive.call1((Pending::new(future),)).map(Bound::unbind)
}

/// Ends a lease at its estimate. What goes wrong is not the caller's concern: the lease has ended,
/// or the settlement is sent with the next step.
fn settle_quietly(py: Python<'_>, lease: standpipe::Lease) {
    let _sent_later = py.detach(|| lease.commit([]).blocking());
}

fn throttle(
    kind: Option<&str>,
    retry_after: Option<&Bound<'_, PyAny>>,
    py: Python<'_>,
) -> PyResult<Throttle> {
    let kind = crate::tap::throttle_kind(py, kind)?;
    let throttle = Throttle::new(kind);
    Ok(match retry_after {
        Some(after) => throttle.retry_after(convert::duration("retry_after", after)?),
        None => throttle,
    })
}

#[pymethods]
impl Lease {
    /// Its id, for other processes and the command line.
    #[getter]
    fn id(&self) -> String {
        self.id.to_string()
    }

    /// The pool.
    #[getter]
    fn pool(&self) -> &str {
        self.id.pool().as_str()
    }

    /// Whose call it is.
    #[getter]
    fn agent(&self) -> &str {
        &self.agent
    }

    /// What the call reserved, by unit.
    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        convert::dict(py, &self.cost)
    }

    /// How much is left of the limits: `green`, `amber` or `red`.
    #[getter]
    const fn zone(&self) -> &'static str {
        self.zone.as_str()
    }

    /// How long the call waited, in seconds.
    #[getter]
    fn waited(&self) -> f64 {
        self.waited.as_secs_f64()
    }

    /// When it ends unless it is extended, as Unix time.
    #[getter]
    const fn expires_at(&self) -> f64 {
        self.expires_at
    }

    /// Whether it has ended.
    #[getter]
    fn is_settled(&self) -> bool {
        matches!(&*self.lock(), State::Ended(_))
    }

    /// Settles the lease with what the call used: `lease.commit(tokens=900)`. A unit that is not
    /// named counts its estimate.
    #[pyo3(signature = (**used))]
    fn commit(&self, py: Python<'_>, used: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let used = convert::amounts(used)?;
        let lease = self.take(py, "committed")?;
        wait::blocking(py, || lease.commit(used).blocking())
    }

    /// `commit` as a coroutine: `await lease.acommit(tokens=900)`.
    #[pyo3(signature = (**used))]
    fn acommit(&self, py: Python<'_>, used: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let used = convert::amounts(used)?;
        let lease = self.take(py, "committed")?;
        awaited(py, lease.commit(used), |py, ()| Ok(py.None()))
    }

    /// Settles the lease at its estimate: `lease.release()`.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.commit(py, None)
    }

    /// Releases the lease; its call was never sent: `lease.cancel()`.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let lease = self.take(py, "cancelled")?;
        wait::blocking(py, || lease.cancel().blocking())
    }

    /// `cancel` as a coroutine: `await lease.acancel()`.
    fn acancel(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let lease = self.take(py, "cancelled")?;
        awaited(py, lease.cancel(), |py, ()| Ok(py.None()))
    }

    /// Settles the lease as refused by the provider, which pauses the pool for every caller:
    /// `lease.throttled(retry_after=30)`.
    #[pyo3(signature = (*, retry_after = None, kind = None))]
    fn throttled(
        &self,
        py: Python<'_>,
        retry_after: Option<&Bound<'_, PyAny>>,
        kind: Option<&str>,
    ) -> PyResult<()> {
        let throttle = throttle(kind, retry_after, py)?;
        let lease = self.take(py, "reported as throttled")?;
        wait::blocking(py, || lease.throttled(throttle).blocking())
    }

    /// Reports what a running call used so far and extends the lease: `lease.progress(tokens=40)`.
    #[pyo3(signature = (**used))]
    fn progress(&self, py: Python<'_>, used: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let used = convert::amounts(used)?;
        let operation = self.operate(py, |lease| lease.progress(used))?;
        wait::blocking(py, || operation.blocking())
    }

    /// `progress` as a coroutine: `await lease.aprogress(tokens=400)`.
    #[pyo3(signature = (**used))]
    fn aprogress(&self, py: Python<'_>, used: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let used = convert::amounts(used)?;
        let operation = self.operate(py, |lease| lease.progress(used))?;
        awaited(py, operation, |py, ()| Ok(py.None()))
    }

    /// Extends the lease; returns when it ends, as Unix time: `lease.heartbeat()`.
    fn heartbeat(&self, py: Python<'_>) -> PyResult<f64> {
        self.check_held(py)?;
        let (tap, id) = (self.tap.clone(), self.id.clone());
        wait::blocking(py, || tap.lease(&id)?.heartbeat().blocking()).map(convert::timestamp)
    }

    /// Detaches the lease from this process for so long, and returns its id.
    fn keep(&self, py: Python<'_>, ttl: &Bound<'_, PyAny>) -> PyResult<String> {
        let ttl = convert::duration("ttl", ttl)?;
        let lease = self.take(py, "handed over")?;
        wait::blocking(py, || lease.keep(ttl).blocking()).map(|id| id.to_string())
    }

    /// Begins to read the answer of the call.
    fn read(
        &self,
        py: Python<'_>,
        status: u16,
        headers: Vec<(String, String)>,
    ) -> PyResult<Answer> {
        let pool = self.tap.pool(self.id.pool().as_str());
        let pool = pool.map_err(|error| errors::raised(py, &error))?;
        Ok(Answer::new(pool.read_reply(answer::head(status, headers))))
    }

    /// Settles the lease by the answer of the call.
    #[pyo3(signature = (answer, *, whole = true))]
    fn answered<'py>(
        &self,
        py: Python<'py>,
        answer: &Answer,
        whole: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let reply = answer.end(py, whole)?;
        let lease = self.take(py, BY_ANSWER)?;
        let meaning = wait::blocking(py, || lease.answered(reply).blocking())?;
        answer::meaning(py, &meaning)
    }

    /// `answered` as a coroutine.
    #[pyo3(signature = (answer, *, whole = true))]
    fn aanswered(&self, py: Python<'_>, answer: &Answer, whole: bool) -> PyResult<Py<PyAny>> {
        let reply = answer.end(py, whole)?;
        let lease = self.take(py, BY_ANSWER)?;
        awaited(py, lease.answered(reply), |py, meaning: Meaning| {
            Ok(answer::meaning(py, &meaning)?.unbind().into_any())
        })
    }

    /// Settles the lease by an answer whose body is here: `(status, headers, body)`.
    fn settle_by<'py>(
        &self,
        py: Python<'py>,
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let lease = self.take(py, BY_ANSWER)?;
        let reply = answer::head(status, headers).body(body);
        let meaning = wait::blocking(py, || lease.answered(reply).blocking())?;
        answer::meaning(py, &meaning)
    }

    /// `settle_by` as a coroutine.
    fn asettle_by(
        &self,
        py: Python<'_>,
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> PyResult<Py<PyAny>> {
        let lease = self.take(py, BY_ANSWER)?;
        let reply = answer::head(status, headers).body(body);
        awaited(py, lease.answered(reply), |py, meaning: Meaning| {
            Ok(answer::meaning(py, &meaning)?.unbind().into_any())
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().check_held(slf.py())?;
        Ok(slf)
    }

    #[pyo3(signature = (_kind = None, _error = None, _traceback = None, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> bool {
        if let Ok(lease) = self.take(py, "settled when its `with` block ended") {
            settle_quietly(py, lease);
        }
        false
    }

    /// Ends the lease at its estimate, as a coroutine.
    fn aclose(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let lease = self.take(py, "settled when its `with` block ended").ok();
        drive(py, async move {
            if let Some(lease) = lease {
                // As in `settle_quietly`.
                let _sent_later = lease.commit([]).await;
            }
            Ok::<IntoPython, Error>(Box::new(|py| Ok(py.None())))
        })
    }

    fn __aenter__(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        slf.get().check_held(py)?;
        let lease = slf.unbind();
        drive(py, async move { Ok::<IntoPython, Error>(Box::new(move |_| Ok(lease.into_any()))) })
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        self.aclose(py)
    }

    fn __reduce_ex__(&self, _protocol: u8) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a lease cannot be pickled or copied: it belongs to this process; pass lease.id, or \
             hand it over with lease.keep(ttl=…) and settle it by its id",
        ))
    }

    fn __repr__(&self) -> String {
        let state = match &*self.lock() {
            State::Held(_) => "held",
            State::Ended(how) => *how,
        };
        format!("<Lease {} of {} on {}: {state}>", self.id, self.agent, self.id.pool())
    }
}

/// Returns the exception for a value that is no kind of refusal.
pub(crate) fn unknown_kind(py: Python<'_>, kind: &str, known: &str) -> PyErr {
    let what = format!("there is no kind of refusal `{}`", convert::shown(kind));
    invalid(py, &what, &format!("use one of {known}"))
}

//! Waiting in an event loop, without a thread.
//!
//! A [`Pending`] is a future of the library that the loop's own thread polls. Its waker puts a
//! number into the [`Reactor`] of the loop and writes a byte to a pipe that the loop watches. It
//! never takes the GIL, so any thread of the library may call it while it holds a lock.

use std::future::Future;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use rustix::pipe::{PipeFlags, pipe_with};
use standpipe::Error;

use crate::errors::raised;

/// Turns a result into a Python object.
pub(crate) type IntoPython = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
type Boxed = Pin<Box<dyn Future<Output = Result<IntoPython, Error>> + Send>>;

/// A call of the library that an event loop waits for.
#[pyclass(frozen, module = "standpipe._native")]
pub(crate) struct Pending {
    future: Mutex<Option<Boxed>>,
}

/// What one event loop watches.
#[pyclass(frozen, module = "standpipe._native")]
pub(crate) struct Reactor {
    shared: Arc<Shared>,
    last: AtomicU64,
}

struct Shared {
    ready: Mutex<Vec<u64>>,
    signalled: AtomicBool,
    read: OwnedFd,
    write: OwnedFd,
}

struct Waiter {
    shared: Arc<Shared>,
    number: u64,
}

impl Pending {
    pub(crate) fn new(
        future: impl Future<Output = Result<IntoPython, Error>> + Send + 'static,
    ) -> Self {
        Self { future: Mutex::new(Some(Box::pin(future))) }
    }

    /// Ignores poisoning: the future is either there or not.
    fn lock(&self) -> MutexGuard<'_, Option<Boxed>> {
        self.future.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Pending {
    /// Polls the future. Returns `None` while it is pending, else a tuple with the result.
    fn poll(
        &self,
        py: Python<'_>,
        reactor: &Reactor,
        number: u64,
    ) -> PyResult<Option<(Py<PyAny>,)>> {
        let shared = Arc::clone(&reactor.shared);
        let polled = py.detach(|| {
            let mut slot = self.lock();
            let future = slot.as_mut()?;
            let waker = Waker::from(Arc::new(Waiter { shared, number }));
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                *slot = None;
            }
            Some(polled)
        });
        match polled {
            None => Err(PyRuntimeError::new_err("this call already has its result; call it again")),
            Some(Poll::Pending) => Ok(None),
            Some(Poll::Ready(Ok(value))) => Ok(Some((value(py)?,))),
            Some(Poll::Ready(Err(error))) => Err(raised(py, &error)),
        }
    }

    /// Drops the future: a call that waits leaves neither a ticket nor a lease.
    fn drop(&self, py: Python<'_>) {
        py.detach(|| drop(self.lock().take()));
    }
}

#[pymethods]
impl Reactor {
    #[new]
    fn new() -> PyResult<Self> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (read, write) = pipe_with(flags)
            .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string())))?;
        let (ready, signalled) = (Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { ready, signalled, read, write });
        Ok(Self { shared, last: AtomicU64::new(0) })
    }

    /// Returns the descriptor that becomes readable when a call should be polled.
    fn fileno(&self) -> i32 {
        self.shared.read.as_raw_fd()
    }

    /// Returns a number for a call.
    fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the numbers of the calls that should be polled.
    fn drain(&self) -> Vec<u64> {
        let mut bytes = [0_u8; 64];
        // Empty or readable: what counts is the list.
        let _read = rustix::io::read(&self.shared.read, &mut bytes);
        // Cleared before the list is taken: a number that comes later writes again.
        self.shared.signalled.store(false, Ordering::SeqCst);
        let mut ready = self.shared.ready.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *ready)
    }
}

impl Wake for Waiter {
    fn wake(self: Arc<Self>) {
        let shared = &self.shared;
        shared.ready.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
        if !shared.signalled.swap(true, Ordering::SeqCst) {
            // A full pipe is readable already.
            let _written = rustix::io::write(&shared.write, &[1]);
        }
    }
}

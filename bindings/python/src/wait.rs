//! Waiting on a thread of Python, with the GIL released.
//!
//! Only the main thread runs signal handlers. It therefore looks for signals while it waits, so
//! that Ctrl-C ends a wait at once; the future is then dropped and leaves nothing behind.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use pyo3::prelude::*;
use standpipe::Error;

use crate::errors::raised;

/// How often the main thread looks for signals while it waits.
const SIGNALS: Duration = Duration::from_millis(50);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future. The outer error is that of a signal handler.
pub(crate) fn for_result<T, F>(py: Python<'_>, future: F) -> PyResult<Result<T, Error>>
where
    T: Send,
    F: Future<Output = Result<T, Error>> + Send,
{
    let mut future = pin!(future);
    // Most calls are admitted at once and need no waker.
    let first = py.detach(|| future.as_mut().poll(&mut Context::from_waker(Waker::noop())));
    if let Poll::Ready(result) = first {
        return Ok(result);
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let is_main = is_main_thread();
    loop {
        let polled = py.detach(|| {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_pending() {
                if is_main { thread::park_timeout(SIGNALS) } else { thread::park() }
            }
            polled
        });
        if let Poll::Ready(result) = polled {
            return Ok(result);
        }
        if is_main {
            py.check_signals()?;
        }
    }
}

/// Carries out a short operation of the library on this thread.
pub(crate) fn blocking<T, F>(py: Python<'_>, run: F) -> PyResult<T>
where
    T: Send,
    F: FnOnce() -> Result<T, Error> + Send,
{
    py.detach(run).map_err(|error| raised(py, &error))
}

/// Whether this thread runs Python's signal handlers. Where that is not known, it may.
fn is_main_thread() -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::thread::gettid() == rustix::process::getpid()
    }
    #[cfg(not(target_os = "linux"))]
    {
        true
    }
}

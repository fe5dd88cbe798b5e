//! What an HTTP request to a provider is: its pool, its size, and whether it is counted at all.

use std::sync::Mutex;

use pyo3::prelude::*;
use standpipe::Request;
use standpipe_server::{CallDescription, UsageHider};

/// A call to a provider, before it is made.
#[pyclass(frozen, module = "standpipe._native")]
pub(crate) struct Call {
    description: CallDescription,
    pool: Option<String>,
}

/// Hides the usage of a stream from a client that did not ask for it.
#[pyclass(frozen, module = "standpipe._native")]
#[derive(Default)]
pub(crate) struct StreamFilter(Mutex<UsageHider>);

impl Call {
    pub(crate) const fn new(description: CallDescription, pool: Option<String>) -> Self {
        Self { description, pool }
    }

    /// Adds to a request what the call states about its size and model.
    pub(crate) fn complete(&self, request: Request) -> Request {
        self.description.complete(request)
    }
}

#[pymethods]
impl Call {
    /// The pool that the call draws on.
    #[getter]
    fn pool(&self) -> Option<&str> {
        self.pool.as_deref()
    }

    /// Returns the body with a request for the usage of a stream, if the provider needs it.
    fn body_with_usage(&self, body: &[u8]) -> Option<Vec<u8>> {
        self.description.body_with_usage(body)
    }

    /// Returns the body of a refusal in the provider's own format.
    fn refusal(&self, status: u16, message: &str) -> Option<String> {
        self.description.refusal(status, message)
    }
}

#[pymethods]
impl StreamFilter {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Returns what of the next bytes the client gets.
    fn pass_on(&self, bytes: &[u8]) -> Vec<u8> {
        self.0.lock().map_or_else(|_| bytes.to_vec(), |mut hider| hider.pass(bytes))
    }

    /// Returns what is left at the end of the stream.
    fn finish(&self) -> Vec<u8> {
        let hider = self.0.lock().map(|mut hider| std::mem::take(&mut *hider));
        hider.map_or_else(|_| Vec::new(), UsageHider::finish)
    }
}

//! Errors of the library as Python exceptions.
//!
//! The classes are plain Python (`_errors.py`), so that they can be pickled and subclassed.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use standpipe::{Error, Reason, Refused};

use crate::convert;

/// Makes the exception of a kind: `make(kind, message, details)`.
fn make(py: Python<'_>, kind: &str, message: &str, details: Option<Bound<'_, PyDict>>) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = MAKE
        .import(py, "standpipe._errors", "make")
        .and_then(|make| make.call1((kind, message, details)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Returns the exception of an error of the library.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Refused(refused) => refusal(py, refused),
        Error::LeaseGone { lease } => gone(py, &lease.to_string(), &message),
        Error::NoLimits { .. } | Error::Config(_) => make(py, "config", &message, None),
        Error::Store(_) => make(py, "store", &message, None),
        _ => make(py, "invalid", &message, None),
    }
}

/// Returns the exception of an argument that cannot be used.
pub(crate) fn invalid(py: Python<'_>, what: &str, remedy: &str) -> PyErr {
    make(py, "invalid", &format!("{what}; {remedy}"), None)
}

/// Returns the exception of a lease that has ended.
pub(crate) fn gone(py: Python<'_>, lease: &str, message: &str) -> PyErr {
    let details = PyDict::new(py);
    match details.set_item("lease", lease) {
        Ok(()) => make(py, "gone", message, Some(details)),
        Err(error) => error,
    }
}

/// Returns the exception of a refusal.
pub(crate) fn refusal(py: Python<'_>, refused: &Refused) -> PyErr {
    let kind = match refused.reason {
        Reason::Never => "never",
        Reason::Terminal => "terminal",
        Reason::QueueFull => "queue_full",
        _ => "timeout",
    };
    match details(py, refused) {
        Ok(details) => make(py, kind, &refused.to_string(), Some(details)),
        Err(error) => error,
    }
}

/// Returns the attributes of a refusal.
pub(crate) fn details<'py>(py: Python<'py>, refused: &Refused) -> PyResult<Bound<'py, PyDict>> {
    let details = PyDict::new(py);
    details.set_item("pool", refused.pool.as_str())?;
    details.set_item("reason", refused.reason.as_str())?;
    details.set_item("waited_for", refused.waited_for.map(Reason::as_str))?;
    details.set_item("limit", refused.limit.as_deref())?;
    details.set_item("short_by", refused.short_by)?;
    details.set_item("until", refused.until.map(convert::timestamp))?;
    details.set_item("exact", refused.exact)?;
    details.set_item("retry_after", refused.retry_after.map(|after| after.as_secs_f64()))?;
    details.set_item("waiting_for", refused.waiting_for())?;
    details.set_item("position", refused.position)?;
    details.set_item("waited", refused.waited.as_secs_f64())?;
    Ok(details)
}

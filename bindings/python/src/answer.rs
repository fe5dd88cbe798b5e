//! A provider's answer that is read while its body passes.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use standpipe::{Meaning, Reply, StreamedReply};

use crate::errors::invalid;

/// An answer whose body passes in chunks.
#[pyclass(frozen, module = "standpipe._native")]
pub(crate) struct Answer {
    reply: Mutex<Option<StreamedReply>>,
}

impl Answer {
    pub(crate) const fn new(reply: StreamedReply) -> Self {
        Self { reply: Mutex::new(Some(reply)) }
    }

    /// Ends the answer. `whole` is whether its body arrived to the end.
    pub(crate) fn end(&self, py: Python<'_>, whole: bool) -> PyResult<Reply> {
        let taken = self.reply.lock().ok().and_then(|mut reply| reply.take());
        let Some(reply) = taken else {
            return Err(invalid(py, "this answer was used already", "read the next one"));
        };
        Ok(if whole || reply.is_finished() { reply.end() } else { reply.cut() })
    }
}

#[pymethods]
impl Answer {
    /// Reads the next bytes of the body. They are not kept.
    fn feed(&self, bytes: &[u8]) {
        if let Ok(mut reply) = self.reply.lock()
            && let Some(reply) = reply.as_mut()
        {
            reply.feed(bytes);
        }
    }

    /// The input of the call once the answer has stated it, long before its end.
    #[getter]
    fn known_input(&self) -> Option<u64> {
        let reply = self.reply.lock().ok()?;
        let reply = reply.as_ref().filter(|reply| !reply.is_finished())?;
        reply.known_input()
    }
}

/// Returns the head of an answer.
pub(crate) fn head(status: u16, headers: Vec<(String, String)>) -> Reply {
    let reply = Reply::new(status);
    headers.into_iter().fold(reply, |reply, (name, value)| reply.header(name, value))
}

/// Returns what an answer meant, as a dict.
pub(crate) fn meaning<'py>(py: Python<'py>, meaning: &Meaning) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    match meaning {
        Meaning::Served => all.set_item("meaning", "served")?,
        Meaning::Refused { kind, retry_after, message } => {
            all.set_item("meaning", "refused")?;
            all.set_item("kind", kind.as_str())?;
            all.set_item("retry_after", retry_after.map(|after| after.as_secs_f64()))?;
            all.set_item("message", message)?;
        }
        Meaning::Failed { transient } => {
            all.set_item("meaning", "failed")?;
            all.set_item("transient", transient)?;
        }
        _ => all.set_item("meaning", "unknown")?,
    }
    Ok(all)
}

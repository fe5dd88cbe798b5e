//! The arguments of `reserve`, `areserve` and `peek` as a request of the library.
//!
//! What is not one of the named arguments is an amount of a unit: `input_tokens=1200`.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use standpipe::{LeaseId, Priority, Request, Unit};

use crate::call::Call;
use crate::convert;
use crate::errors::invalid;
use crate::lease::Lease;

/// Who asks, where the arguments do not state it.
pub(crate) struct Caller<'a, 'py> {
    /// The context variable that `standpipe.agent` sets.
    pub(crate) context: &'a Bound<'py, PyAny>,
    /// The priority of the environment.
    pub(crate) priority: Option<Priority>,
}

/// Returns the request of these arguments.
pub(crate) fn request(
    caller: &Caller<'_, '_>,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<Request> {
    let mut builder = Arguments { request: Request::new(), has_agent: false, priority: None };
    if let Some(given) = given {
        for (name, value) in given {
            let name = name.cast::<PyString>()?;
            builder.add(&name.to_cow()?, &value)?;
        }
    }
    builder.finish(caller)
}

struct Arguments {
    request: Request,
    has_agent: bool,
    priority: Option<Priority>,
}

impl Arguments {
    /// Adds an argument. `None` is the same as no argument.
    fn add(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if name == "timeout" {
            let none = value.is_none();
            let timeout = if none { convert::LONGEST } else { convert::duration(name, value)? };
            return self.change(|request| request.timeout(timeout));
        }
        if value.is_none() {
            return Ok(());
        }
        match name {
            "agent" => self.by(convert::string(name, value)?),
            "priority" => {
                self.priority = Some(convert::priority(value)?);
                Ok(())
            }
            "cost" => {
                let Ok(cost) = value.cast::<PyDict>() else {
                    let kind = value.get_type().name()?;
                    let what = format!("cost must be a dict of amounts by unit, not {kind}");
                    return Err(PyTypeError::new_err(what));
                };
                for (unit, amount) in convert::amounts(Some(cost))? {
                    self.change(|request| request.unit(unit.name(), amount))?;
                }
                Ok(())
            }
            "ttl" => {
                let ttl = convert::duration(name, value)?;
                self.change(|request| request.ttl(ttl))
            }
            "hold" => {
                let hold = convert::duration(name, value)?;
                self.change(|request| request.hold(hold))
            }
            "id" | "model" | "task" => self.label(name, convert::string(name, value)?),
            "retry_of" => {
                let lease = lease_id(value)?;
                self.change(|request| request.retry_of(lease))
            }
            "also" => self.also(value),
            "bytes" | "max_output_tokens" => self.size(name, value),
            "call" => {
                let call = value.cast::<Call>()?;
                self.change(|request| call.get().complete(request))
            }
            _ => {
                let unit = convert::unit(&PyString::new(value.py(), name))?;
                let amount = convert::amount(&unit, value)?;
                self.change(|request| request.unit(unit.name(), amount))
            }
        }
    }

    fn change(&mut self, change: impl FnOnce(Request) -> Request) -> PyResult<()> {
        self.request = change(std::mem::take(&mut self.request));
        Ok(())
    }

    fn by(&mut self, agent: String) -> PyResult<()> {
        self.has_agent = true;
        self.change(|request| request.agent(agent))
    }

    fn label(&mut self, name: &str, text: String) -> PyResult<()> {
        self.change(|request| match name {
            "id" => request.id(text),
            "model" => request.model(text),
            _ => request.task(text),
        })
    }

    fn also(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if value.is_instance_of::<PyString>() {
            let pool = convert::string("also", value)?;
            return self.change(|request| request.also(pool));
        }
        for pool in value.try_iter()? {
            let pool = convert::string("also", &pool?)?;
            self.change(|request| request.also(pool))?;
        }
        Ok(())
    }

    fn size(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        // Both are counts, with the rules of any unit.
        let unit = Unit::named(name).unwrap_or(Unit::Tokens);
        let amount = convert::amount(&unit, value)?;
        self.change(|request| match name {
            "bytes" => request.bytes(amount),
            _ => request.max_output_tokens(amount),
        })
    }

    fn finish(mut self, caller: &Caller<'_, '_>) -> PyResult<Request> {
        let mut priority = self.priority;
        if !self.has_agent || priority.is_none() {
            let current = caller.context.call_method0(intern!(caller.context.py(), "get"))?;
            // Most calls are made outside of `with standpipe.agent(…)`.
            if !current.is_none() {
                let (agent, stated): (Option<String>, Option<Bound<'_, PyAny>>) =
                    current.extract()?;
                if let Some(agent) = agent.filter(|_| !self.has_agent) {
                    self.by(agent)?;
                }
                if priority.is_none() {
                    priority = stated.as_ref().map(convert::priority).transpose()?;
                }
            }
        }
        match priority.or(caller.priority) {
            Some(priority) => Ok(self.request.priority(priority)),
            None => Ok(self.request),
        }
    }
}

/// Returns the id of a lease: a text, or a lease itself.
pub(crate) fn lease_id(value: &Bound<'_, PyAny>) -> PyResult<LeaseId> {
    if let Ok(lease) = value.cast::<Lease>() {
        return Ok(lease.get().lease_id().clone());
    }
    let text = convert::string("a lease", value)?;
    text.parse().map_err(|_| {
        let what = format!("`{}` is not the id of a lease", convert::shown(&text));
        invalid(value.py(), &what, "use lease.id, or what `standpipe reserve` printed")
    })
}

//! Python values as those of the library, and back.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};
use standpipe::config::text;
use standpipe::{Amounts, Limit, Priority, Unit};

use crate::errors::invalid;

/// The longest wait: a year.
pub(crate) const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// Returns a length of time: seconds as a number, a `timedelta`, or a text such as `"30s"`.
pub(crate) fn duration(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let py = value.py();
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_cow()?;
        let span = text::duration(&text)
            .map_err(|wrong| invalid(py, &format!("{name}: {}", wrong.what), &wrong.remedy))?;
        return Ok(Duration::from_micros(span.0));
    }
    let seconds = match value.cast::<PyBool>() {
        Ok(_) => None,
        Err(_) => value.extract::<f64>().ok().or_else(|| {
            value.call_method0("total_seconds").and_then(|seconds| seconds.extract()).ok()
        }),
    };
    let Some(seconds) = seconds else {
        let kind = value.get_type().name()?;
        let what = format!("{name} must be seconds as a number, or a timedelta, not {kind}");
        return Err(PyTypeError::new_err(what));
    };
    if seconds.is_nan() || seconds < 0.0 {
        return Err(invalid(py, &format!("{name} is {seconds}"), "use 0 or more seconds"));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST))
}

/// Returns an amount of a unit: a whole number, for `usd` also a decimal one.
pub(crate) fn amount(unit: &Unit, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let (py, name) = (value.py(), unit.name());
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() && *unit != Unit::Usd {
        return value.extract::<u64>().map_err(|_| {
            let what = format!("{name} is {value}");
            invalid(py, &what, "use a whole number from 0 to 2**53")
        });
    }
    let is_number = value.extract::<f64>().is_ok() && !value.is_instance_of::<PyBool>();
    if *unit == Unit::Usd && is_number {
        let text = value.str()?;
        return text::amount_of(unit, &text.to_cow()?)
            .map_err(|wrong| invalid(py, &format!("usd: {}", wrong.what), &wrong.remedy));
    }
    let kind = value.get_type().name()?;
    // Any name that is no argument is a unit, so this may be a misspelt argument.
    let hint = match unit {
        Unit::Other(_) => format!("; is `{name}` the name of a unit?"),
        _ => String::new(),
    };
    Err(PyTypeError::new_err(format!("{name} must be a whole number, not {kind}{hint}")))
}

/// Returns amounts by unit.
pub(crate) fn amounts(given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(Unit, u64)>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let mut all = Vec::with_capacity(given.len());
    for (name, value) in given {
        let is_table = |name: Cow<'_, str>| name == "cost" || name == "used";
        if name.extract::<Cow<'_, str>>().is_ok_and(is_table)
            && let Ok(inner) = value.cast::<PyDict>()
        {
            all.extend(amounts(Some(inner))?);
            continue;
        }
        let unit = unit(&name)?;
        let amount = amount(&unit, &value)?;
        all.push((unit, amount));
    }
    Ok(all)
}

/// Returns a unit by its name.
pub(crate) fn unit(name: &Bound<'_, PyAny>) -> PyResult<Unit> {
    let text = string("the name of a unit", name)?;
    Unit::named(&text).ok_or_else(|| {
        let what = format!("`{}` cannot be the name of a unit", shown(&text));
        invalid(name.py(), &what, "use a small letter and then up to 31 of a-z 0-9 _")
    })
}

/// Returns a text.
pub(crate) fn string(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_cow()?.into_owned()),
        Err(_) => {
            let kind = value.get_type().name()?;
            Err(PyTypeError::new_err(format!("{name} must be a str, not {kind}")))
        }
    }
}

/// Returns a priority by its name.
pub(crate) fn priority(value: &Bound<'_, PyAny>) -> PyResult<Priority> {
    let name = string("priority", value)?;
    let mut known = Priority::ALL.into_iter();
    known.find(|priority| priority.as_str() == name).ok_or_else(|| {
        let what = format!("there is no priority `{}`", shown(&name));
        invalid(value.py(), &what, "use critical, standard or background")
    })
}

/// Returns the limits of a pool: `{"parallel": 5, "requests": ["80/min", "500/h"]}`.
pub(crate) fn limits(pool: &str, given: &Bound<'_, PyDict>) -> PyResult<Vec<Limit>> {
    let py = given.py();
    let mut all = Vec::new();
    for (name, value) in given {
        let name = string("the name of a limit", &name)?;
        if let Some(meant) = misspelt(&name) {
            let what = format!("`{pool}`: there is no unit `{name}`");
            return Err(invalid(py, &what, &format!("did you mean `{meant}`?")));
        }
        let values = match value.extract::<Vec<Bound<'_, PyAny>>>() {
            Ok(values) if !value.is_instance_of::<PyString>() => values,
            _ => vec![value],
        };
        for value in values {
            if value.is_instance_of::<PyBool>() || value.is_none() {
                return Err(PyTypeError::new_err(format!(
                    "the limit `{name}` of `{pool}` must be a rate such as \"60/min\", or a number"
                )));
            }
            let stated = format!("{name}={}", value.str()?.to_cow()?);
            all.push(text::limit(&stated).map_err(|wrong| {
                invalid(py, &format!("`{pool}`: {}", wrong.what), &wrong.remedy)
            })?);
        }
    }
    if all.is_empty() {
        let what = format!("`{pool}` is given no limit");
        return Err(invalid(py, &what, "give it at least one, for example {\"parallel\": 5}"));
    }
    Ok(all)
}

/// Returns the unit of this crate that a name is one letter away from. Any name can be a unit, so
/// a limit on a misspelt one would limit nothing.
fn misspelt(name: &str) -> Option<&'static str> {
    const KNOWN: [&str; 6] =
        ["requests", "tokens", "input_tokens", "output_tokens", "points", "parallel"];
    KNOWN.into_iter().find(|known| strsim::damerau_levenshtein(name, known) == 1)
}

/// Returns amounts as a dict.
pub(crate) fn dict<'py>(py: Python<'py>, amounts: &Amounts) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (unit, amount) in amounts.iter() {
        all.set_item(unit.name(), amount)?;
    }
    Ok(all)
}

/// Returns an instant as seconds since 1970.
pub(crate) fn timestamp(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Returns a text as messages show it: printable and short.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(60).flat_map(char::escape_debug).collect()
}

//! Runs a trace: applies every step at its instant and compares the outcome with the line.

use serde_json::{Map, Value};
use standpipe_core::{Action, Event, Key};

use super::TraceError;
use super::ledger::Ledger;
use super::parse::{Operation, Step, Trace};
use super::values::{instant, limit, show_instant, show_limit};
use crate::hash::hash;
use crate::layout::encode_event;

/// Runs a trace and returns its digest.
///
/// The digest is a hash of every event, every outcome and the final state. It is equal on every
/// ledger of the same semantics.
///
/// # Errors
/// The first line whose outcome differs from what it states.
pub fn run(trace: &Trace, ledger: &mut dyn Ledger) -> Result<String, TraceError> {
    let mut digest = 0;
    for step in &trace.steps {
        let executed = execute(trace, step, ledger).and_then(|(event, outcome)| {
            compare(&step.expected, &outcome)?;
            Ok((event, Value::from(outcome).to_string()))
        });
        let (event, outcome) = executed.map_err(|message| TraceError {
            file: trace.name.clone(),
            line: step.line,
            message: format!("at {}: {message}", show_instant(step.at)),
        })?;
        digest = hash(hash(digest, &event), outcome.as_bytes());
    }
    Ok(format!("{:016x}", hash(digest, &ledger.bytes())))
}

/// Executes a step, and returns the encoded event and the rendered outcome.
fn execute(
    trace: &Trace,
    step: &Step,
    ledger: &mut dyn Ledger,
) -> Result<(Vec<u8>, Map<String, Value>), String> {
    match &step.operation {
        Operation::Apply(event) => {
            let outcome = ledger.apply(event, step.at)?;
            Ok((encode_event(event), trace.labels.outcome(&outcome)))
        }
        Operation::Peek(reserve) => {
            let decision = ledger.peek(reserve, step.at)?;
            let key = Key { session: 0, number: 0 };
            let event = Event { key, action: Action::Reserve(Box::new(reserve.clone())) };
            Ok((encode_event(&event), trace.labels.decision(&decision)))
        }
        Operation::Snapshot => {
            ledger.snapshot(step.at)?;
            Ok((Vec::new(), Map::new()))
        }
    }
}

/// Checks that an outcome has every field that the line states.
fn compare(expected: &Map<String, Value>, got: &Map<String, Value>) -> Result<(), String> {
    for (key, wanted) in expected {
        let Some(found) = got.get(key) else {
            return Err(format!("expected {key} {wanted}, got {}", Value::from(got.clone())));
        };
        match (wanted, found) {
            (Value::Bool(true), Value::Object(_)) => {}
            (Value::Object(wanted), Value::Object(parts)) => {
                for (part, wanted) in wanted {
                    let found = parts.get(part).unwrap_or(&Value::Null);
                    if canonical(part, wanted)? != *found {
                        return Err(format!(
                            "expected {key} with {part} {wanted}, got {}",
                            Value::from(got.clone())
                        ));
                    }
                }
            }
            _ if canonical(key, wanted)? == *found => {}
            _ => {
                return Err(format!(
                    "expected {key} {wanted}, got {found} in {}",
                    Value::from(got.clone())
                ));
            }
        }
    }
    Ok(())
}

/// Rewrites times and limits of a trace in the form that the runner renders.
fn canonical(key: &str, value: &Value) -> Result<Value, String> {
    match (key, value.as_str()) {
        (_, Some("never")) => Ok(value.clone()),
        ("until" | "expires" | "next", Some(text)) => Ok(show_instant(instant(text)?).into()),
        ("limit", Some(text)) => Ok(show_limit(&limit(text)?).into()),
        _ => Ok(value.clone()),
    }
}

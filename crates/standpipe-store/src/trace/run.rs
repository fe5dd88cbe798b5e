//! Running a story: every event in its time, and its outcome held against what the line states.

use serde_json::{Map, Value};
use standpipe_core::{Action, Event, Key};

use super::Mistake;
use super::ledger::Ledger;
use super::line::{Step, Story, What};
use super::text::{instant, limit, show_instant, show_limit};
use crate::hash::hash;
use crate::layout::encode_event;

/// Runs a story and answers its digest: a hash of every event, every outcome and the state at the
/// end, equal on every ledger of the same semantics.
///
/// # Errors
/// The first line whose outcome is not what it states.
pub fn run(story: &Story, ledger: &mut dyn Ledger) -> Result<String, Mistake> {
    let mut digest = 0;
    for step in &story.steps {
        let told = tell(story, step, ledger).and_then(|(event, outcome)| {
            compare(&step.expected, &outcome)?;
            Ok((event, Value::from(outcome).to_string()))
        });
        let (event, outcome) = told.map_err(|what| Mistake {
            file: story.name.clone(),
            line: step.line,
            what: format!("at {}: {what}", show_instant(step.at)),
        })?;
        digest = hash(hash(digest, &event), outcome.as_bytes());
    }
    Ok(format!("{:016x}", hash(digest, &ledger.bytes())))
}

/// What happens in a step, as bytes, and what comes of it.
fn tell(
    story: &Story,
    step: &Step,
    ledger: &mut dyn Ledger,
) -> Result<(Vec<u8>, Map<String, Value>), String> {
    match &step.what {
        What::Apply(event) => {
            let outcome = ledger.apply(event, step.at)?;
            Ok((encode_event(event), story.names.outcome(&outcome)))
        }
        What::Peek(reserve) => {
            let decision = ledger.peek(reserve, step.at)?;
            let key = Key { session: 0, number: 0 };
            let event = Event { key, action: Action::Reserve(Box::new(reserve.clone())) };
            Ok((encode_event(&event), story.names.decision(&decision)))
        }
        What::Snapshot => {
            ledger.snapshot(step.at)?;
            Ok((Vec::new(), Map::new()))
        }
    }
}

/// Whether everything that is stated is so.
fn compare(expected: &Map<String, Value>, got: &Map<String, Value>) -> Result<(), String> {
    for (word, wanted) in expected {
        let Some(found) = got.get(word) else {
            return Err(format!("expected {word} {wanted}, got {}", Value::from(got.clone())));
        };
        match (wanted, found) {
            (Value::Bool(true), Value::Object(_)) => {}
            (Value::Object(wanted), Value::Object(parts)) => {
                for (part, wanted) in wanted {
                    let found = parts.get(part).unwrap_or(&Value::Null);
                    if canonical(part, wanted)? != *found {
                        return Err(format!(
                            "expected {word} with {part} {wanted}, got {}",
                            Value::from(got.clone())
                        ));
                    }
                }
            }
            _ if canonical(word, wanted)? == *found => {}
            _ => {
                return Err(format!(
                    "expected {word} {wanted}, got {found} in {}",
                    Value::from(got.clone())
                ));
            }
        }
    }
    Ok(())
}

/// Times and limits as the runner writes them, however the story does.
fn canonical(word: &str, value: &Value) -> Result<Value, String> {
    match (word, value.as_str()) {
        (_, Some("never")) => Ok(value.clone()),
        ("until" | "expires" | "next", Some(text)) => Ok(show_instant(instant(text)?).into()),
        ("limit", Some(text)) => Ok(show_limit(&limit(text)?).into()),
        _ => Ok(value.clone()),
    }
}

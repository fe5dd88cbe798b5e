//! What the events of a stream say, in every shape that providers give them.

use serde_json::Value;

use crate::answer::Refused;
use crate::dialect::Dialect;
use crate::doubt::Doubts;
use crate::fault::Fault;
use crate::json;
use crate::usage::Usage;

/// Where events carry the usage.
const USAGE: [&[&str]; 4] =
    [&["usage"], &["message", "usage"], &["response", "usage"], &["usageMetadata"]];

/// Events that are the last, by their type or, of answers that came whole, by their object.
const LAST: [&str; 8] = [
    "message_stop",
    "message",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "chat.completion",
    "response",
    "error",
];

/// Members of a delta that are content.
const CONTENT: [&str; 7] =
    ["text", "partial_json", "thinking", "content", "reasoning_content", "reasoning", "refusal"];

/// What a stream has said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) usage: Usage,
    pub(super) refused: Option<Refused>,
    pub(super) finished: bool,
    pub(super) text_bytes: u64,
}

impl Seen {
    pub(super) const fn new() -> Self {
        let usage = Usage {
            input_tokens: None,
            output_tokens: None,
            cache_read_tokens: None,
            cache_write_tokens: None,
            total_tokens: None,
            points: None,
        };
        Self { usage, refused: None, finished: false, text_bytes: 0 }
    }

    /// Takes one event; `name` is what stands outside of its data, if anything does.
    pub(super) fn take(&mut self, dialect: Dialect, name: &str, data: &[u8]) {
        if data.trim_ascii() == b"[DONE]" {
            self.finished = true;
            return;
        }
        let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
        // A list of one is how some send an error.
        let value = match &value {
            Value::Array(list) => list.first().unwrap_or(&value),
            _ => &value,
        };
        if !value.is_object() {
            return;
        }
        self.take_usage(value);
        self.text_bytes = self.text_bytes.saturating_add(content_bytes(value));
        self.finished |= is_last(name, value);
        if let Some(fault) = fault(name, value) {
            let refused = dialect.refused_in_stream(&fault);
            self.refused = self.refused.take().or(refused);
        }
    }

    fn take_usage(&mut self, value: &Value) {
        let found = USAGE.iter().find_map(|path| json::at(value, path).filter(|v| v.is_object()));
        if let Some(found) = found {
            self.usage.grow(&Usage::of(found, &mut Doubts::default()));
        }
    }
}

fn is_last(name: &str, value: &Value) -> bool {
    let kind = |member: &str| value.get(member).and_then(Value::as_str).unwrap_or_default();
    let is_done = |candidate: &Value| candidate.get("finishReason").is_some_and(Value::is_string);
    name == "metadata"
        || LAST.contains(&kind("type"))
        || LAST.contains(&kind("object"))
        || json::list(value.get("candidates")).iter().any(is_done)
}

/// The error an event tells of.
fn fault(name: &str, value: &Value) -> Option<Fault> {
    if name.to_ascii_lowercase().ends_with("exception") {
        return Some(Fault { code: name.to_owned(), ..Fault::of_value(value) });
    }
    let failed = json::at(value, &["response", "error"]).filter(|error| error.is_object());
    if let Some(error) = failed {
        return Some(Fault::of_value(error));
    }
    let kind = value.get("type").and_then(Value::as_str);
    let has_error = value.get("error").is_some_and(|error| !error.is_null());
    (has_error || kind == Some("error")).then(|| Fault::of_value(value))
}

/// The bytes of content in an event.
fn content_bytes(value: &Value) -> u64 {
    let mut sum = of_delta(value.get("delta"));
    for choice in json::list(value.get("choices")) {
        sum += of_delta(choice.get("delta")) + length(choice.get("text"));
    }
    for candidate in json::list(value.get("candidates")) {
        let parts = json::list(json::at(candidate, &["content", "parts"]));
        sum += parts.iter().map(|part| length(part.get("text"))).sum::<u64>();
    }
    sum
}

fn of_delta(delta: Option<&Value>) -> u64 {
    let Some(delta) = delta else { return 0 };
    let direct = length(Some(delta));
    let members: u64 = CONTENT.iter().map(|name| length(delta.get(name))).sum();
    let calls = json::list(delta.get("tool_calls")).iter();
    let calls: u64 = calls.map(|call| length(json::at(call, &["function", "arguments"]))).sum();
    let deeper = [&["toolUse", "input"], &["reasoningContent", "text"]];
    let deeper: u64 = deeper.iter().map(|path| length(json::at(delta, *path))).sum();
    direct + members + calls + deeper
}

fn length(value: Option<&Value>) -> u64 {
    value.and_then(Value::as_str).map_or(0, |text| text.len() as u64)
}

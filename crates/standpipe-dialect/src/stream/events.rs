//! Reads the events of a stream: usage, content, the end, errors, in the shapes of all providers.

use crate::anomaly::Anomalies;
use crate::answer::Refused;
use crate::dialect::Dialect;
use crate::parse::borrowed::BorrowedValue;
use crate::reader::ErrorBody;
use crate::usage::Usage;

/// Where events carry the usage.
const USAGE: [&[&str]; 4] =
    [&["usage"], &["message", "usage"], &["response", "usage"], &["usageMetadata"]];

/// The `type` of the last event of a stream, and the `object` of a response that is not streamed.
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

/// What a stream has stated so far.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamState {
    pub(super) usage: Usage,
    pub(super) refused: Option<Refused>,
    pub(super) finished: bool,
    pub(super) text_bytes: u64,
}

impl StreamState {
    pub(super) const fn new() -> Self {
        Self { usage: Usage::EMPTY, refused: None, finished: false, text_bytes: 0 }
    }

    /// Reads one event. `name` is the name outside of its data; empty if it has none.
    pub(super) fn on_event(&mut self, dialect: Dialect, name: &str, data: &[u8]) {
        if data.trim_ascii() == b"[DONE]" {
            self.finished = true;
            return;
        }
        let Some(value) = BorrowedValue::parse(data) else { return };
        // Gemini sends an error as an array of one.
        let value = value.elements().first().unwrap_or(&value);
        if !value.is_object() {
            return;
        }
        self.add_usage(value);
        self.text_bytes = self.text_bytes.saturating_add(content_bytes(value));
        self.finished |= is_last(name, value);
        if let Some(error) = error_in_event(name, value) {
            // The first refusal counts.
            let refused = dialect.refusal_in_stream(&error);
            self.refused = self.refused.take().or(refused);
        }
    }

    fn add_usage(&mut self, value: &BorrowedValue<'_>) {
        let found = USAGE.iter().find_map(|path| value.at(path).filter(|found| found.is_object()));
        if let Some(found) = found {
            self.usage.merge_later(&Usage::from_json(found, &mut Anomalies::default()));
        }
    }
}

/// Whether an event is the last of its stream.
fn is_last(name: &str, value: &BorrowedValue<'_>) -> bool {
    let kind = |member: &str| value.get(member).and_then(BorrowedValue::as_str).unwrap_or_default();
    let is_done = |candidate: &BorrowedValue<'_>| {
        candidate.get("finishReason").is_some_and(|reason| reason.as_str().is_some())
    };
    name == "metadata"
        || LAST.contains(&kind("type"))
        || LAST.contains(&kind("object"))
        || list(value.get("candidates")).iter().any(is_done)
}

/// The error that an event states.
fn error_in_event(name: &str, value: &BorrowedValue<'_>) -> Option<ErrorBody> {
    if name.to_ascii_lowercase().ends_with("exception") {
        return Some(ErrorBody {
            code: name.to_owned(),
            ..ErrorBody::from_json(&value.to_value())
        });
    }
    let failed = value.at(&["response", "error"]).filter(|error| error.is_object());
    if let Some(error) = failed {
        return Some(ErrorBody::from_json(&error.to_value()));
    }
    let kind = value.get("type").and_then(BorrowedValue::as_str);
    let has_error = value.get("error").is_some_and(|error| !error.is_null());
    (has_error || kind == Some("error")).then(|| ErrorBody::from_json(&value.to_value()))
}

/// Bytes of content in an event.
fn content_bytes(value: &BorrowedValue<'_>) -> u64 {
    let mut sum = delta_bytes(value.get("delta"));
    for choice in list(value.get("choices")) {
        sum += delta_bytes(choice.get("delta")) + text_len(choice.get("text"));
    }
    for candidate in list(value.get("candidates")) {
        let parts = list(candidate.at(&["content", "parts"]));
        sum += parts.iter().map(|part| text_len(part.get("text"))).sum::<u64>();
    }
    sum
}

fn delta_bytes(delta: Option<&BorrowedValue<'_>>) -> u64 {
    let Some(delta) = delta else { return 0 };
    let direct = text_len(Some(delta));
    let members: u64 = CONTENT.iter().map(|name| text_len(delta.get(name))).sum();
    let calls = list(delta.get("tool_calls")).iter();
    let calls: u64 = calls.map(|call| text_len(call.at(&["function", "arguments"]))).sum();
    let nested = [&["toolUse", "input"], &["reasoningContent", "text"]];
    let nested: u64 = nested.iter().map(|path| text_len(delta.at(*path))).sum();
    direct + members + calls + nested
}

fn text_len(value: Option<&BorrowedValue<'_>>) -> u64 {
    value.and_then(BorrowedValue::as_str).map_or(0, |text| text.len() as u64)
}

/// The elements of an array; empty for any other value.
fn list<'v, 'a>(value: Option<&'v BorrowedValue<'a>>) -> &'v [BorrowedValue<'a>] {
    value.map_or(&[], BorrowedValue::elements)
}

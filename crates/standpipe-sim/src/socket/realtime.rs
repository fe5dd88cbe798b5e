//! OpenAI's realtime API over a WebSocket, as far as its clients use it for text.
//!
//! A session begins with `session.created`. Each `response.create` is answered with the events of
//! one response, whose `response.done` states its usage. What is no event is returned as it came.

use serde_json::{Value, json};

use super::api::PIECES;
use super::http::Request;
use super::websocket::{Frame, message};
use crate::provider::Used;

/// What the client of one connection sees.
#[derive(Debug)]
pub(super) struct Session {
    model: String,
    /// What each response uses.
    each: Used,
    responses: u64,
    /// How many messages the connection is broken after, without the end of a WebSocket.
    breaks: Option<u64>,
    messages: u64,
}

impl Session {
    /// The session of a request; `x-used-input` and `x-used-output` are the usage of a response,
    /// and `x-break-after` the number of messages after which the connection breaks.
    pub(super) fn new(request: &Request) -> Self {
        let input = request.number("x-used-input").unwrap_or(20);
        let output = request.number("x-used-output").unwrap_or(5);
        Self {
            model: model(request).to_owned(),
            each: Used { input, output, ..Used::default() },
            responses: 0,
            breaks: request.number("x-break-after"),
            messages: 0,
        }
    }

    /// What all responses of the session used.
    pub(super) fn used(&self) -> Used {
        let (input, output) = (self.each.input, self.each.output);
        Used {
            input: input.saturating_mul(self.responses),
            output: output.saturating_mul(self.responses),
            ..Used::default()
        }
    }

    /// The first message.
    pub(super) fn begin(&self) -> Vec<u8> {
        let session = json!({"type": "realtime", "object": "realtime.session", "id": "sess_7",
                             "model": self.model, "output_modalities": ["text"]});
        message(
            &json!({"event_id": "event_0", "type": "session.created", "session": session})
                .to_string(),
        )
    }

    /// The answer to a frame; none if the connection breaks.
    pub(super) fn answer(&mut self, frame: &Frame) -> Option<Vec<u8>> {
        self.messages += 1;
        if self.breaks.is_some_and(|count| self.messages > count) {
            return None;
        }
        let text = frame.text().unwrap_or_default();
        let event: Value = serde_json::from_str(text).unwrap_or_default();
        Some(match event["type"].as_str() {
            Some("session.update") => {
                events(&[json!({"type": "session.updated", "session": event["session"]})])
            }
            Some("conversation.item.create") => {
                let item = &event["item"];
                events(&[
                    json!({"type": "conversation.item.added", "item": item}),
                    json!({"type": "conversation.item.done", "item": item}),
                ])
            }
            Some("response.create") => self.respond(),
            _ => frame.echo(),
        })
    }

    fn respond(&mut self) -> Vec<u8> {
        self.responses += 1;
        let id = format!("resp_{}", self.responses);
        let response = |status: &str, output: Value, usage: Value| {
            json!({"object": "realtime.response", "id": id, "status": status, "output": output,
                   "usage": usage})
        };
        let of_item = |kind: &str, key: &str, value: &str| {
            json!({"type": kind, "response_id": id, "item_id": "item_7", "output_index": 0,
                   "content_index": 0, key: value})
        };
        let text = PIECES.concat();
        let item = json!({"object": "realtime.item", "type": "message", "id": "item_7",
                          "role": "assistant", "status": "completed",
                          "content": [{"type": "output_text", "text": text}]});
        let Used { input, output, .. } = self.each;
        let usage = json!({"total_tokens": input.saturating_add(output), "input_tokens": input,
                           "output_tokens": output});
        let begun = response("in_progress", json!([]), Value::Null);
        let mut all = vec![json!({"type": "response.created", "response": begun})];
        all.extend(PIECES.map(|piece| of_item("response.output_text.delta", "delta", piece)));
        all.push(of_item("response.output_text.done", "text", &text));
        let done = response("completed", json!([item]), usage);
        all.push(json!({"type": "response.done", "response": done}));
        events(&all)
    }
}

/// Events as messages, one after the other.
fn events(all: &[Value]) -> Vec<u8> {
    let numbered = all.iter().enumerate().map(|(number, event)| {
        let mut whole = json!({"event_id": format!("event_{number}")});
        if let (Value::Object(whole), Value::Object(event)) = (&mut whole, event) {
            whole.extend(event.clone());
        }
        message(&whole.to_string())
    });
    numbered.flatten().collect()
}

/// The model that a request names in its query.
pub(super) fn model(request: &Request) -> &str {
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    query.split('&').find_map(|pair| pair.strip_prefix("model=")).unwrap_or_default()
}

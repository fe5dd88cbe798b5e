//! A reply as a stream of server-sent events, as Anthropic and OpenAI send them.
//!
//! The whole reply is known before; only its form differs. `fault` breaks a stream on purpose.

use serde_json::{Value, json};

use crate::provider::Reply;

/// The pieces of an answer's text.
const PIECES: [&str; 3] = ["Done", " and", " done."];

/// What a request's body asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) stream: bool,
    /// Usage at the end of a stream, which OpenAI leaves out otherwise.
    pub(super) usage: bool,
}

impl Wish {
    pub(super) fn of(body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        Self {
            stream: body["stream"] == true,
            usage: body["stream_options"]["include_usage"] == true,
        }
    }
}

/// The model that a request's body names.
pub(super) fn model(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["model"].as_str().unwrap_or_default().to_owned()
}

/// The events of a reply; none if it has no form as a stream.
pub(super) fn events(reply: &Reply, wish: Wish) -> Option<Vec<String>> {
    if !wish.stream || reply.status != 200 {
        return None;
    }
    let body: Value = serde_json::from_slice(&reply.body).ok()?;
    match (body["type"].as_str(), body["object"].as_str()) {
        (Some("message"), _) => Some(anthropic(body)),
        (_, Some("chat.completion")) => Some(openai(body, wish.usage)),
        _ => None,
    }
}

/// The event that ends a stream with an error, in the form of these events.
pub(super) fn error(events: &[String]) -> String {
    let is_anthropic = events.first().is_some_and(|first| first.starts_with("event:"));
    if is_anthropic {
        let error = json!({"type": "error", "error": {"type": "overloaded_error",
                           "message": "Overloaded"}});
        return format!("event: error\ndata: {error}\n\n");
    }
    let error = json!({"error": {"message": "The server had an error", "type": "server_error",
                       "param": null, "code": null}});
    format!("data: {error}\n\n")
}

fn anthropic(mut message: Value) -> Vec<String> {
    let mut usage = message["usage"].take();
    let output = usage["output_tokens"].take();
    usage["output_tokens"] = json!(1);
    message["usage"] = usage;
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let text = |text: &str| {
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "text_delta", "text": text}})
    };
    let mut all = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "text", "text": ""}}),
    ];
    all.extend(PIECES.iter().map(|piece| text(piece)));
    all.push(json!({"type": "content_block_stop", "index": 0}));
    all.push(json!({"type": "message_delta",
                    "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                    "usage": {"output_tokens": output}}));
    all.push(json!({"type": "message_stop"}));
    let named = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    all.iter().map(named).collect()
}

fn openai(completion: Value, with_usage: bool) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": completion["id"], "object": "chat.completion.chunk",
            "created": completion["created"], "model": completion["model"], "choices": choices,
        });
        if with_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        Value::Array(vec![choice])
    };
    let begin = choice(json!({"role": "assistant", "content": ""}), Value::Null);
    let mut all = vec![chunk(begin, Value::Null)];
    for piece in PIECES {
        all.push(chunk(choice(json!({"content": piece}), Value::Null), Value::Null));
    }
    all.push(chunk(choice(json!({}), json!("stop")), Value::Null));
    if with_usage {
        all.push(chunk(json!([]), completion["usage"].clone()));
    }
    all.push("data: [DONE]\n\n".to_owned());
    all
}

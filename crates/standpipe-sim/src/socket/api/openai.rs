//! OpenAI's API: chat, whole and as a stream, with tools; embeddings; models. Responses are in
//! their own file.

use serde_json::{Value, json};

use super::tools::{self, ToolCall, halves};
use super::{Answer, Events, PIECES, model, parsed, responses, with_body};
use crate::provider::Reply;
use crate::socket::http::Request;

/// Where a stream states its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamUsage {
    Nowhere,
    /// In a chunk of its own behind the others.
    InOwnChunk,
    /// In the chunk that ends the answer.
    InLastChunk,
}

pub(super) fn answer(request: &Request, body: &Value, reply: Reply) -> Answer {
    let asked = body["stream_options"]["include_usage"] == true;
    let usage = if asked { StreamUsage::InOwnChunk } else { StreamUsage::Nowhere };
    answer_with(request, body, reply, usage)
}

/// The answer of this API, or of one like it.
pub(super) fn answer_with(
    request: &Request,
    body: &Value,
    reply: Reply,
    usage: StreamUsage,
) -> Answer {
    let mut completion = parsed(&reply);
    completion["model"] = model(body, &completion["model"]);
    let path = request.path();
    if path.ends_with("/responses") {
        return responses::answer(body, reply, &completion);
    }
    if path.ends_with("/embeddings") {
        return Answer::Whole(with_body(reply, &embeddings(body, &completion)));
    }
    if path.ends_with("/models") {
        let own = json!({"id": completion["model"], "object": "model",
                         "created": completion["created"], "owned_by": "openai"});
        return Answer::Whole(with_body(reply, &json!({"object": "list", "data": [own]})));
    }
    if let Some(call) = wanted(body) {
        let choice = &mut completion["choices"][0];
        choice["message"]["content"] = Value::Null;
        choice["message"]["tool_calls"] = json!([{
            "id": CALL, "type": "function",
            "function": {"name": call.name, "arguments": call.input.to_string()},
        }]);
        choice["finish_reason"] = json!("tool_calls");
    }
    if body["stream"] != true {
        return Answer::Whole(with_body(reply, &completion));
    }
    let events = events(&completion, usage);
    Answer::Stream(Events { head: reply, events, error: format!("data: {}\n\n", error()) })
}

/// The name of a call of a tool.
pub(super) const CALL: &str = "call_7";

pub(super) fn error() -> Value {
    json!({"error": {"message": "The server had an error", "type": "server_error",
           "param": null, "code": null}})
}

/// The tool that a request insists on.
fn wanted(body: &Value) -> Option<ToolCall> {
    let choice = &body["tool_choice"];
    let insists = choice == "required" || choice["type"] == "function";
    if !insists {
        return None;
    }
    let tools: Vec<Value> =
        body["tools"].as_array()?.iter().map(|tool| tool["function"].clone()).collect();
    tools::call(&tools, choice["function"]["name"].as_str(), &["parameters"])
}

fn events(completion: &Value, stated: StreamUsage) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": completion["id"], "object": "chat.completion.chunk",
            "created": completion["created"], "model": completion["model"], "choices": choices,
        });
        if stated == StreamUsage::InOwnChunk || !usage.is_null() {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, finish: Value| {
        let usage = match stated {
            StreamUsage::InLastChunk if !finish.is_null() => completion["usage"].clone(),
            _ => Value::Null,
        };
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        chunk(Value::Array(vec![choice]), usage)
    };
    let chosen = &completion["choices"][0];
    let mut all = Vec::new();
    if let Some(call) = chosen["message"]["tool_calls"].get(0) {
        let mut first = call.clone();
        let arguments = first["function"]["arguments"].take();
        first["function"]["arguments"] = json!("");
        first["index"] = json!(0);
        let begin = json!({"role": "assistant", "content": null, "tool_calls": [first]});
        all.push(choice(begin, Value::Null));
        for part in halves(arguments.as_str().unwrap_or_default()) {
            let part = json!({"tool_calls": [{"index": 0, "function": {"arguments": part}}]});
            all.push(choice(part, Value::Null));
        }
    } else {
        all.push(choice(json!({"role": "assistant", "content": ""}), Value::Null));
        all.extend(PIECES.map(|piece| choice(json!({"content": piece}), Value::Null)));
    }
    all.push(choice(json!({}), chosen["finish_reason"].clone()));
    if stated == StreamUsage::InOwnChunk {
        all.push(chunk(json!([]), completion["usage"].clone()));
    }
    all.push("data: [DONE]\n\n".to_owned());
    all
}

/// The same short vector for each input.
fn embeddings(body: &Value, completion: &Value) -> Value {
    let count = body["input"].as_array().map_or(1, Vec::len);
    let embedding = match body["encoding_format"].as_str() {
        Some("base64") => json!(BASE64),
        _ => json!([1.0, 0.5, 0.25]),
    };
    let one = |index| json!({"object": "embedding", "index": index, "embedding": embedding});
    let input = &completion["usage"]["prompt_tokens"];
    json!({"object": "list", "data": (0..count).map(one).collect::<Vec<_>>(),
           "model": completion["model"],
           "usage": {"prompt_tokens": input, "total_tokens": input}})
}

/// 1.0, 0.5 and 0.25 as bytes.
const BASE64: &str = "AACAPwAAAD8AAIA+";

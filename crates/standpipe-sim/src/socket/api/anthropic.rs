//! Anthropic's API: messages, whole and as a stream, with tools; token counts; models.

use serde_json::{Value, json};

use super::tools::{self, ToolCall, halves};
use super::{Answer, Events, PIECES, failure, model, named, parsed, with_body};
use crate::provider::{Reply, Shape};
use crate::socket::http::Request;

pub(super) fn answer(request: &Request, body: &Value, reply: Reply) -> Answer {
    if request.path().starts_with("/messages") {
        // The path lacks its version.
        return Answer::Whole(failure::reply(Shape::Anthropic, reply, 404));
    }
    let mut message = parsed(&reply);
    if request.path().ends_with("/count_tokens") {
        let count = json!({"input_tokens": message["usage"]["input_tokens"]});
        return Answer::Whole(with_body(reply, &count));
    }
    if request.path().ends_with("/models") {
        let own = json!({"type": "model", "id": message["model"], "display_name": "Claude",
                         "created_at": "2025-08-21T00:00:00Z"});
        let id = &message["model"];
        let list = json!({"data": [own], "has_more": false, "first_id": id, "last_id": id});
        return Answer::Whole(with_body(reply, &list));
    }
    message["model"] = model(body, &message["model"]);
    if let Some(call) = wanted(body) {
        let id = message["id"].as_str().unwrap_or_default().replace("msg_", "toolu_");
        message["content"] =
            json!([{"type": "tool_use", "id": id, "name": call.name, "input": call.input}]);
        message["stop_reason"] = json!("tool_use");
    }
    if body["stream"] != true {
        return Answer::Whole(with_body(reply, &message));
    }
    let error = json!({"type": "error", "error": {"type": "overloaded_error",
                       "message": "Overloaded"}});
    Answer::Stream(Events { head: reply, events: events(message), error: named(&error) })
}

/// The tool that a request insists on.
fn wanted(body: &Value) -> Option<ToolCall> {
    let choice = &body["tool_choice"];
    let insists = matches!(choice["type"].as_str(), Some("any" | "tool"));
    if !insists {
        return None;
    }
    tools::call(body["tools"].as_array()?, choice["name"].as_str(), &["input_schema"])
}

fn events(mut message: Value) -> Vec<String> {
    let mut usage = message["usage"].take();
    let output = usage["output_tokens"].take();
    usage["output_tokens"] = json!(1);
    message["usage"] = usage;
    let block = message["content"][0].take();
    message["content"] = json!([]);
    let stop = message["stop_reason"].take();
    let is_tool = block["type"] == "tool_use";
    let (start, deltas) = if is_tool { tool(block) } else { text() };
    let mut all = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
    ];
    let delta = |delta| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    all.extend(deltas.into_iter().map(delta));
    all.push(json!({"type": "content_block_stop", "index": 0}));
    all.push(json!({"type": "message_delta",
                    "delta": {"stop_reason": stop, "stop_sequence": null},
                    "usage": {"output_tokens": output}}));
    all.push(json!({"type": "message_stop"}));
    all.iter().map(named).collect()
}

fn text() -> (Value, Vec<Value>) {
    let delta = |text| json!({"type": "text_delta", "text": text});
    (json!({"type": "text", "text": ""}), PIECES.map(delta).into())
}

fn tool(mut block: Value) -> (Value, Vec<Value>) {
    let input = block["input"].take().to_string();
    block["input"] = json!({});
    let delta = |json| json!({"type": "input_json_delta", "partial_json": json});
    (block, halves(&input).map(delta).into())
}

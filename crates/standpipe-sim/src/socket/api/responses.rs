//! OpenAI's responses, whole and as a stream, with tools.

use serde_json::{Value, json};

use super::openai::{CALL, error};
use super::tools::{self, ToolCall, halves};
use super::{Answer, Events, PIECES, named, with_body};
use crate::provider::Reply;

pub(super) fn answer(body: &Value, reply: Reply, completion: &Value) -> Answer {
    let call = wanted(body);
    let item = item(call.as_ref());
    let response = response(completion, &item);
    if body["stream"] != true {
        return Answer::Whole(with_body(reply, &response));
    }
    let mut error = error()["error"].take();
    error["type"] = json!("error");
    Answer::Stream(Events { head: reply, events: events(&response, &item), error: named(&error) })
}

/// The tool that a request insists on.
fn wanted(body: &Value) -> Option<ToolCall> {
    let choice = &body["tool_choice"];
    let insists = choice == "required" || choice["type"] == "function";
    if !insists {
        return None;
    }
    tools::call(body["tools"].as_array()?, choice["name"].as_str(), &["parameters"])
}

fn item(call: Option<&ToolCall>) -> Value {
    match call {
        Some(call) => json!({"type": "function_call", "id": "fc_7", "call_id": CALL,
                             "name": call.name, "arguments": call.input.to_string(),
                             "status": "completed"}),
        None => json!({"type": "message", "id": "msg_7", "status": "completed",
                       "role": "assistant", "content": [part(&PIECES.concat())]}),
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn response(completion: &Value, item: &Value) -> Value {
    let id = completion["id"].as_str().unwrap_or_default().replace("chatcmpl-", "resp_");
    let usage = &completion["usage"];
    json!({
        "id": id, "object": "response", "created_at": completion["created"],
        "status": "completed", "background": false, "error": null, "incomplete_details": null,
        "instructions": null, "max_output_tokens": null, "model": completion["model"],
        "output": [item], "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null}, "store": true, "temperature": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
        "user": null, "metadata": {},
    })
}

fn events(response: &Value, item: &Value) -> Vec<String> {
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut all = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    all.extend(item_events(item));
    all.push(json!({"type": "response.completed", "response": response}));
    for (number, event) in all.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    all.iter().map(named).collect()
}

fn item_events(item: &Value) -> Vec<Value> {
    let id = &item["id"];
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let of_item = |kind: &str| json!({"type": kind, "item_id": id, "output_index": 0});
    let with = |kind: &str, key: &str, value: Value| {
        let mut event = of_item(kind);
        event[key] = value;
        event
    };
    let mut all = Vec::new();
    if item["type"] == "function_call" {
        begun["arguments"] = json!("");
        let arguments = item["arguments"].as_str().unwrap_or_default();
        let delta = "response.function_call_arguments.delta";
        all.extend(halves(arguments).map(|half| with(delta, "delta", json!(half))));
        let mut done = with("response.function_call_arguments.done", "arguments", json!(arguments));
        done["name"] = item["name"].clone();
        all.push(done);
    } else {
        begun["content"] = json!([]);
        let text = PIECES.concat();
        all.push(with("response.content_part.added", "part", part("")));
        let delta = "response.output_text.delta";
        all.extend(PIECES.map(|piece| with(delta, "delta", json!(piece))));
        all.push(with("response.output_text.done", "text", json!(text)));
        all.push(with("response.content_part.done", "part", part(&text)));
        for event in &mut all {
            event["content_index"] = json!(0);
            if event["type"].as_str().is_some_and(|kind| kind.contains("output_text")) {
                event["logprobs"] = json!([]);
            }
        }
    }
    let whole = |kind: &str, item: &Value| json!({"type": kind, "output_index": 0, "item": item});
    all.insert(0, whole("response.output_item.added", &begun));
    all.push(whole("response.output_item.done", item));
    all
}

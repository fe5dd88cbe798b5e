//! Gemini's API: content, whole and as a stream, with tools; token counts; embeddings.

use serde_json::{Value, json};

use super::tools::{self, ToolCall};
use super::{Answer, Events, PIECES, parsed, with_body};
use crate::provider::Reply;
use crate::socket::http::Request;

pub(super) fn answer(request: &Request, body: &Value, reply: Reply) -> Answer {
    let mut content = parsed(&reply);
    let (path, method) = request.path().rsplit_once(':').unwrap_or((request.path(), ""));
    let model = path.rsplit('/').next().unwrap_or_default();
    content["modelVersion"] = json!(model);
    content["responseId"] = json!("r7");
    if let Some(call) = wanted(body) {
        let call = json!({"functionCall": {"name": call.name, "args": call.input}});
        content["candidates"][0]["content"]["parts"] = json!([call]);
    }
    let tokens = &content["usageMetadata"]["promptTokenCount"];
    let whole = match method {
        "countTokens" => json!({"totalTokens": tokens}),
        "embedContent" => json!({"embedding": vector()}),
        "batchEmbedContents" => {
            let count = body["requests"].as_array().map_or(1, Vec::len);
            json!({"embeddings": vec![vector(); count]})
        }
        "streamGenerateContent" if request.target.contains("alt=sse") => {
            let error = json!({"error": {"code": 503, "status": "UNAVAILABLE",
                               "message": "The model is overloaded. Please try again later."}});
            let (events, error) = (events(&content), event(&error));
            return Answer::Stream(Events { head: reply, events, error });
        }
        "streamGenerateContent" => json!([content]),
        _ => content,
    };
    Answer::Whole(with_body(reply, &whole))
}

fn vector() -> Value {
    json!({"values": [1.0, 0.5, 0.25]})
}

/// The tool that a request insists on.
fn wanted(body: &Value) -> Option<ToolCall> {
    let config = &body["toolConfig"]["functionCallingConfig"];
    if config["mode"] != "ANY" {
        return None;
    }
    let tools = body["tools"].as_array()?.iter();
    let tools: Vec<Value> = tools
        .filter_map(|tool| tool["functionDeclarations"].as_array())
        .flatten()
        .cloned()
        .collect();
    let name = config["allowedFunctionNames"][0].as_str();
    tools::call(&tools, name, &["parameters", "parametersJsonSchema"])
}

fn events(content: &Value) -> Vec<String> {
    let parts: Vec<Value> = match content["candidates"][0]["content"]["parts"][0].clone() {
        call if call["functionCall"].is_object() => vec![call],
        _ => PIECES.map(|piece| json!({"text": piece})).into(),
    };
    let last = parts.len() - 1;
    let chunk = |(at, part): (usize, Value)| {
        let mut chunk = content.clone();
        let candidate = &mut chunk["candidates"][0];
        candidate["content"]["parts"] = json!([part]);
        if at < last
            && let (Some(candidate), Some(usage)) =
                (candidate.as_object_mut(), content["usageMetadata"].as_object())
        {
            candidate.remove("finishReason");
            let mut usage = usage.clone();
            usage.insert("candidatesTokenCount".to_owned(), json!(at));
            chunk["usageMetadata"] = Value::Object(usage);
        }
        event(&chunk)
    };
    parts.into_iter().enumerate().map(chunk).collect()
}

fn event(data: &Value) -> String {
    format!("data: {data}\r\n\r\n")
}

//! What real clients need of a provider's API: streams, tools and failures in its own words.

use serde_json::{Value, json};
use standpipe_sim::Shape;

use super::client::Client;
use super::server;

/// What a provider of a shape answers, without its headers.
fn answer(shape: Shape, path: &str, headers: &str, body: &Value) -> (u16, String) {
    let (server, _clock) = server(&[], shape);
    let mut client = Client::new(server.address());
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nhost: api\r\nconnection: close\r\n{headers}");
    client.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    let text = client.rest();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn whole(shape: Shape, path: &str, body: &Value) -> Value {
    let (status, text) = answer(shape, path, "", body);
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_tool_is_called_if_the_request_insists() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let ask = json!({"messages": [{"role": "user", "content": "hi"}],
        "tool_choice": {"type": "any"}, "tools": [{"name": "weather", "input_schema": schema}]});
    let called = whole(Shape::Anthropic, "/v1/messages", &ask);
    assert_eq!(called["content"][0]["name"], "weather");
    assert_eq!(called["content"][0]["input"], json!({"city": "seven"}));
    let mut second = ask.clone();
    second["tool_choice"]["type"] = json!("auto");
    let answer = whole(Shape::Anthropic, "/v1/messages", &second);
    assert_eq!(answer["content"][0]["type"], "text", "it may, but need not");
    let ask = json!({"messages": [{"role": "user", "content": "hi"}], "tool_choice": "required",
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": schema}}]});
    let called = whole(Shape::OpenAi, "/v1/chat/completions", &ask);
    let call = &called["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(call["arguments"], "{\"city\":\"seven\"}");
    let ask = json!({"contents": [{"parts": [{"text": "hi"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "tools": [{"functionDeclarations": [{"name": "weather", "parameters": schema}]}]});
    let called = whole(Shape::Gemini, "/v1beta/models/gemini-x:generateContent", &ask);
    let part = &called["candidates"][0]["content"]["parts"][0];
    assert_eq!(part["functionCall"]["name"], "weather");
    assert_eq!(called["modelVersion"], "gemini-x");
}

#[test]
fn a_stream_ends_with_the_usage_of_its_provider() {
    let ask = json!({"model": "m", "stream": true, "input": "hi", "messages": [{"content": "hi"}]});
    let gemini = "/v1beta/models/g:streamGenerateContent?alt=sse";
    for (shape, path, last) in [
        (Shape::Anthropic, "/v1/messages", "\"output_tokens\":5"),
        (Shape::OpenAi, "/v1/responses", "\"output_tokens\":5"),
        (Shape::Mistral, "/v1/chat/completions", "\"completion_tokens\":5"),
        (Shape::Gemini, gemini, "\"candidatesTokenCount\":5"),
    ] {
        let (status, text) = answer(shape, path, "x-used-output: 5\r\n", &ask);
        assert!(status == 200 && text.contains(last), "{path}: {text}");
    }
}

#[test]
fn a_call_fails_as_it_is_told_in_the_words_of_its_provider() {
    for (shape, words) in [
        (Shape::Anthropic, "authentication_error"),
        (Shape::OpenAi, "invalid_api_key"),
        (Shape::Gemini, "UNAUTHENTICATED"),
        (Shape::Mistral, "Unauthorized"),
        (Shape::GitHub, "Bad credentials"),
    ] {
        let (status, text) = answer(shape, "/v1/messages", "x-fail: 401\r\n", &json!({}));
        assert!(status == 401 && text.contains(words), "{text}");
    }
}

#[test]
fn mistral_rejects_members_that_it_does_not_know() {
    let ask = json!({"model": "m", "stream": true, "messages": [{"content": "hi"}],
                     "stream_options": {"include_usage": true}});
    let (status, text) = answer(Shape::Mistral, "/v1/chat/completions", "", &ask);
    assert!(status == 422 && text.contains("extra_forbidden"), "{text}");
}

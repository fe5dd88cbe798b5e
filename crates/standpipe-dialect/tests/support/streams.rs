//! Streams as providers send them.

/// Input and cache at the beginning, output at the end, pings anywhere.
pub(crate) const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"type":"message","usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":3000,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"!"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// It began, and then there was no capacity.
pub(crate) const ANTHROPIC_OVERLOADED: &str = r#"event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}

event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}

"#;

/// Every chunk has `usage: null` but one that is there only for it.
pub(crate) const CHAT: &str = r#"data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}

data: {"id":"c","choices":[{"index":0,"delta":{"content":"Grüße"}}],"usage":null}

data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}],"usage":null}

data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}

data: [DONE]

"#;

/// Events with names; the usage is in the last.
pub(crate) const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","response":{"object":"response","usage":null}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","delta":"Hello world"}

event: response.completed
data: {"type":"response.completed","response":{"usage":{"input_tokens":37,"output_tokens":11,"total_tokens":48}}}

"#;

/// A refusal in the last event.
pub(crate) const RESPONSES_FAILED: &str = r#"event: response.failed
data: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 1.5s."},"usage":null}}

"#;

/// With `alt=sse`.
pub(crate) const GEMINI_SSE: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}],"usageMetadata":{"promptTokenCount":4,"totalTokenCount":4}}

data: {"candidates":[{"content":{"parts":[{"text":"lo"},{"text":" all."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":6,"thoughtsTokenCount":3,"totalTokenCount":13}}

"#;

/// Without it.
pub(crate) const GEMINI_LIST: &str = r#"[{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}],
  "usageMetadata":{"promptTokenCount":4,"totalTokenCount":4}}
,
{"candidates":[{"content":{"parts":[{"text":"lo"},{"text":" all."}]},"finishReason":"STOP"}],
  "usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":6,"thoughtsTokenCount":3,
  "totalTokenCount":13}}
]"#;

/// A frame of AWS; its checksums are left empty.
pub(crate) fn frame(kind: &str, name: &str, payload: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    for (key, value) in [(format!(":{kind}-type"), name), (":message-type".to_owned(), kind)] {
        headers.push(key.len() as u8);
        headers.extend_from_slice(key.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let length = (headers.len() + payload.len() + 16) as u32;
    let headers_length = (headers.len() as u32).to_be_bytes();
    let parts = [&length.to_be_bytes()[..], &headers_length, &[0; 4], &headers, payload, &[0; 4]];
    parts.concat()
}

/// Content, usage, and then a refusal.
pub(crate) fn bedrock() -> Vec<u8> {
    let delta = br#"{"contentBlockIndex":0,"delta":{"text":"Hello"}}"#;
    let usage = br#"{"usage":{"inputTokens":30,"outputTokens":2,"totalTokens":32}}"#;
    let refusal = br#"{"message":"Too many tokens, please wait before trying again."}"#;
    let frames = [
        frame("event", "contentBlockDelta", delta),
        frame("event", "metadata", usage),
        frame("exception", "throttlingException", refusal),
    ];
    frames.concat()
}

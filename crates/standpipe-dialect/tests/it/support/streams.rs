//! Sample streams of the providers.

/// Input and cache usage at the start, output usage at the end, pings anywhere.
pub(crate) const ANTHROPIC: &str = include_str!("../samples/anthropic.sse");

/// An overload error after the first events.
pub(crate) const ANTHROPIC_OVERLOADED: &str = include_str!("../samples/anthropic-overloaded.sse");

/// Every chunk has `usage: null`, except one extra chunk with the usage.
pub(crate) const CHAT: &str = include_str!("../samples/chat.sse");

/// Named events; the last one has the usage.
pub(crate) const RESPONSES: &str = include_str!("../samples/responses.sse");

/// A refusal in the last event.
pub(crate) const RESPONSES_FAILED: &str = include_str!("../samples/responses-failed.sse");

/// With `alt=sse`.
pub(crate) const GEMINI_SSE: &str = include_str!("../samples/gemini-sse.sse");

/// Without `alt=sse`: a JSON array.
pub(crate) const GEMINI_LIST: &str = include_str!("../samples/gemini-list.json");

/// An AWS event-stream frame with empty checksums.
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

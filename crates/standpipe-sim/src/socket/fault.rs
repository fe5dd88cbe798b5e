//! What goes wrong with a reply on purpose, as headers of the request ask for.

use serde_json::Value;

use super::http::Request;
use crate::provider::Reply;

/// What goes wrong. Numbers of events are those before which it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    /// The connection ends: `x-break-after`.
    pub(super) breaks: Option<u64>,
    /// The connection is reset: `x-reset-after`.
    pub(super) resets: Option<u64>,
    /// Nothing more comes, until the client closes: `x-stall-after`.
    pub(super) stalls: Option<u64>,
    /// An error event ends it: `x-error-after`.
    pub(super) fails: Option<u64>,
    /// How long each event takes, in milliseconds: `x-chunk-ms`.
    pub(super) chunk_ms: u64,
    /// Only so many bytes of a body are sent: `x-truncate`.
    pub(super) truncates: Option<usize>,
    /// The connection ends after the reply, which does not say so: `x-close`.
    pub(super) closes: bool,
    /// A reply of this status comes first: `x-informational`.
    pub(super) informs: Option<u64>,
}

/// The size of one header of padding.
const PADDING: usize = 8_000;

impl Fault {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            breaks: request.number("x-break-after"),
            resets: request.number("x-reset-after"),
            stalls: request.number("x-stall-after"),
            fails: request.number("x-error-after"),
            chunk_ms: request.number("x-chunk-ms").unwrap_or(0),
            truncates: request.number("x-truncate").and_then(|count| count.try_into().ok()),
            closes: request.header("x-close").is_some(),
            informs: request.number("x-informational"),
        }
    }
}

/// Changes a reply: `x-head-bytes` makes its head larger, `x-body-bytes` its body, `x-usage`
/// replaces the usage it states, and `x-echo` returns the body of the request instead.
pub(super) fn distort(request: &Request, reply: &mut Reply) {
    let padding = request.number("x-head-bytes").unwrap_or(0).min(4 << 20);
    for number in 0..padding / PADDING as u64 {
        reply.headers.push((format!("x-padding-{number}"), "x".repeat(PADDING)));
    }
    if request.header("x-echo").is_some() {
        let kind = request.header("content-type").unwrap_or_default().to_owned();
        reply.headers.retain(|(name, _)| name != "content-type");
        reply.headers.push(("content-type".to_owned(), kind));
        reply.body.clone_from(&request.body);
        return;
    }
    let usage = request.header("x-usage");
    let bytes = request.number("x-body-bytes").and_then(|count| usize::try_from(count).ok());
    let Ok(Value::Object(stated)) = serde_json::from_slice::<Value>(&reply.body) else { return };
    if usage.is_none() && bytes.is_none() {
        return;
    }
    // Before all other members, as the vectors of an embedding are.
    let vectors = "0.0123456789,".repeat(bytes.unwrap_or(0).min(64 << 20) / 13);
    let vectors = Value::Array(vec![Value::from(vectors)]);
    let mut body = serde_json::Map::new();
    if bytes.is_some() {
        body.insert("data".to_owned(), Value::Null);
    }
    body.extend(stated);
    if bytes.is_some() {
        body.insert("data".to_owned(), vectors);
    }
    if let Some(usage) = usage {
        body.insert("usage".to_owned(), serde_json::from_str(usage).unwrap_or_default());
    }
    reply.body = Value::Object(body).to_string().into_bytes();
}

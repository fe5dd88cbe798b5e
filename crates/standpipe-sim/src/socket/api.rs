//! Providers' APIs as far as real clients use them: what the limiter accepted becomes the answer
//! that the request asks for.
//!
//! The limiter's own reply has the headers, the usage and the names of the call. This adds what
//! depends on the request: its path, its model, tools, streams. A tool is called if the request
//! insists on one (`tool_choice`).

mod anthropic;
mod failure;
mod gemini;
mod github;
mod mistral;
mod openai;
mod responses;
mod tools;

use serde_json::Value;

use super::http::Request;
use crate::provider::{Reply, Shape};

/// What every model answers, in the pieces in which it is streamed.
pub(super) const PIECES: [&str; 3] = ["Done", " and", " done."];

/// An answer as it is sent.
#[derive(Debug)]
pub(super) enum Answer {
    Whole(Reply),
    Stream(Events),
}

/// An answer as a stream of server-sent events.
#[derive(Debug)]
pub(super) struct Events {
    /// Its headers; its body is not sent.
    pub(super) head: Reply,
    pub(super) events: Vec<String>,
    /// The event that ends it with an error.
    pub(super) error: String,
}

/// The answer to a request. `reply` is what the limiter says.
pub(super) fn answer(shape: Shape, request: &Request, reply: Reply) -> Answer {
    if !matches!(reply.status, 200 | 201) {
        return Answer::Whole(reply);
    }
    if let Some(status) = failure(request) {
        return Answer::Whole(failure::reply(shape, reply, status));
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    match shape {
        Shape::Anthropic => anthropic::answer(request, &body, reply),
        Shape::OpenAi | Shape::Azure => openai::answer(request, &body, reply),
        Shape::Gemini => gemini::answer(request, &body, reply),
        Shape::Mistral => mistral::answer(request, &body, reply),
        Shape::GitHub => Answer::Whole(github::answer(request, &body, reply)),
        Shape::Plain => Answer::Whole(reply),
    }
}

/// The status with which a call fails on purpose: `x-fail`.
pub(super) fn failure(request: &Request) -> Option<u16> {
    let status = request.number("x-fail")?;
    u16::try_from(status).ok().filter(|status| (400..600).contains(status))
}

/// The body of the limiter's reply.
fn parsed(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

fn with_body(mut reply: Reply, body: &Value) -> Reply {
    reply.body = body.to_string().into_bytes();
    reply
}

/// The model that a request's body names; empty if none.
pub(super) fn model_named(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["model"].as_str().unwrap_or_default().to_owned()
}

/// The model that a request names, else the provider's own.
fn model(body: &Value, own: &Value) -> Value {
    if body["model"].is_string() { body["model"].clone() } else { own.clone() }
}

/// An event with a name, which is the `type` of its data.
fn named(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

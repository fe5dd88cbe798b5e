//! Refusals of Standpipe in the provider's own format, so that SDKs raise their own exceptions.
//!
//! `x-standpipe-origin: ledger` tells them apart from the provider's; `x-should-retry: false` keeps
//! SDKs from adding a retry layer of their own. A provider that did not answer is
//! `x-standpipe-origin: provider` with the reason `upstream`.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use standpipe::{LeaseId, PoolName, Zone};

use super::format::Format;
use super::hold::{Call, Tries};
use crate::http::names;
use crate::http::problem::Problem;

/// A problem as the provider would state it.
pub(crate) fn response(format: Format, problem: &Problem) -> Response<Body> {
    let problem = &as_configuration_error(problem);
    let mut base = problem.clone().into_response();
    let status = base.status();
    let body = match body(format, status, &problem.message()) {
        Some(body) => body.to_string(),
        None => {
            add_reason(base.headers_mut(), problem);
            return with_retry_off(base);
        }
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in base.headers() {
        if *name != header::CONTENT_LENGTH {
            headers.insert(name.clone(), value.clone());
        }
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    add_reason(headers, problem);
    if let Some(position) = problem.position() {
        headers.insert("x-standpipe-position", HeaderValue::from(position));
    }
    with_retry_off(response)
}

/// A pool that the configuration does not allow, as an error of the file: an SDK reports a 404 as a
/// model that does not exist.
fn as_configuration_error(problem: &Problem) -> Problem {
    let mut problem = problem.clone();
    if ["no_pool", "no_limits"].contains(&problem.r#type) {
        problem.status = StatusCode::BAD_REQUEST.as_u16();
    }
    if let Some(file) = problem.file().map(|file| file.display().to_string()) {
        problem.detail = format!("{file}: {}", problem.detail);
    }
    problem
}

/// Names the rule that refused a call, or a further try of it.
pub(crate) fn add_reason(headers: &mut HeaderMap, problem: &Problem) {
    if let Some(reason) = problem.reason() {
        headers.insert(&names::REASON, HeaderValue::from_static(reason));
    }
}

fn with_retry_off(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    response
}

/// The body of an error in the provider's format; `None` if the format is not known.
pub(super) fn body(format: Format, status: StatusCode, message: &str) -> Option<Value> {
    let limited = status == StatusCode::TOO_MANY_REQUESTS;
    let server = status.is_server_error();
    Some(match format {
        Format::Anthropic => {
            let kind = match status.as_u16() {
                429 => "rate_limit_error",
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                503 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Format::OpenAi | Format::OpenAiChat | Format::OpenAiMedia | Format::Realtime => {
            let (kind, code) = match (limited, server) {
                (true, _) => ("rate_limit_error", json!("rate_limit_exceeded")),
                (_, true) => ("server_error", Value::Null),
                _ => ("invalid_request_error", Value::Null),
            };
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
        Format::Gemini => {
            let kind = match (limited, server) {
                (true, _) => "RESOURCE_EXHAUSTED",
                (_, true) => "UNAVAILABLE",
                _ => "INVALID_ARGUMENT",
            };
            json!({"error": {"code": status.as_u16(), "message": message, "status": kind}})
        }
        Format::Bedrock => json!({"message": message}),
        Format::GitHub => json!({"message": message}),
        Format::GitHubGraphQl => json!({"message": message}),
        Format::Other | Format::Unmetered => return None,
    })
}

/// An error as the last event of a stream whose head was sent already.
pub(crate) fn error_event(format: Format, status: StatusCode, body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    // An event is one line.
    let line = match serde_json::from_slice::<Value>(body) {
        Ok(value) => value.to_string(),
        Err(_) => json!({"error": {"message": text, "code": status.as_u16()}}).to_string(),
    };
    let name = if format == Format::Anthropic { "event: error\n" } else { "" };
    format!("{name}data: {line}\n\n").into_bytes()
}

/// Adds what Standpipe knows of a call to its answer.
pub(crate) fn add_headers(
    headers: &mut HeaderMap,
    about: &(PoolName, LeaseId, Zone),
    call: &Call,
    tries: &Tries,
) {
    let (pool, lease, zone) = about;
    let text = |value: String| HeaderValue::try_from(value).ok();
    let waited = u64::try_from(tries.waited.as_millis()).unwrap_or(u64::MAX);
    let all = [
        (&names::POOL, text(pool.to_string())),
        (&names::LEASE, text(lease.to_string())),
        (&names::ZONE, Some(HeaderValue::from_static(zone.as_str()))),
        (&names::ATTEMPTS, Some(tries.count.into())),
        (&names::WAITED, Some(waited.into())),
    ];
    for (name, value) in all {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    // What was rewritten.
    let Some(original) = &call.original else { return };
    if let Some(model) = call.facts.model.as_ref().filter(|_| call.facts.model != original.model)
        && let Some(model) = text(model.clone())
    {
        headers.insert("x-standpipe-model", model);
    }
    if let Some(tokens) = call.facts.max_output.filter(|now| Some(*now) != original.max_output) {
        headers.insert("x-standpipe-max-output", tokens.into());
    }
}

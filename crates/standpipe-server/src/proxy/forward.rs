//! Sends a call to its provider.
//!
//! Headers that belong to a connection, and those of Standpipe, stay behind. Everything else goes
//! through unchanged.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use axum::response::Response as AxumResponse;
use hyper::body::Incoming;
use hyper_util::client::legacy::ResponseFuture;
use standpipe::Reply;

use super::estimate::Effect;
use super::hold::Call;
use super::identify::Identified;
use super::links;
use super::request_body::passing;
use super::unreachable::{late, unreachable};
use super::upgrade::add_upgrade;
use crate::http::names;
use crate::http::problem::Problem;

/// Headers that belong to one connection (RFC 9110, section 7.6.1).
static HOP_BY_HOP: [&HeaderName; 9] = [
    &header::CONNECTION,
    &names::KEEP_ALIVE,
    &header::PROXY_AUTHENTICATE,
    &header::PROXY_AUTHORIZATION,
    &names::PROXY_CONNECTION,
    &header::TE,
    &header::TRAILER,
    &header::TRANSFER_ENCODING,
    &header::UPGRADE,
];

/// How long a provider may take for the head of an answer. A call without a stream is answered when
/// it is done, which takes minutes.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1_800);

/// Why a call has no answer.
pub(crate) enum SendError {
    /// It was never sent.
    NotSent(Problem),
    /// It may have been served.
    Broken(Problem),
}

/// Sends a call and returns the head of its answer.
pub(crate) async fn send(call: &Call) -> Result<Response<Incoming>, SendError> {
    let body = body_to_send(call);
    let request =
        build(&call.identified, &call.parts, Body::from(body), true).map_err(SendError::NotSent)?;
    let client = call.identified.upstream.client().map_err(SendError::NotSent)?;
    answer_of(call, client.request(request)).await
}

async fn answer_of(call: &Call, sent: ResponseFuture) -> Result<Response<Incoming>, SendError> {
    let upstream = &call.identified.upstream;
    match tokio::time::timeout(HEAD_TIMEOUT, sent).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if error.is_connect() => {
            Err(SendError::NotSent(unreachable(upstream, &error)))
        }
        Ok(Err(error)) => Err(SendError::Broken(unreachable(upstream, &error))),
        Err(_) => Err(SendError::Broken(late(upstream, HEAD_TIMEOUT))),
    }
}

/// Sends a call that asks for a WebSocket, which needs HTTP/1.1.
pub(crate) async fn send_upgrade(call: &Call) -> Result<Response<Incoming>, SendError> {
    let built = build(&call.identified, &call.parts, Body::empty(), false);
    let mut request = built.map_err(SendError::NotSent)?;
    add_upgrade(request.headers_mut());
    // The usage is read from the messages, so they must not be compressed.
    request.headers_mut().remove(header::SEC_WEBSOCKET_EXTENSIONS);
    // A body is not forwarded, and the provider must not wait for one.
    request.headers_mut().remove(header::CONTENT_LENGTH);
    let client = call.identified.upstream.http1_client().map_err(SendError::NotSent)?;
    answer_of(call, client.request(request)).await
}

/// Passes a request through that uses no quota, in both directions as it comes.
pub(crate) async fn unmetered(
    identified: &Identified,
    parts: Parts,
    body: Body,
) -> Result<AxumResponse, Problem> {
    let request = build(identified, &parts, passing(body), false)?;
    let answer = identified.upstream.client()?.request(request).await;
    let answer = answer.map_err(|error| unreachable(&identified.upstream, &error))?;
    let (mut head, body) = answer.into_parts();
    remove_connection_headers(&mut head.headers);
    links::rewrite(&mut head.headers, identified.upstream.base(), &identified.path, &parts);
    Ok(Response::from_parts(head, Body::new(body)))
}

/// The body for the provider: the client's own, or with a request for the usage of a stream.
fn body_to_send(call: &Call) -> Bytes {
    match call.facts.lacks_usage(call.format) {
        true => call.facts.with_usage(&call.body).into(),
        false => call.body.clone(),
    }
}

fn build(
    identified: &Identified,
    parts: &Parts,
    body: Body,
    is_read: bool,
) -> Result<Request<Body>, Problem> {
    let upstream = &identified.upstream;
    let mut headers = parts.headers.clone();
    remove_connection_headers(&mut headers);
    headers.remove(header::HOST);
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-standpipe-")).cloned().collect();
    for name in own {
        headers.remove(name);
    }
    if is_read {
        // The usage is read from the answer.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // The length may have changed; hyper states the right one.
        headers.remove(header::CONTENT_LENGTH);
    }
    if upstream.has_key()
        && let Some((name, key)) = upstream.key_header()?
    {
        headers.remove("x-api-key");
        headers.remove(header::AUTHORIZATION);
        headers.insert(name, key);
    }
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = upstream.uri(&identified.path)?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Removes the headers that belong to one connection, and those that `connection` names.
pub(crate) fn remove_connection_headers(headers: &mut HeaderMap) {
    let listed = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> = listed
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// The head of an answer, for the ledger to read.
pub(crate) fn reply_head(head: &axum::http::response::Parts) -> Reply {
    let text = head.headers.iter().filter_map(|(name, value)| Some((name, value.to_str().ok()?)));
    text.fold(Reply::new(head.status.as_u16()), |reply, (name, value)| {
        reply.header(name.as_str(), value)
    })
}

/// Whether a call changes nothing, so that it may be sent again although its answer was lost.
pub(crate) fn is_read(call: &Call) -> bool {
    call.effect() == Effect::Reads
}

/// Whether an answer is an error.
pub(crate) fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

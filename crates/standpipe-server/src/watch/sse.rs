//! Server-sent event streams (`text/event-stream`).
//!
//! Streams are bounded in number, end with the daemon, and never run more than one message ahead of
//! a slow reader.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use tokio::sync::OwnedSemaphorePermit;

use crate::http::problem::Problem;
use crate::state::{AppState, MAX_STREAMS};

/// How often an idle stream sends a comment, so that proxies keep it open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Whether the client accepts an event stream.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(header::ACCEPT).into_iter();
    let mut kinds = accept.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream")
    })
}

/// Takes one of the [`MAX_STREAMS`] permits.
pub(crate) fn permit(state: &Arc<AppState>) -> Result<OwnedSemaphorePermit, Problem> {
    if state.is_stopping() {
        return Err(Problem::stopping());
    }
    let free = Arc::clone(&state.streams).try_acquire_owned();
    free.map_err(|_| Problem::too_many("streams", MAX_STREAMS))
}

/// The response that carries a stream.
pub(crate) fn response(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // nginx buffers responses unless it is asked not to.
    response.headers_mut().insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    response
}

/// The last event of a stream when the daemon stops.
pub(crate) fn bye() -> Event {
    Event::default().event("bye").data(r#"{"schema":1,"reason":"stopping"}"#)
}

//! Streams of events to whoever listens (`text/event-stream`): bounded in number, ended when the
//! daemon ends, and never more than one message ahead of a slow reader.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use tokio::sync::OwnedSemaphorePermit;

use crate::house::{House, MOST_STREAMS};
use crate::problem::Problem;

/// How often a stream that has nothing to say shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Whether the caller wants a stream.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(header::ACCEPT).into_iter();
    let mut kinds = accept.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream")
    })
}

/// A place among the streams.
pub(crate) fn place(house: &Arc<House>) -> Result<OwnedSemaphorePermit, Problem> {
    if house.is_stopping() {
        return Err(Problem::stopping());
    }
    let free = Arc::clone(&house.streams).try_acquire_owned();
    free.map_err(|_| Problem::too_many("streams", MOST_STREAMS))
}

/// The answer that a stream is.
pub(crate) fn answer(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response();
    // Proxies between must not gather it.
    response.headers_mut().insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    response
}

/// The last event before a stream ends because the daemon does.
pub(crate) fn bye() -> Event {
    Event::default().event("bye").data(r#"{"schema":1,"reason":"stopping"}"#)
}

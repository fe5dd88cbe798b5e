//! Passes an answer on to the client and reads from it what the call used.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use futures_util::future::BoxFuture;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming, SizeHint};
use standpipe::Lease;

use super::errors::{self, add_headers, error_event};
use super::format::Format;
use super::forward::{is_error, remove_connection_headers, reply_head};
use super::hold::{Call, Tries};
use super::links;
use super::settle::Settlement;
use super::sse::UsageFilter;
use crate::http::problem::Problem;

/// A comment in a stream of events, which clients ignore.
const KEEPALIVE: &[u8] = b": keepalive\n\n";
/// How long the provider may send nothing within a stream.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// The answer for the client. Its body settles the lease when it has passed, or is dropped.
pub(crate) fn relay(
    call: &Call,
    lease: Lease,
    answer: Response<Incoming>,
    tries: &Tries,
) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    let about = (lease.pool().clone(), lease.id().clone(), lease.zone());
    let encoding = head.headers.get(header::CONTENT_ENCODING);
    let encoding = encoding.map(|value| value.to_str().unwrap_or("?"));
    let reply = call.pool.read_reply(reply_head(&head));
    let status = head.status.as_u16();
    // Sound and images state no usage.
    let settlement = match is_text(&head.headers) {
        true => Settlement::new(call, (lease, status), reply, encoding),
        false => Settlement::new(call, (lease, status), reply, Some("binary")),
    };
    let hides = call.facts.lacks_usage(call.format) && encoding.is_none();
    remove_connection_headers(&mut head.headers);
    if hides {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    let identified = &call.identified;
    links::rewrite(&mut head.headers, identified.upstream.base(), &identified.path, &call.parts);
    add_headers(&mut head.headers, &about, call, tries);
    let filter = hides.then(UsageFilter::default);
    let arrived = tokio::time::Instant::now();
    let body = RelayBody { body, settlement, filter, arrived, idle: None, ended: false };
    Response::from_parts(head, Body::new(body))
}

/// Whether the body can state usage: JSON, or events.
fn is_text(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return true };
    let kind = kind.to_str().unwrap_or_default().to_ascii_lowercase();
    ["json", "text/", "eventstream"].iter().any(|part| kind.contains(part))
}

/// The body of an answer on its way to the client.
struct RelayBody {
    body: Incoming,
    settlement: Settlement,
    filter: Option<UsageFilter>,
    /// When the last piece arrived.
    arrived: tokio::time::Instant,
    /// Set once the provider is waited for. It is not reset for each piece, but when it has fired.
    idle: Option<Pin<Box<tokio::time::Sleep>>>,
    ended: bool,
}

impl RelayBody {
    /// Resolves when the provider has sent nothing for too long.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let until = self.arrived + IDLE_TIMEOUT;
        let idle = self.idle.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        loop {
            ready!(idle.as_mut().poll(context));
            if idle.deadline() >= until {
                return Poll::Ready(());
            }
            idle.as_mut().reset(until);
        }
    }
}

impl hyper::body::Body for RelayBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        loop {
            let frame = match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    ready!(this.poll_idle(context));
                    return Poll::Ready(Some(Err(axum::Error::new("the provider sent nothing"))));
                }
            };
            let frame = match frame {
                None => {
                    if !std::mem::replace(&mut this.ended, true) {
                        this.settlement.end();
                    }
                    let rest = this.filter.take().map(UsageFilter::finish);
                    let rest = rest.filter(|bytes| !bytes.is_empty());
                    return Poll::Ready(rest.map(|bytes| Ok(Frame::data(bytes))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(axum::Error::new(error)))),
                Some(Ok(frame)) => frame,
            };
            this.arrived = tokio::time::Instant::now();
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            };
            this.settlement.feed(&data);
            // A body of a stated length is not polled again after its last byte.
            if this.body.is_end_stream() && !std::mem::replace(&mut this.ended, true) {
                this.settlement.end();
            }
            let data = match &mut this.filter {
                Some(filter) => filter.pass(data),
                None => data,
            };
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        // The end is reported by a frame, so that the lease is settled.
        false
    }

    fn size_hint(&self) -> SizeHint {
        if self.filter.is_some() {
            SizeHint::default()
        } else {
            hyper::body::Body::size_hint(&self.body)
        }
    }
}

/// The beginning of a stream whose call still waits: comments, then the answer or an error event.
pub(crate) fn held_open(
    answer: PendingAnswer,
    interval: Duration,
    format: Format,
) -> Response<Body> {
    let held = Held { answer: Some(answer), interval, format, body: None };
    let frames = stream::unfold(held, |mut held| async move {
        let frame = held.next().await?;
        Some((frame, held))
    });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-standpipe-held", HeaderValue::from_static("true"));
    response
}

type PendingAnswer = BoxFuture<'static, Result<Response<Body>, Problem>>;

/// A stream whose head was sent before its call was admitted.
struct Held {
    answer: Option<PendingAnswer>,
    interval: Duration,
    format: Format,
    body: Option<Body>,
}

impl Held {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        if let Some(answer) = &mut self.answer {
            let done = tokio::select! {
                biased;
                done = answer => done,
                () = tokio::time::sleep(self.interval) => {
                    return Some(Ok(Frame::data(Bytes::from_static(KEEPALIVE))));
                }
            };
            self.answer = None;
            let done = done.unwrap_or_else(|problem| errors::response(self.format, &problem));
            let answer = match done {
                answer if !is_error(answer.status()) => answer.into_body(),
                answer => {
                    let status = answer.status();
                    let body = answer.into_body().collect().await.map(|whole| whole.to_bytes());
                    Body::from(error_event(self.format, status, &body.unwrap_or_default()))
                }
            };
            self.body = Some(answer);
        }
        self.body.as_mut()?.frame().await
    }
}

//! The body of a request: bounded in size, in time, and in memory together with all others.
//!
//! A call that counts is read whole: it is measured for the estimate, and sent again after a
//! refusal. Any other body passes as it comes, and only the time between two pieces is bounded.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Sleep, sleep};

use crate::http::problem::Problem;

/// The largest body of a call, in bytes: what the providers themselves accept.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// How long a client may send nothing within a body.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The most kilobytes that the bodies of all calls may have together: those that wait are kept.
const MAX_KILOBYTES: usize = 1024 * 1024;
static KILOBYTES: Semaphore = Semaphore::const_new(MAX_KILOBYTES);

/// A body that was read whole, and its part of the memory of all.
pub(crate) struct WholeBody {
    pub(crate) bytes: Bytes,
    pub(crate) room: SemaphorePermit<'static>,
}

/// Reads a whole body.
pub(crate) async fn read(body: Body) -> Result<WholeBody, Problem> {
    read_within(body, &KILOBYTES).await
}

async fn read_within(body: Body, kilobytes: &'static Semaphore) -> Result<WholeBody, Problem> {
    let mut body = Punctual::new(body);
    if body.lower() > MAX_BODY {
        return Err(Problem::too_large(MAX_BODY));
    }
    let mut room = Room { bytes: 0, permit: acquire(kilobytes, 0)? };
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<TooSlow>() {
            true => too_slow(),
            false => Problem::client_gone(),
        })?;
        let Ok(data) = frame.into_data() else { continue };
        room.add(data.len(), kilobytes)?;
        // Most bodies arrive in one piece, which is not copied.
        if first.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(first.len() + data.len() + body.lower());
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
    let bytes = if all.is_empty() { first } else { all.into() };
    Ok(WholeBody { bytes, room: room.permit })
}

/// A body that passes as it comes. It ends with an error if the client sends nothing for a while.
pub(crate) fn passing(body: Body) -> Body {
    Body::new(Punctual::new(body))
}

/// The memory that a body has so far.
struct Room {
    bytes: usize,
    permit: SemaphorePermit<'static>,
}

impl Room {
    fn add(&mut self, bytes: usize, kilobytes: &'static Semaphore) -> Result<(), Problem> {
        let had = self.bytes.div_ceil(1024);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BODY {
            return Err(Problem::too_large(MAX_BODY));
        }
        self.permit.merge(acquire(kilobytes, self.bytes.div_ceil(1024) - had)?);
        Ok(())
    }
}

fn acquire(
    kilobytes: &'static Semaphore,
    count: usize,
) -> Result<SemaphorePermit<'static>, Problem> {
    kilobytes
        .try_acquire_many(u32::try_from(count).unwrap_or(u32::MAX))
        .map_err(|_| Problem::too_many("kilobytes of bodies", MAX_KILOBYTES))
}

fn too_slow() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "too_slow",
        format!("the body made no progress for {} s", IDLE_TIMEOUT.as_secs()),
        "send the body without delay",
    )
}

/// A body whose next piece must come in time. Without it a client that stalls would keep its
/// connection for ever.
struct Punctual {
    body: Body,
    /// Set while a piece is awaited.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Punctual {
    const fn new(body: Body) -> Self {
        Self { body, timer: None }
    }

    /// How many bytes follow, at least.
    fn lower(&self) -> usize {
        usize::try_from(hyper::body::Body::size_hint(&self.body).lower()).unwrap_or(usize::MAX)
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl hyper::body::Body for Punctual {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.timer = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(IDLE_TIMEOUT)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Some(Err(Box::new(TooSlow))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[derive(Debug)]
struct TooSlow;

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client sent nothing of the body for a while")
    }
}

impl std::error::Error for TooSlow {}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream::{self, StreamExt};

    use super::*;

    /// Pieces of a body, each after a pause; the last one never comes if `stalls`.
    fn body(pieces: &[&'static str], pause: Duration, stalls: bool) -> Body {
        let pieces = stream::iter(pieces.to_vec()).then(move |piece| async move {
            sleep(pause).await;
            Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes()))
        });
        match stalls {
            true => Body::from_stream(pieces.chain(stream::pending())),
            false => Body::from_stream(pieces),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_read_and_one_that_stalls_is_not() {
        let pause = IDLE_TIMEOUT * 9 / 10;
        let slow = read(body(&["a", "bc", "", "d"], pause, false)).await.ok().unwrap();
        assert_eq!(&slow.bytes[..], b"abcd");
        let stalled = read(body(&["a", "b"], pause, true)).await.err().unwrap();
        assert_eq!((stalled.status, stalled.r#type), (408, "too_slow"));
        let passed = passing(body(&["a"], pause, true)).collect().await;
        assert!(passed.is_err_and(|error| error.to_string().contains("sent nothing")));
        assert!(read(Body::empty()).await.is_ok_and(|empty| empty.bytes.is_empty()));
    }

    #[tokio::test]
    async fn bodies_are_bounded_one_by_one_and_together() {
        static ALL: Semaphore = Semaphore::const_new(100_000);
        let read = |size: usize| read_within(Body::from(vec![0; size]), &ALL);
        assert_eq!(read(MAX_BODY + 1).await.err().unwrap().status, 413);
        let held = read(1025).await.ok().unwrap();
        assert_eq!(ALL.available_permits(), 99_998);
        let rest = acquire(&ALL, 99_998).ok().unwrap();
        assert_eq!(read(1).await.err().unwrap().status, 503);
        drop((held, rest));
        assert_eq!(ALL.available_permits(), 100_000);
    }
}

//! One HTTP request over a connection of its own, by hyper on a runtime of one thread.
//!
//! Guarantee: [`send`] returns within its timeout, and keeps at most [`MAX_HEAD`] bytes of a head
//! and [`MAX_BODY`] bytes of a body.

use std::error::Error as StdError;
use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::Request;
use hyper::body::{Body, Bytes};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::Address;
use super::reply::Reply;

/// The time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The largest head of a reply. The daemon's are below 1 KiB.
const MAX_HEAD: usize = 64 << 10;
/// The largest body of a reply: more pools than a terminal could show.
const MAX_BODY: usize = 32 << 20;

/// Builds a request.
///
/// # Errors
/// When the path or the token cannot be part of a request.
pub(super) fn request(
    address: &Address,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Result<Request<Full<Bytes>>> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", address.host())
        .header("accept", "application/json")
        .header("connection", "close");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = match body {
        Some(body) => {
            request = request.header("content-type", "application/json");
            Full::from(body.to_string())
        }
        None => Full::default(),
    };
    request.body(body).map_err(Error::other)
}

/// Sends a request and reads the whole reply, within `limit`.
///
/// # Errors
/// When there is no complete and valid reply in time.
pub(super) fn send(
    address: &Address,
    request: Request<Full<Bytes>>,
    limit: Duration,
) -> Result<Reply> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        timeout(limit, connect_and_send(address, request)).await.map_err(|_| timed_out())?
    })
}

async fn connect_and_send(address: &Address, request: Request<Full<Bytes>>) -> Result<Reply> {
    match address {
        Address::Tcp(at) => {
            let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(at)).await;
            exchange(stream.map_err(|_| timed_out())??, request).await
        }
        // A socket whose queue of connections is full is refused at once, so this does not wait.
        Address::Unix(path) => exchange(UnixStream::connect(path).await?, request).await,
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Reply>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(|error| io_error(&error))?;
    // It ends with the runtime. Its errors also arrive at the sender or the body.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| io_error(&error))?;
    let status = response.status().as_u16();
    if response.body().size_hint().lower() > MAX_BODY as u64 {
        return Err(body_too_long());
    }
    let body = Limited::new(response.into_body(), MAX_BODY).collect().await;
    let body = body.map_err(|error| io_error(&*error))?.to_bytes();
    Ok(Reply { status, body })
}

fn timed_out() -> Error {
    ErrorKind::TimedOut.into()
}

fn body_too_long() -> Error {
    Error::new(ErrorKind::InvalidData, "its body is too long")
}

/// Says in one phrase what is wrong with a reply.
fn io_error(error: &(dyn StdError + 'static)) -> Error {
    let causes = || std::iter::successors(Some(error), |error: &&_| StdError::source(*error));
    let hyper = || causes().filter_map(<dyn StdError>::downcast_ref::<hyper::Error>);
    let system = || causes().filter_map(<dyn StdError>::downcast_ref::<Error>);
    let wrong = |what: &str| Error::new(ErrorKind::InvalidData, what);
    if causes().any(|cause| cause.is::<LengthLimitError>()) {
        body_too_long()
    } else if hyper().any(hyper::Error::is_parse_too_large) {
        wrong("its head is too long")
    } else if hyper().any(hyper::Error::is_parse) {
        wrong("the reply is not HTTP")
    } else if hyper().any(hyper::Error::is_incomplete_message)
        || system().any(|error| error.kind() == ErrorKind::UnexpectedEof)
    {
        wrong("the reply is incomplete")
    } else {
        let cause = causes().last().unwrap_or(error);
        Error::other(cause.to_string())
    }
}

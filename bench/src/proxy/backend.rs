//! The backend behind every way: it reads a request and answers with 1 KB, or with a stream whose
//! chunks carry the instant at which they were sent.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, Response, header};
use axum::routing::post;
use futures_util::stream;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::TcpListener;

use crate::worker::send_line;

/// How long after the last one a chunk is sent.
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) fn serve() -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let app: Router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .layer(DefaultBodyLimit::disable());
        send_line(&address.to_string())?;
        loop {
            let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let _as_it_is = stream.set_nodelay(true);
            let service = TowerToHyperService::new(app.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn answer(headers: HeaderMap, _body: Bytes) -> Response<Body> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    match number("x-chunks") {
        Some(count) => streamed(count, number("x-hang").is_some()),
        None => whole(),
    }
}

fn whole() -> Response<Body> {
    let text = "word ".repeat(130);
    let body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000,
        "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 130, "total_tokens": 330},
    });
    let mut response = Response::new(Body::from(body.to_string()));
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Chunks with the instant at which they were sent; one that hangs never ends.
fn streamed(count: u64, hangs: bool) -> Response<Body> {
    let chunks = stream::unfold(0, move |at| async move {
        if at == count {
            if hangs {
                std::future::pending::<()>().await;
            }
            return None;
        }
        if at > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let delta = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk",
                           "created": 1_700_000_000, "model": "gpt-4o",
                           "choices": [{"index": 0, "finish_reason": null,
                                        "delta": {"content": format!("@{}@", since.as_nanos())}}]});
        let chunk = Bytes::from(format!("data: {delta}\n\n"));
        Some((Ok::<_, Infallible>(chunk), at + 1))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    let events = header::HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, events);
    // nginx passes the chunks of such an answer on as they come.
    headers.insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    response
}

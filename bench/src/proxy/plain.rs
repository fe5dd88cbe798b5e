//! A proxy that only forwards, on the HTTP stack of the daemon: what is left of the daemon without
//! ledger, guard and reading of usage. The difference to it is the price of what Standpipe adds.

use axum::body::Body;
use axum::http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::worker::send_line;

/// Serves as the daemon does: each connection stays on the thread that accepted it.
pub(crate) fn serve(backend: &str) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).map_err(text)?;
    listener.set_nonblocking(true).map_err(text)?;
    send_line(&listener.local_addr().map_err(text)?.to_string())?;
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (listener, backend) = (listener.try_clone().map_err(text)?, backend.to_owned());
            Ok(std::thread::spawn(move || serve_thread(listener, &backend)))
        })
        .collect::<Result<_, String>>()?;
    threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
}

fn serve_thread(listener: std::net::TcpListener, backend: &str) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener);
        let listener = listener.map_err(|error| error.to_string())?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        loop {
            let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let _as_it_is = stream.set_nodelay(true);
            let (client, backend) = (client.clone(), backend.to_owned());
            let service =
                service_fn(move |request| forward(client.clone(), backend.clone(), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn forward(
    client: Client<HttpConnector, Incoming>,
    backend: String,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, hyper_util::client::legacy::Error> {
    match format!("http://{backend}{}", request.uri().path()).parse::<Uri>() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(_) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return Ok(response);
        }
    }
    client.request(request).await.map(|response| response.map(Body::new))
}

//! The peer: the same stack as the daemon's, with a handler that does nothing.

use axum::Router;
use axum::routing::any;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::UnixListener;

pub(crate) fn serve(path: &str) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = UnixListener::bind(path).map_err(|error| error.to_string())?;
        let app: Router = Router::new().fallback(any(|| async {}));
        println!("ready");
        loop {
            let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let service = TowerToHyperService::new(app.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

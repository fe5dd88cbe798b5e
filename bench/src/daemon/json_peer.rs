//! The peer: the same stack as the daemon's, with a handler that reads the same JSON and answers
//! with the same JSON, and decides nothing.

use axum::routing::post;
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::UnixListener;

pub(crate) fn serve(path: &str) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = UnixListener::bind(path).map_err(|error| error.to_string())?;
        let app: Router = Router::new()
            .route("/v1/leases", post(reserve))
            .route("/v1/leases/{id}/commit", post(commit));
        println!("ready");
        loop {
            let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let service = TowerToHyperService::new(app.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn reserve(Json(body): Json<Value>) -> Json<Value> {
    Json(json!({
        "schema": 1,
        "lease": "lease1_3tD7agAl5lFAgynzAAAAAAAAAAJ0L3Nsb3Rz",
        "pool": body["pool"],
        "agent": body["agent"],
        "cost": {"requests": 1},
        "expires_at": "2026-01-31T12:00:00.000Z",
        "ttl_ms": 600_000,
        "waited_ms": 0,
        "zone": "green",
        "settled": false,
        "advice": null,
    }))
}

async fn commit(Json(_body): Json<Value>) -> Json<Value> {
    Json(json!({
        "schema": 1,
        "lease": "lease1_3tD7agAl5lFAgynzAAAAAAAAAAJ0L3Nsb3Rz",
        "pool": "bench/daemon",
        "settled": true,
    }))
}

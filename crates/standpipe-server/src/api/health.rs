//! `/healthz`, `/readyz`, `/metrics` and `/openapi.json`: the daemon about itself.
//!
//! `/healthz` never touches the store.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use standpipe::observe::Timestamp;
use utoipa::ToSchema;

use super::{Problems, SCHEMA};
use crate::http::problem::Problem;
use crate::metrics::{self as exposition, ProcessInfo};
use crate::state::{AppState, MAX_STREAMS, MAX_WAITING, lock};
use crate::watch::history::millis;
use crate::watch::views::{self, View, Views};

/// The daemon is alive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthResponse {
    schema: u64,
    /// `ok`, or `stopping`.
    status: &'static str,
    /// `standpipe`: identifies the program that holds the port.
    server: &'static str,
    /// The version of the daemon.
    version: &'static str,
    /// The process id of the daemon.
    pid: u32,
    /// How long the daemon has been running.
    up_ms: u64,
}

/// Returns 200 while the daemon runs.
#[utoipa::path(
    get, path = "/healthz", tag = "daemon",
    responses((status = 200, description = "The daemon is alive", body = HealthResponse))
)]
pub(crate) async fn health(State(state): State<Arc<AppState>>) -> Json<HealthResponse> {
    let up = SystemTime::now().duration_since(state.started).unwrap_or_default();
    Json(HealthResponse {
        schema: SCHEMA,
        status: if state.is_stopping() { "stopping" } else { "ok" },
        server: "standpipe",
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        up_ms: millis(up),
    })
}

/// The daemon can serve.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReadyResponse {
    schema: u64,
    /// `ready`.
    status: &'static str,
    /// Whether the store is available. If not, only pools with `on_store_failure` `open` or `share`
    /// are served.
    store_up: bool,
    /// How long the store took to respond.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_ms: Option<u64>,
    /// When the last reload rejected the configuration file; `/v1/pools` has the errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    config_rejected_at: Option<Timestamp>,
}

/// How long the store may take to answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns 200 if the daemon can serve calls, else 503.
///
/// It can while the store is available, or if a pool is served offline (`on_store_failure` is
/// `open` or `share`).
#[utoipa::path(
    get, path = "/readyz", tag = "daemon",
    responses((status = 200, description = "The daemon can serve", body = ReadyResponse), Problems)
)]
pub(crate) async fn ready(
    State(state): State<Arc<AppState>>,
) -> Result<Json<ReadyResponse>, Problem> {
    if state.is_stopping() {
        return Err(Problem::stopping());
    }
    let answered =
        tokio::time::timeout(STORE_TIMEOUT, state.on_store(|tap| Ok(tap.ping().blocking()?))).await;
    let timed_out = |_| {
        let seconds = STORE_TIMEOUT.as_secs();
        Err(Problem::store(format!("the store did not respond within {seconds} s")))
    };
    let store_ms = match answered.unwrap_or_else(timed_out) {
        Ok(took) => Some(millis(took)),
        Err(_) if views::serves_offline(&state.tap()) => None,
        Err(problem) => return Err(problem),
    };
    let store_up = store_ms.is_some();
    let config_rejected_at = lock(&state.config_rejected).as_ref().map(|rejected| rejected.at);
    let (schema, status) = (SCHEMA, "ready");
    Ok(Json(ReadyResponse { schema, status, store_up, store_ms, config_rejected_at }))
}

/// Metrics in the Prometheus text format.
#[utoipa::path(
    get, path = "/metrics", tag = "daemon",
    responses(
        (status = 200, description = "Text exposition", body = String, content_type = "text/plain"),
        Problems
    )
)]
pub(crate) async fn metrics(
    State(state): State<Arc<AppState>>,
) -> Result<impl IntoResponse, Problem> {
    let view = Views::all(&state).await;
    let (snapshot, store_up, age) = match view {
        Ok(View { snapshot, outage }) => {
            let age = outage.as_ref().map_or(Duration::ZERO, |outage| outage.age);
            (snapshot, outage.is_none(), age)
        }
        // Nothing was ever read; the metrics of the process are there all the same.
        Err(_) => (Arc::new(state.tap().snapshot(&[]).blocking()?), false, Duration::ZERO),
    };
    let process = ProcessInfo {
        version: env!("CARGO_PKG_VERSION"),
        started: state.started,
        connections: state.tcp_connections.open() + state.unix_connections.open(),
        streams: MAX_STREAMS - state.streams.available_permits(),
        waiting_http: MAX_WAITING - state.waiting.available_permits(),
        store_up,
        snapshot_age: age,
    };
    let mut counters = lock(&state.counters);
    if store_up {
        counters.forget_reset(&snapshot);
    }
    let mut text = exposition::text(&snapshot, &counters, &state.store_latency, &process);
    drop(counters);
    text.push_str(&exposition::proxied::text(&state.recent_calls.models()));
    Ok(([(header::CONTENT_TYPE, exposition::CONTENT_TYPE)], text))
}

/// The OpenAPI document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "daemon",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
pub(crate) async fn openapi() -> impl IntoResponse {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let text = DOCUMENT.get_or_init(|| super::document().to_json().unwrap_or_default());
    ([(header::CONTENT_TYPE, "application/json")], text.as_str())
}

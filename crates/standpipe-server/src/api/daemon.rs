//! The daemon about itself: alive, ready, measured, described.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Problems, SCHEMA};
use crate::history::millis;
use crate::house::{House, MOST_STREAMS, MOST_WAITS, held};
use crate::metrics::{self, About};
use crate::problem::Problem;
use crate::watching;

/// That it is alive, and which one it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Alive {
    schema: u64,
    /// `ok`, or `stopping`.
    status: &'static str,
    /// `standpipe`, so that whoever finds this port taken knows by whom.
    server: &'static str,
    version: &'static str,
    pid: u32,
    /// How long it has been running.
    up_ms: u64,
}

/// Whether it is alive.
#[utoipa::path(
    get, path = "/healthz", tag = "daemon",
    responses((status = 200, description = "It is", body = Alive))
)]
pub(crate) async fn health(State(house): State<Arc<House>>) -> Json<Alive> {
    let up = SystemTime::now().duration_since(house.began).unwrap_or_default();
    Json(Alive {
        schema: SCHEMA,
        status: if house.is_stopping() { "stopping" } else { "ok" },
        server: "standpipe",
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        up_ms: millis(up),
    })
}

/// That it can do its work.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    schema: u64,
    /// `ready`.
    status: &'static str,
    /// How long the store took to answer.
    store_ms: u64,
}

/// How long the store may take before the daemon does not count as ready.
const SOON: Duration = Duration::from_secs(5);

/// Whether it can do its work: the store answers, and it is not stopping.
#[utoipa::path(
    get, path = "/readyz", tag = "daemon",
    responses((status = 200, description = "It can", body = Ready), Problems)
)]
pub(crate) async fn ready(State(house): State<Arc<House>>) -> Result<Json<Ready>, Problem> {
    if house.is_stopping() {
        return Err(Problem::stopping());
    }
    let asked = tokio::time::timeout(SOON, house.aside(|tap| Ok(tap.ping()?))).await;
    let took = asked.unwrap_or_else(|_| {
        Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store",
            format!("the store did not answer within {} s", SOON.as_secs()),
            "see `standpipe doctor`",
        ))
    })?;
    let store_ms = millis(took);
    Ok(Json(Ready { schema: SCHEMA, status: "ready", store_ms }))
}

/// Figures for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "daemon",
    responses(
        (status = 200, description = "Text exposition", body = String, content_type = "text/plain"),
        Problems
    )
)]
pub(crate) async fn figures(State(house): State<Arc<House>>) -> Result<impl IntoResponse, Problem> {
    let snapshot = house.aside(watching::look).await?;
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        started: house.began,
        connections: house.connections.load(Ordering::Relaxed),
        streams: MOST_STREAMS - house.streams.available_permits(),
        waiting_http: MOST_WAITS - house.waits.available_permits(),
    };
    let text = metrics::text(&snapshot, &held(&house.tally), &house.store_times, &about);
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "daemon",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
pub(crate) async fn openapi() -> impl IntoResponse {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let text = DOCUMENT.get_or_init(|| super::document().to_json().unwrap_or_default());
    ([(header::CONTENT_TYPE, "application/json")], text.as_str())
}

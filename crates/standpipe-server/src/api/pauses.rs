//! `/v1/pause` and `/v1/resume`: pauses by hand.
//!
//! A pause holds for every caller on the pool, whichever way it uses it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use standpipe::Standpipe;
use utoipa::ToSchema;

use super::fields::agent_of;
use super::reports::{PoolResponse, valid_agent};
use super::{Problems, lookup};
use crate::http::extract::JsonBody;
use crate::http::problem::Problem;
use crate::state::AppState;

/// The longest pause by hand: 400 days, as on the command line.
const MAX_PAUSE_MS: u64 = 400 * 86_400_000;

/// A pause by hand.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseRequest {
    /// The pool.
    #[schema(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// The length of the pause.
    #[schema(minimum = 1, maximum = 34_560_000_000_i64)]
    for_ms: u64,
    /// Who orders the pause. Default: the header `x-standpipe-agent`, then the program's name.
    #[schema(pattern = r"^[A-Za-z0-9._@-]{1,64}$")]
    agent: Option<String>,
}

/// Pauses the pool for the given time. This never shortens a running pause.
#[utoipa::path(
    post, path = "/v1/pause", tag = "reports", request_body = PauseRequest,
    responses((status = 200, description = "The pool is paused", body = PoolResponse), Problems)
)]
pub(crate) async fn pause(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(mut body): JsonBody<PauseRequest>,
) -> Result<Json<PoolResponse>, Problem> {
    if !(1..=MAX_PAUSE_MS).contains(&body.for_ms) {
        return Err(Problem::invalid(
            format!("`for_ms` is {}, out of range", body.for_ms),
            format!("pause for 1 to {MAX_PAUSE_MS} ms (400 days), for example 300000"),
        ));
    }
    let agent = valid_agent(agent_of(body.agent.take(), &headers))?;
    let name = lookup::name(&body.pool)?;
    let shared = Arc::clone(&state);
    let step = move |tap: &Standpipe| {
        let pool = lookup::existing(&shared, tap, &name)?;
        pool.pause_by(agent.as_str(), Duration::from_millis(body.for_ms)).blocking()?;
        tracing::info!(pool = name.as_str(), agent, for_ms = body.for_ms, "paused by hand");
        PoolResponse::of(&pool)
    };
    state.on_store(step).await.map(Json)
}

/// A pool to resume.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeRequest {
    /// The pool.
    #[schema(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// Who resumes it. Default: the header `x-standpipe-agent`, then the program's name.
    #[schema(pattern = r"^[A-Za-z0-9._@-]{1,64}$")]
    agent: Option<String>,
}

/// Ends a pause, or a stop by the provider.
#[utoipa::path(
    post, path = "/v1/resume", tag = "reports", request_body = ResumeRequest,
    responses((status = 200, description = "The pool admits calls", body = PoolResponse), Problems)
)]
pub(crate) async fn resume(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(mut body): JsonBody<ResumeRequest>,
) -> Result<Json<PoolResponse>, Problem> {
    let agent = valid_agent(agent_of(body.agent.take(), &headers))?;
    let name = lookup::name(&body.pool)?;
    let shared = Arc::clone(&state);
    let step = move |tap: &Standpipe| {
        let pool = lookup::existing(&shared, tap, &name)?;
        pool.resume_by(agent.as_str()).blocking()?;
        tracing::info!(pool = name.as_str(), agent, "resumed by hand");
        PoolResponse::of(&pool)
    };
    state.on_store(step).await.map(Json)
}

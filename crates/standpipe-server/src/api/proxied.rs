//! `GET /v1/proxied`: what calls through the proxy used and waited for, and the last of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Problems, SCHEMA};
use crate::proxy::{AgentTotals, ModelTotals, ProxiedCall};
use crate::state::AppState;

/// The totals of proxied calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProxiedResponse {
    schema: u64,
    /// By agent, since the daemon started.
    agents: BTreeMap<String, AgentTotals>,
    /// By model, since the daemon started; calls without one count by pool.
    models: BTreeMap<String, ModelTotals>,
    /// The last calls, the newest first.
    recent: Vec<ProxiedCall>,
}

/// What calls through the proxy used and waited for, by agent, since the daemon started.
#[utoipa::path(
    get, path = "/v1/proxied", tag = "views",
    responses((status = 200, description = "The totals", body = ProxiedResponse), Problems)
)]
pub(crate) async fn proxied(State(state): State<Arc<AppState>>) -> Json<ProxiedResponse> {
    Json(ProxiedResponse {
        schema: SCHEMA,
        agents: state.proxied.all(),
        models: state.recent_calls.models(),
        recent: state.recent_calls.calls(),
    })
}

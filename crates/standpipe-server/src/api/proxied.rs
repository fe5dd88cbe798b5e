//! `GET /v1/proxied`: what calls through the proxy used and waited for.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Problems, SCHEMA};
use crate::proxy::AgentTotals;
use crate::state::AppState;

/// The totals of proxied calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProxiedResponse {
    schema: u64,
    /// By agent, since the daemon started.
    agents: BTreeMap<String, AgentTotals>,
}

/// What calls through the proxy used and waited for, by agent, since the daemon started.
#[utoipa::path(
    get, path = "/v1/proxied", tag = "views",
    responses((status = 200, description = "The totals", body = ProxiedResponse), Problems)
)]
pub(crate) async fn proxied(State(state): State<Arc<AppState>>) -> Json<ProxiedResponse> {
    Json(ProxiedResponse { schema: SCHEMA, agents: state.proxied.all() })
}

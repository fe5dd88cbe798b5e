//! `/v1/pools`, `/v1/agents` and `/v1/history`: the state of the pools, now and before.
//!
//! The same snapshot that the dashboard, `standpipe top` and `standpipe status --json` show.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use standpipe::observe::AgentStatus;
use standpipe::{PoolName, Snapshot};
use utoipa::{IntoParams, ToSchema};

use super::{Problems, SCHEMA, lookup};
use crate::http::extract::QueryParams;
use crate::http::problem::Problem;
use crate::state::{AppState, lock};
use crate::watch::history::{HistoryResponse, millis};
use crate::watch::views::{Outage, View, Views, admitting_offline};
use crate::watch::{snapshots, sse};

/// Which pools to show.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PoolsQuery {
    /// Only this pool.
    #[param(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pub(crate) pool: Option<String>,
    /// The maximum number of leases, tickets and agents per pool.
    #[param(maximum = 4_294_967_295_i64)]
    pub(crate) rows: Option<u32>,
}

impl PoolsQuery {
    fn rows(&self) -> Option<usize> {
        self.rows.and_then(|rows| usize::try_from(rows).ok())
    }
}

/// The state of the pools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolsResponse {
    schema: u64,
    #[serde(flatten)]
    snapshot: Snapshot,
    /// Only while the store is unavailable: how old the last known state is. Pools that are served
    /// offline are as they are now.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_ms: Option<u64>,
    /// Only while the store is unavailable: why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_error: Option<String>,
    /// Only while the store is unavailable: the pools that admit calls without it, with `open` or
    /// `share`, as the daemon's configuration states it. All others admit no call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    on_store_failure: BTreeMap<PoolName, &'static str>,
    /// The store for a heading: the home directory of the daemon's user is `~`.
    store_label: String,
    /// The configuration file, if it describes no pool and calls on other pools are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_by: Option<String>,
}

impl PoolsResponse {
    /// The snapshot with what the daemon itself knows.
    pub(crate) fn new(state: &AppState, mut snapshot: Snapshot, outage: Option<&Outage>) -> Self {
        snapshot.config_rejected.clone_from(&lock(&state.config_rejected));
        snapshot.mark_daemon(std::process::id());
        let age_ms = outage.map(|outage| millis(outage.age));
        let store_error = outage.map(|outage| outage.detail.clone());
        let tap = state.tap();
        let on_store_failure = match outage {
            Some(_) => admitting_offline(&tap, &snapshot),
            None => BTreeMap::new(),
        };
        let home = std::env::var("HOME").unwrap_or_default();
        let store_label = with_tilde(&snapshot.store, &home);
        let settings = tap.settings();
        let file = settings.without_pools().and(settings.origin.as_ref());
        let closed_by = file.map(|file| file.display().to_string());
        Self {
            schema: SCHEMA,
            snapshot,
            age_ms,
            store_error,
            on_store_failure,
            store_label,
            closed_by,
        }
    }
}

/// Returns a store's name with `~` for the home directory.
fn with_tilde(store: &str, home: &str) -> String {
    let inside = store.strip_prefix("file:").and_then(|path| path.strip_prefix(home));
    match inside.filter(|rest| !home.is_empty() && rest.starts_with('/')) {
        Some(rest) => format!("file:~{rest}"),
        None => store.to_owned(),
    }
}

/// The state of the pools: what `standpipe status --json` prints.
///
/// With `accept: text/event-stream` a snapshot about every second, as events named `pools`.
#[utoipa::path(
    get, path = "/v1/pools", tag = "views", params(PoolsQuery),
    responses(
        (status = 200, description = "The state of the pools", content(
            (PoolsResponse = "application/json"), (String = "text/event-stream")
        )),
        Problems
    )
)]
pub(crate) async fn pools(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    QueryParams(query): QueryParams<PoolsQuery>,
) -> Result<Response, Problem> {
    let only = query.pool.as_deref().map(lookup::name).transpose()?;
    if sse::is_accepted(&headers) {
        let first = view(&state, only.clone()).await?;
        return snapshots::stream(&state, first, only, query.rows());
    }
    let View { snapshot, outage } = view(&state, only).await?;
    let rows = query.rows().unwrap_or(usize::MAX);
    let snapshot = Arc::unwrap_or_clone(snapshot).at_most(rows);
    Ok(Json(PoolsResponse::new(&state, snapshot, outage.as_ref())).into_response())
}

/// The state of one pool, or of all.
async fn view(state: &Arc<AppState>, only: Option<PoolName>) -> Result<View, Problem> {
    let Some(name) = only else { return Views::all(state).await };
    let shared = Arc::clone(state);
    Views::one(state, name, move |tap, name| lookup::existing(&shared, tap, name)).await
}

/// The agents of the pools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentsResponse {
    schema: u64,
    /// By pool, on each the most recently active first.
    agents: Vec<AgentOnPool>,
    /// Only while the store is unavailable: how old the last known state is.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_ms: Option<u64>,
}

/// An agent on a pool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentOnPool {
    /// The pool.
    #[schema(value_type = String)]
    pool: PoolName,
    #[serde(flatten)]
    agent: AgentStatus,
}

/// Lists the agents of the pools.
#[utoipa::path(
    get, path = "/v1/agents", tag = "views", params(PoolsQuery),
    responses((status = 200, description = "The agents", body = AgentsResponse), Problems)
)]
pub(crate) async fn agents(
    State(state): State<Arc<AppState>>,
    QueryParams(query): QueryParams<PoolsQuery>,
) -> Result<Json<AgentsResponse>, Problem> {
    let only = query.pool.as_deref().map(lookup::name).transpose()?;
    let View { snapshot, outage } = view(&state, only).await?;
    let rows = query.rows().unwrap_or(usize::MAX);
    let snapshot = Arc::unwrap_or_clone(snapshot).at_most(rows);
    let agents = snapshot.pools.into_iter().flat_map(|pool| {
        let name = pool.pool;
        pool.agents.into_iter().map(move |agent| AgentOnPool { pool: name.clone(), agent })
    });
    let agents = agents.collect();
    let age_ms = outage.map(|outage| millis(outage.age));
    Ok(Json(AgentsResponse { schema: SCHEMA, agents, age_ms }))
}

/// The use of the limits over the last ten minutes.
#[utoipa::path(
    get, path = "/v1/history", tag = "views",
    params((
        "pool" = Option<String>, Query, description = "Only this pool",
        pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$"
    )),
    responses(
        (status = 200, description = "The samples, oldest first", body = HistoryResponse),
        Problems
    )
)]
pub(crate) async fn history(
    State(state): State<Arc<AppState>>,
    QueryParams(query): QueryParams<PoolsQuery>,
) -> Result<Json<HistoryResponse>, Problem> {
    let only = query.pool.as_deref().map(lookup::name).transpose()?;
    Ok(Json(lock(&state.history).of(only.as_ref().map(PoolName::as_str))))
}

#[cfg(test)]
mod tests {
    use super::with_tilde;

    #[test]
    fn the_home_directory_is_a_tilde_and_nothing_else_is() {
        let of = |store| with_tilde(store, "/users/ada");
        assert_eq!(of("file:/users/ada/.local/state/standpipe"), "file:~/.local/state/standpipe");
        for other in ["file:/users/adam/state", "file:/var/lib", "redis://users/ada/x", "memory"] {
            assert_eq!(of(other), other);
        }
        assert_eq!(with_tilde("file:/var/lib", ""), "file:/var/lib");
    }
}

//! `/v1/leases/{id}`: commit, cancel, release and heartbeat.
//!
//! A lease ends exactly once; repeating a request returns 410 and changes nothing.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use standpipe::observe::Timestamp;
use standpipe::{LeaseId, PoolName, Standpipe};
use utoipa::ToSchema;

use super::super::answer::{AnswerMeaning, HeaderValues, Headers, ProviderAnswer, ProviderBody};
use super::super::fields::{UnitAmounts, agent_of, amounts};
use super::super::reports::valid_agent;
use super::super::{Problems, SCHEMA, lookup};
use crate::http::extract::{OptionalJsonBody, PathParam};
use crate::http::problem::Problem;
use crate::state::AppState;
use crate::watch::history::millis;
use crate::watch::views::Views;

/// How a call ended, or what it used so far.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommitRequest {
    /// Totals of the call so far; units that are not named settle at the estimate.
    #[schema(value_type = Option<BTreeMap<String, u64>>)]
    used: Option<UnitAmounts>,
    /// The call is still running; the lease stays in flight.
    progress: Option<bool>,
    /// The HTTP status of the response; a refusal pauses the pool for every caller.
    #[schema(minimum = 100, maximum = 599)]
    status: Option<u16>,
    /// The headers of the response, by name. The daemon reads limits and usage from them.
    #[schema(value_type = Option<BTreeMap<String, HeaderValues>>)]
    headers: Option<Headers>,
    /// The body of the response. The daemon reads the kind and the length of a refusal from it, or
    /// the call's usage, and does not store it.
    #[schema(value_type = Option<String>, max_length = 131_072)]
    body: Option<ProviderBody>,
}

impl CommitRequest {
    fn answer(&self) -> ProviderAnswer<'_> {
        let Self { status, headers, body, .. } = self;
        ProviderAnswer { status: *status, headers: headers.as_ref(), body: body.as_ref() }
    }
}

/// The state of a lease after a report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaseResponse {
    schema: u64,
    /// The lease.
    lease: String,
    /// Its pool.
    pool: String,
    /// Whether this request ended the lease.
    settled: bool,
    #[serde(flatten)]
    meaning: AnswerMeaning,
}

impl LeaseResponse {
    fn new(id: &LeaseId, settled: bool) -> Self {
        let (lease, pool) = (id.to_string(), id.pool().to_string());
        Self { schema: SCHEMA, lease, pool, settled, meaning: AnswerMeaning::default() }
    }
}

/// Settles a lease with what the call used.
#[utoipa::path(
    post, path = "/v1/leases/{id}/commit", tag = "calls", request_body = CommitRequest,
    params(("id" = String, Path, description = "The lease")),
    responses(
        (status = 200, description = "Settled, or still in flight", body = LeaseResponse),
        Problems
    )
)]
pub(crate) async fn commit(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam,
    OptionalJsonBody(body): OptionalJsonBody<CommitRequest>,
) -> Result<Json<LeaseResponse>, Problem> {
    let progress = body.progress == Some(true);
    if progress && body.answer().is_reported() {
        return Err(Problem::invalid(
            "`progress` cannot be combined with a provider's response",
            "leave out `progress` when the provider has responded",
        ));
    }
    settle(&state, &id, &body, progress).await.map(Json)
}

async fn settle(
    state: &Arc<AppState>,
    id: &str,
    body: &CommitRequest,
    progress: bool,
) -> Result<LeaseResponse, Problem> {
    let used = amounts(body.used.as_ref())?;
    let reply = body.answer().reply(200)?;
    let lease = lookup::find_lease(state, id).await?;
    let mut response = LeaseResponse::new(lease.id(), !progress);
    match reply {
        Some(reply) => {
            let meaning = state.awaited(lease.answered_using(reply, used)).await?;
            response.meaning = (&meaning).into();
        }
        None if progress => state.awaited(lease.progress(used)).await?,
        None => state.awaited(lease.commit(used)).await?,
    }
    Ok(response)
}

/// Cancels a lease whose call was never sent. All reserved units are free again.
#[utoipa::path(
    post, path = "/v1/leases/{id}/cancel", tag = "calls",
    params(("id" = String, Path, description = "The lease")),
    responses(
        (status = 200, description = "The lease is cancelled", body = LeaseResponse),
        Problems
    )
)]
pub(crate) async fn cancel(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam,
) -> Result<Json<LeaseResponse>, Problem> {
    let lease = lookup::find_lease(&state, &id).await?;
    state.awaited(lease.cancel()).await?;
    Ok(Json(LeaseResponse::new(lease.id(), true)))
}

/// Settles a lease at its estimate.
#[utoipa::path(
    delete, path = "/v1/leases/{id}", tag = "calls",
    params(("id" = String, Path, description = "The lease")),
    responses((status = 200, description = "The lease is settled", body = LeaseResponse), Problems)
)]
pub(crate) async fn release(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam,
    headers: HeaderMap,
) -> Result<Json<LeaseResponse>, Problem> {
    let by = valid_agent(agent_of(None, &headers))?;
    let lease = lookup::find_lease(&state, &id).await?;
    let handle = lease.clone();
    let holder = state.on_store(move |_| Ok(handle.holder()?)).await?;
    let agent = if holder.is_some() { owner(&state, lease.id()).await } else { None };
    let response = settle(&state, &id, &CommitRequest::default(), false).await?;
    if let Some(holder) = holder {
        // The process does not learn of it and continues, so the journal records who did it.
        let note = move |_: &_| Ok(lease.note_settled(&by, agent.as_deref(), holder)?);
        state.on_store(note).await?;
    }
    Ok(Json(response))
}

/// The agent of a lease that is open.
async fn owner(state: &Arc<AppState>, id: &LeaseId) -> Option<String> {
    let find = |tap: &Standpipe, pool: &PoolName| Ok(tap.existing_pool(pool));
    let view = Views::one(state, id.pool().clone(), find).await.ok()?;
    let mut leases = view.snapshot.pools.first()?.leases.iter();
    leases.find(|lease| lease.id == *id).map(|lease| lease.agent.clone())
}

/// A lease whose time to live starts again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HeartbeatResponse {
    schema: u64,
    /// The lease.
    lease: String,
    /// Its pool.
    pool: String,
    /// When the lease expires without another heartbeat.
    expires_at: Timestamp,
    /// The time until then.
    ttl_ms: u64,
}

/// Keeps a lease alive: its time to live starts again.
#[utoipa::path(
    post, path = "/v1/leases/{id}/heartbeat", tag = "calls",
    params(("id" = String, Path, description = "The lease")),
    responses(
        (status = 200, description = "The lease is extended", body = HeartbeatResponse),
        Problems
    )
)]
pub(crate) async fn heartbeat(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam,
) -> Result<Json<HeartbeatResponse>, Problem> {
    let lease = lookup::find_lease(&state, &id).await?;
    let until = state.awaited(lease.heartbeat()).await?;
    let left = until.duration_since(SystemTime::now()).unwrap_or_default();
    Ok(Json(HeartbeatResponse {
        schema: SCHEMA,
        lease: lease.id().to_string(),
        pool: lease.id().pool().to_string(),
        expires_at: Timestamp::of(until),
        ttl_ms: millis(left),
    }))
}

//! `/v1/throttle` and `/v1/observe`: reports of a provider's response.
//!
//! A reported refusal pauses the pool for every caller. The response itself is not stored.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use standpipe::observe::Timestamp;
use standpipe::{
    AgentName, LeaseId, Meaning, Pool, PoolName, Reply, Standpipe, Throttle, ThrottleKind,
};
use utoipa::ToSchema;

use super::answer::{AnswerMeaning, HeaderValues, Headers, ProviderAnswer, ProviderBody};
use super::fields::agent_of;
use super::{Problems, SCHEMA, lookup};
use crate::http::extract::JsonBody;
use crate::http::problem::Problem;
use crate::state::AppState;

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusalKind {
    #[default]
    Quota,
    Concurrency,
    SlowDown,
    Overload,
    Terminal,
}

impl From<RefusalKind> for ThrottleKind {
    fn from(kind: RefusalKind) -> Self {
        match kind {
            RefusalKind::Quota => Self::Quota,
            RefusalKind::Concurrency => Self::Concurrency,
            RefusalKind::SlowDown => Self::SlowDown,
            RefusalKind::Overload => Self::Overload,
            RefusalKind::Terminal => Self::Terminal,
        }
    }
}

/// The provider refused a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThrottleRequest {
    /// The pool.
    #[schema(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// The call's lease; this settles it.
    lease: Option<String>,
    /// The agent whose call it was.
    #[schema(pattern = r"^[A-Za-z0-9._@-]{1,64}$")]
    agent: Option<String>,
    /// How long the provider asks to wait.
    retry_after_ms: Option<u64>,
    /// The kind of refusal. Default: read from `status`, `headers` and `body`.
    kind: Option<RefusalKind>,
    /// The HTTP status of the response; 429 if only headers or a body are given.
    #[schema(minimum = 100, maximum = 599)]
    status: Option<u16>,
    /// The headers of the response, by name.
    #[schema(value_type = Option<BTreeMap<String, HeaderValues>>)]
    headers: Option<Headers>,
    /// The body of the response. The daemon reads the kind and the length of the refusal from it,
    /// and does not store it.
    #[schema(value_type = Option<String>, max_length = 131_072)]
    body: Option<ProviderBody>,
}

/// The state of a pool after a report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolResponse {
    schema: u64,
    /// The pool.
    pool: String,
    /// The end of the pause; no call is admitted before it.
    paused_until: Option<Timestamp>,
    /// The time until then.
    paused_for_ms: Option<u64>,
    #[serde(flatten)]
    meaning: AnswerMeaning,
    /// How many limits the response stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<usize>,
}

impl PoolResponse {
    /// The state of the pool now.
    pub(super) fn of(pool: &Pool) -> Result<Self, Problem> {
        let pause = pool.paused().blocking()?;
        Ok(Self {
            schema: SCHEMA,
            pool: pool.name().to_string(),
            paused_until: pause.as_ref().map(|pause| pause.until),
            paused_for_ms: pause.map(|pause| pause.for_ms),
            meaning: AnswerMeaning::default(),
            limits: None,
        })
    }

    fn after(pool: &Pool, meaning: &Meaning) -> Result<Self, Problem> {
        Ok(Self { meaning: meaning.into(), ..Self::of(pool)? })
    }
}

/// Reports that the provider refused a call. The pool pauses for every caller.
#[utoipa::path(
    post, path = "/v1/throttle", tag = "reports", request_body = ThrottleRequest,
    responses(
        (status = 200, description = "The refusal is recorded", body = PoolResponse),
        Problems
    )
)]
pub(crate) async fn throttle(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(mut body): JsonBody<ThrottleRequest>,
) -> Result<Json<PoolResponse>, Problem> {
    let agent = valid_agent(agent_of(body.agent.take(), &headers))?;
    let shared = Arc::clone(&state);
    state.on_store(move |tap| report_refusal(&shared, tap, &body, &agent)).await.map(Json)
}

fn report_refusal(
    state: &AppState,
    tap: &Standpipe,
    body: &ThrottleRequest,
    agent: &str,
) -> Result<PoolResponse, Problem> {
    let name = lookup::name(&body.pool)?;
    let answer = ProviderAnswer {
        status: body.status,
        headers: body.headers.as_ref(),
        body: body.body.as_ref(),
    };
    let has_answer = answer.is_reported();
    let reply = answer.reply(429)?.map(|reply| with_retry_after(reply, body.retry_after_ms));
    let lease = lease_on(&name, body.lease.as_deref())?;
    let pool = lookup::to_report(state, tap, &name)?;
    // A wait or a kind that the caller states says that it is a refusal, whatever its status.
    let is_refused = |reply: &&Reply| {
        let is_known = matches!(pool.meaning_of(reply), Meaning::Refused { .. });
        is_known || body.retry_after_ms.is_none()
    };
    if let (Some(reply), None) = (reply.as_ref().filter(is_refused), body.kind) {
        let meaning = match &lease {
            Some(lease) => {
                lookup::lease_of(state, tap, lease)?.answered_using(reply.clone(), []).blocking()?
            }
            None => pool.observe_reply(reply, Some(agent)).blocking()?.0,
        };
        return PoolResponse::after(&pool, &meaning);
    }
    let mut throttle = Throttle::new(body.kind.unwrap_or_default().into()).agent(agent);
    let stated = body.retry_after_ms.map(Duration::from_millis);
    let as_refused = ProviderAnswer { status: Some(429), ..answer }.reply(429)?;
    let wait = stated.or_else(|| wait_of(&pool, reply.as_ref()?));
    if let Some(wait) = wait.or_else(|| wait_of(&pool, as_refused.as_ref().filter(|_| has_answer)?))
    {
        throttle = throttle.retry_after(wait);
    }
    if let Some(lease) = lease {
        throttle = throttle.lease(lease);
    }
    pool.throttle(&throttle).blocking()?;
    tracing::debug!(pool = name.as_str(), agent, "the provider refused a call");
    PoolResponse::of(&pool)
}

/// How long the provider asks to wait, whatever kind the caller states.
fn wait_of(pool: &Pool, reply: &Reply) -> Option<Duration> {
    match pool.meaning_of(reply) {
        Meaning::Refused { retry_after, .. } => retry_after,
        _ => None,
    }
}

/// A wait that the caller states counts as if the answer contained it.
fn with_retry_after(reply: Reply, millis: Option<u64>) -> Reply {
    match millis {
        Some(millis) => reply.header("retry-after-ms", millis.to_string()),
        None => reply,
    }
}

/// The lease that a report names, which must be on the reported pool.
fn lease_on(pool: &PoolName, lease: Option<&str>) -> Result<Option<LeaseId>, Problem> {
    let lease = lease.map(lookup::id).transpose()?;
    match &lease {
        Some(lease) if lease.key_on(pool).is_none() => {
            let detail = format!("the lease is on `{}`, not on `{pool}`", lease.pool());
            Err(Problem::invalid(detail, "name the pool of the lease"))
        }
        _ => Ok(lease),
    }
}

/// Rejects an invalid name before the pool is opened.
pub(super) fn valid_agent(agent: String) -> Result<String, Problem> {
    if AgentName::new(&agent).is_some() {
        return Ok(agent);
    }
    let shown: String = agent.chars().take(40).flat_map(char::escape_debug).collect();
    Err(Problem::invalid(
        format!("`{shown}` is not a valid agent name"),
        "use 1 to 64 of A-Z a-z 0-9 . _ @ -",
    ))
}

/// A provider's response.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObserveRequest {
    /// The pool.
    #[schema(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// The lease of the call, which stays in flight.
    lease: Option<String>,
    /// The HTTP status of the response.
    #[schema(minimum = 100, maximum = 599)]
    status: Option<u16>,
    /// The headers of the response, by name.
    #[schema(value_type = BTreeMap<String, HeaderValues>)]
    headers: Headers,
    /// The body of the response. The daemon reads from it whether it is a refusal, and of which
    /// kind, and does not store it.
    #[schema(value_type = Option<String>, max_length = 131_072)]
    body: Option<ProviderBody>,
}

/// Reports a provider's response. Its limits are applied; a refusal pauses the pool.
#[utoipa::path(
    post, path = "/v1/observe", tag = "reports", request_body = ObserveRequest,
    responses((status = 200, description = "It is recorded", body = PoolResponse), Problems)
)]
pub(crate) async fn observe(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ObserveRequest>,
) -> Result<Json<PoolResponse>, Problem> {
    let agent = valid_agent(agent_of(None, &headers))?;
    let shared = Arc::clone(&state);
    state.on_store(move |tap| report_answer(&shared, tap, &body, &agent)).await.map(Json)
}

fn report_answer(
    state: &AppState,
    tap: &Standpipe,
    body: &ObserveRequest,
    agent: &str,
) -> Result<PoolResponse, Problem> {
    let name = lookup::name(&body.pool)?;
    lease_on(&name, body.lease.as_deref())?;
    let answer = ProviderAnswer {
        status: body.status,
        headers: Some(&body.headers),
        body: body.body.as_ref(),
    };
    let reply = answer.reply(200)?;
    let pool = lookup::to_report(state, tap, &name)?;
    let Some(reply) = reply else { return PoolResponse::of(&pool) };
    let (meaning, limits) = pool.observe_reply(&reply, Some(agent)).blocking()?;
    Ok(PoolResponse { limits: Some(limits), ..PoolResponse::after(&pool, &meaning)? })
}

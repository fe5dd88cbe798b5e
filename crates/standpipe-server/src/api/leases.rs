//! `POST /v1/leases`: reserve a call, wait until it is admitted, return a lease.
//!
//! A call that is refused or whose client disconnects takes nothing. See `leases/settle.rs` for how
//! a lease ends.

mod settle;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use standpipe::observe::Timestamp;
use standpipe::{
    Advice, Backpressure, DEFAULT_TIMEOUT, Lease, LeaseId, Limit, Pool, PoolName, Request,
    Standpipe,
};
use utoipa::ToSchema;

pub(super) use self::settle::*;
use super::fields::{
    LimitSpec, PriorityParam, UnitAmounts, UnitLimits, agent_of, check_limited_units, limits,
};
use super::{Problems, SCHEMA, lookup};
use crate::http::extract::JsonBody;
use crate::http::peer::Peer;
use crate::http::problem::Problem;
use crate::state::{AppState, MAX_WAITING};
use crate::watch::history::millis;

/// How late a grant may be: no caller waits longer than its timeout and this.
const TOLERANCE: Duration = Duration::from_secs(2);
/// The longest wait, in milliseconds.
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// The longest time to live that may be requested: 400 days. The pool bounds how long it lives.
const MAX_TTL_MS: u64 = 400 * 86_400_000;

/// A call that asks to be admitted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReserveRequest {
    /// The shared quota, `provider/scope`.
    #[schema(
        example = "anthropic/sonnet",
        pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$"
    )]
    pool: String,
    /// Further pools that the call draws on, all or none. The pools that a pool lies within
    /// (`within` in the file) need not be named.
    #[schema(max_items = 7, example = json!(["shared/search"]))]
    pools: Option<Vec<String>>,
    /// The calling agent. Default: the header `x-standpipe-agent`, then the program's name.
    #[schema(pattern = r"^[A-Za-z0-9._@-]{1,64}$")]
    agent: Option<String>,
    /// The priority. Default: the agent's own.
    priority: Option<PriorityParam>,
    /// The kind of task, for reports and for the file's routes.
    task: Option<String>,
    /// The model, for reports.
    model: Option<String>,
    /// What the call takes; one of `requests` is implied.
    #[schema(
        value_type = Option<BTreeMap<String, u64>>,
        example = json!({"input_tokens": 1200, "output_tokens": 800})
    )]
    cost: Option<UnitAmounts>,
    /// Limits for a pool that no file describes, as with `--limit` on the command line.
    #[schema(
        value_type = Option<BTreeMap<String, LimitSpec>>,
        example = json!({"requests": "60/min", "tokens": "40k/min,burst=4k", "parallel": 5})
    )]
    limits: Option<UnitLimits>,
    /// The longest wait; 0 never waits.
    #[schema(maximum = 3_600_000, default = 300_000)]
    timeout_ms: Option<u64>,
    /// How long the lease lives without a heartbeat. Default: the pool's `lease_ttl`, 10 minutes.
    #[schema(minimum = 1, maximum = 34_560_000_000_i64)]
    ttl_ms: Option<u64>,
    /// Makes the request repeatable: the same id of the same agent gets the first lease, and keeps
    /// its place in the queue while no client is connected.
    id: Option<String>,
    /// The lease of the call that this one retries.
    retry_of: Option<String>,
    /// Return whether the call would be admitted now, without a reservation.
    dry_run: Option<bool>,
}

/// A call that was admitted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantedLease {
    schema: u64,
    /// The id that settles the lease.
    lease: LeaseId,
    /// The pool of the lease: with a task, the one that the route chose.
    pool: String,
    /// All pools that the call draws on, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pools: Vec<String>,
    /// The agent.
    agent: String,
    /// What was reserved, including estimates for units that the request did not name.
    cost: BTreeMap<String, u64>,
    /// When the lease expires without a heartbeat.
    expires_at: Timestamp,
    /// The time until then.
    ttl_ms: u64,
    /// How long the call waited.
    waited_ms: u64,
    /// How much quota is left: `green`, `amber` or `red`.
    zone: &'static str,
    /// An earlier call with the same id has ended: do not make this call.
    settled: bool,
    /// What to do before the next such call, which would have to wait.
    advice: Option<Advice>,
    /// An agent upstream in this agent's workflow is throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    backpressure: Option<Backpressure>,
    /// A remark, for example that other limits are in force than those in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

/// The result of a dry run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DryRunResponse {
    schema: u64,
    /// The pool.
    pool: String,
    /// Always true: a call that would not be admitted gets the problem instead.
    admitted: bool,
    /// Always true: nothing was reserved.
    dry_run: bool,
}

/// Either response to a reserve request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ReserveResponse {
    Granted(Box<GrantedLease>),
    DryRun(DryRunResponse),
}

/// Waits until a call is admitted, and returns its lease.
///
/// The connection stays open meanwhile. If the client disconnects, its ticket is cancelled, unless
/// the request has an `id`: then the ticket or lease is kept for the next request with that id.
#[utoipa::path(
    post, path = "/v1/leases", tag = "calls", request_body = ReserveRequest,
    responses(
        (status = 201, description = "A new lease", body = GrantedLease),
        (status = 200, body = ReserveResponse,
         description = "The lease of an earlier request with this `id`; or a dry run"),
        Problems
    )
)]
pub(crate) async fn reserve(
    State(state): State<Arc<AppState>>,
    peer: Peer,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ReserveRequest>,
) -> Result<(StatusCode, Json<ReserveResponse>), Problem> {
    if state.is_stopping() {
        return Err(Problem::stopping());
    }
    let (dry_run, has_id) = (body.dry_run == Some(true), body.id.is_some());
    let timeout = body.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
    let parsed = parse_request(body, &headers)?;
    if dry_run {
        let shared = Arc::clone(&state);
        let response = state.on_store(move |tap| peek(&shared, tap, parsed)).await?;
        return Ok((StatusCode::OK, Json(ReserveResponse::DryRun(response))));
    }
    let (pool, request) = prepare(&state, parsed).await?;
    let _permit =
        state.waiting.try_acquire().map_err(|_| Problem::too_many("calls", MAX_WAITING))?;
    let asked = request.clone();
    let began = boot_time();
    // A disconnect drops this future, and with it the ticket.
    let admitted = tokio::select! {
        biased;
        outcome = pool.reserve(request) => outcome,
        () = state.stopped() => return Err(Problem::stopping()),
        () = peer.disconnected() => return Err(Problem::client_gone()),
    };
    match admitted {
        // The lease's id would be lost. With a request id the next request finds it.
        Ok(lease) if peer.is_disconnected() && !has_id => {
            state.awaited(lease.cancel()).await?;
            Err(Problem::client_gone())
        }
        // The process was stopped or the machine suspended meanwhile. A call that may not wait is
        // only ever slow.
        Ok(lease)
            if !timeout.is_zero() && boot_time().saturating_sub(began) > timeout + TOLERANCE =>
        {
            Err(give_back(&state, lease, timeout, has_id).await?)
        }
        Ok(lease) => {
            // The call is admitted and charged, so a failure to get advice is no failure.
            let advice = match lease.advice() {
                Some(own) => state.awaited(pool.advise(&asked)).await.unwrap_or(Some(own)),
                None => None,
            };
            let status = if lease.is_new() { StatusCode::CREATED } else { StatusCode::OK };
            let notice = (lease.limits_in_force() == Some(false)).then(|| {
                let what = "other limits are in force on this pool than those in the request";
                format!("{what}; GET /v1/pools?pool={} shows them", lease.pool())
            });
            let granted = granted(lease, advice, notice);
            Ok((status, Json(ReserveResponse::Granted(Box::new(granted)))))
        }
        Err(error) => {
            let is_late = error.as_refused().is_some_and(|refused| !refused.is_never());
            let problem = Problem::from(error);
            if !is_late {
                return Err(problem);
            }
            let advice = state.awaited(pool.advise(&asked)).await;
            Err(problem.with_advice(advice.ok().flatten()))
        }
    }
}

/// Gives a lease back that was granted after the call's timeout.
async fn give_back(
    state: &Arc<AppState>,
    lease: Lease,
    timeout: Duration,
    has_id: bool,
) -> Result<Problem, Problem> {
    let problem = Problem::too_late(lease.pool().as_str(), timeout);
    if has_id {
        // A repeated request gets it. A cancelled one would block its id.
        drop(lease.into_id());
    } else {
        state.awaited(lease.cancel()).await?;
    }
    Ok(problem)
}

/// A request whose fields are valid; nothing was opened yet.
struct ParsedReserve {
    pool: PoolName,
    others: Vec<PoolName>,
    request: Request,
    limits: Vec<Limit>,
    ttl: Option<Duration>,
    /// Whether a route may choose another pool.
    has_task: bool,
}

/// Moves the body into a request of the library. Rejects what cannot be valid on any pool.
fn parse_request(body: ReserveRequest, headers: &HeaderMap) -> Result<ParsedReserve, Problem> {
    if let Some(timeout) = body.timeout_ms.filter(|timeout| *timeout > MAX_TIMEOUT_MS) {
        return Err(Problem::invalid(
            format!("`timeout_ms` is {timeout}, which is more than {MAX_TIMEOUT_MS}"),
            "wait at most an hour; a request with an `id` may be repeated and keeps its place",
        ));
    }
    if let Some(ttl) = body.ttl_ms.filter(|ttl| !(1..=MAX_TTL_MS).contains(ttl)) {
        return Err(Problem::invalid(
            format!("`ttl_ms` is {ttl}, not 1 to {MAX_TTL_MS}"),
            "ask for the longest silence of the call; POST /v1/leases/ID/heartbeat extends it",
        ));
    }
    let pool = lookup::name(&body.pool)?;
    let others = body.pools.unwrap_or_default();
    let others: Vec<PoolName> =
        others.iter().map(|name| lookup::name(name)).collect::<Result<_, _>>()?;
    let earlier = |at: usize| others[..at].iter().chain([&pool]);
    let twice = others.iter().enumerate().find(|(at, name)| earlier(*at).any(|own| own == *name));
    if let Some((_, name)) = twice {
        let hint = "name each pool once; `pools` takes other pools than `pool`";
        return Err(Problem::invalid(format!("`{name}` is named twice"), hint));
    }
    let agent = agent_of(body.agent, headers);
    let span = tracing::Span::current();
    span.record("pool", pool.as_str()).record("agent", agent.as_str());
    let mut request = Request::by(agent);
    for other in &others {
        request = request.also(other.as_str());
    }
    let limits = limits(body.limits.as_ref())?;
    check_limited_units(&limits, body.cost.as_ref())?;
    for (unit, amount) in body.cost.into_iter().flat_map(|cost| cost.0) {
        request = request.unit(unit, amount);
    }
    if let Some(priority) = body.priority {
        request = request.priority(priority.into());
    }
    if let Some(millis) = body.timeout_ms {
        request = request.timeout(Duration::from_millis(millis));
    }
    if let Some(id) = body.id {
        request = request.id(id);
    }
    if let Some(model) = body.model {
        request = request.model(model);
    }
    let has_task = body.task.is_some();
    if let Some(task) = body.task {
        request = request.task(task);
    }
    if let Some(lease) = &body.retry_of {
        request = request.retry_of(lookup::id(lease)?);
    }
    let ttl = body.ttl_ms.map(Duration::from_millis);
    Ok(ParsedReserve { pool, others, request, limits, ttl, has_task })
}

/// Finds the pool, follows the route and fills in the time to live.
async fn prepare(state: &Arc<AppState>, parsed: ParsedReserve) -> Result<(Pool, Request), Problem> {
    let ParsedReserve { pool: name, others, mut request, limits, ttl, has_task } = parsed;
    for other in others {
        if !state.known_pools().contains(other.as_str()) {
            let shared = Arc::clone(state);
            let find = move |tap: &Standpipe| lookup::to_reserve(&shared, tap, &other, false);
            drop(state.on_store(find).await?);
        }
    }
    let is_known = state.known_pools().contains(name.as_str());
    let mut pool = match is_known {
        true => state.tap().pool(name.as_str())?,
        false => {
            let (shared, checked) = (Arc::clone(state), (request.clone(), limits.clone()));
            let find = move |tap: &Standpipe| {
                let (request, limits) = checked;
                let (pool, is_new) = lookup::to_reserve(&shared, tap, &name, !limits.is_empty())?;
                if is_new {
                    // An invalid request must not create the pool.
                    pool.check(&request, &limits).blocking()?;
                }
                Ok(pool)
            };
            state.on_store(find).await?
        }
    };
    if has_task {
        pool = state.awaited(state.tap().route(pool, &request)).await?;
    }
    let ttl = match ttl {
        Some(ttl) => ttl,
        None => state.awaited(pool.lease_ttl()).await?,
    };
    if !limits.is_empty() {
        request = request.limits(limits);
    }
    Ok((pool, request.ttl(ttl).keeps_place()))
}

fn peek(
    state: &AppState,
    tap: &Standpipe,
    parsed: ParsedReserve,
) -> Result<DryRunResponse, Problem> {
    let ParsedReserve { pool: name, request, limits, .. } = parsed;
    let pool = match lookup::existing(state, tap, &name) {
        Err(_) if !limits.is_empty() => {
            tap.pool(name.as_str())?.check(&request, &limits).blocking()?;
            in_memory(tap, &name, limits)?
        }
        known => {
            known?;
            tap.pool(name.as_str())?
        }
    };
    let pool = tap.route(pool, &request).blocking()?;
    match pool.peek(&request).blocking()?.why() {
        Some(refused) => Err(refused.clone().into()),
        None => Ok(DryRunResponse {
            schema: SCHEMA,
            pool: pool.name().to_string(),
            admitted: true,
            dry_run: true,
        }),
    }
}

/// A pool in memory with these limits, so that a dry run on a new pool leaves nothing behind.
fn in_memory(tap: &Standpipe, name: &PoolName, limits: Vec<Limit>) -> Result<Pool, Problem> {
    let settings = tap.settings().clone();
    let memory = Standpipe::builder().settings(settings).store(standpipe::StoreUrl::Memory);
    let pool = memory.open()?.pool(name.as_str())?;
    pool.limit(limits).blocking()?;
    Ok(pool)
}

fn granted(lease: Lease, advice: Option<Advice>, notice: Option<String>) -> GrantedLease {
    let cost = lease.cost().iter().map(|(unit, amount)| (unit.name().to_owned(), amount));
    GrantedLease {
        schema: SCHEMA,
        pool: lease.pool().to_string(),
        pools: match lease.pools().count() {
            1 => Vec::new(),
            _ => lease.pools().map(ToString::to_string).collect(),
        },
        agent: lease.agent().to_owned(),
        cost: cost.collect(),
        expires_at: Timestamp::of(lease.expires_at()),
        ttl_ms: millis(time_to_live(&lease)),
        waited_ms: millis(lease.waited()),
        zone: lease.zone().as_str(),
        settled: lease.is_settled(),
        advice,
        backpressure: lease.backpressure().cloned(),
        notice,
        // From here on the lease belongs to the client, which settles it by its id.
        lease: lease.into_id(),
    }
}

/// A clock that also counts while the process is stopped or the machine is suspended.
fn boot_time() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(CLOCK);
    Duration::try_from(now).unwrap_or_default()
}

/// The lease's own time to live, or what the pool's `longest_lease` leaves of it.
fn time_to_live(lease: &Lease) -> Duration {
    let own = lease.ttl().unwrap_or_default();
    let left = lease.expires_at().duration_since(SystemTime::now()).unwrap_or_default();
    // `left` is always a little less than `own`; only a clear difference means a bound.
    if own > left + Duration::from_secs(1) { left } else { own }
}

//! Calls that ask, and leases that end: `/v1/leases`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use standpipe::{
    Advice, Backpressure, Configured, Lease, LeaseId, Limit, Moment, Pool, Request, Standpipe, Unit,
};
use utoipa::ToSchema;

use super::words::{
    AnswerBody, Answered, Figure, Figures, HeaderText, Headers, Meant, Tier, amounts, limits,
    same_agent,
};
use super::{Problems, SCHEMA};
use crate::history::millis;
use crate::house::{House, MOST_WAITS};
use crate::peer::Peer;
use crate::pools;
use crate::problem::Problem;
use crate::said::{Part, Said, SaidOrNothing};

/// The longest a call may wait here.
const LONGEST_WAIT: u64 = 3_600_000;
/// The longest a lease may be asked for: 400 days. How long it lives at most is the pool's to say.
const LONGEST_TTL: u64 = 400 * 86_400_000;

/// A call that asks to be admitted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The shared quota, `provider/scope`.
    #[schema(
        example = "anthropic/sonnet",
        pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$"
    )]
    pool: String,
    /// Who asks. Else the header `x-standpipe-agent`, else the calling program's name.
    #[schema(pattern = r"^[A-Za-z0-9._@-]{1,64}$")]
    agent: Option<String>,
    /// Who goes first, when it is not the agent's own.
    priority: Option<Tier>,
    /// The kind of task: for the record, and for the file's routes.
    task: Option<String>,
    /// The model, for the record.
    model: Option<String>,
    /// What the call takes; one of `requests` is implied.
    #[schema(
        value_type = Option<BTreeMap<String, u64>>,
        example = json!({"input_tokens": 1200, "output_tokens": 800})
    )]
    cost: Option<Figures>,
    /// Limits for a pool that no file describes, as with `--limit` on the command line.
    #[schema(example = json!({"requests": "60/min", "tokens": "40k/min,burst=4k", "parallel": 5}))]
    limits: Option<BTreeMap<String, Figure>>,
    /// How long to wait at most; 0 never waits.
    #[schema(maximum = 3_600_000, default = 300_000)]
    timeout_ms: Option<u64>,
    /// How long the lease lives if nothing is heard of it. Else the pool's, 10 minutes.
    #[schema(minimum = 1, maximum = 34_560_000_000_i64)]
    ttl_ms: Option<u64>,
    /// Makes it repeatable: the same id of the same agent is answered with the first, and keeps its
    /// place in the queue while nobody is connected.
    id: Option<String>,
    /// The lease of the call that this one tries again.
    retry_of: Option<String>,
    /// Only say whether it would be admitted now.
    dry_run: Option<bool>,
}

/// A call that was admitted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Granted {
    schema: u64,
    /// The name of the lease, to settle it by.
    lease: LeaseId,
    /// The pool it is on: with a task, the one the route chose.
    pool: String,
    /// Whose it is.
    agent: String,
    /// What it was reserved for, with what was estimated because nobody said.
    cost: BTreeMap<String, u64>,
    /// When it ends by itself if nothing is heard of it.
    expires_at: Moment,
    /// In how long.
    ttl_ms: u64,
    /// How long the call waited.
    waited_ms: u64,
    /// How much quota is left: `green`, `amber` or `red`.
    zone: &'static str,
    /// An earlier call with the same id has ended already: this one must not be made.
    settled: bool,
    /// What to do before the next call like this, which would have to wait.
    advice: Option<Advice>,
    /// Somebody this agent works for is throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    backpressure: Option<Backpressure>,
    /// Something to know, for example that other limits count than those the call states.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

/// What a call would be told now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WouldBe {
    schema: u64,
    /// On which pool.
    pool: String,
    /// It would be admitted: otherwise the answer is the problem it would get.
    admitted: bool,
    /// Nothing was taken.
    dry_run: bool,
}

/// Both answers to a call.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Answer {
    Granted(Box<Granted>),
    WouldBe(WouldBe),
}

/// Asks for a call, waits until it is admitted, answers a lease.
///
/// The connection is held until then. A caller that goes away leaves nothing behind, unless its
/// call has an `id`: then its place in the queue, or its lease, is kept for whoever comes back.
#[utoipa::path(
    post, path = "/v1/leases", tag = "calls", request_body = Ask,
    responses(
        (status = 201, description = "It is admitted", body = Granted),
        (status = 200, description = "The same id was admitted before; or a dry run would be",
         body = Answer),
        Problems
    )
)]
pub(crate) async fn reserve(
    State(house): State<Arc<House>>,
    peer: Peer,
    headers: HeaderMap,
    Said(mut ask): Said<Ask>,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    if house.is_stopping() {
        return Err(Problem::stopping());
    }
    ask.agent = Some(same_agent(ask.agent.take(), &headers));
    if ask.dry_run == Some(true) {
        let shared = Arc::clone(&house);
        let would_be = house.on_store(move |tap| peek(&shared, tap, &ask)).await?;
        return Ok((StatusCode::OK, Json(Answer::WouldBe(would_be))));
    }
    let (shared, has_id) = (Arc::clone(&house), ask.id.is_some());
    let prepared = house.on_store(move |tap| prepare(&shared, tap, &ask)).await?;
    let Prepared { pool, request, notice } = prepared;
    let _place = house.waits.try_acquire().map_err(|_| Problem::too_many("calls", MOST_WAITS))?;
    let asked = request.clone();
    // Whoever goes away drops this, and what it asked for with it.
    let admitted = tokio::select! {
        biased;
        outcome = pool.reserve(request) => outcome,
        () = house.stops() => return Err(Problem::stopping()),
        () = peer.goes_away() => return Err(Problem::nobody_is_there()),
    };
    match admitted {
        // Nobody would know of it. With an id, whoever comes back does.
        Ok(lease) if peer.is_gone() && !has_id => {
            house.on_store(move |_| Ok(lease.cancel()?)).await?;
            Err(Problem::nobody_is_there())
        }
        Ok(lease) => {
            // The call is admitted and charged: advice that cannot be had does not change that.
            let advice = match lease.advice() {
                Some(own) => {
                    let advised = house.on_store(move |_| Ok(pool.advise(&asked)?)).await;
                    advised.unwrap_or(Some(own))
                }
                None => None,
            };
            let new = lease.is_new();
            let status = if new { StatusCode::CREATED } else { StatusCode::OK };
            Ok((status, Json(Answer::Granted(Box::new(granted(lease, advice, notice))))))
        }
        Err(error) => {
            let late = error.as_refused().is_some_and(|refused| !refused.is_never());
            let problem = Problem::from(error);
            if !late {
                return Err(problem);
            }
            let advice = house.on_store(move |_| Ok(pool.advise(&asked)?)).await;
            Err(problem.advising(advice.ok().flatten()))
        }
    }
}

/// A call that is ready to ask.
struct Prepared {
    pool: Pool,
    request: Request,
    /// What its caller should know, although it is no reason to say no.
    notice: Option<String>,
}

/// Everything before it asks: which pool, with which limits, and for how long.
fn prepare(house: &House, tap: &Standpipe, ask: &Ask) -> Result<Prepared, Problem> {
    let mut notice = None;
    let (request, stated) = told(ask)?;
    let name = pools::name(&ask.pool)?;
    let pool = pools::to_draw_on(house, tap, &name, !stated.is_empty())?;
    if !stated.is_empty() {
        // A call that cannot be understood changes nothing.
        pool.check(&request, &stated)?;
        if pool.limit(stated)? == Configured::Kept {
            let what = "other limits count on this pool than those the call states";
            notice = Some(format!("{what}; GET /v1/pools?pool={name} shows them"));
        }
    }
    let pool = tap.route(pool, &request)?;
    let ttl = match ask.ttl_ms {
        Some(millis) => Duration::from_millis(millis),
        None => pool.lease_ttl()?,
    };
    Ok(Prepared { pool, request: request.ttl(ttl).keeps_place(), notice })
}

fn peek(house: &House, tap: &Standpipe, ask: &Ask) -> Result<WouldBe, Problem> {
    let (request, stated) = told(ask)?;
    let name = pools::name(&ask.pool)?;
    let pool = match pools::known(house, tap, &name) {
        Err(_) if !stated.is_empty() => tried_in_memory(tap, &ask.pool, stated)?,
        known => {
            known?;
            tap.pool(name.as_str())?
        }
    };
    let pool = tap.route(pool, &request)?;
    match pool.peek(&request)?.why() {
        Some(refused) => Err(refused.clone().into()),
        None => Ok(WouldBe {
            schema: SCHEMA,
            pool: pool.name().to_string(),
            admitted: true,
            dry_run: true,
        }),
    }
}

/// A pool that is not there, but is given limits, is tried where nothing remains of it.
fn tried_in_memory(tap: &Standpipe, name: &str, limits: Vec<Limit>) -> Result<Pool, Problem> {
    let settings = tap.settings().clone();
    let memory = Standpipe::builder().settings(settings).store(standpipe::StoreUrl::Memory);
    let pool = memory.open()?.pool(name)?;
    pool.limit(limits)?;
    Ok(pool)
}

/// The request, and the limits that came with it.
fn told(ask: &Ask) -> Result<(Request, Vec<Limit>), Problem> {
    if ask.timeout_ms.is_some_and(|timeout| timeout > LONGEST_WAIT) {
        return Err(Problem::invalid(
            format!("timeout_ms is more than {LONGEST_WAIT}"),
            "wait at most an hour; with an `id` you may ask again and keep your place",
        ));
    }
    if ask.ttl_ms.is_some_and(|ttl| !(1..=LONGEST_TTL).contains(&ttl)) {
        return Err(Problem::invalid(
            format!("ttl_ms is not 1 to {LONGEST_TTL}"),
            "ask for as long as the call may be silent; POST /v1/leases/ID/heartbeat extends it",
        ));
    }
    let mut request = Request::by(ask.agent.clone().unwrap_or_default());
    for (unit, amount) in ask.cost.iter().flatten() {
        request = request.unit(unit, *amount);
    }
    if let Some(priority) = ask.priority {
        request = request.priority(priority.into());
    }
    if let Some(millis) = ask.timeout_ms {
        request = request.timeout(Duration::from_millis(millis));
    }
    if let Some(id) = &ask.id {
        request = request.id(id);
    }
    if let Some(model) = &ask.model {
        request = request.model(model);
    }
    if let Some(task) = &ask.task {
        request = request.task(task);
    }
    if let Some(lease) = &ask.retry_of {
        request = request.retry_of(pools::id(lease)?);
    }
    Ok((request, limits(ask.limits.as_ref())?))
}

fn granted(lease: Lease, advice: Option<Advice>, notice: Option<String>) -> Granted {
    let cost = lease.cost().iter().map(|(unit, figure)| (unit.name().to_owned(), figure));
    Granted {
        schema: SCHEMA,
        pool: lease.pool().to_string(),
        agent: lease.agent().to_owned(),
        cost: cost.collect(),
        expires_at: Moment::of(lease.expires_at()),
        ttl_ms: millis(lives_for(&lease)),
        waited_ms: millis(lease.waited()),
        zone: lease.zone().as_str(),
        settled: lease.is_settled(),
        advice,
        backpressure: lease.backpressure().cloned(),
        notice,
        // From here on it lives by itself: whoever has its id settles it.
        lease: lease.into_id(),
    }
}

/// How long it lives if nothing is heard of it: its own time, or what the pool allows at most.
fn lives_for(lease: &Lease) -> Duration {
    let own = lease.ttl().unwrap_or_default();
    let left = lease.expires_at().duration_since(SystemTime::now()).unwrap_or_default();
    // What has passed since it was granted is no part of it.
    if own > left + Duration::from_secs(1) { left } else { own }
}

/// How a call went.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Commit {
    /// Totals of the call so far; what is not named settles at the estimate.
    #[schema(value_type = Option<BTreeMap<String, u64>>)]
    used: Option<Figures>,
    /// The call is still running; the lease stays in flight.
    progress: Option<bool>,
    /// The answer's HTTP status; a refusal pauses the pool for every caller.
    #[schema(minimum = 100, maximum = 599)]
    status: Option<u16>,
    /// The answer's headers, by name; limits and usage are read from them.
    #[schema(value_type = Option<BTreeMap<String, HeaderText>>)]
    headers: Option<Headers>,
    /// The answer's body as text: an error's kind and wait are read from it, or the call's usage.
    /// It is not stored.
    #[schema(value_type = Option<String>, max_length = 131_072)]
    body: Option<AnswerBody>,
}

impl Commit {
    fn answered(&self) -> Answered<'_> {
        let Self { status, headers, body, .. } = self;
        Answered { status: *status, headers: headers.as_ref(), body: body.as_ref() }
    }
}

/// The state of a lease after a report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Told {
    schema: u64,
    /// The lease.
    lease: String,
    /// Its pool.
    pool: String,
    /// Whether this ended it.
    settled: bool,
    #[serde(flatten)]
    meant: Meant,
}

/// Settles a lease with what the call used.
#[utoipa::path(
    post, path = "/v1/leases/{id}/commit", tag = "calls", request_body = Commit,
    params(("id" = String, Path, description = "The lease")),
    responses((status = 200, description = "Settled, or still in flight", body = Told), Problems)
)]
pub(crate) async fn commit(
    State(house): State<Arc<House>>,
    Part(id): Part,
    SaidOrNothing(said): SaidOrNothing<Commit>,
) -> Result<Json<Told>, Problem> {
    let progress = said.progress == Some(true);
    if progress && said.answered().is_there() {
        return Err(Problem::invalid(
            "progress goes with figures only",
            "leave out `progress` when the provider has answered",
        ));
    }
    let shared = Arc::clone(&house);
    house.on_store(move |tap| settle(&shared, tap, &id, &said, progress)).await.map(Json)
}

fn settle(
    house: &House,
    tap: &Standpipe,
    id: &str,
    said: &Commit,
    progress: bool,
) -> Result<Told, Problem> {
    let used: Vec<(Unit, u64)> = amounts(said.used.as_ref())?;
    let lease = pools::lease(house, tap, id)?;
    let mut told = about(lease.id(), !progress);
    match said.answered().reply(200)? {
        Some(reply) => told.meant = (&lease.answered_using(&reply, used)?).into(),
        None if progress => lease.progress(used)?,
        None => lease.commit(used)?,
    }
    Ok(told)
}

/// The call was never sent: everything goes back.
#[utoipa::path(
    post, path = "/v1/leases/{id}/cancel", tag = "calls",
    params(("id" = String, Path, description = "The lease")),
    responses((status = 200, description = "All was given back", body = Told), Problems)
)]
pub(crate) async fn cancel(
    State(house): State<Arc<House>>,
    Part(id): Part,
) -> Result<Json<Told>, Problem> {
    let shared = Arc::clone(&house);
    let act = move |tap: &Standpipe| {
        let lease = pools::lease(&shared, tap, &id)?;
        lease.cancel()?;
        Ok(about(lease.id(), true))
    };
    house.on_store(act).await.map(Json)
}

/// Settles a lease at its estimate.
#[utoipa::path(
    delete, path = "/v1/leases/{id}", tag = "calls",
    params(("id" = String, Path, description = "The lease")),
    responses((status = 200, description = "It is settled", body = Told), Problems)
)]
pub(crate) async fn release(
    State(house): State<Arc<House>>,
    Part(id): Part,
) -> Result<Json<Told>, Problem> {
    let shared = Arc::clone(&house);
    let act = move |tap: &Standpipe| settle(&shared, tap, &id, &Commit::default(), false);
    house.on_store(act).await.map(Json)
}

/// A lease that lives on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Lives {
    schema: u64,
    /// Which lease.
    lease: String,
    /// On which pool.
    pool: String,
    /// When it ends by itself if nothing is heard of it.
    expires_at: Moment,
    /// In how long.
    ttl_ms: u64,
}

/// Keeps a lease alive: its time to live begins anew.
#[utoipa::path(
    post, path = "/v1/leases/{id}/heartbeat", tag = "calls",
    params(("id" = String, Path, description = "The lease")),
    responses((status = 200, description = "It lives on", body = Lives), Problems)
)]
pub(crate) async fn heartbeat(
    State(house): State<Arc<House>>,
    Part(id): Part,
) -> Result<Json<Lives>, Problem> {
    let shared = Arc::clone(&house);
    let act = move |tap: &Standpipe| {
        let lease = pools::lease(&shared, tap, &id)?;
        let until = lease.heartbeat()?;
        let left = until.duration_since(SystemTime::now()).unwrap_or_default();
        Ok(Lives {
            schema: SCHEMA,
            lease: lease.id().to_string(),
            pool: lease.id().pool().to_string(),
            expires_at: Moment::of(until),
            ttl_ms: millis(left),
        })
    };
    house.on_store(act).await.map(Json)
}

fn about(id: &LeaseId, settled: bool) -> Told {
    let (lease, pool) = (id.to_string(), id.pool().to_string());
    Told { schema: SCHEMA, lease, pool, settled, meant: Meant::default() }
}

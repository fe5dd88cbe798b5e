//! Reports to pools: refusals, providers' answers, and pauses by hand.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use standpipe::{Meaning, Moment, Reply, Standpipe, Throttle, ThrottleKind};
use utoipa::ToSchema;

use super::words::{AnswerBody, Answered, HeaderText, Headers, Meant, same_agent};
use super::{Problems, SCHEMA};
use crate::house::House;
use crate::pools;
use crate::problem::Problem;
use crate::said::Said;

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    #[default]
    Quota,
    Concurrency,
    SlowDown,
    Overload,
    Terminal,
}

impl From<Kind> for ThrottleKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Quota => Self::Quota,
            Kind::Concurrency => Self::Concurrency,
            Kind::SlowDown => Self::SlowDown,
            Kind::Overload => Self::Overload,
            Kind::Terminal => Self::Terminal,
        }
    }
}

/// The provider refused a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    /// The pool.
    #[schema(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// The call's lease; this settles it.
    lease: Option<String>,
    /// The agent whose call it was.
    #[schema(pattern = r"^[A-Za-z0-9._@-]{1,64}$")]
    agent: Option<String>,
    /// How long the provider says to wait.
    retry_after_ms: Option<u64>,
    /// The kind of the refusal. Without it, it is read from `status`, `headers` and `body`.
    kind: Option<Kind>,
    /// The answer's HTTP status; 429 if only headers or a body are given.
    #[schema(minimum = 100, maximum = 599)]
    status: Option<u16>,
    /// The answer's headers, by name.
    #[schema(value_type = Option<BTreeMap<String, HeaderText>>)]
    headers: Option<Headers>,
    /// The answer's body as text: what the refusal is about and how long it lasts is read from it.
    /// It is not stored.
    #[schema(value_type = Option<String>, max_length = 131_072)]
    body: Option<AnswerBody>,
}

/// The state of a pool after a report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Heard {
    schema: u64,
    /// The pool.
    pool: String,
    /// The end of the pause; no call is admitted before it.
    paused_until: Option<Moment>,
    /// The time until then.
    paused_for_ms: Option<u64>,
    #[serde(flatten)]
    meant: Meant,
    /// How many limits the answer reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<usize>,
}

/// Reports that the provider refused a call. The pool pauses for every caller.
#[utoipa::path(
    post, path = "/v1/throttle", tag = "telling", request_body = Refusal,
    responses((status = 200, description = "The refusal is recorded", body = Heard), Problems)
)]
pub(crate) async fn throttle(
    State(house): State<Arc<House>>,
    headers: HeaderMap,
    Said(said): Said<Refusal>,
) -> Result<Json<Heard>, Problem> {
    let agent = same_agent(said.agent.clone(), &headers);
    let shared = Arc::clone(&house);
    house.on_store(move |tap| refused(&shared, tap, &said, &agent)).await.map(Json)
}

fn refused(house: &House, tap: &Standpipe, said: &Refusal, agent: &str) -> Result<Heard, Problem> {
    let name = pools::name(&said.pool)?;
    let pool = pools::to_tell(house, tap, &name)?;
    let Refusal { status, headers, body, .. } = said;
    let answered = Answered { status: *status, headers: headers.as_ref(), body: body.as_ref() };
    let reply = answered.reply(429)?.map(|reply| with_retry_after(reply, said.retry_after_ms));
    let lease = said.lease.as_deref().map(pools::id).transpose()?;
    if let (Some(reply), None) = (&reply, said.kind) {
        let meant = match &lease {
            Some(lease) if *lease.pool() == name => {
                pools::lease(house, tap, &lease.to_string())?.answered_using(reply, [])?
            }
            Some(lease) => return Err(elsewhere(lease.pool().as_str(), &said.pool)),
            None => pool.heard(reply, Some(agent))?.0,
        };
        return heard(&pool, Some(&meant), None);
    }
    let mut throttle = Throttle::new(said.kind.unwrap_or_default().into()).agent(agent);
    let stated = said.retry_after_ms.map(Duration::from_millis);
    if let Some(wait) = stated.or_else(|| wait_of(&pool, reply.as_ref()?)) {
        throttle = throttle.retry_after(wait);
    }
    if let Some(lease) = lease {
        throttle = throttle.lease(lease);
    }
    pool.throttle(&throttle)?;
    heard(&pool, None, None)
}

/// How long the provider says to wait, whatever kind the caller says it is.
fn wait_of(pool: &standpipe::Pool, reply: &Reply) -> Option<Duration> {
    match pool.meaning_of(reply) {
        Meaning::Refused { retry_after, .. } => retry_after,
        _ => None,
    }
}

/// What the caller says itself counts as if the answer had said it.
fn with_retry_after(reply: Reply, millis: Option<u64>) -> Reply {
    match millis {
        Some(millis) => reply.header("retry-after-ms", millis.to_string()),
        None => reply,
    }
}

fn elsewhere(on: &str, pool: &str) -> Problem {
    let detail = format!("the lease is on `{on}`, not on `{pool}`");
    Problem::invalid(detail, "name the pool the lease is on")
}

/// A provider's answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Observation {
    /// The pool.
    #[schema(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// The lease of the call it answered; it stays in flight.
    lease: Option<String>,
    /// The answer's HTTP status.
    #[schema(minimum = 100, maximum = 599)]
    status: Option<u16>,
    /// The answer's headers, by name.
    #[schema(value_type = BTreeMap<String, HeaderText>)]
    headers: Headers,
    /// The answer's body as text: whether it is a refusal, and of which kind, is read from it.
    /// It is not stored.
    #[schema(value_type = Option<String>, max_length = 131_072)]
    body: Option<AnswerBody>,
}

/// Reports a provider's answer. The ledger follows the limits in it; a refusal pauses the pool.
#[utoipa::path(
    post, path = "/v1/observe", tag = "telling", request_body = Observation,
    responses((status = 200, description = "The answer is recorded", body = Heard), Problems)
)]
pub(crate) async fn observe(
    State(house): State<Arc<House>>,
    headers: HeaderMap,
    Said(said): Said<Observation>,
) -> Result<Json<Heard>, Problem> {
    let agent = same_agent(None, &headers);
    let shared = Arc::clone(&house);
    let act = move |tap: &Standpipe| {
        let name = pools::name(&said.pool)?;
        let pool = pools::to_tell(&shared, tap, &name)?;
        let lease = said.lease.as_deref().map(pools::id).transpose()?;
        if let Some(lease) = lease.filter(|lease| *lease.pool() != name) {
            return Err(elsewhere(lease.pool().as_str(), &said.pool));
        }
        let (headers, body) = (Some(&said.headers), said.body.as_ref());
        let answered = Answered { status: said.status, headers, body };
        let Some(reply) = answered.reply(200)? else {
            return heard(&pool, None, None);
        };
        let (meant, limits) = pool.heard(&reply, Some(&agent))?;
        heard(&pool, Some(&meant), Some(limits))
    };
    house.on_store(act).await.map(Json)
}

/// A pause by hand.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseFor {
    /// Which pool.
    #[schema(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// For how long; at most 8 days.
    #[schema(minimum = 1, maximum = 691_200_000)]
    for_ms: u64,
}

/// The longest pause by hand: as long as a provider's is believed.
const LONGEST_PAUSE: u64 = 8 * 86_400_000;

/// Admits nobody for a while. A running pause is never shortened by this.
#[utoipa::path(
    post, path = "/v1/pause", tag = "telling", request_body = PauseFor,
    responses((status = 200, description = "The pool is paused", body = Heard), Problems)
)]
pub(crate) async fn pause(
    State(house): State<Arc<House>>,
    Said(said): Said<PauseFor>,
) -> Result<Json<Heard>, Problem> {
    if !(1..=LONGEST_PAUSE).contains(&said.for_ms) {
        return Err(Problem::invalid(
            format!("for_ms is {}", said.for_ms),
            format!("pause for 1 to {LONGEST_PAUSE} ms (8 days)"),
        ));
    }
    let shared = Arc::clone(&house);
    let act = move |tap: &Standpipe| {
        let pool = pools::known(&shared, tap, &pools::name(&said.pool)?)?;
        pool.pause(Duration::from_millis(said.for_ms))?;
        heard(&pool, None, None)
    };
    house.on_store(act).await.map(Json)
}

/// Which pool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnlyPool {
    /// Which pool.
    #[schema(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
}

/// Lifts a pause, and the provider's word that ended everything.
#[utoipa::path(
    post, path = "/v1/resume", tag = "telling", request_body = OnlyPool,
    responses((status = 200, description = "The pool admits calls", body = Heard), Problems)
)]
pub(crate) async fn resume(
    State(house): State<Arc<House>>,
    Said(said): Said<OnlyPool>,
) -> Result<Json<Heard>, Problem> {
    let shared = Arc::clone(&house);
    let act = move |tap: &Standpipe| {
        let pool = pools::known(&shared, tap, &pools::name(&said.pool)?)?;
        pool.resume()?;
        heard(&pool, None, None)
    };
    house.on_store(act).await.map(Json)
}

/// The state of the pool after a report.
fn heard(
    pool: &standpipe::Pool,
    meant: Option<&Meaning>,
    limits: Option<usize>,
) -> Result<Heard, Problem> {
    let pause = pool.paused()?;
    Ok(Heard {
        schema: SCHEMA,
        pool: pool.name().to_string(),
        paused_until: pause.as_ref().map(|pause| pause.until),
        paused_for_ms: pause.map(|pause| pause.for_ms),
        meant: meant.map(Meant::from).unwrap_or_default(),
        limits,
    })
}

//! How pools stand: the snapshot that every face shows, agents, explanations, and the past.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use standpipe::config::text;
use standpipe::{AgentStatus, Explanation, PoolName, Request, Snapshot, Standpipe};
use utoipa::{IntoParams, ToSchema};

use super::words::{Tier, same_agent};
use super::{Problems, SCHEMA};
use crate::history::Past;
use crate::house::{House, held};
use crate::pools;
use crate::problem::Problem;
use crate::said::Asked;
use crate::{stream, watching};

/// Which pools.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only this pool.
    #[param(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pub(crate) pool: Option<String>,
    /// At most so many leases, tickets and agents of each.
    #[param(maximum = 4_294_967_295_i64)]
    pub(crate) rows: Option<u32>,
}

impl Which {
    fn rows(&self) -> Option<usize> {
        self.rows.and_then(|rows| usize::try_from(rows).ok())
    }
}

/// How pools stand.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Seen {
    pub(crate) schema: u64,
    #[serde(flatten)]
    pub(crate) snapshot: Snapshot,
}

/// How pools stand: what `standpipe status --json` prints.
///
/// With `accept: text/event-stream` the same about every second, as events named `pools`.
#[utoipa::path(
    get, path = "/v1/pools", tag = "looking", params(Which),
    responses(
        (status = 200, description = "As it is now", content(
            (Seen = "application/json"), (String = "text/event-stream")
        )),
        Problems
    )
)]
pub(crate) async fn pools(
    State(house): State<Arc<House>>,
    headers: HeaderMap,
    Asked(which): Asked<Which>,
) -> Result<Response, Problem> {
    let only = which.pool.as_deref().map(pools::name).transpose()?;
    if stream::is_wanted(&headers) {
        if let Some(only) = &only {
            let (shared, only) = (Arc::clone(&house), only.clone());
            house.aside(move |tap| pools::known(&shared, tap, &only).map(drop)).await?;
        }
        return watching::stream(&house, only, which.rows());
    }
    let snapshot = look(&house, only).await?;
    let snapshot = snapshot.at_most(which.rows().unwrap_or(usize::MAX));
    Ok(Json(Seen { schema: SCHEMA, snapshot }).into_response())
}

/// A look at all pools, or one.
async fn look(house: &Arc<House>, only: Option<PoolName>) -> Result<Snapshot, Problem> {
    let shared = Arc::clone(house);
    let act = move |tap: &Standpipe| match only {
        Some(name) => Ok(tap.snapshot(&[pools::known(&shared, tap, &name)?])?),
        None => watching::look(tap),
    };
    house.aside(act).await
}

/// Who was seen on the pools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Agents {
    schema: u64,
    /// By pool; on each the last active first.
    agents: Vec<OnPool>,
}

/// An agent on a pool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OnPool {
    /// On which pool.
    pool: String,
    #[serde(flatten)]
    agent: AgentStatus,
}

/// Who was seen on the pools.
#[utoipa::path(
    get, path = "/v1/agents", tag = "looking", params(Which),
    responses((status = 200, description = "Those there are", body = Agents), Problems)
)]
pub(crate) async fn agents(
    State(house): State<Arc<House>>,
    Asked(which): Asked<Which>,
) -> Result<Json<Agents>, Problem> {
    let only = which.pool.as_deref().map(pools::name).transpose()?;
    let seen = look(&house, only).await?.at_most(which.rows().unwrap_or(usize::MAX));
    let agents = seen.pools.into_iter().flat_map(|pool| {
        let name = pool.pool;
        pool.agents.into_iter().map(move |agent| OnPool { pool: name.clone(), agent })
    });
    Ok(Json(Agents { schema: SCHEMA, agents: agents.collect() }))
}

/// What the limits looked like over the last ten minutes.
#[utoipa::path(
    get, path = "/v1/history", tag = "looking",
    params((
        "pool" = Option<String>, Query, description = "Only this pool",
        pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$"
    )),
    responses((status = 200, description = "Oldest first", body = Past), Problems)
)]
pub(crate) async fn history(
    State(house): State<Arc<House>>,
    Asked(which): Asked<Which>,
) -> Result<Json<Past>, Problem> {
    let only = which.pool.as_deref().map(pools::name).transpose()?;
    Ok(Json(held(&house.history).past(only.as_ref().map(PoolName::as_str))))
}

/// A call to explain.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Question {
    /// On which pool.
    #[param(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// Who asks.
    #[param(pattern = r"^[A-Za-z0-9._@-]{1,64}$")]
    agent: Option<String>,
    /// In which tier.
    #[param(inline)]
    priority: Option<Tier>,
    /// What it takes, for example `input_tokens=1200,output_tokens=800`.
    #[param(pattern = r"^[a-z][a-z0-9_]{0,31}=[0-9]{1,9}(,[a-z][a-z0-9_]{0,31}=[0-9]{1,9})*$")]
    cost: Option<String>,
}

/// The admission rule step by step for one call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explained {
    schema: u64,
    #[serde(flatten)]
    explanation: Explanation,
}

/// Walks through the admission rule without taking anything.
#[utoipa::path(
    get, path = "/v1/explain", tag = "looking", params(Question),
    responses((status = 200, description = "Step by step", body = Explained), Problems)
)]
pub(crate) async fn explain(
    State(house): State<Arc<House>>,
    headers: HeaderMap,
    Asked(question): Asked<Question>,
) -> Result<Json<Explained>, Problem> {
    let mut request = Request::by(same_agent(question.agent, &headers));
    if let Some(priority) = question.priority {
        request = request.priority(priority.into());
    }
    if let Some(cost) = &question.cost {
        let figures =
            text::costs(cost).map_err(|wrong| Problem::invalid(wrong.what, wrong.remedy))?;
        for (unit, amount) in figures {
            request = request.unit(unit.name(), amount);
        }
    }
    let name = pools::name(&question.pool)?;
    let shared = Arc::clone(&house);
    let act = move |tap: &Standpipe| Ok(pools::known(&shared, tap, &name)?.explain(&request)?);
    let explanation = house.aside(act).await?;
    Ok(Json(Explained { schema: SCHEMA, explanation }))
}

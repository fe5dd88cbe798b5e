//! `/v1/explain`: the admission rule, step by step, for one call.
//!
//! Reads only: nothing is reserved and no pool is created.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use standpipe::config::text;
use standpipe::observe::Explanation;
use standpipe::{Request, Standpipe};
use utoipa::{IntoParams, ToSchema};

use super::fields::{PriorityParam, agent_of};
use super::{Problems, SCHEMA, lookup};
use crate::http::extract::QueryParams;
use crate::http::problem::Problem;
use crate::state::AppState;

/// A call to explain.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainQuery {
    /// The pool.
    #[param(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: String,
    /// The calling agent.
    #[param(pattern = r"^[A-Za-z0-9._@-]{1,64}$")]
    agent: Option<String>,
    /// The priority.
    #[param(inline)]
    priority: Option<PriorityParam>,
    /// The cost, for example `input_tokens=1200,output_tokens=800`.
    #[param(pattern = r"^[a-z][a-z0-9_]{0,31}=[0-9]{1,9}(,[a-z][a-z0-9_]{0,31}=[0-9]{1,9})*$")]
    cost: Option<String>,
}

/// The admission rule step by step for one call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainResponse {
    schema: u64,
    #[serde(flatten)]
    explanation: Explanation,
}

/// Shows step by step whether a call would be admitted now.
#[utoipa::path(
    get, path = "/v1/explain", tag = "views", params(ExplainQuery),
    responses((status = 200, description = "The steps", body = ExplainResponse), Problems)
)]
pub(crate) async fn explain(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    QueryParams(query): QueryParams<ExplainQuery>,
) -> Result<Json<ExplainResponse>, Problem> {
    let mut request = Request::by(agent_of(query.agent, &headers));
    if let Some(priority) = query.priority {
        request = request.priority(priority.into());
    }
    if let Some(cost) = &query.cost {
        let costs =
            text::costs(cost).map_err(|wrong| Problem::invalid(wrong.what, wrong.remedy))?;
        for (unit, amount) in costs {
            request = request.unit(unit.name(), amount);
        }
    }
    let name = lookup::name(&query.pool)?;
    let shared = Arc::clone(&state);
    let step = move |tap: &Standpipe| {
        Ok(lookup::existing(&shared, tap, &name)?.explain(&request).blocking()?)
    };
    let explanation = state.on_store(step).await?;
    Ok(Json(ExplainResponse { schema: SCHEMA, explanation }))
}

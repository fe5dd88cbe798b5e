//! The transparent proxy: `/{provider}/…` and `/as/{agent}/{provider}/…` go to the provider's API.
//!
//! A client sets one base URL and changes nothing else. Every call that counts against a quota is
//! reserved before it is forwarded and settled with what it used. Bodies are forwarded byte for
//! byte, keys pass through and are never kept.
//!
//! # The life of a request
//!
//! [`serve`] runs the phases, one file each:
//!
//! 1. `identify`: who calls, which provider, and which path of its API.
//! 2. `estimate`: reads the body once for model, size and options (`format` knows the APIs).
//! 3. `route`: the pool of the call, from provider and model.
//! 4. `hold`: reserves and waits; a stream that waits long gets keep-alive comments.
//! 5. `forward`: sends the call to the `upstream`.
//! 6. `observe`: reads an error, reports it to the ledger and decides whether to try again.
//! 7. `relay`: passes the body on and reads the usage from it; `sse` hides a usage event that the
//!    client did not ask for.
//! 8. `settle`: every lease ends here: with the usage, at what was seen of a stream that broke off,
//!    or cancelled because nothing was sent.
//!
//! `totals` counts by agent. `errors` writes refusals of Standpipe in the provider's own format, so
//! that SDKs raise their own exceptions.

mod describe;
mod errors;
mod estimate;
mod format;
mod forward;
mod hold;
mod identify;
mod observe;
mod relay;
mod route;
mod settle;
mod sse;
mod totals;
mod upstream;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};

pub use self::describe::{CallDescription, UsageHider, provider_at};
use self::estimate::Facts;
use self::format::Format;
use self::hold::Call;
use self::identify::Identified;
pub(crate) use self::totals::{AgentTotals, Totals};
use crate::api::unknown_path;
use crate::http::guard::Transport;
use crate::http::problem::Problem;
use crate::state::AppState;

/// The largest body of a request, in bytes: what the providers themselves accept.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// Serves a request for a provider, or answers that there is no such path.
pub(crate) async fn serve(State(state): State<Arc<AppState>>, request: Request) -> Response {
    let transport = request.extensions().get::<Transport>().copied();
    let identified = identify::identify(&state, transport, request.uri(), request.headers());
    match identified {
        Ok(Some(identified)) => {
            let format = Format::of(&identified.upstream.name, request.method(), &identified.path);
            let done = proxy(state, identified, format, request).await;
            done.unwrap_or_else(|problem| errors::response(format, &problem))
        }
        Ok(None) => unknown_path().await.into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn proxy(
    state: Arc<AppState>,
    identified: Identified,
    format: Format,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    if !format.is_counted() {
        return forward::unmetered(&identified, parts, body).await;
    }
    let body = read_body(body).await?;
    let facts = Facts::of(format, &identified.path, &body);
    let pool = route::find(&state, &identified, format, &facts).await?;
    let call = Call { state, identified, format, facts, pool, parts, body };
    hold::run(call).await
}

/// Reads the whole body: it is measured for the estimate, and sent again after a refusal.
async fn read_body(body: Body) -> Result<axum::body::Bytes, Problem> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Problem::too_large(MAX_BODY))
        }
        Err(_) => Err(Problem::client_gone()),
    }
}

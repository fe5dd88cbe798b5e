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
//! 1. `identify`: who calls, which provider, and which path of its API; `signature` rejects calls
//!    that are signed for another host.
//! 2. `request_body` reads the body; `estimate` walks it once for model, size and options (`format`
//!    knows the APIs).
//! 3. `route`: the pool of the call, from provider and model; `fallback` and `rewrite`: another
//!    model, where the pool allows that.
//! 4. `hold`: reserves and waits; a stream that waits long gets keep-alive comments.
//! 5. `forward`: sends the call to the `upstream`; `disconnects` notices a client that leaves.
//! 6. `observe`: reads an error, reports it to the ledger and decides whether to try again.
//! 7. `relay`: passes the body on and reads the usage from it; `sse` hides a usage event that the
//!    client did not ask for; `links` keeps links to further pages within the proxy.
//! 8. `settle`: every lease ends here: with the usage, at what was seen of a stream that broke off,
//!    or cancelled because nothing was sent.
//!
//! `upgrade` passes WebSockets through and `realtime` reads their usage. `caller`, `totals` and
//! `recent` count by agent, session and model. `prompt_cache` knows which prompts a provider has
//! cached, `keys` separates clients' keys, and `client_retries` notices a second layer of retries.
//! `errors` writes refusals of Standpipe in the provider's own format, so that SDKs raise their own
//! exceptions, and `unreachable` says why a provider did not answer.

mod caller;
mod client_retries;
mod describe;
mod disconnects;
mod errors;
mod estimate;
mod fallback;
mod format;
mod forward;
mod hold;
mod identify;
mod keys;
mod links;
mod observe;
mod prompt_cache;
mod realtime;
mod recent;
mod relay;
mod request_body;
mod rewrite;
mod route;
mod settle;
mod signature;
mod sse;
mod totals;
mod unreachable;
mod upgrade;
mod upstream;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;

use self::caller::Caller;
pub(crate) use self::client_retries::ClientRetries;
pub use self::describe::{CallDescription, UsageHider, provider_at};
use self::estimate::Facts;
use self::format::Format;
use self::hold::Call;
use self::identify::Identified;
pub(crate) use self::keys::KeyNumbers;
pub(crate) use self::prompt_cache::PromptCaches;
pub(crate) use self::recent::{ModelTotals, ProxiedCall, RecentCalls};
use self::request_body::WholeBody;
pub(crate) use self::totals::{AgentTotals, Totals};
use self::upgrade::Upgrade;
pub(crate) use self::upstream::{BUILT_IN, authority};
use crate::api::unknown_path;
use crate::http::guard::Transport;
use crate::http::problem::Problem;
use crate::state::AppState;

/// Serves a request for a provider, or answers that there is no such path.
pub(crate) async fn serve(
    state: Arc<AppState>,
    transport: Transport,
    mut request: Request,
) -> Response {
    let Some(located) = identify::locate(state.tap().settings(), transport, &request) else {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        return unknown(&state, &method, uri).await;
    };
    let format = Format::of(&located.upstream.name, request.method(), &located.path);
    match identify::identify(&state, transport, &request, located) {
        Ok(identified) => {
            let format = format.as_configured(identified.configured.as_ref());
            let upgrade = Upgrade::of(request.headers());
            if let Some(problem) = upgrade::refusal(upgrade, format, &identified.path) {
                return upgrade::refuse(format, &problem);
            }
            let signed =
                signature::refusal(&identified.upstream, request.headers(), &identified.path);
            if let Some(problem) = signed {
                return errors::response(format, &problem);
            }
            let client = (upgrade == Upgrade::WebSocket).then(|| upgrade::client_end(&mut request));
            let done = proxy(state, identified, format, request, client).await;
            done.unwrap_or_else(|problem| errors::response(format, &problem))
        }
        Err(problem) => errors::response(format, &problem),
    }
}

/// Answers that a path is neither the API's nor a provider's.
async fn unknown(state: &AppState, method: &Method, uri: Uri) -> Response {
    let Some((meant, rest, whole)) = identify::similar(state.tap().settings(), uri.path()) else {
        return unknown_path(uri).await.into_response();
    };
    let shown = |text: &str| text.chars().take(80).flat_map(char::escape_debug).collect::<String>();
    let what = format!("there is no path `{}`", shown(uri.path()));
    let hint = format!("did you mean the provider `{meant}`: {}", shown(&whole));
    let problem = Problem::new(StatusCode::NOT_FOUND, "not_found", what, hint);
    errors::response(Format::of(&meant, method, &rest), &problem)
}

async fn proxy(
    state: Arc<AppState>,
    identified: Identified,
    format: Format,
    request: Request,
    client: Option<OnUpgrade>,
) -> Result<Response, Problem> {
    let caller = Caller { agent: identified.agent.clone(), session: None };
    let failed = |problem: &Problem| state.proxied.fail(&caller, problem.message());
    if !format.is_counted() {
        let (parts, body) = request.into_parts();
        let passed = Box::pin(forward::unmetered(&identified, parts, body)).await;
        return passed.inspect_err(failed);
    }
    let call = prepare(&state, identified, format, request).await.inspect_err(failed)?;
    call.state.client_retries.check(&call);
    match client {
        // Rare and large: every call would carry its state otherwise.
        Some(client) => Box::pin(upgrade::run(call, client)).await,
        None => hold::run(call).await,
    }
}

/// Reads the body of a call and finds its pool.
async fn prepare(
    state: &Arc<AppState>,
    identified: Identified,
    format: Format,
    request: Request,
) -> Result<Call, Problem> {
    let (parts, body) = request.into_parts();
    let WholeBody { bytes: body, room } = request_body::read(body).await?;
    let facts = Facts::of(format, &identified.path, &body);
    let account = route::account(state, &identified, &parts.headers)?;
    let pool = route::find(state, &identified, format, &facts, account.as_deref()).await?;
    let split_by = &identified.upstream.split_by;
    let caller = Caller::new(&identified.agent, &parts.headers, facts.user.as_deref(), split_by);
    let cached = state.prompt_caches.call(pool.name().as_str(), &caller, facts.text_bytes);
    Ok(Call {
        state: Arc::clone(state),
        identified,
        caller,
        format,
        facts,
        cached,
        pool,
        parts,
        body,
        _room: room,
        original: None,
    })
}

//! WebSockets of OpenAI's realtime API: one call that lasts as long as its connection.
//!
//! The call is reserved, the upgrade is forwarded, and then bytes pass in both directions unread.
//! The lease ends with the connection and counts one request. Other upgrades are rejected.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use standpipe::Lease;
use tokio::io::AsyncWriteExt;

use super::errors::add_headers;
use super::format::Format;
use super::forward::{self, SendError, is_error, remove_connection_headers};
use super::hold::{Call, Tries, reserve};
use super::observe::{self, Next};
use super::recent::ProxiedCall;
use super::relay;
use crate::http::problem::Problem;
use crate::state::AppState;
use crate::watch::history::millis;

/// The longest life of a connection. OpenAI ends a session after an hour.
const MAX_LIFE: Duration = Duration::from_secs(2 * 3_600);

/// What a request says about an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upgrade {
    None,
    WebSocket,
    /// A protocol that the proxy does not forward.
    Other,
}

impl Upgrade {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let Some(wanted) = headers.get(header::UPGRADE) else { return Self::None };
        match wanted.to_str().unwrap_or("?").trim() {
            text if text.eq_ignore_ascii_case("websocket") => Self::WebSocket,
            // Clients that offer HTTP/2 do not insist on it (RFC 9110, section 7.8).
            text if text.split(',').all(|name| name.trim().starts_with("h2")) => Self::None,
            _ => Self::Other,
        }
    }
}

/// Why an upgrade is not forwarded, if it is not.
pub(crate) fn refusal(upgrade: Upgrade, format: Format) -> Option<Problem> {
    let detail = match upgrade {
        Upgrade::None => return None,
        Upgrade::WebSocket if format == Format::Realtime => return None,
        Upgrade::WebSocket => "WebSockets are forwarded only to …/realtime",
        Upgrade::Other => "the proxy does not forward this upgrade",
    };
    let hint = "send an ordinary HTTP request, or connect to the provider itself";
    Some(Problem::new(StatusCode::NOT_IMPLEMENTED, "upgrade", detail, hint))
}

/// The client's end of the connection, once it has switched protocols.
pub(crate) fn client_end(request: &mut Request) -> OnUpgrade {
    hyper::upgrade::on(request)
}

/// Makes a call whose connection becomes a WebSocket.
pub(crate) async fn run(call: Call, client: OnUpgrade) -> Result<Response<Body>, Problem> {
    let mut tries = Tries::new(call.patience());
    let Some(lease) = reserve(&call, &mut tries).await? else { return Err(Problem::stopping()) };
    let about = (lease.pool().clone(), lease.id().clone(), lease.zone());
    let sent = tokio::select! {
        biased;
        sent = forward::send_upgrade(&call) => sent,
        () = call.disconnected() => return Err(Problem::client_gone()),
    };
    let mut answer = match sent {
        Ok(answer) => answer,
        Err(SendError::NotSent(problem)) => {
            call.state.awaited(lease.cancel()).await?;
            return Err(problem);
        }
        Err(SendError::Broken(problem)) => {
            call.state.awaited(lease.commit([])).await?;
            return Err(problem);
        }
    };
    if is_error(answer.status()) {
        let (Next::Again(mut answer) | Next::Final(mut answer)) =
            observe::failed(&call, lease, answer, &mut tries).await?;
        add_headers(answer.headers_mut(), &about, &call, &tries);
        return Ok(answer);
    }
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(relay::relay(&call, lease, answer, &tries));
    }
    let provider = hyper::upgrade::on(&mut answer);
    let (mut head, _) = answer.into_parts();
    remove_connection_headers(&mut head.headers);
    add_upgrade(&mut head.headers);
    add_headers(&mut head.headers, &about, &call, &tries);
    call.state.proxied.add(&call.caller, |own| own.calls += 1);
    call.state.recent_calls.add(ProxiedCall::of(&call, millis(tries.waited)), 101);
    tokio::spawn(tunnel(Arc::clone(&call.state), lease, client, provider));
    Ok(Response::from_parts(head, Body::empty()))
}

/// States the upgrade again, which belongs to one connection.
pub(crate) fn add_upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// Passes bytes until one end closes, then settles the call.
async fn tunnel(state: Arc<AppState>, lease: Lease, client: OnUpgrade, provider: OnUpgrade) {
    let passed = async {
        if let (Ok(client), Ok(provider)) = tokio::join!(client, provider) {
            copy(client, provider).await;
        }
    };
    tokio::select! {
        () = passed => {}
        () = tokio::time::sleep(MAX_LIFE) => {}
        () = state.stopped() => {}
    }
    if let Err(problem) = state.awaited(lease.commit([])).await {
        tracing::debug!(detail = problem.detail, "a WebSocket was not settled");
    }
}

/// A WebSocket has no half-closed state: when one end closes, so does the other.
async fn copy(client: Upgraded, provider: Upgraded) {
    let (mut from_client, mut to_client) = tokio::io::split(TokioIo::new(client));
    let (mut from_provider, mut to_provider) = tokio::io::split(TokioIo::new(provider));
    tokio::select! {
        // A connection that breaks is as good as one that is closed.
        _ended = tokio::io::copy(&mut from_client, &mut to_provider) => {}
        _ended = tokio::io::copy(&mut from_provider, &mut to_client) => {}
    }
    let _closed = tokio::join!(to_client.shutdown(), to_provider.shutdown());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_websockets_of_the_realtime_api_are_forwarded() {
        let of = |text: &str| {
            Upgrade::of(&[(header::UPGRADE, text.parse().unwrap())].into_iter().collect())
        };
        assert_eq!(Upgrade::of(&HeaderMap::new()), Upgrade::None);
        assert_eq!(of("WebSocket"), Upgrade::WebSocket);
        assert_eq!(of("h2c"), Upgrade::None);
        assert_eq!(of("SPDY/3.1"), Upgrade::Other);
        assert!(refusal(Upgrade::WebSocket, Format::Realtime).is_none());
        assert!(refusal(Upgrade::None, Format::OpenAiChat).is_none());
        for (upgrade, format) in
            [(Upgrade::WebSocket, Format::Other), (Upgrade::Other, Format::Realtime)]
        {
            assert_eq!(refusal(upgrade, format).unwrap().status, 501);
        }
    }
}

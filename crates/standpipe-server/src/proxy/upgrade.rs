//! WebSockets of OpenAI's realtime API: one call that lasts as long as its connection.
//!
//! The call is reserved, the upgrade is forwarded, and then bytes pass in both directions. The
//! lease ends with the connection. It counts one request, and the tokens that `realtime` reads from
//! the provider's messages. Other upgrades are rejected.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use standpipe::{Amounts, Lease};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::caller::Caller;
use super::errors::{self, add_headers};
use super::format::Format;
use super::forward::{self, SendError, is_error, remove_connection_headers};
use super::hold::{Call, Tries, reserve};
use super::observe::{self, Next};
use super::realtime::SessionUsage;
use super::recent::{Prices, ProxiedCall};
use super::relay;
use super::settle::after_the_response;
use crate::http::problem::Problem;
use crate::state::AppState;
use crate::watch::history::millis;

/// The longest life of a connection. OpenAI ends a session after an hour.
const MAX_LIFE: Duration = Duration::from_secs(2 * 3_600);
/// How many bytes of the provider are passed at once.
const PIECE: usize = 16 * 1024;

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
pub(crate) fn refusal(upgrade: Upgrade, format: Format, path: &str) -> Option<Problem> {
    let detail = match upgrade {
        Upgrade::None => return None,
        Upgrade::WebSocket if format == Format::Realtime => return None,
        Upgrade::WebSocket => "WebSockets are forwarded only to …/realtime",
        Upgrade::Other => "the proxy does not forward this upgrade",
    };
    // Each message of such a WebSocket is a call, which the proxy could not count. Codex takes this
    // status as the advice to use HTTP at once; after any other one it first tries six times.
    let is_responses = path.split('?').next().is_some_and(|path| path.ends_with("/responses"));
    let status = match upgrade == Upgrade::WebSocket && is_responses {
        true => StatusCode::UPGRADE_REQUIRED,
        false => StatusCode::NOT_IMPLEMENTED,
    };
    let hint = "send an ordinary HTTP request, or connect to the provider itself";
    Some(Problem::new(status, "upgrade", detail, hint))
}

/// The answer to an upgrade that is not forwarded.
pub(crate) fn refuse(format: Format, problem: &Problem) -> Response<Body> {
    let mut response = errors::response(format, problem);
    if response.status() == StatusCode::UPGRADE_REQUIRED {
        // It names the protocol to use instead (RFC 9110, section 15.5.22).
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    }
    response
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
    let session = Session {
        shown: ProxiedCall::of(&call, millis(tries.waited)),
        prices: call.prices(),
        state: call.state,
        caller: call.caller,
        lease,
        usage: SessionUsage::default(),
    };
    tokio::spawn(session.run(client, provider));
    Ok(Response::from_parts(head, Body::empty()))
}

/// States the upgrade again, which belongs to one connection.
pub(crate) fn add_upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// A call whose connection is a WebSocket.
struct Session {
    state: Arc<AppState>,
    caller: Caller,
    shown: ProxiedCall,
    prices: Prices,
    lease: Lease,
    usage: SessionUsage,
}

impl Session {
    /// Passes bytes until one end closes, then settles the call.
    async fn run(mut self, client: OnUpgrade, provider: OnUpgrade) {
        let state = Arc::clone(&self.state);
        let passed = async {
            if let (Ok(client), Ok(provider)) = tokio::join!(client, provider) {
                self.copy(client, provider).await;
            }
        };
        tokio::select! {
            () = passed => {}
            () = tokio::time::sleep(MAX_LIFE) => {}
            () = state.stopped() => {}
        }
        self.settle().await;
    }

    /// A WebSocket has no half-closed state: when one end closes, so does the other.
    async fn copy(&mut self, client: Upgraded, provider: Upgraded) {
        let (mut from_client, mut to_client) = tokio::io::split(TokioIo::new(client));
        let (mut from_provider, mut to_provider) = tokio::io::split(TokioIo::new(provider));
        tokio::select! {
            // A connection that breaks is as good as one that is closed.
            _ended = tokio::io::copy(&mut from_client, &mut to_provider) => {}
            _ended = self.pass(&mut from_provider, &mut to_client) => {}
        }
        let _closed = tokio::join!(to_client.shutdown(), to_provider.shutdown());
    }

    /// Passes what the provider sends, and reports the usage that it states.
    async fn pass(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> std::io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let count = from.read(&mut piece).await?;
            if count == 0 {
                return Ok(());
            }
            // What a client that disconnects no longer gets was used all the same.
            if self.usage.feed(&piece[..count]) {
                // A failure changes nothing: the end of the session reports all of it again.
                let progress = self.lease.progress(self.usage.amounts());
                after_the_response(progress, |_| {});
            }
            to.write_all(&piece[..count]).await?;
        }
    }

    async fn settle(self) {
        let Self { state, caller, shown, prices, lease, usage } = self;
        let used = usage.amounts();
        let shown = shown.used(&Amounts::new(used.clone()).unwrap_or_default(), &prices);
        state.recent_calls.add(shown, StatusCode::SWITCHING_PROTOCOLS.as_u16());
        state.proxied.add(&caller, |own| {
            own.input_tokens += usage.input;
            own.output_tokens += usage.output;
        });
        if let Err(problem) = state.awaited(lease.commit(used)).await {
            tracing::debug!(detail = problem.detail, "a WebSocket was not settled");
        }
    }
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
        let refusal = |upgrade, format| refusal(upgrade, format, "/v1/models");
        assert!(refusal(Upgrade::WebSocket, Format::Realtime).is_none());
        assert!(refusal(Upgrade::None, Format::OpenAiChat).is_none());
        for (upgrade, format) in
            [(Upgrade::WebSocket, Format::Other), (Upgrade::Other, Format::Realtime)]
        {
            assert_eq!(refusal(upgrade, format).unwrap().status, 501);
        }
    }
}

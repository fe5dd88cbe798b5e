//! The way of every request: the guard, then the API or the proxy.
//!
//! Proxied calls do not pass the router: its layers would box and copy the largest future of the
//! daemon several times.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use standpipe::config::is_reserved;
use tower_service::Service;

use super::guard::{self, Transport};
use super::trace;
use crate::proxy;
use crate::state::AppState;

/// What answers the requests of all connections.
#[derive(Clone)]
pub(crate) struct HttpService {
    state: Arc<AppState>,
    /// The API and the dashboard.
    router: Router,
}

impl HttpService {
    pub(crate) const fn new(state: Arc<AppState>, router: Router) -> Self {
        Self { state, router }
    }

    pub(crate) async fn respond(&self, transport: Transport, request: Request) -> Response {
        let span = trace::span(request.method(), request.uri());
        let response = self.dispatch(transport, request);
        match span {
            None => response.await,
            Some(span) => trace::inside(span, response).await,
        }
    }

    fn dispatch(&self, transport: Transport, request: Request) -> BoxFuture<'static, Response> {
        let refused = guard::refusal(&self.state, transport, request.uri(), request.headers());
        if let Some(problem) = refused {
            return Box::pin(async { problem.into_response() });
        }
        if is_own(request.uri().path()) {
            let answered = self.router.clone().call(request);
            return Box::pin(async { answered.await.into_response() });
        }
        Box::pin(proxy::serve(Arc::clone(&self.state), transport, request))
    }
}

/// Whether a path is the API's or the dashboard's. All others are the proxy's: `/as/NAME/…`, and
/// those that begin with a provider.
fn is_own(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    first.is_empty() || (first != "as" && is_reserved(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_daemon_are_told_from_those_of_providers() {
        for own in ["/", "//", "/v1/leases", "/v2", "/metrics", "/ui/app.js", "/openapi.json"] {
            assert!(is_own(own), "{own}");
        }
        for other in ["/anthropic/v1/messages", "/as/blog/openai/v1", "/vllm", "/v1x", "/unknown"] {
            assert!(!is_own(other), "{other}");
        }
    }
}

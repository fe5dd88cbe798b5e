//! A span and an event per request, at the level `debug`.
//!
//! Records method, path template, agent, pool and status; never the path itself, headers or bodies.
//! Without `debug` a request costs one comparison.

use axum::http::{Method, Uri};
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument, Level, Span, debug, debug_span};

/// Paths without parameters.
const PATHS: [&str; 16] = [
    "/",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/readyz",
    "/v1/agents",
    "/v1/events",
    "/v1/explain",
    "/v1/history",
    "/v1/leases",
    "/v1/observe",
    "/v1/pause",
    "/v1/pools",
    "/v1/proxied",
    "/v1/resume",
    "/v1/throttle",
];

/// The span of a request, if it is recorded.
pub(crate) fn span(method: &Method, uri: &Uri) -> Option<Span> {
    if !tracing::enabled!(Level::DEBUG) {
        return None;
    }
    let (method, path) = (method.as_str(), template(uri.path()));
    Some(debug_span!("request", method, path, agent = Empty, pool = Empty, status = Empty))
}

/// Runs a request inside its span.
pub(crate) async fn inside(span: Span, response: impl Future<Output = Response>) -> Response {
    async {
        let response = response.await;
        Span::current().record("status", u64::from(response.status().as_u16()));
        debug!("answered");
        response
    }
    .instrument(span)
    .await
}

/// The path with its parameters replaced; `other` if there is no such route.
fn template(path: &str) -> &'static str {
    if let Some(rest) = path.strip_prefix("/v1/leases/") {
        return match rest.split_once('/') {
            None => "/v1/leases/{id}",
            Some((_, "cancel")) => "/v1/leases/{id}/cancel",
            Some((_, "commit")) => "/v1/leases/{id}/commit",
            Some((_, "heartbeat")) => "/v1/leases/{id}/heartbeat",
            Some(_) => "other",
        };
    }
    if path.starts_with("/ui/") {
        return "/ui/{name}";
    }
    PATHS.into_iter().find(|known| *known == path).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_not_recorded() {
        assert_eq!(template("/v1/pools"), "/v1/pools");
        assert_eq!(template("/v1/leases/secret"), "/v1/leases/{id}");
        assert_eq!(template("/v1/leases/secret/commit"), "/v1/leases/{id}/commit");
        assert_eq!(template("/ui/app.js"), "/ui/{name}");
        for other in ["/secret", "/v1/leases/secret/else", "/v1/poolsx"] {
            assert_eq!(template(other), "other");
        }
    }
}

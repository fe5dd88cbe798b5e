//! The HTTP API: its routes and the OpenAPI document, both generated from one list.
//!
//! One file per resource; `fields`, `answer` and `lookup` are shared.

mod answer;
mod events;
mod explain;
mod fields;
mod health;
mod leases;
pub(crate) mod lookup;
mod pauses;
pub(crate) mod pools;
mod proxied;
mod reports;
mod unique;
mod unknown;

use std::sync::Arc;

use axum::Router;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Info, License, OpenApi, OpenApiBuilder, SecurityRequirement};
use utoipa::{IntoResponses, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::fields::agent_of;
pub(crate) use self::unknown::unknown_path;
use crate::http::problem::Problem;
use crate::state::AppState;

/// The version of the shape of all responses.
pub(crate) const SCHEMA: u64 = 1;

/// The problems that every path may answer with.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only describes the responses for the document")]
pub(crate) enum Problems {
    /// The request is invalid.
    #[response(status = 400, content_type = "application/problem+json")]
    Invalid(Problem),
    /// The token is missing or wrong.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(Problem),
    /// The request comes from a foreign page or names a foreign host.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(Problem),
    /// There is no such pool, or it has no limits.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(Problem),
    /// The body did not arrive in time.
    #[response(status = 408, content_type = "application/problem+json")]
    TooSlow(Problem),
    /// The lease has ended.
    #[response(status = 410, content_type = "application/problem+json")]
    Gone(Problem),
    /// The body is too large.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(Problem),
    /// The request has a body without `content-type: application/json`.
    #[response(status = 415, content_type = "application/problem+json")]
    NotJson(Problem),
    /// The call is larger than a limit.
    #[response(status = 422, content_type = "application/problem+json")]
    Never(Problem),
    /// Not admitted in time, or a terminal refusal by the provider; see `retry-after`.
    #[response(status = 429, content_type = "application/problem+json")]
    NotInTime(Problem),
    /// The store is unavailable, a queue is full, or the daemon is stopping.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}

#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(Problem)))]
struct Described;

fn paths() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(leases::reserve))
        .routes(routes!(leases::commit))
        .routes(routes!(leases::cancel))
        .routes(routes!(leases::heartbeat))
        .routes(routes!(leases::release))
        .routes(routes!(reports::throttle))
        .routes(routes!(reports::observe))
        .routes(routes!(pauses::pause))
        .routes(routes!(pauses::resume))
        .routes(routes!(pools::pools))
        .routes(routes!(pools::agents))
        .routes(routes!(pools::history))
        .routes(routes!(proxied::proxied))
        .routes(routes!(explain::explain))
        .routes(routes!(events::events))
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .routes(routes!(health::openapi))
}

/// All paths of the API.
pub(crate) fn router() -> Router<Arc<AppState>> {
    let (router, _) = paths().split_for_parts();
    router
}

/// Adds the answers for unknown paths and methods. Applies to the routes added before.
pub(crate) fn with_fallbacks(router: Router<Arc<AppState>>) -> Router<Arc<AppState>> {
    router.fallback(unknown_path).method_not_allowed_fallback(unknown::unknown_method)
}

/// The OpenAPI document.
pub fn document() -> OpenApi {
    let (_, mut document) = paths().split_for_parts();
    let mut info = Info::new("Standpipe", env!("CARGO_PKG_VERSION"));
    info.description = Some(
        "A shared rate limiter for all processes that use one API key. Reserve before a call, \
         settle after it."
            .to_owned(),
    );
    info.license = Some(License::new("MIT OR Apache-2.0"));
    let mut components = document.components.take().unwrap_or_default();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.security_schemes.insert("token".to_owned(), bearer.into());
    let built = OpenApiBuilder::new()
        .info(info)
        .paths(document.paths)
        .components(Some(components))
        // The empty requirement makes the token optional: it is needed only where configured.
        .security(Some([
            SecurityRequirement::default(),
            SecurityRequirement::new("token", Vec::<String>::new()),
        ]));
    built.build()
}

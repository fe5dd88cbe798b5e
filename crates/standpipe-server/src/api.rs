//! The HTTP API: which paths there are, and the document that describes them. Both come from the
//! same list, so they cannot differ.

mod daemon;
mod events;
mod leases;
pub(crate) mod pools;
mod telling;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Info, License, OpenApi, OpenApiBuilder, SecurityRequirement};
use utoipa::{IntoResponses, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::house::House;
use crate::problem::Problem;

/// The version of the shape of all answers.
pub(crate) const SCHEMA: u64 = 1;

/// What may be answered instead, on every path.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it only describes; problems make themselves into answers")]
pub(crate) enum Problems {
    /// It cannot be understood.
    #[response(status = 400, content_type = "application/problem+json")]
    Invalid(Problem),
    /// The token is missing or wrong.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(Problem),
    /// Not from that page or under that name.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(Problem),
    /// There is no such pool, or nobody knows its limits.
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
    /// Not in time, or the provider said stop; see `retry-after`.
    #[response(status = 429, content_type = "application/problem+json")]
    NotInTime(Problem),
    /// The store is away, too many wait already, or the daemon is stopping.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}

#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(Problem)))]
struct Described;

fn paths() -> OpenApiRouter<Arc<House>> {
    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(leases::reserve))
        .routes(routes!(leases::commit))
        .routes(routes!(leases::cancel))
        .routes(routes!(leases::heartbeat))
        .routes(routes!(leases::release))
        .routes(routes!(telling::throttle))
        .routes(routes!(telling::observe))
        .routes(routes!(telling::pause))
        .routes(routes!(telling::resume))
        .routes(routes!(pools::pools))
        .routes(routes!(pools::agents))
        .routes(routes!(pools::history))
        .routes(routes!(pools::explain))
        .routes(routes!(events::events))
        .routes(routes!(daemon::health))
        .routes(routes!(daemon::ready))
        .routes(routes!(daemon::figures))
        .routes(routes!(daemon::openapi))
}

/// All paths of the API.
pub(crate) fn router() -> Router<Arc<House>> {
    let (router, _) = paths().split_for_parts();
    router
}

/// What is answered where there is nothing, or not in that way. It counts for the routes there are.
pub(crate) fn or_else(router: Router<Arc<House>>) -> Router<Arc<House>> {
    router.fallback(nothing_here).method_not_allowed_fallback(not_that_way)
}

/// The document that describes them.
pub fn document() -> OpenApi {
    let (_, mut document) = paths().split_for_parts();
    let mut info = Info::new("Standpipe", env!("CARGO_PKG_VERSION"));
    info.description = Some(
        "One tap for everything that shares an API quota. Ask before each call, settle after it."
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
        // Needed where a token is configured, and nowhere else.
        .security(Some([
            SecurityRequirement::default(),
            SecurityRequirement::new("token", Vec::<String>::new()),
        ]));
    built.build()
}

async fn nothing_here() -> Problem {
    let hint = "the API begins with /v1 and is described in /openapi.json";
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is nothing under this path", hint)
}

async fn not_that_way() -> Problem {
    let hint = "see /openapi.json for the methods of this path";
    let what = "this path does not know that method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", what, hint)
}

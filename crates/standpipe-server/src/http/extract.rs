//! Reads bodies, query strings and path segments of requests.
//!
//! Bodies are bounded in size and time, and every error names the offending field.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::http::parse_error::{self, ParseError};
use crate::http::problem::Problem;

/// The largest body, in bytes.
pub(crate) const MAX_BODY: usize = 256 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A JSON body.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The query string.
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not_json",
                "expected Content-Type: application/json",
                "send that header with every body",
            ));
        }
        let bytes = read(body, &parts.headers).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body that may be absent, which means the same as an empty object.
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let empty = hyper::body::Body::size_hint(request.body()).exact() == Some(0);
        if empty && !request.headers().contains_key(header::CONTENT_TYPE) {
            return Ok(Self(T::default()));
        }
        JsonBody::from_request(request, state).await.map(|JsonBody(body)| Self(body))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => {
                let ParseError { what, hint } = {
                    let query = parts.uri.query().unwrap_or_default();
                    parse_error::of_query(&rejection.body_text(), query)
                };
                Err(Problem::invalid(what, hint))
            }
        }
    }
}

/// A segment of the path.
pub(crate) struct PathParam(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathParam {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(segment)) => Ok(Self(segment)),
            Err(_) => Err(Problem::invalid(
                "the path is not valid UTF-8",
                "use the id exactly as it was returned",
            )),
        }
    }
}

/// Whether the content type is `application/json`, with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

async fn read(body: Body, headers: &HeaderMap) -> Result<hyper::body::Bytes, Problem> {
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("the body is larger than {MAX_BODY} bytes"),
            "send usage as `used`, and the `body` of errors only",
        )
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|text| text.parse::<usize>().ok()).is_some_and(|length| length > MAX_BODY) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::invalid(
            "the body is incomplete, or its chunks are malformed",
            "send the whole body with its length",
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs()),
            "send the body without delay",
        )),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // serde would read a list as the fields in their order.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        let what = "the body is not a JSON object";
        let hint = "send one JSON object: {\"field\": value}";
        return Err(Problem::invalid(what, hint));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let ParseError { what, hint } = parse_error::of_body(bytes, &error);
        Problem::invalid(what, hint)
    })
}

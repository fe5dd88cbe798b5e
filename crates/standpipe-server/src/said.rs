//! What callers say, read with care: bounded in size and time, and with errors that name the field.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The largest body that is read.
pub(crate) const LARGEST: usize = 256 * 1024;
/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// A body of JSON.
pub(crate) struct Said<T>(pub(crate) T);

/// What stands behind the question mark.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Said<T> {
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

/// Nothing at all is as good as an empty object where nothing has to be said.
pub(crate) struct SaidOrNothing<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for SaidOrNothing<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let empty = hyper::body::Body::size_hint(request.body()).exact() == Some(0);
        if empty && !request.headers().contains_key(header::CONTENT_TYPE) {
            return Ok(Self(T::default()));
        }
        Said::from_request(request, state).await.map(|Said(said)| Self(said))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(rejection) => Err(Problem::invalid(
                format!("the query cannot be read: {}", plain(&rejection.body_text())),
                "see /openapi.json for the parameters",
            )),
        }
    }
}

/// A part of the path.
pub(crate) struct Part(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Part {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(part)) => Ok(Self(part)),
            Err(rejection) => Err(Problem::invalid(
                format!("the path cannot be read: {}", plain(&rejection.body_text())),
                "use ids as they were given",
            )),
        }
    }
}

/// `application/json`, whatever follows it.
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
            format!("the body is larger than {LARGEST} bytes"),
            "send usage as `used`, and the `body` of errors only",
        )
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|text| text.parse::<usize>().ok()).is_some_and(|length| length > LARGEST) {
        return Err(too_large());
    }
    match tokio::time::timeout(PATIENCE, Limited::new(body, LARGEST).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::invalid(
            "the body is incomplete, or its chunks are malformed",
            "send all of it, with its length",
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            format!("the body did not arrive within {} s", PATIENCE.as_secs()),
            "send it at once",
        )),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // A list would be taken for the fields in their order.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        let what = "the body is not a JSON object";
        return Err(Problem::invalid(what, "see /openapi.json for the fields"));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let what = format!("the body cannot be read: {}", plain(&error.to_string()));
        Problem::invalid(what, "see /openapi.json for the fields")
    })
}

/// Part of a message may be what the caller sent: bounded, and without control characters.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(300).collect()
}

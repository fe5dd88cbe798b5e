//! The dashboard: static files compiled into the program.
//!
//! The content security policy lets the page talk to this daemon only.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::http::extract::PathParam;
use crate::http::problem::Problem;
use crate::state::AppState;

/// A file of the dashboard: name, media type, content.
struct File(&'static str, &'static str, &'static [u8]);

const PAGE: File =
    File("index.html", "text/html; charset=utf-8", include_bytes!("../ui/index.html"));

/// The other files, under `/ui/`.
const FILES: &[File] = &[
    File("app.js", SCRIPT, include_bytes!("../ui/app.js")),
    File("diagnosis.js", SCRIPT, include_bytes!("../ui/diagnosis.js")),
    File("dom.js", SCRIPT, include_bytes!("../ui/dom.js")),
    File("feed.js", SCRIPT, include_bytes!("../ui/feed.js")),
    File("icon.svg", PICTURE, include_bytes!("../ui/icon.svg")),
    File("limits.js", SCRIPT, include_bytes!("../ui/limits.js")),
    File("listings.js", SCRIPT, include_bytes!("../ui/listings.js")),
    File("plot.js", SCRIPT, include_bytes!("../ui/plot.js")),
    File("pool.js", SCRIPT, include_bytes!("../ui/pool.js")),
    File("refusals.js", SCRIPT, include_bytes!("../ui/refusals.js")),
    File("style.css", STYLE, include_bytes!("../ui/style.css")),
    File("theme.js", SCRIPT, include_bytes!("../ui/theme.js")),
    File("words.js", SCRIPT, include_bytes!("../ui/words.js")),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// The page may talk to this daemon and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; font-src 'self'; manifest-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `/` and `/ui/…`.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/", get(page)).route("/ui/{name}", get(file))
}

async fn page(headers: HeaderMap) -> Response {
    respond(&PAGE, &headers)
}

async fn file(PathParam(name): PathParam, headers: HeaderMap) -> Response {
    match FILES.iter().find(|file| file.0 == name) {
        Some(file) => respond(file, &headers),
        None => {
            let hint = "the dashboard is at /";
            let what = "the dashboard has no such file";
            Problem::new(StatusCode::NOT_FOUND, "not_found", what, hint).into_response()
        }
    }
}

/// Answers with an entity tag, so that a file is sent again only when the program changed.
fn respond(file: &File, headers: &HeaderMap) -> Response {
    let File(_, kind, bytes) = file;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let tag = format!("\"{:x}\"", hasher.finish());
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    let gzip = accepts_gzip(headers);
    let mut response = match (known, gzip) {
        (true, _) => StatusCode::NOT_MODIFIED.into_response(),
        (false, true) => gzipped(bytes).into_response(),
        (false, false) => (*bytes).into_response(),
    };
    let all = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, *kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        all.insert(name, HeaderValue::from_static(value));
    }
    all.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if gzip && !known {
        all.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        all.insert(header::ETAG, tag);
    }
    response
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let mut names = accepted.unwrap_or_default().split(',').map(str::trim);
    names.any(|name| name == "gzip" || name.starts_with("gzip;") && !name.ends_with("q=0"))
}

/// Compresses on each request: the files are small and rarely loaded.
fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _infallible = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

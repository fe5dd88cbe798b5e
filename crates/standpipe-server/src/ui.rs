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
    File("advice.js", SCRIPT, include_bytes!("../ui/advice.js")),
    File("agents.js", SCRIPT, include_bytes!("../ui/agents.js")),
    File("app.js", SCRIPT, include_bytes!("../ui/app.js")),
    File("banners.js", SCRIPT, include_bytes!("../ui/banners.js")),
    File("burn.js", SCRIPT, include_bytes!("../ui/burn.js")),
    File("diagnosis.js", SCRIPT, include_bytes!("../ui/diagnosis.js")),
    File("dialogs.js", SCRIPT, include_bytes!("../ui/dialogs.js")),
    File("dom.js", SCRIPT, include_bytes!("../ui/dom.js")),
    File("events.js", SCRIPT, include_bytes!("../ui/events.js")),
    File("feed.js", SCRIPT, include_bytes!("../ui/feed.js")),
    File("history.js", SCRIPT, include_bytes!("../ui/history.js")),
    File("icon.svg", PICTURE, include_bytes!("../ui/icon.svg")),
    File("leases.js", SCRIPT, include_bytes!("../ui/leases.js")),
    File("limits.js", SCRIPT, include_bytes!("../ui/limits.js")),
    File("listing.js", SCRIPT, include_bytes!("../ui/listing.js")),
    File("order.js", SCRIPT, include_bytes!("../ui/order.js")),
    File("plot.js", SCRIPT, include_bytes!("../ui/plot.js")),
    File("pool.js", SCRIPT, include_bytes!("../ui/pool.js")),
    File("priorities.js", SCRIPT, include_bytes!("../ui/priorities.js")),
    File("queue.js", SCRIPT, include_bytes!("../ui/queue.js")),
    File("rail.js", SCRIPT, include_bytes!("../ui/rail.js")),
    File("recent.js", SCRIPT, include_bytes!("../ui/recent.js")),
    File("refusals.js", SCRIPT, include_bytes!("../ui/refusals.js")),
    File("state.js", SCRIPT, include_bytes!("../ui/state.js")),
    File("style.css", STYLE, include_bytes!("../ui/style.css")),
    File("theme.js", SCRIPT, include_bytes!("../ui/theme.js")),
    File("toast.js", SCRIPT, include_bytes!("../ui/toast.js")),
    File("turned.js", SCRIPT, include_bytes!("../ui/turned.js")),
    File("use.js", SCRIPT, include_bytes!("../ui/use.js")),
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
        (false, true) => gzipped(&content(file)).into_response(),
        (false, false) => content(file).into_response(),
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

/// What is sent of a file: scripts and styles go without their comment lines, which are for readers
/// of the source. The empty lines stay, so that an error has the line number of the source.
fn content(&File(_, kind, bytes): &File) -> Vec<u8> {
    let mut sent = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii();
        let is_comment = kind == SCRIPT && text.starts_with(b"//")
            || kind == STYLE && text.starts_with(b"/*") && text.ends_with(b"*/");
        sent.extend_from_slice(if is_comment { b"\n" } else { line });
    }
    sent
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_lines_are_not_sent_and_lines_keep_their_numbers() {
        let script = b"// Why.\nconst a = 1; // one\n\t// More.\nrun(\"http://a\");\n";
        let sent = content(&File("a.js", SCRIPT, script));
        assert_eq!(sent, b"\nconst a = 1; // one\n\nrun(\"http://a\");\n");
        let style = b"/* Why. */\na { top: 0 } /* b */\n";
        assert_eq!(content(&File("a.css", STYLE, style)), b"\na { top: 0 } /* b */\n");
        assert_eq!(content(&File("a.svg", PICTURE, b"// a\n")), b"// a\n");
    }
}

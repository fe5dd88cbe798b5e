//! The answers for paths and methods that the API does not have, with what was probably meant.

use axum::http::{Method, StatusCode, Uri};
use standpipe::config::nearest_path;

use crate::http::problem::Problem;

/// The answer for a path that is neither the API's nor a provider's.
pub(crate) async fn unknown_path(uri: Uri) -> Problem {
    let path = uri.path();
    let hint = match similar_path(path) {
        _ if provider_of(path).is_some() => format!(
            "the proxy's paths begin with a provider: /{}{}",
            provider_of(path).unwrap_or_default(),
            shown(path)
        ),
        None if path.starts_with("/v1/pools/") => {
            "name a pool in the query: GET /v1/pools?pool=my/slots; all paths are in /openapi.json"
                .to_owned()
        }
        None if path.starts_with("/v1/") => "all paths are in /openapi.json".to_owned(),
        Some(similar) => format!("did you mean `{similar}`? All paths are in /openapi.json"),
        None => "paths of the API begin with /v1 (see /openapi.json), those of the proxy with a \
                 provider: /anthropic/v1/messages"
            .to_owned(),
    };
    let what = format!("there is no path `{}`", shown(path));
    Problem::new(StatusCode::NOT_FOUND, "not_found", what, hint)
}

/// Returns whose path it is without the provider that the proxy needs.
fn provider_of(path: &str) -> Option<&'static str> {
    const PATHS: [(&str, &str); 7] = [
        ("/v1/messages", "anthropic"),
        ("/v1/chat/", "openai"),
        ("/v1/completions", "openai"),
        ("/v1/responses", "openai"),
        ("/v1/embeddings", "openai"),
        ("/v1/models", "openai"),
        ("/v1beta/models", "gemini"),
    ];
    PATHS.iter().find(|(known, _)| path.starts_with(known)).map(|(_, provider)| *provider)
}

/// Other words for what a path does.
const OTHER_WORDS: [(&str, &str); 6] = [
    ("reserve", "/v1/leases"),
    ("acquire", "/v1/leases"),
    ("commit", "/v1/leases/{id}/commit"),
    ("release", "/v1/leases/{id}/commit"),
    ("cancel", "/v1/leases/{id}/cancel"),
    ("status", "/v1/pools"),
];

/// Returns a path of the API that an unknown one may be a misspelling of, with its methods.
fn similar_path(path: &str) -> Option<String> {
    let word = path.strip_prefix("/v1").unwrap_or(path).trim_matches('/');
    let other = OTHER_WORDS.iter().find(|(known, _)| *known == word).map(|(_, path)| *path);
    let (_, document) = super::paths().split_for_parts();
    let known: Vec<&str> = document.paths.paths.keys().map(String::as_str).collect();
    // `/pools` lacks the prefix.
    let full = format!("/v1/{word}");
    let near = |path: &str| {
        let length = path.matches('/').count();
        let like = known.iter().filter(|known| known.matches('/').count() == length);
        // What stands for a parameter is no misspelling.
        let filled: Vec<String> = like.clone().map(|template| fill(template, path)).collect();
        let found = nearest_path(path, filled.iter().map(String::as_str))?;
        like.zip(&filled).find(|(_, filled)| *filled == found).map(|(known, _)| (*known).to_owned())
    };
    let found = other.map(str::to_owned).or_else(|| near(path)).or_else(|| near(&full))?;
    Some(format!("{} {found}", methods_of(&found).join(" or ")))
}

/// Returns a path template with the parameters that a path of the same length has.
fn fill(template: &str, path: &str) -> String {
    let parts = template.split('/').zip(path.split('/'));
    let parts = parts.map(|(known, own)| if known.starts_with('{') { own } else { known });
    parts.collect::<Vec<_>>().join("/")
}

pub(super) async fn unknown_method(method: Method, uri: Uri) -> Problem {
    let (method, path) = (shown(method.as_str()), uri.path());
    let what = format!("`{}` does not support {method}", shown(path));
    let step = path.strip_prefix("/v1/leases/").and_then(|step| {
        ["commit", "cancel", "heartbeat"].into_iter().find(|known| *known == step)
    });
    let hint = match step {
        Some(step) => format!("name the lease in the path: POST /v1/leases/{{id}}/{step}"),
        None => format!("use {}", methods_of(path).join(" or ")),
    };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", what, hint)
}

/// The start of a text of the caller.
fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

/// The methods of a path: as the document has them, and for the dashboard GET.
fn methods_of(path: &str) -> Vec<&'static str> {
    let is_same = |template: &str| {
        let (own, other) = (template.split('/'), path.split('/'));
        own.clone().count() == other.clone().count()
            && own.zip(other).all(|(own, other)| own == other || own.starts_with('{'))
    };
    let (_, document) = super::paths().split_for_parts();
    let found = document.paths.paths.iter().find(|(template, _)| is_same(template));
    let Some((_, item)) = found else { return vec!["GET"] };
    let all = [("GET", &item.get), ("POST", &item.post), ("PUT", &item.put)];
    let all = all.into_iter().chain([("DELETE", &item.delete)]);
    all.filter(|(_, operation)| operation.is_some()).map(|(method, _)| method).collect()
}

//! Addresses of the provider in the head of an answer, as addresses of the proxy.
//!
//! GitHub links the next page of a list, and the new place of what moved, by whole addresses. A
//! client that follows one would leave the proxy.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};

/// Replaces the provider's address by the one that the client used. `path` is the request's path
/// and query at the provider.
pub(crate) fn rewrite(headers: &mut HeaderMap, base: &str, path: &str, parts: &Parts) {
    if !headers.contains_key(header::LINK) && !headers.contains_key(header::LOCATION) {
        return;
    }
    let Some(own) = address(path, parts) else { return };
    for name in [header::LINK, header::LOCATION] {
        let Some(value) = headers.get(&name).and_then(|value| value.to_str().ok()) else {
            continue;
        };
        if let Ok(value) = HeaderValue::from_str(&value.replace(&format!("{base}/"), &own)) {
            headers.insert(name, value);
        }
    }
}

/// The address of the provider's API as the client knows it.
fn address(path: &str, parts: &Parts) -> Option<String> {
    let path = path.split('?').next()?;
    let prefix = parts.uri.path().strip_suffix(path)?;
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    // `gh` sends what it means for the provider's own host to the Unix socket. To others the daemon
    // speaks plain HTTP, unless TLS ends before it.
    let is_https = prefix.is_empty() || text("x-forwarded-proto") == Some("https");
    let scheme = if is_https { "https" } else { "http" };
    Some(format!("{scheme}://{}{prefix}/", text("host")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://api.github.com";
    const HOST: &str = "127.0.0.1:8377";

    fn rewritten(host: &str, uri: &str, path: &str, value: &'static str) -> String {
        let request = axum::http::Request::get(uri).header("host", host);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let mut headers = HeaderMap::new();
        headers.insert(header::LINK, HeaderValue::from_static(value));
        rewrite(&mut headers, BASE, path, &parts);
        headers[header::LINK].to_str().unwrap().to_owned()
    }

    #[test]
    fn links_to_the_provider_lead_to_the_proxy() {
        let link = "<https://api.github.com/repos/a/b/issues?page=2>; rel=\"next\"";
        let own = "<http://127.0.0.1:8377/as/blog/github/repos/a/b/issues?page=2>; rel=\"next\"";
        let path = "/repos/a/b/issues?per_page=1";
        let uri = "/as/blog/github/repos/a/b/issues?per_page=1";
        assert_eq!(rewritten(HOST, uri, path, link), own);
        let other = "<https://api.github.com.example/x>; rel=\"next\"";
        assert_eq!(rewritten(HOST, uri, path, other), other, "another host");
        let path = "/repos/a/b/issues";
        assert_eq!(rewritten("api.github.com", path, path, link), link, "gh, over the socket");
    }
}

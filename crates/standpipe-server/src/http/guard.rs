//! Rejects requests from foreign web pages and host names, and requests without the token.
//!
//! A page that is open in a browser of this machine cannot use the daemon: its origin differs, and
//! a host name that was pointed at this machine (DNS rebinding) is not one of the machine's own.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};

use crate::http::names::{SEC_FETCH_SITE, TOKEN};
use crate::http::problem::Problem;
use crate::state::AppState;

/// How a request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Over TCP, to this local address.
    Tcp(SocketAddr),
    /// Over the Unix socket, which file permissions protect.
    Unix,
}

/// Why a request is not served, if so.
pub(crate) fn refusal(
    state: &AppState,
    transport: Transport,
    uri: &Uri,
    headers: &HeaderMap,
) -> Option<Problem> {
    // Other sites may link to the page itself; it contains nothing of the ledger.
    let is_page = uri.path() == "/" || uri.path().starts_with("/ui/");
    if !is_page && !is_same_origin(headers) {
        return Some(forbidden(
            "the request comes from a web page of another origin",
            "use the daemon's own page, or a program",
        ));
    }
    let Transport::Tcp(local) = transport else { return None };
    let open = is_open(uri.path());
    if state.needs_token() {
        return (!open && !state.accepts_token(token(headers))).then(unauthorized);
    }
    // Without a token only names of this machine are accepted, against DNS rebinding.
    let host = host(headers).or_else(|| uri.host().map(str::to_owned));
    let is_own = host.is_some_and(|host| is_own_name(&host, local.ip()));
    (!is_own).then(|| {
        forbidden(
            "the Host header does not name this machine",
            "use localhost, 127.0.0.1 or [::1], or configure a token",
        )
    })
}

/// Whether a path needs no token, because it contains nothing of the ledger.
fn is_open(path: &str) -> bool {
    matches!(path, "/" | "/healthz" | "/readyz") || path.starts_with("/ui/")
}

/// The token that a request presents.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let own = headers.get(&TOKEN).map(|value| value.as_bytes().trim_ascii());
    own.or_else(|| bearer(headers))
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Whether the request is from a program, which sends no origin, or from the daemon's own page.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if text(&SEC_FETCH_SITE).is_some_and(|site| matches!(site, "cross-site" | "same-site")) {
        return false;
    }
    let Some(origin) = text(&header::ORIGIN) else { return true };
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else {
        return false;
    };
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// The host name in the request, without its port.
fn host(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::HOST)?.to_str().ok()?.trim();
    let name = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
        None => text.rsplit_once(':').map_or(text, |(name, _)| name),
    };
    Some(name.trim_end_matches('.').to_ascii_lowercase())
}

fn is_own_name(host: &str, local: IpAddr) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    host == "localhost" || address.is_some_and(|ip| ip.is_loopback() || ip == local)
}

fn forbidden(detail: &str, hint: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail, hint)
}

fn unauthorized() -> Problem {
    let (detail, hint) = (
        "the request has no token, or a wrong one",
        "send the header authorization: Bearer TOKEN with the content of [server] token_file; \
         calls through the proxy send it as x-standpipe-token",
    );
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_names_of_this_machine_are_own() {
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        for own in ["localhost", "LOCALHOST:8377", "127.0.0.1:8377", "[::1]:1", "localhost."] {
            let host = host(&headers(&[("host", own)])).unwrap();
            assert!(is_own_name(&host, local), "{own}");
        }
        for foreign in ["evil.example", "127.0.0.1.evil.example:8377", "10.0.0.1", "", "localhos"] {
            let host = host(&headers(&[("host", foreign)])).unwrap();
            assert!(!is_own_name(&host, local), "{foreign}");
        }
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let ask = |origin: &str| {
            is_same_origin(&headers(&[("host", "127.0.0.1:8377"), ("origin", origin)]))
        };
        assert!(ask("http://127.0.0.1:8377"));
        for foreign in ["http://evil.example", "null", "http://127.0.0.1:9999", "file://"] {
            assert!(!ask(foreign), "{foreign}");
        }
        assert!(is_same_origin(&headers(&[("host", "127.0.0.1:8377")])), "a program");
        assert!(!is_same_origin(&headers(&[("sec-fetch-site", "cross-site")])));
        assert!(is_same_origin(&headers(&[("sec-fetch-site", "none")])), "typed by a person");
    }

    #[test]
    fn a_token_is_read_from_the_bearer_scheme() {
        let token = |value: &str| bearer(&headers(&[("authorization", value)])).map(<[u8]>::to_vec);
        assert_eq!(token("Bearer abc").as_deref(), Some(&b"abc"[..]));
        assert_eq!(token("bearer  abc ").as_deref(), Some(&b"abc"[..]));
        assert_eq!(token("Basic abc"), None);
        assert_eq!(token("B"), None);
    }
}

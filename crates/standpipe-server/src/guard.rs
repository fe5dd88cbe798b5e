//! Who may ask: nobody through a foreign page or name, and where a token is set, nobody without it.
//!
//! A page that somebody happens to have open must not be able to talk to the daemon: its origin is
//! not ours, and a name that was made to point here (DNS rebinding) is not one of ours either.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::house::House;
use crate::problem::Problem;

/// The way a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// To this address of ours.
    Tcp(SocketAddr),
    /// Through the Unix socket: who may open it may ask.
    Unix,
}

/// Lets a request through, or says why not.
pub(crate) async fn check(
    State(house): State<Arc<House>>,
    request: Request,
    next: Next,
) -> Response {
    let via = request.extensions().get::<Via>().copied();
    let refused = refusal(&house, via, request.uri(), request.headers());
    match refused {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(house: &House, via: Option<Via>, uri: &Uri, headers: &HeaderMap) -> Option<Problem> {
    // The page itself may be linked to: there is nothing of the ledger in it.
    let is_page = uri.path() == "/" || uri.path().starts_with("/ui/");
    if !is_page && !is_same_origin(headers) {
        return Some(forbidden(
            "this request comes from a page of another origin",
            "ask from the daemon's own page, or from a program",
        ));
    }
    let Some(Via::Tcp(ours)) = via else { return None };
    let open = is_open(uri.path());
    if house.needs_token() {
        return (!open && !house.lets_in(shown(headers))).then(unauthorized);
    }
    // Without a token only names that are this machine's own are answered to.
    let asked = host(headers).or_else(|| uri.host().map(str::to_owned));
    let is_ours = asked.is_some_and(|host| is_own_name(&host, ours.ip()));
    (!is_ours).then(|| {
        forbidden(
            "this request is for a host that the daemon does not answer to",
            "ask for localhost, 127.0.0.1 or [::1], or configure a token",
        )
    })
}

/// What needs no token: nothing of the ledger is in it.
fn is_open(path: &str) -> bool {
    matches!(path, "/" | "/healthz" | "/readyz") || path.starts_with("/ui/")
}

fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Programs send no origin; a page sends its own.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if text("sec-fetch-site").is_some_and(|site| matches!(site, "cross-site" | "same-site")) {
        return false;
    }
    let Some(origin) = text(header::ORIGIN.as_str()) else { return true };
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else {
        return false;
    };
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// The host that is asked for, without its port.
fn host(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::HOST)?.to_str().ok()?.trim();
    let name = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
        None => text.rsplit_once(':').map_or(text, |(name, _)| name),
    };
    Some(name.trim_end_matches('.').to_ascii_lowercase())
}

fn is_own_name(host: &str, ours: IpAddr) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    host == "localhost" || address.is_some_and(|ip| ip.is_loopback() || ip == ours)
}

fn forbidden(detail: &str, hint: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail, hint)
}

fn unauthorized() -> Problem {
    let (detail, hint) = (
        "the daemon wants a token, and this request shows none or another",
        "send the header authorization: Bearer TOKEN, with what [server] token_file holds",
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
    fn only_this_machines_own_names_are_ours() {
        let ours: IpAddr = "127.0.0.1".parse().unwrap();
        for own in ["localhost", "LOCALHOST:8377", "127.0.0.1:8377", "[::1]:1", "localhost."] {
            let host = host(&headers(&[("host", own)])).unwrap();
            assert!(is_own_name(&host, ours), "{own}");
        }
        for foreign in ["evil.example", "127.0.0.1.evil.example:8377", "10.0.0.1", "", "localhos"] {
            let host = host(&headers(&[("host", foreign)])).unwrap();
            assert!(!is_own_name(&host, ours), "{foreign}");
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
    fn a_token_is_shown_as_bearer() {
        let token = |value: &str| shown(&headers(&[("authorization", value)])).map(<[u8]>::to_vec);
        assert_eq!(token("Bearer abc").as_deref(), Some(&b"abc"[..]));
        assert_eq!(token("bearer  abc ").as_deref(), Some(&b"abc"[..]));
        assert_eq!(token("Basic abc"), None);
        assert_eq!(token("B"), None);
    }
}

//! Rejects requests with an AWS signature, which covers the host that the client called.
//!
//! The proxy calls another host and cannot sign again without the client's secret. The provider
//! would answer that the signature does not match, which does not say why. An upstream over plain
//! HTTP is no provider but an emulator or a proxy that signs again, so it gets the request.

use axum::http::{HeaderMap, HeaderValue, header};

use super::upstream::Upstream;
use crate::http::problem::Problem;

/// The names of AWS's hosts end with these.
const AWS: [&str; 3] = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];

/// Why a request is not forwarded, if it is signed for the proxy's own host. `path` has the query.
pub(crate) fn refusal(upstream: &Upstream, headers: &HeaderMap, path: &str) -> Option<Problem> {
    // A key of the daemon replaces the client's authorization.
    if upstream.has_key() || !checks(upstream.base()) || !is_signed(headers, path) {
        return None;
    }
    let name = &upstream.name;
    let hint = match is_aws(upstream.base()) {
        true => format!(
            "use an API key of Bedrock: AWS_BEARER_TOKEN_BEDROCK, or key_file in [provider.{name}]"
        ),
        false => format!("send an API key of {name} instead, or set key_file in [provider.{name}]"),
    };
    Some(Problem::invalid(
        "the request has an AWS signature, which covers the host name and fails behind a proxy",
        hint,
    ))
}

/// Whether a server at this address may check signatures.
fn checks(base: &str) -> bool {
    is_aws(base) || base.starts_with("https://")
}

/// Whether an address has a host of AWS.
fn is_aws(base: &str) -> bool {
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    let host = rest.split(['/', ':']).next().unwrap_or_default().to_ascii_lowercase();
    AWS.iter().any(|end| host.ends_with(end))
}

/// Whether a request is signed, in a header or in its query.
fn is_signed(headers: &HeaderMap, path: &str) -> bool {
    let stated = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let query = path.split_once('?').map_or("", |(_, query)| query);
    stated.is_some_and(|value| value.starts_with(b"AWS4-"))
        || query.split('&').any(|pair| pair.starts_with("X-Amz-Signature="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_found_in_headers_and_queries() {
        let with = |value: &str| {
            [(header::AUTHORIZATION, value.parse().unwrap())].into_iter().collect::<HeaderMap>()
        };
        assert!(is_signed(&with("AWS4-HMAC-SHA256 Credential=x"), "/model/x/invoke"));
        assert!(is_signed(&with("AWS4-ECDSA-P256-SHA256 Credential=x"), "/"));
        assert!(is_signed(&HeaderMap::new(), "/x?a=1&X-Amz-Signature=00"));
        assert!(!is_signed(&with("Bearer AWS4-"), "/X-Amz-Signature=00"));
    }

    #[test]
    fn emulators_and_proxies_that_sign_again_get_signed_requests() {
        for base in [
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            "http://x.API.aws:443/a",
            "https://api.anthropic.com",
            "https://127.0.0.1:8443",
        ] {
            assert!(checks(base), "{base}");
        }
        for base in ["http://127.0.0.1:4566", "http://signer:8080/.amazonaws.com"] {
            assert!(!checks(base), "{base}");
        }
    }

    #[test]
    fn the_hint_names_the_key_of_the_provider() {
        let headers = [(header::AUTHORIZATION, "AWS4-HMAC-SHA256 x".parse().unwrap())];
        let headers: HeaderMap = headers.into_iter().collect();
        let upstream = Upstream::named(&standpipe::Settings::default(), "anthropic").unwrap();
        let problem = refusal(&upstream, &headers, "/v1/messages").unwrap();
        let hint = "send an API key of anthropic instead, or set key_file in [provider.anthropic]";
        assert!(problem.message().contains(hint), "{}", problem.message());
        assert!(refusal(&upstream, &HeaderMap::new(), "/v1/messages").is_none());
    }
}

//! Says why a provider did not answer, in words of its own, and what to do.
//!
//! No text of a library is shown: it names types and states that help no caller.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::{StatusCode, Uri};
use rustls::CertificateError;
use standpipe::escape::plain_io;

use super::upstream::Upstream;
use crate::http::problem::{Problem, UPSTREAM};
use crate::state::lock;

/// What is wrong, and what to do.
type Cause = (String, String);

/// The provider cannot be reached, or broke the connection.
pub(crate) fn unreachable(upstream: &Upstream, error: &(dyn Error + 'static)) -> Problem {
    let provider = &upstream.name;
    let (why, hint) = known(upstream, error).unwrap_or_else(|| {
        let hint = format!("check the network, and {}", setting(provider));
        ("the connection failed".to_owned(), hint)
    });
    let detail = format!("{provider} did not answer: {why}");
    if LOGGED.is_due(provider, &detail, Instant::now()) {
        tracing::warn!("{detail}; {hint}");
    }
    Problem::new(StatusCode::BAD_GATEWAY, UPSTREAM, detail, hint)
}

/// What was logged last of each provider, and when: a provider that is down fails every call.
#[derive(Debug)]
struct LastLines(Mutex<BTreeMap<String, (String, Instant)>>);

static LOGGED: LastLines = LastLines(Mutex::new(BTreeMap::new()));

/// The same line about a provider is logged so often at most.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

impl LastLines {
    fn is_due(&self, provider: &str, line: &str, now: Instant) -> bool {
        let mut lines = lock(&self.0);
        let last = lines.get(provider);
        if last.is_some_and(|(own, at)| own == line && now.duration_since(*at) < LOG_INTERVAL) {
            return false;
        }
        lines.insert(provider.to_owned(), (line.to_owned(), now));
        true
    }
}

/// No head of an answer arrived within the time for it.
pub(crate) fn late(upstream: &Upstream, limit: Duration) -> Problem {
    let detail = format!("{} did not answer within {} min", upstream.name, limit.as_secs() / 60);
    let hint = "send the call again, or ask for a stream: its first bytes come at once";
    Problem::new(StatusCode::BAD_GATEWAY, UPSTREAM, detail, hint)
}

/// Looks for an error that says what is wrong, among those that it carries.
fn known(upstream: &Upstream, error: &(dyn Error + 'static)) -> Option<Cause> {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(of_tls(upstream, error));
    }
    let found = match error.downcast_ref::<io::Error>() {
        // The source of such an error is not what it carries, but the source of that.
        Some(error) => {
            let inner = error.get_ref().and_then(|inner| known(upstream, inner));
            inner.or_else(|| of_io(upstream, error))
        }
        None => error.downcast_ref().and_then(|error| of_http(upstream, error)),
    };
    found.or_else(|| known(upstream, error.source()?))
}

fn of_http(upstream: &Upstream, error: &hyper::Error) -> Option<Cause> {
    let name = &upstream.name;
    if error.is_parse_too_large() {
        let hint = format!("check what answers at {}", setting(name));
        return Some(("the head of its answer is larger than 256 KiB".to_owned(), hint));
    }
    if error.is_parse() {
        return Some(not_http(upstream));
    }
    if error.is_incomplete_message() {
        return Some(closed(upstream));
    }
    // Its source says what happened to the connection.
    None
}

fn not_http(upstream: &Upstream) -> Cause {
    let (name, place) = (&upstream.name, place(upstream));
    let hint = match upstream.base().starts_with("http://") {
        true => format!(
            "if it uses TLS, write https:// in {}, else name the port of its HTTP API there",
            setting(name)
        ),
        false => format!("name the port of its HTTP API in {}", setting(name)),
    };
    (format!("what listens at {place} does not speak HTTP"), hint)
}

/// A server that expects TLS may close a connection without it.
fn closed(upstream: &Upstream) -> Cause {
    let name = &upstream.name;
    let hint = match upstream.base().starts_with("http://") {
        true => format!("send the call again; if it uses TLS, write https:// in {}", setting(name)),
        false => format!("send the call again, and check {}", setting(name)),
    };
    ("it closed the connection without an answer".to_owned(), hint)
}

fn of_io(upstream: &Upstream, error: &io::Error) -> Option<Cause> {
    use io::ErrorKind as E;

    let setting = setting(&upstream.name);
    if error.to_string().contains("lookup address") {
        let host: Option<Uri> = upstream.base().parse().ok();
        let host = host.as_ref().and_then(Uri::host).unwrap_or(&upstream.name).to_owned();
        return Some((format!("cannot resolve {host}"), format!("check DNS, and {setting}")));
    }
    Some(match error.kind() {
        E::BrokenPipe | E::ConnectionAborted | E::ConnectionReset | E::UnexpectedEof => {
            closed(upstream)
        }
        E::ConnectionRefused => (
            format!("nothing listens at {}", place(upstream)),
            format!("start it, or check {setting}"),
        ),
        E::TimedOut => ("it took too long".to_owned(), format!("check the network, and {setting}")),
        // Any other has the words of a library.
        _ if error.raw_os_error().is_none() => return None,
        _ => (plain_io(error), format!("check the network, and {setting}")),
    })
}

fn of_tls(upstream: &Upstream, error: &rustls::Error) -> Cause {
    use CertificateError as E;

    let (name, setting) = (&upstream.name, setting(&upstream.name));
    let (why, hint) = match error {
        // An authority of the same name may have another key.
        rustls::Error::InvalidCertificate(E::UnknownIssuer | E::BadSignature) => (
            "its certificate is signed by an unknown authority".to_owned(),
            format!("set `ca` in [provider.{name}] to the file with that authority's certificate"),
        ),
        rustls::Error::InvalidCertificate(E::Expired | E::ExpiredContext { .. }) => (
            "its certificate has expired".to_owned(),
            "renew it there, or set the clock of the daemon's machine".to_owned(),
        ),
        rustls::Error::InvalidCertificate(E::NotValidYet | E::NotValidYetContext { .. }) => (
            "its certificate is not valid yet".to_owned(),
            "set the clock of the daemon's machine".to_owned(),
        ),
        rustls::Error::InvalidCertificate(E::NotValidForNameContext { presented, .. }) => (
            format!("its certificate is for {}", names(presented)),
            format!("write such a name as the host in {setting}"),
        ),
        rustls::Error::InvalidMessage(_) => (
            format!("what listens at {} does not speak TLS", place(upstream)),
            format!("write http:// in {setting} if it is an HTTP server"),
        ),
        rustls::Error::InvalidCertificate(_) => {
            ("its certificate is not valid".to_owned(), look(upstream))
        }
        _ => ("no TLS connection could be made".to_owned(), look(upstream)),
    };
    (why, hint)
}

/// The hosts of a certificate, given as `DnsName("a.example")` or `IpAddress(10.0.0.1)`.
fn names(presented: &[String]) -> String {
    let plain = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
        inner.unwrap_or(name).trim_matches('"').to_owned()
    };
    let names: Vec<String> = presented.iter().take(3).map(plain).collect();
    if names.is_empty() { "no host".to_owned() } else { names.join(", ") }
}

/// How a person sees what a server presents.
fn look(upstream: &Upstream) -> String {
    let place = place(upstream);
    let port =
        if place.rsplit(']').next().is_some_and(|end| end.contains(':')) { "" } else { ":443" };
    format!("see what it presents: openssl s_client -connect {place}{port}")
}

/// Host and port of an upstream.
fn place(upstream: &Upstream) -> &str {
    let rest = upstream.base().split_once("://").map_or(upstream.base(), |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Where the address of a provider is configured.
fn setting(provider: &str) -> String {
    format!("`upstream` in [provider.{provider}] of standpipe.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_is_down_is_logged_once_a_minute_and_with_each_other_cause() {
        let lines = LastLines(Mutex::default());
        let start = Instant::now();
        let is_due = |provider, line, seconds| {
            lines.is_due(provider, line, start + Duration::from_secs(seconds))
        };
        assert!(is_due("openai", "nothing listens", 0));
        assert!(!is_due("openai", "nothing listens", 59));
        assert!(is_due("anthropic", "nothing listens", 59), "another provider");
        assert!(is_due("openai", "it has expired", 59), "another cause");
        assert!(is_due("anthropic", "nothing listens", 119));
    }
}

//! Who calls, which provider, and which path of its API.
//!
//! Identity comes from the path (`/as/NAME/…`), else from `x-standpipe-*` headers, else on a Unix
//! socket from the program's environment, else from its name in `user-agent`. Only configured and
//! built-in upstreams can be reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header::HOST};
use standpipe::config::{CallSettings, nearest, text};
use standpipe::{AgentName, PoolName, Priority, Settings};

use super::upstream::{BUILT_IN, Upstream};
use crate::api::agent_of;
use crate::http::guard::Transport;
use crate::http::names;
use crate::http::parse_error::plain;
use crate::http::peer::Peer;
use crate::http::problem::Problem;
use crate::state::AppState;

/// The longest wait that a client may ask for.
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// What is known of a call before its body is read.
pub(crate) struct Identified {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) agent: String,
    pub(crate) priority: Option<Priority>,
    pub(crate) task: Option<String>,
    /// How long the client waits, if it states it.
    pub(crate) wait: Option<Duration>,
    /// Path and query at the provider.
    pub(crate) path: String,
    /// What the configuration states about calls of this path and method.
    pub(crate) configured: Option<CallSettings>,
}

impl Identified {
    /// The pool that the configuration states for this path and method.
    pub(crate) fn configured_pool(&self) -> Option<&PoolName> {
        self.configured.as_ref()?.pool.as_ref()
    }
}

/// Shows neither path nor query: some providers take the key in it.
impl fmt::Debug for Identified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Identified");
        shown.field("upstream", &self.upstream.name).field("agent", &self.agent);
        shown.finish_non_exhaustive()
    }
}

/// A request for a provider, before anything of it is checked.
pub(crate) struct Located<'a> {
    pub(crate) upstream: Arc<Upstream>,
    /// Path at the provider, without the query.
    pub(crate) path: String,
    agent: Option<&'a str>,
}

/// Finds the provider of a request. `None` means that its path names none.
pub(crate) fn locate<'a>(
    settings: &Settings,
    transport: Transport,
    request: &'a Request,
) -> Option<Located<'a>> {
    let uri = request.uri();
    let found = split(uri.path()).and_then(|(agent, provider, path)| {
        let upstream = Upstream::named(settings, provider)?;
        Some(Located { upstream, path: path.to_owned(), agent })
    });
    // `gh` over the Unix socket names the provider by its host.
    let by_host = || {
        let host = request.headers().get(HOST)?.to_str().ok();
        let upstream = Upstream::at_host(settings, host.filter(|_| transport == Transport::Unix)?)?;
        Some(Located { upstream, path: uri.path().to_owned(), agent: None })
    };
    found.or_else(by_host)
}

/// A provider with a name like that in a path, the path at the provider, and the whole path.
pub(crate) fn similar(settings: &Settings, path: &str) -> Option<(String, String, String)> {
    // The API's own paths begin with `v1`.
    let (agent, provider, rest) = split(path).filter(|(_, provider, _)| *provider != "v1")?;
    let known = settings.providers.keys().map(String::as_str);
    let meant = nearest(provider, known.chain(BUILT_IN.iter().map(|(name, _)| *name)))?;
    let whole = match agent {
        Some(agent) => format!("/as/{agent}/{meant}{rest}"),
        None => format!("/{meant}{rest}"),
    };
    Some((meant.to_owned(), rest.to_owned(), whole))
}

/// Identifies a request for a provider.
pub(crate) fn identify(
    state: &AppState,
    transport: Transport,
    request: &Request,
    Located { upstream, path, agent }: Located<'_>,
) -> Result<Identified, Problem> {
    let (uri, headers) = (request.uri(), request.headers());
    let tap = state.tap();
    let settings = tap.settings();
    if upstream.has_key() && matches!(transport, Transport::Tcp(_)) && !state.needs_token() {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "the daemon adds an API key for this provider, but no token protects it",
            "configure [server] token_file, or use the Unix socket",
        ));
    }
    check_path(uri, &path)?;
    let path = with_version(&upstream.name, path);
    let path = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    // `gh` can send no name, but `standpipe run` gives it one in its environment.
    let own = |name: &str| {
        let peer = request.extensions().get::<Peer>().filter(|_| transport == Transport::Unix);
        let peer = peer.filter(|_| agent.is_none() && !headers.contains_key(&names::AGENT))?;
        peer.variable(name).filter(|value| !value.is_empty())
    };
    let (own_agent, own_priority) = (own("STANDPIPE_AGENT"), own("STANDPIPE_PRIORITY"));
    // `standpipe run --priority` adds the priority to the name.
    let (agent, stated) = match agent.map(|name| name.split_once(':').unwrap_or((name, ""))) {
        Some((name, "")) => (Some(name), None),
        Some((name, stated)) => (Some(name), Some(stated)),
        None => (None, None),
    };
    let stated = stated.or(own_priority.as_deref());
    let agent = match agent.or(own_agent.as_deref()) {
        Some(name) => {
            AgentName::new(name).map(|name| name.as_str().to_owned()).ok_or_else(|| {
                let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
                Problem::invalid(
                    format!("`{shown}` is not a valid agent name"),
                    "use 1 to 64 of A-Z a-z 0-9 . _ @ - after /as/",
                )
            })?
        }
        None => agent_of(None, headers),
    };
    let configured = configured_calls(settings, &upstream.name, request.method(), &path).cloned();
    Ok(Identified {
        upstream,
        agent,
        priority: stated.or_else(|| header(headers, &names::PRIORITY)).map(priority).transpose()?,
        task: header(headers, &names::TASK).map(str::to_owned),
        wait: header(headers, &names::WAIT).map(wait).transpose()?,
        path,
        configured,
    })
}

/// What the configuration states about calls of a path and method: the first entry that matches.
pub(super) fn configured_calls<'a>(
    settings: &'a Settings,
    provider: &str,
    method: &Method,
    path: &str,
) -> Option<&'a CallSettings> {
    let path = path.split('?').next().unwrap_or_default();
    let calls = &settings.providers.get(provider)?.calls;
    calls.iter().find(|calls| calls.matches(method.as_str(), path))
}

/// Rejects what could reach another place than the provider's API.
fn check_path(uri: &Uri, path: &str) -> Result<(), Problem> {
    // The authority of an absolute address is never used: only configured upstreams are reached.
    if uri.authority().is_some() {
        return Err(Problem::invalid(
            "the request names a whole address, as for a forward proxy",
            "send the path only, and set the base URL of the provider instead of HTTP_PROXY",
        ));
    }
    if !is_plain(path) {
        return Err(Problem::invalid(
            "the path has `..`, `//`, a backslash, or an encoded slash or line break",
            "use the path as the provider documents it",
        ));
    }
    Ok(())
}

/// Splits a path into agent, provider and the provider's path.
fn split(path: &str) -> Option<(Option<&str>, &str, &str)> {
    let rest = path.strip_prefix('/')?;
    let (agent, rest) = match rest.strip_prefix("as/") {
        Some(rest) => {
            let (agent, rest) = rest.split_once('/')?;
            (Some(agent), rest)
        }
        None => (None, rest),
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (provider, path) = rest.split_at(end);
    let path = if path.is_empty() { "/" } else { path };
    (!provider.is_empty()).then_some((agent, provider, path))
}

/// The path with the version of the API. `ANTHROPIC_BASE_URL` has none, but the Vercel AI SDK
/// expects one in it.
fn with_version(provider: &str, path: String) -> String {
    let lacks = provider == "anthropic" && path.starts_with("/messages");
    if lacks { format!("/v1{path}") } else { path }
}

/// Whether a path means the same to every server: no way up, no empty segment, no second slash.
fn is_plain(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let hidden = ["\\", "%2f", "%5c", "%00", "%0a", "%0d", "//"];
    // Some servers ignore what follows a semicolon in a segment.
    let is_up = |segment: &str| {
        let name = segment.split(';').next().unwrap_or_default();
        matches!(name, ".." | "." | "%2e%2e" | ".%2e" | "%2e." | "%2e")
    };
    !hidden.iter().any(|part| lower.contains(part)) && !lower.split('/').any(is_up)
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

fn priority(name: &str) -> Result<Priority, Problem> {
    let mut known = Priority::ALL.into_iter();
    known.find(|priority| priority.as_str().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let what = format!("x-standpipe-priority: `{}` is not a priority", plain(name));
        Problem::invalid(what, "use critical, standard or background")
    })
}

fn wait(length: &str) -> Result<Duration, Problem> {
    let span = text::duration(length).map_err(|wrong| {
        Problem::invalid(format!("x-standpipe-wait: {}", wrong.what), wrong.remedy)
    })?;
    Ok(Duration::from_micros(span.0).min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_agent_and_provider() {
        let messages = "/v1/messages";
        assert_eq!(split("/anthropic/v1/messages"), Some((None, "anthropic", messages)));
        assert_eq!(
            split("/as/blog/anthropic/v1/messages"),
            Some((Some("blog"), "anthropic", messages))
        );
        assert_eq!(split("/as/blog/anthropic"), Some((Some("blog"), "anthropic", "/")));
        assert_eq!(split("/as/blog"), None);
        assert_eq!(split("/"), None);
    }

    #[test]
    fn a_missing_version_is_added() {
        let versioned = |provider, path: &str| with_version(provider, path.to_owned());
        assert_eq!(versioned("anthropic", "/messages"), "/v1/messages");
        assert_eq!(versioned("anthropic", "/v1/messages"), "/v1/messages");
        assert_eq!(versioned("other", "/messages"), "/messages");
    }

    #[test]
    fn paths_that_servers_read_differently_are_rejected() {
        for plain in ["/v1/messages", "/repos/a/b/contents/x.y", "/v1/models/claude-3.5"] {
            assert!(is_plain(plain), "{plain}");
        }
        for odd in ["/../v1", "/v1/%2E%2e/x", "//v1", "/v1/..", "/v1%2fmessages", "/v1\\x", "/./v1"]
            .into_iter()
            .chain(["/v1/..;/x", "/v1/%2e%2e;a=b/x", "/v1%0d%0ahost:evil", "/v1/%5c..%5cx"])
        {
            assert!(!is_plain(odd), "{odd}");
        }
    }
}

//! The upstreams: where each provider is, how its key is added, and the connections to it.
//!
//! Connections are pooled per thread: a request stays on the thread that accepted it, so an answer
//! wakes no other thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use standpipe::Settings;
use standpipe::config::{KeyPools, SplitField};
use standpipe::escape::plain_io;

use crate::http::problem::Problem;

/// The providers that need no configuration, and their addresses.
pub(crate) const BUILT_IN: [(&str, &str); 9] = [
    ("anthropic", "https://api.anthropic.com"),
    ("cerebras", "https://api.cerebras.ai"),
    ("deepseek", "https://api.deepseek.com"),
    ("gemini", "https://generativelanguage.googleapis.com"),
    ("github", "https://api.github.com"),
    ("groq", "https://api.groq.com"),
    ("mistral", "https://api.mistral.ai"),
    ("openai", "https://api.openai.com"),
    ("openrouter", "https://openrouter.ai"),
];

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept. Providers close theirs after a minute or more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
/// After how long without traffic the kernel probes whether the provider is still there.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// The most idle connections to one host, per thread.
const MAX_IDLE: usize = 64;
/// The largest head of an answer, in bytes.
const MAX_HEAD: usize = 256 * 1024;

pub(crate) type UpstreamClient = Client<HttpsConnector<HttpConnector>, Body>;

/// A provider's API.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    /// Scheme, host and the beginning of every path, without a slash at the end.
    base: String,
    key: Option<KeySource>,
    ca: Option<PathBuf>,
    /// By which fields the use of an agent is shown in parts.
    pub(crate) split_by: Vec<SplitField>,
    /// Which pools the calls of different keys draw on.
    pub(crate) keys: KeyPools,
}

#[derive(Debug, PartialEq, Eq)]
enum KeySource {
    File(PathBuf),
    Variable(String),
}

/// The name of the provider at a host: of the configuration, else a built-in one.
pub(super) fn name_at(settings: &Settings, host: &str) -> Option<String> {
    let is_there = |upstream: Option<&str>| upstream.is_some_and(|url| has_host(url, host));
    let mut configured = settings.providers.iter();
    let configured = configured.find(|(_, provider)| is_there(provider.upstream.as_deref()));
    let built_in = || BUILT_IN.iter().find(|(_, url)| has_host(url, host));
    let built_in = || built_in().map(|(name, _)| (*name).to_owned());
    configured.map(|(name, _)| name.clone()).or_else(built_in)
}

/// Whether an address has this host.
fn has_host(url: &str, host: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().is_some_and(|found| found.eq_ignore_ascii_case(host))
}

impl Upstream {
    /// The upstream of this name: from the configuration, else a built-in one.
    pub(crate) fn named(settings: &Settings, name: &str) -> Option<Arc<Self>> {
        let configured = settings.providers.get(name);
        let built_in = BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, url)| *url);
        let base = configured.and_then(|provider| provider.upstream.as_deref()).or(built_in)?;
        let key = configured.and_then(|provider| {
            let file = provider.key_file.clone().map(KeySource::File);
            file.or_else(|| provider.key_env.clone().map(KeySource::Variable))
        });
        Some(Arc::new(Self {
            name: name.to_owned(),
            base: base.trim_end_matches('/').to_owned(),
            key,
            ca: configured.and_then(|provider| provider.ca.clone()),
            split_by: configured.map(|provider| provider.split_by.clone()).unwrap_or_default(),
            keys: configured.map(|provider| provider.keys).unwrap_or_default(),
        }))
    }

    /// The upstream whose real address has this host.
    pub(crate) fn at_host(settings: &Settings, host: &str) -> Option<Arc<Self>> {
        let name = BUILT_IN.iter().find(|(_, url)| has_host(url, host)).map(|(name, _)| *name)?;
        Self::named(settings, name)
    }

    /// Scheme, host and the beginning of every path, without a slash at the end.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The whole address of a path of this API.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri, Problem> {
        format!("{}{path}", self.base).parse().map_err(|_| {
            Problem::invalid("the path is not valid", "use the path as the provider documents it")
        })
    }

    /// Whether the daemon adds the key.
    pub(crate) const fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// The header with the configured key.
    pub(crate) fn key_header(&self) -> Result<Option<(HeaderName, HeaderValue)>, Problem> {
        let Some(source) = &self.key else { return Ok(None) };
        let problem = || {
            tracing::warn!(provider = self.name, "the configured API key cannot be read");
            self.no_key(source)
        };
        let key = match source {
            KeySource::File(path) => std::fs::read_to_string(path).ok(),
            KeySource::Variable(name) => std::env::var(name).ok(),
        };
        let key = key.filter(|key| !key.trim().is_empty()).ok_or_else(problem)?;
        let (name, text) = match self.name.as_str() {
            "anthropic" => ("x-api-key", key.trim().to_owned()),
            "azure" => ("api-key", key.trim().to_owned()),
            "gemini" => ("x-goog-api-key", key.trim().to_owned()),
            _ => ("authorization", format!("Bearer {}", key.trim())),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| problem())?;
        value.set_sensitive(true);
        Ok(Some((HeaderName::from_static(name), value)))
    }

    /// The problem of a key that the daemon does not have. Neither the path of its file nor the key
    /// is shown to clients.
    fn no_key(&self, source: &KeySource) -> Problem {
        let provider = &self.name;
        let (detail, hint) = match source {
            KeySource::Variable(name) => (
                format!("${name}, which key_env of [provider.{provider}] names, is not set"),
                "set it in the environment of the daemon, and restart it".to_owned(),
            ),
            KeySource::File(_) => (
                format!("the key_file of [provider.{provider}] has no key that can be read"),
                "`standpipe config check` on the daemon's machine names the file".to_owned(),
            ),
        };
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no_key", detail, hint)
    }

    /// The problem of a certificate authority that cannot be used. Clients do not see its path.
    fn no_connection(&self) -> Problem {
        let what = format!("the `ca` of [provider.{}] cannot be used", self.name);
        let hint = "`standpipe config check` on the daemon's machine says why";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", what, hint)
    }

    /// The connections of this thread.
    pub(crate) fn client(&self) -> Result<UpstreamClient, Problem> {
        self.client_for(Versions::All)
    }

    /// Connections of this thread that speak only HTTP/1.1, which can become something else.
    pub(crate) fn http1_client(&self) -> Result<UpstreamClient, Problem> {
        self.client_for(Versions::Http1)
    }

    fn client_for(&self, versions: Versions) -> Result<UpstreamClient, Problem> {
        CLIENTS.with_borrow_mut(|clients| {
            let key = (self.ca.clone(), versions);
            if let Some(client) = clients.get(&key) {
                return Ok(client.clone());
            }
            let client = connect(self.ca.as_deref(), versions).map_err(|what| {
                tracing::error!(provider = self.name, "{what}");
                self.no_connection()
            })?;
            clients.insert(key, client.clone());
            Ok(client)
        })
    }
}

thread_local! {
    /// By certificate authority; `None` is the system's.
    static CLIENTS: RefCell<BTreeMap<(Option<PathBuf>, Versions), UpstreamClient>> =
        RefCell::default();
}

/// Which versions of HTTP a connection may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Versions {
    All,
    Http1,
}

fn connect(ca: Option<&Path>, versions: Versions) -> Result<UpstreamClient, String> {
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|_| "TLS cannot be set up: this build has no TLS 1.2 or 1.3".to_owned())?;
    let roots = match ca {
        None => system_authorities(),
        Some(path) => authority(path)?,
    };
    let config = config.with_root_certificates(roots);
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    http.set_keepalive(Some(TCP_KEEPALIVE));
    let https =
        HttpsConnectorBuilder::new().with_tls_config(config.with_no_client_auth()).https_or_http();
    let https = match versions {
        Versions::All => https.enable_all_versions().wrap_connector(http),
        Versions::Http1 => https.enable_http1().wrap_connector(http),
    };
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE)
        .http1_max_buf_size(MAX_HEAD)
        .build(https))
}

/// The system's certificate authorities. Without any, only upstreams over plain HTTP are reached.
fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        tracing::warn!("the system has no certificate authorities; install ca-certificates");
    }
    roots
}

/// The certificate authority of a file, or why there is none.
pub(crate) fn authority(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let pem = std::fs::read(path)
        .map_err(|error| format!("ca {shown} cannot be read: {}", plain_io(&error)))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| format!("ca {shown} is not a PEM file"))?;
        let added = roots.add(certificate);
        added.map_err(|_| format!("ca {shown} contains a certificate that cannot be read"))?;
    }
    if roots.is_empty() {
        return Err(format!("ca {shown} contains no certificate"));
    }
    Ok(roots)
}

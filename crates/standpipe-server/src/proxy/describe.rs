//! What a call to a provider is, read from its request: for clients that make the call themselves.
//!
//! The proxy and these clients agree, because both read calls with the same functions.

use std::fmt;

use axum::body::Bytes;
use axum::http::{Method, StatusCode};
use standpipe::config::CallSettings;
use standpipe::{PoolName, Request, Settings};

use super::errors;
use super::estimate::{Effect, Facts};
use super::format::Format;
use super::identify::configured_calls;
use super::route::pool_name;
use super::sse::UsageFilter;
use super::upstream;

/// A call to a provider, before it is made.
pub struct CallDescription {
    provider: String,
    path: String,
    format: Format,
    facts: Facts,
    effect: Effect,
    configured: Option<CallSettings>,
}

/// Removes the usage from a stream whose client did not ask for it.
#[derive(Default)]
pub struct UsageHider(UsageFilter);

/// Without what the call says.
impl fmt::Debug for CallDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallDescription").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// Without what it has read.
impl fmt::Debug for UsageHider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageHider").finish_non_exhaustive()
    }
}

/// Returns the provider at a host: of the configuration, else a well-known one.
#[must_use]
pub fn provider_at(settings: &Settings, host: &str) -> Option<String> {
    upstream::name_at(settings, host)
}

impl CallDescription {
    /// Reads a call. `provider` is needed where the host is not that of a known provider; without
    /// it the path determines the format. `None` if the call uses no quota or nothing is known of
    /// it.
    #[must_use]
    pub fn of(
        settings: &Settings,
        provider: Option<&str>,
        method: &str,
        host: &str,
        path: &str,
        body: &[u8],
    ) -> Option<Self> {
        let method: Method = method.parse().ok()?;
        let known = provider.map(str::to_owned).or_else(|| upstream::name_at(settings, host));
        let by_path = || Format::of("", &method, path).provider().map(str::to_owned);
        let provider = known.or_else(by_path)?;
        let configured = configured_calls(settings, &provider, &method, path).cloned();
        let format = Format::of(&provider, &method, path).as_configured(configured.as_ref());
        if !format.is_counted() {
            return None;
        }
        let (facts, path) = (Facts::of(format, path, body), path.to_owned());
        let effect = Effect::of(format, &method, &facts);
        Some(Self { provider, path, format, facts, effect, configured })
    }

    /// Returns the pool that the call draws on.
    #[must_use]
    pub fn pool(&self, settings: &Settings) -> Option<PoolName> {
        let configured = self.configured.as_ref().and_then(|calls| calls.pool.clone());
        let by_model =
            || pool_name(settings, &self.provider, self.format, &self.facts, &self.path, None).ok();
        configured.or_else(by_model)
    }

    /// Adds to a request what the call states about its size and model.
    pub fn complete(&self, request: Request) -> Request {
        let cost = self.configured.as_ref().map(|calls| &calls.cost);
        self.facts.complete(request, self.format, self.effect, None, cost)
    }

    /// Returns the body of a refusal of Standpipe in the provider's own format, so that SDKs raise
    /// their own exceptions; `None` if the format is not known.
    #[must_use]
    pub fn refusal(&self, status: u16, message: &str) -> Option<String> {
        let status = StatusCode::from_u16(status).ok()?;
        errors::body(self.format, status, message).map(|body| body.to_string())
    }

    /// Returns the body with a request for the usage of a stream, if the provider states none
    /// otherwise. The answer then goes through a [`UsageHider`].
    #[must_use]
    pub fn body_with_usage(&self, body: &[u8]) -> Option<Vec<u8>> {
        self.facts.lacks_usage(self.format).then(|| self.facts.with_usage(body))
    }
}

impl UsageHider {
    /// Returns what of the next bytes the client gets.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.0.pass(Bytes::copy_from_slice(bytes)).into()
    }

    /// Returns what is left at the end of the stream.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0.finish().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(provider: Option<&str>, host: &str, path: &str) -> Option<CallDescription> {
        let body = br#"{"model":"claude-sonnet-4-5","max_tokens":10,"stream":true}"#;
        CallDescription::of(&Settings::default(), provider, "POST", host, path, body)
    }

    fn pool(call: &CallDescription) -> String {
        call.pool(&Settings::default()).unwrap().to_string()
    }

    #[test]
    fn a_call_is_known_by_its_host_by_a_stated_provider_or_by_its_path() {
        let (host, path) = ("api.anthropic.com", "/v1/messages");
        assert_eq!(pool(&described(None, host, path).unwrap()), "anthropic/sonnet");
        assert_eq!(pool(&described(None, "127.0.0.1:9", path).unwrap()), "anthropic/sonnet");
        let chat = described(Some("my-vllm"), "127.0.0.1:9", "/v1/chat/completions").unwrap();
        assert_eq!(pool(&chat), "my-vllm/claude-sonnet-4-5");
        let known = |host: &str| provider_at(&Settings::default(), host);
        assert_eq!(known("api.openai.com").as_deref(), Some("openai"));
        assert_eq!(known("example.org"), None);
        assert!(described(None, "example.org", "/index.html").is_none());
        assert!(described(None, host, "/v1/models").is_none(), "it uses no quota");
    }

    #[test]
    fn the_usage_of_a_stream_is_asked_for_where_it_is_left_out() {
        let chat = described(None, "api.openai.com", "/v1/chat/completions").unwrap();
        let body = chat.body_with_usage(br#"{"stream":true}"#).unwrap();
        assert!(String::from_utf8(body).unwrap().contains("include_usage"));
        let claude = described(None, "api.anthropic.com", "/v1/messages").unwrap();
        assert!(claude.body_with_usage(b"{}").is_none());
    }
}

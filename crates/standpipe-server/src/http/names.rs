//! Names of headers that are not in the `http` crate.
//!
//! As values they are parsed once. As text they would be parsed at each use, a dozen times a call.

use axum::http::HeaderName;

macro_rules! names {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        $($(#[$doc])* pub(crate) static $constant: HeaderName = HeaderName::from_static($name);)*
    };
}

names! {
    // Of requests to Standpipe.
    AGENT = "x-standpipe-agent";
    PRIORITY = "x-standpipe-priority";
    TASK = "x-standpipe-task";
    WAIT = "x-standpipe-wait";
    /// The token where `authorization` has a provider's key.
    TOKEN = "x-standpipe-token";
    // Of its answers.
    ATTEMPTS = "x-standpipe-attempts";
    LEASE = "x-standpipe-lease";
    POOL = "x-standpipe-pool";
    WAITED = "x-standpipe-waited-ms";
    REASON = "x-standpipe-reason";
    ZONE = "x-standpipe-zone";
    // Of clients.
    SEC_FETCH_SITE = "sec-fetch-site";
    CLAUDE_SESSION = "x-claude-code-session-id";
    CLAUDE_AGENT = "x-claude-code-agent-id";
    CLAUDE_PARENT = "x-claude-code-parent-agent-id";
    /// The SDKs of Anthropic and OpenAI count their retries of a call in it.
    RETRY_COUNT = "x-stainless-retry-count";
    /// Common SDKs state their timeout in it, in seconds.
    SDK_TIMEOUT = "x-stainless-timeout";
    // Of one connection.
    KEEP_ALIVE = "keep-alive";
    PROXY_CONNECTION = "proxy-connection";
}

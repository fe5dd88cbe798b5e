//! The settings of the connections to providers and of the daemon.
//!
//! API keys are referenced by file or environment variable and never stored here.

use std::path::PathBuf;

use super::CallSettings;
#[cfg(feature = "file")]
use crate::keys::{
    form::{FilePath, List, OneOf, Optional, Table},
    text::{Upstream, Variable},
};

settings! {
    /// The connection to a provider.
    pub struct ProviderSettings, "in a provider", check |reader, item, provider| {
        if provider.key_file.is_some() && provider.key_env.is_some() {
            reader.problem_at(item, "has key_file and key_env", "keep one of them");
        }
    } => {
        /// URL of its API, without user or password.
        pub upstream: Option<String> = None, "upstream" as Optional<Upstream>;
        /// File that contains the API key.
        pub key_file: Option<PathBuf> = None, "key_file" as Optional<FilePath>;
        /// Environment variable that contains the API key.
        pub key_env: Option<String> = None, "key_env" as Optional<Variable>;
        /// Certificate authority that signs the provider's certificate.
        pub ca: Option<PathBuf> = None, "ca" as Optional<FilePath>;
        /// Whether all API keys of clients share the pools, or each key has its own.
        pub keys: KeyPools = KeyPools::Shared, "keys" as OneOf<KeyPools>;
        /// Fields of a request by which the proxy divides the use of an agent in views.
        pub split_by: Vec<SplitField> = Vec::new(), "split_by" as List<OneOf<SplitField>>;
        /// Calls by path and method, with their pool and cost; the first match applies.
        pub calls: Vec<CallSettings> = Vec::new(), "calls" as List<Table<CallSettings>>;
    }
}

/// Which pools the calls of different API keys draw on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyPools {
    /// All keys draw on the same pools: they belong to one account.
    #[default]
    Shared,
    /// Every key has pools of its own.
    Separate,
}

/// A field of a request that names on whose behalf an agent calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitField {
    /// The member `user` of the body.
    User,
    /// The header `openai-organization`.
    Organization,
    /// The header `openai-project`.
    Project,
}

settings! {
    /// The endpoints of the daemon.
    pub struct ServerSettings, "in [server]" => {
        /// File that contains the token clients must send.
        pub token_file: Option<PathBuf> = None, "token_file" as Optional<FilePath>;
        /// Unix socket in addition to the TCP address.
        pub socket: Option<PathBuf> = None, "socket" as Optional<FilePath>;
    }
}

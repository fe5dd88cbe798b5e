//! The settings of the connections to providers and of the daemon.
//!
//! API keys are referenced by file or environment variable and never stored here.

use std::path::PathBuf;

#[cfg(feature = "file")]
use crate::keys::{
    form::{FilePath, Optional},
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
    }
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

//! The settings of Standpipe: the data, and `standpipe.toml` parsed, checked and described.
//!
//! ```
//! # #[cfg(feature = "file")] {
//! use standpipe_config::Settings;
//!
//! let text = r#"
//!     [pool."anthropic/sonnet"]
//!     requests = "1000/min"
//!     paralel = 20
//! "#;
//! let error = Settings::parse(text, None, 0).unwrap_err();
//! let message = error.to_string();
//! assert_eq!(message, "line 4: unknown key `paralel` in a pool; did you mean `parallel`?");
//! # }
//! ```
//!
//! Reading order:
//!
//! - `settings`: the data types, usable without a file;
//! - [`parse`] and [`mod@format`]: rates, durations and limits from text and back;
//! - `calendar`: the resets of limits per day, from a time of day and a zone;
//! - `keys`: the table of keys, one row each, from which everything below is derived;
//! - `file`: finds the file, reads it by the table of keys and checks its consistency;
//! - `output`: `config show`, the JSON Schema and the reference page.
//!
//! Features: `file` (on by default) reads `standpipe.toml` and needs the `toml` crate; `describe`
//! (on by default) adds the output in JSON; `redis` accepts the URLs of Redis servers.
//!
//! This crate opens no store and no connection, and no output or error contains a password.

mod calendar;
pub mod escape;
pub mod format;
pub mod parse;
pub mod pattern;

#[cfg(feature = "file")]
mod file;
#[cfg(feature = "file")]
mod keys;
mod nearest;
#[cfg(feature = "file")]
mod output;
mod path;
mod problem;
mod settings;

/// The former name of [`mod@format`].
#[doc(hidden)]
pub use self::format as plain;
/// The former name of [`parse`].
#[doc(hidden)]
pub use self::parse as text;

pub use self::calendar::{DailyReset, ResetsAround};
pub use self::nearest::{nearest, nearest_path};
pub use self::parse::TextError;
pub use self::problem::{ConfigError, Problem};
pub use self::settings::{
    AgentSettings, CallSettings, KeyPools, LongestLease, MAX_ANCESTORS, PoolSettings,
    ProviderSettings, ServerSettings, Settings, Shares, SplitField, StoreFailure, StoreSettings,
    StoreUrl, Toggle, WorkflowSettings, dialect_of, is_reserved,
};

#[cfg(test)]
#[cfg(feature = "describe")]
mod tests;

//! Describes the settings: `config show`, the JSON Schema and the reference page.
//!
//! Everything here is derived from the table of keys.

use standpipe_core::Limit;
use standpipe_dialect::Dialect;
use standpipe_store::PoolName;

use crate::keys::limit;
use crate::settings::{Settings, dialect_of};

#[cfg(feature = "describe")]
mod describe;
mod reference;
#[cfg(feature = "describe")]
mod schema;
mod tables;
mod toml;

impl Settings {
    /// Returns all values in force as a configuration file, with the origin of each as a comment if
    /// `origins` is set. Parsing it gives the same settings, except for hidden passwords.
    #[must_use]
    pub fn to_toml(&self, origins: bool) -> String {
        toml::to_toml(self, origins)
    }

    /// Returns the lines of a file that give a pool these limits. A pool of a known provider that
    /// has none learns them.
    #[must_use]
    pub fn limit_lines(pool: &PoolName, limits: &[Limit]) -> Vec<String> {
        let dialect = dialect_of(pool.as_str(), None);
        let learns = limits.is_empty() && dialect != Dialect::Generic;
        let provider = learns.then(|| format!("provider = \"{}\"", dialect.name()));
        let values = limit::values_of(limits, dialect).into_iter();
        provider.into_iter().chain(values.map(|(key, value)| format!("{key} = {value}"))).collect()
    }

    /// Returns the reference of all keys as Markdown, the content of `docs/reference/config.md`.
    #[must_use]
    pub fn reference() -> String {
        reference::reference()
    }

    /// Returns all values in force without secrets: `file`, and `settings`, a list of `key`,
    /// `value` and `origin` (`FILE:LINE` or `default`).
    #[cfg(feature = "describe")]
    #[must_use]
    pub fn describe(&self) -> serde_json::Value {
        describe::describe(self)
    }

    /// Returns the JSON Schema (draft 2020-12) of the file, for editors.
    #[cfg(feature = "describe")]
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schema::schema()
    }
}

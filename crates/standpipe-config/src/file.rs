//! Reads `standpipe.toml`: finds it, parses it by the table of keys, and checks its consistency.
//!
//! Reading never stops at the first mistake: all problems are collected and returned together, each
//! with its line and a remedy.

use std::path::Path;

use toml::de::DeTable;

use crate::keys::Sectioned;
use crate::problem::ConfigError;
use crate::settings::Settings;

mod consistency;
mod find;
pub(crate) mod reader;
mod syntax;

#[cfg(test)]
#[cfg(feature = "describe")]
pub(crate) use self::find::find;

use self::reader::Reader;

impl Settings {
    /// Reads the first file that exists: `explicit` (from `--config`), `$STANDPIPE_CONFIG`,
    /// `standpipe/standpipe.toml` in the user's configuration directory, the same in `/etc`.
    /// Returns the defaults if there is none. `env` looks up environment variables.
    ///
    /// # Errors
    /// If an explicitly named file does not exist, or a file cannot be read or has problems.
    pub fn find(
        explicit: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        find::find(explicit, env, Path::new("/etc"))
    }

    /// Parses the text of a file. `origin` is its path, for messages and relative paths; `written`
    /// is its modification time in milliseconds.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn parse(text: &str, origin: Option<&Path>, written: u64) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(text, origin);
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            syntax::report(&mut reader, text, &errors);
            // The parser guessed the rest of the file. Checking it would report misleading
            // problems.
            return reader.finish().map(|_| Self::default());
        }
        let mut settings =
            Self { origin: origin.map(Path::to_path_buf), written, ..Self::default() };
        let entries = reader.entries_of(table.get_ref(), "");
        Self::SECTION.read_entries(&mut reader, &entries, &mut settings);
        consistency::check(&mut reader, &settings);
        settings.lines = reader.finish()?;
        Ok(settings)
    }

    /// Returns a short commented file to start with. It is valid as it is.
    #[must_use]
    pub const fn example() -> &'static str {
        include_str!("file/example.toml")
    }
}

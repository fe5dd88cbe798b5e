//! Reads `standpipe.toml`: finds it, parses it by the table of keys, and checks its consistency.
//!
//! Reading never stops at the first mistake: all problems are collected and returned together, each
//! with its line and a remedy.

use std::path::Path;

use toml::de::DeTable;

use crate::keys::Sectioned;
use crate::nearest::nearest;
use crate::problem::{ConfigError, Problem};
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

    /// Returns what [`Settings::find`] returns. Of an invalid file it returns the store and the
    /// endpoints of the daemon, if the store is stated validly, and the first problem: commands
    /// that look at the ledger or stop the daemon need no more.
    ///
    /// # Errors
    /// If a file cannot be read, or may state another store than the default.
    pub fn find_store(
        explicit: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Self, Option<Problem>), ConfigError> {
        let error = match Self::find(explicit, env) {
            Ok(settings) => return Ok((settings, None)),
            Err(error) => error,
        };
        let Some(first) = error.problems.first().cloned() else { return Err(error) };
        match first.file.as_deref().and_then(find::text).and_then(|text| Self::store_in(&text)) {
            Some(settings) => Ok((settings, Some(first))),
            None => Err(error),
        }
    }

    /// Returns the store that a text states, and the endpoints of the daemon. Returns `None` if the
    /// store is not certain: a misspelled key may mean another one than the default.
    pub(crate) fn store_in(text: &str) -> Option<Self> {
        let names = Self::SECTION.names();
        let is_store = |key: &str| nearest(key, names.iter().copied()) == Some("store");
        let is_misspelled = |key: &str| !names.contains(&key) && is_store(key);
        let (mut table, mut errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            // A table with a mistake is not read. The store is certain if it is stated before all
            // tables, and no table can be meant to state it.
            let head = syntax::before_tables(text);
            if syntax::tables(text).any(is_store) {
                return None;
            }
            (table, errors) = DeTable::parse_recoverable(head);
        }
        let mut reader = Reader::new(text, None);
        let entries = reader.entries_of(table.get_ref(), "");
        if !errors.is_empty() || entries.iter().any(|entry| is_misspelled(entry.key)) {
            return None;
        }
        let mut settings = Self::default();
        for key in ["store", "listen", "server"] {
            let entry = entries.iter().filter(|entry| entry.key == key);
            let mut one = Reader::new(text, None);
            let mut read = settings.clone();
            for entry in entry {
                Self::SECTION.read_entries(&mut one, std::slice::from_ref(entry), &mut read);
            }
            match (one.has_no_problems(), key) {
                (true, _) => settings = read,
                (false, "store") => return None,
                (false, _) => {}
            }
        }
        Some(settings)
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
